module github.com/wholelog/wholelog/interop

go 1.26.0

replace github.com/wholelog/wholelog => ../

require (
	github.com/Graylog2/go-gelf v0.0.0-20191017102106-1550ee647df0
	github.com/leodido/go-syslog/v4 v4.6.0
	github.com/wholelog/wholelog v0.0.0-00010101000000-000000000000
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/leodido/ragel-machinery v0.0.0-20190525184631-5f46317e436b // indirect
	golang.org/x/sys v0.50.0
)
