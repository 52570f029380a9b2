package front_test

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/front"
	"github.com/wholelog/wholelog/internal/handlertest"
	"github.com/wholelog/wholelog/internal/leak"
	"github.com/wholelog/wholelog/internal/ship"
)

func TestMain(m *testing.M) { leak.Main(m) }

// scribe is an encoder whose messages are a record's number and text. Some texts say what happens to it.
type scribe struct{ buf []byte }

func (s *scribe) Reusable() bool { return len(s.buf) < 100 }

func (s *scribe) encode(seq uint64, text string) {
	s.buf = fmt.Appendf(s.buf[:0], "%d %s", seq, text)
	if text == "panic" {
		panic("in the encoder")
	}
}

// core makes a core over a sink.
func core(t testing.TB, numbered bool, o delivery.Options) (*front.Core[*scribe], *handlertest.Sink) {
	s := new(handlertest.Sink)
	c := front.New(front.Config[*scribe]{
		Ship:     ship.Config{Name: "test", Main: s.Route(), Options: o},
		Encoder:  func() *scribe { return new(scribe) },
		Own:      func(e *scribe, r *slog.Record) []byte { e.encode(0, r.Message); return e.buf },
		Sequence: numbered,
	})
	t.Cleanup(func() { c.Close() })
	return c, s
}

// handle is a handler's Handle.
func handle(c *front.Core[*scribe], text string) (err error) {
	defer c.Catch(slog.LevelInfo, &err)
	e := c.Borrow()
	e.encode(c.Number(), text)
	err = c.Submit(slog.LevelInfo, e.buf, map[string]int{"mended": 2}[text], text == "cut")
	c.Return(e)
	return err
}

func TestNumbers(t *testing.T) {
	for numbered, want := range map[bool][]string{true: {"1 a", "2 b", "3 c"}, false: {"0 a", "0 b", "0 c"}} {
		c, s := core(t, numbered, delivery.Options{})
		for _, text := range []string{"a", "b", "c"} {
			if err := handle(c, text); err != nil {
				t.Error(err)
			}
		}
		if got := s.Sent(t, c); !slices.Equal(got, want) {
			t.Errorf("numbered %v: %q, want %q", numbered, got, want)
		}
	}
}

// What was done to a message is counted when the message is, and after Close nothing is.
func TestCounters(t *testing.T) {
	c, s := core(t, false, delivery.Options{})
	for _, text := range []string{"mended", "cut", "plain"} {
		if err := handle(c, text); err != nil {
			t.Error(err)
		}
	}
	if got := len(s.Sent(t, c)); got != 3 {
		t.Errorf("%d messages", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"mended", "cut", "panic"} {
		if err := handle(c, text); err != delivery.ErrClosed {
			t.Errorf("%s after Close: %v", text, err)
		}
	}
	if st := c.Stats(); st.Accepted != 3 || st.Delivered != 3 || st.Repaired != 2 || st.Truncated != 1 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
}

// A record that the queue has no room for was encoded nevertheless, and what that took is counted.
func TestCountersOfADrop(t *testing.T) {
	c, s := core(t, false, delivery.Options{
		QueueBytes: 512 << 10, Overflow: delivery.DropNewest, CloseTimeout: time.Millisecond, OnError: func(error) {},
	})
	s.Dead = errors.New("no way")
	for c.Put(slog.LevelInfo, make([]byte, 10_000)) == nil {
	}
	long := strings.Repeat("x", 100_000)
	err := c.Submit(slog.LevelInfo, []byte(long), 1, true)
	if !errors.Is(err, delivery.ErrQueueFull) {
		t.Errorf("%v", err)
	}
	if st := c.Stats(); st.Repaired != 1 || st.Truncated != 1 {
		t.Errorf("%+v", st)
	}
}

// A panic below all guards costs the record, not the program, and the next record is well.
func TestPanicIsADrop(t *testing.T) {
	c, s := core(t, true, delivery.Options{OnDrop: func(delivery.Drop) {}})
	err := handle(c, "panic")
	var d delivery.Drop
	if !errors.As(err, &d) || d.Reason != delivery.ReasonPanicked || !strings.Contains(err.Error(), "test: encoding panicked: !PANIC: in the encoder") {
		t.Errorf("%v", err)
	}
	if err := handle(c, "well"); err != nil {
		t.Error(err)
	}
	if got := s.Sent(t, c); !slices.Equal(got, []string{"2 well"}) {
		t.Errorf("%q", got)
	}
	if st := c.Stats(); st.Accepted != 2 || st.Delivered != 1 || st.Dropped != 1 || st.Reasons[delivery.ReasonPanicked] != 1 {
		t.Errorf("%+v", st)
	}
}

// The engine's own record is encoded as any other, takes no number and is counted apart.
func TestOwnRecordsTakeNoNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := core(t, true, delivery.Options{Summary: true, OnDrop: func(delivery.Drop) {}})
		for _, text := range []string{"a", "panic", "b"} {
			_ = handle(c, text)
		}
		got := s.Sent(t, c)
		time.Sleep(time.Minute)
		got = append(got, s.Sent(t, c)...)
		slices.Sort(got) // when the summary leaves is the engine's affair
		if want := []string{"0 log records were lost", "1 a", "3 b"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if st := c.Stats(); st.Own != 1 || st.Accepted != 3 {
			t.Errorf("%+v", st)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An encoder comes back for the next record, unless a giant passed through it.
func TestGiantsAreNotKept(t *testing.T) {
	c, _ := core(t, false, delivery.Options{})
	for range 100 {
		e := c.Borrow()
		if len(e.buf) >= 100 {
			t.Fatalf("%d bytes are kept", len(e.buf))
		}
		e.encode(0, strings.Repeat("x", 200))
		c.Return(e)
	}
}

func TestNewRun(t *testing.T) {
	one, other := front.NewRun(), front.NewRun()
	if one == other || !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(one) {
		t.Errorf("%q, %q", one, other)
	}
}
