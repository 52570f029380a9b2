package gelf

import (
	"errors"
	"fmt"
	"testing"
)

func TestStatusError(t *testing.T) {
	for want, e := range map[string]*StatusError{
		"gelf: http status 404":               {Status: 404},
		"gelf: http status 413: body too big": {Status: 413, Text: "body too big"},
	} {
		if e.Error() != want {
			t.Errorf("%s, want %s", e, want)
		}
		var got *StatusError
		if !errors.As(fmt.Errorf("post: %w", e), &got) || got.Status != e.Status {
			t.Errorf("%v is not found", e)
		}
	}
}
