module github.com/wholelog/wholelog

go 1.26.0
