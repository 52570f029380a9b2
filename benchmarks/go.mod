module github.com/wholelog/wholelog/benchmarks

go 1.26.0

replace github.com/wholelog/wholelog => ../

require (
	github.com/Graylog2/go-gelf v0.0.0-20191017102106-1550ee647df0
	github.com/RackSec/srslog v0.0.0-20180709174129-a4725f04ec91
	github.com/lmittmann/tint v1.2.1
	github.com/rs/zerolog v1.35.1
	github.com/sirupsen/logrus v1.10.2
	github.com/wholelog/wholelog v0.0.0-00010101000000-000000000000
	go.uber.org/zap v1.28.0
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	golang.org/x/sys v0.29.0 // indirect
)
