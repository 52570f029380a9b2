package gelf

import "fmt"

// StatusError is an HTTP answer that is no success, as errors hold it: always a *StatusError. Only http and https have any.
type StatusError struct {
	Status int    // the status code
	Text   string // the beginning of the body, in one line, without the handler's credentials; of a redirect where it leads
}

// Error returns the status and the text.
func (e *StatusError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("gelf: http status %d", e.Status)
	}
	return fmt.Sprintf("gelf: http status %d: %s", e.Status, e.Text)
}
