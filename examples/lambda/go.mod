module github.com/wholelog/wholelog/examples/lambda

go 1.26.0

replace github.com/wholelog/wholelog => ../..

require (
	github.com/aws/aws-lambda-go v1.55.1
	github.com/wholelog/wholelog v0.0.0-00010101000000-000000000000
)

require github.com/klauspost/compress v1.20.4 // indirect
