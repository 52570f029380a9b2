//go:build linux || darwin

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// invocation is one event for the function.
type invocation struct {
	id    string
	event []byte
}

// answer is what the function has posted for an invocation. The function waits until accept is called.
type answer struct {
	id, kind string // kind is response or error
	body     string
	accept   func()
}

// runtimeAPI is the Lambda Runtime API, version 2018-06-01, and of the Extensions API what an extension needs that wants no events.
// Requests that it does not know are refused, and fail the test.
type runtimeAPI struct {
	addr string // for AWS_LAMBDA_RUNTIME_API

	extensions chan string     // names, as they register
	asked      chan struct{}   // the function wants the next invocation: its init phase, or the one before, is over
	next       chan invocation // what it then gets; holds one
	answers    chan answer
	wrong      chan string // requests that were refused, and errors of the init phase
	closed     chan struct{}
}

func startRuntimeAPI(t *testing.T) *runtimeAPI {
	t.Helper()
	a := &runtimeAPI{
		extensions: make(chan string, 8),
		asked:      make(chan struct{}),
		next:       make(chan invocation, 1),
		answers:    make(chan answer),
		wrong:      make(chan string, 8),
		closed:     make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2020-01-01/extension/register", a.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", a.event)
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", a.invoke)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{kind}", a.answer)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { // /runtime/init/error too: no function of ours posts there
		text, _ := io.ReadAll(r.Body)
		a.refuse(w, http.StatusNotFound, fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, text))
	})
	s := httptest.NewServer(mux)
	a.addr = strings.TrimPrefix(s.URL, "http://")
	t.Cleanup(func() {
		close(a.closed)
		s.Close()
		close(a.wrong)
		for w := range a.wrong {
			t.Errorf("the runtime API refused: %s", w)
		}
	})
	return a
}

func (a *runtimeAPI) refuse(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	select {
	case a.wrong <- text:
	default: // the first ones say enough
	}
}

// register takes an internal extension. Only with one is the process told of its end.
func (a *runtimeAPI) register(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get("Lambda-Extension-Name")
	w.Header().Set("Lambda-Extension-Identifier", "extension-"+name)
	w.WriteHeader(http.StatusOK)
	a.extensions <- name
}

// event never answers an extension that registered for no event.
func (a *runtimeAPI) event(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-a.closed:
	}
}

func (a *runtimeAPI) invoke(w http.ResponseWriter, r *http.Request) {
	select {
	case a.asked <- struct{}{}:
	case <-r.Context().Done():
		return
	case <-a.closed:
		return
	}
	select {
	case i := <-a.next:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", i.id)
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(patience).UnixMilli(), 10))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:123456789012:function:orders")
		w.Header().Set("Lambda-Runtime-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0")
		_, _ = w.Write(i.event) // a function that is gone is noticed where its answer is missing
	case <-r.Context().Done():
	case <-a.closed:
	}
}

func (a *runtimeAPI) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	kind := r.PathValue("kind")
	if err != nil || kind != "response" && kind != "error" {
		a.refuse(w, http.StatusBadRequest, fmt.Sprintf("%s: %v", r.URL.Path, err))
		return
	}
	accepted := make(chan struct{})
	select {
	case a.answers <- answer{r.PathValue("id"), kind, string(body), func() { close(accepted) }}:
	case <-r.Context().Done():
		return
	case <-a.closed:
		return
	}
	select {
	case <-accepted:
		w.WriteHeader(http.StatusAccepted)
	case <-r.Context().Done():
	case <-a.closed:
	}
}
