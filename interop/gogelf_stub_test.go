package interop

import _ "github.com/Graylog2/go-gelf/gelf"
