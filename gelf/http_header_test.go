package gelf

import (
	"net/http"
	"testing"
)

func TestCheckHeader(t *testing.T) {
	for _, x := range []struct {
		h    http.Header
		user bool
		want string
	}{
		{nil, true, ""},
		{http.Header{"X-Token": {"s3cret", "ünd mehr\tdavon"}, "content-type": {"text/plain"}, "User-Agent": {""}}, true, ""},
		{http.Header{"Authorization": {"Bearer s3cret"}}, false, ""},
		{http.Header{"authorization": {"Bearer s3cret"}}, true, "Authorization stands beside user-info in the URL; want one of them"},
		{http.Header{"Authorization: Bearer s3cret": nil}, false, "a name is not that of a field"},
		{http.Header{"": {"s3cret"}}, false, "a name is not that of a field"},
		{http.Header{"X-Tökén": {"s3cret"}}, false, "a name is not that of a field"},
		{http.Header{"X-Token": {"s3cret\r\nHost: other"}}, false, "the value of X-Token holds a control character"},
		{http.Header{"X-Token": {"\x7f"}}, false, "the value of X-Token holds a control character"},
		{http.Header{"host": {"s3cret"}}, false, "Host is the transport's own"},
		{http.Header{"Content-Encoding": {"s3cret"}}, false, "Content-Encoding is the transport's own"},
		{http.Header{"TE": {"s3cret"}}, false, "Te is the transport's own"},
	} {
		err := checkHeader(x.h, x.user)
		if x.want == "" && err != nil || x.want != "" && (err == nil || err.Error() != x.want) {
			t.Errorf("%v: %v, want %q", x.h, err, x.want)
		}
	}
}
