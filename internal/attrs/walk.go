// Package attrs is what the encoders of all protocols share: the walk over the attributes of a slog record, the rules for
// values of any type, and JSON text without reflection.
//
// Nothing that a user supplies can panic through it: LogValue, Error, String, MarshalJSON, MarshalText and ReplaceAttr are
// guarded, and the attribute shows a text that begins with [PanicMark] instead.
package attrs

import (
	"bytes"
	"encoding/json"
	"log/slog"
)

const (
	// maxDepth bounds groups in groups: a LogValue that returns a group holding itself never ends.
	maxDepth = 64
	// maxAttrs bounds the attributes of one walk: such a group that holds itself twice would visit 2^maxDepth of them.
	maxAttrs = 1 << 16
	// maxLogValues bounds LogValues that return a LogValuer; it is slog's own limit.
	maxLogValues = 100
)

// Visitor is a protocol's encoder: it takes the attributes in the order in which they were logged.
type Visitor interface {
	// Attr takes an attribute with a scalar value. kind is v's: String, Int64, Uint64, Float64, Bool, Duration or Time.
	Attr(key string, kind slog.Kind, v slog.Value)
	// Doc takes an attribute whose value is a JSON object or array, compact and valid. doc may be kept only until Doc
	// returns.
	Doc(key string, doc []byte)
	// Open begins a group; name is not empty. What it returns is given back to Close: where the visitor has to return to.
	Open(name string) (mark int)
	// Close ends the group. empty says that nothing was visited since Open, so that the group has to vanish.
	Close(mark int, empty bool)
}

// Walker walks over attributes and shows them, resolved, to a Visitor. Groups with an empty name are inlined; attributes
// that are zero and groups without content are left out. A Walker is not safe for concurrent use; it is meant to be pooled
// together with its Visitor.
type Walker struct {
	// Replace is slog.HandlerOptions.ReplaceAttr. It may be nil.
	Replace func(groups []string, a slog.Attr) slog.Attr

	visitor Visitor
	groups  []string // the open groups, for Replace
	depth   int
	left    int // attributes that may still be visited
	json    *json.Encoder
	doc     bytes.Buffer // what json writes to

	exhausted bool
}

// NewWalker returns a Walker that shows what it finds to v.
func NewWalker(v Visitor, replace func(groups []string, a slog.Attr) slog.Attr) *Walker {
	w := &Walker{Replace: replace, visitor: v}
	w.json = json.NewEncoder(&w.doc)
	w.json.SetEscapeHTML(false)
	return w
}

// Begin prepares for a new record. groups are those that WithGroup opened around what is walked next.
func (w *Walker) Begin(groups []string) {
	if w.Replace != nil {
		w.groups = append(w.groups[:0], groups...)
	}
	w.depth, w.left, w.exhausted = 0, maxAttrs, false
}

// Record walks over the attributes of a record. It returns whether the visitor was shown something.
func (w *Walker) Record(r *slog.Record) (shown bool) {
	r.Attrs(func(a slog.Attr) bool {
		shown = w.attr(a) || shown
		return true
	})
	return shown
}

// Attrs walks over as. It returns whether the visitor was shown something.
func (w *Walker) Attrs(as []slog.Attr) (shown bool) {
	for i := range as {
		shown = w.attr(as[i]) || shown
	}
	return shown
}

// Exhausted returns whether attributes were left out since Begin because there were too many.
func (w *Walker) Exhausted() bool { return w.exhausted }

func (w *Walker) attr(a slog.Attr) bool {
	if w.left == 0 {
		w.exhausted = true
		return false
	}
	w.left--
	kind := a.Value.Kind()
	if w.Replace == nil && kind != slog.KindAny && kind != slog.KindGroup && kind != slog.KindLogValuer {
		w.visitor.Attr(a.Key, kind, a.Value)
		return true
	}
	return w.resolved(a)
}

// resolved is attr for everything that is not a scalar as it stands. It is apart to keep the frame of attr small.
func (w *Walker) resolved(a slog.Attr) bool {
	a.Value = resolve(a.Value)
	if w.Replace != nil && a.Value.Kind() != slog.KindGroup {
		a = w.Replaced(w.groups, a)
	}
	switch kind := a.Value.Kind(); kind {
	case slog.KindGroup:
		return w.group(a.Key, a.Value.Group())
	case slog.KindAny:
		if a.Key == "" && a.Value.Any() == nil {
			return false // the zero Attr
		}
		if v, doc := w.plain(a.Value.Any()); doc != nil {
			w.visitor.Doc(a.Key, doc)
		} else {
			w.visitor.Attr(a.Key, v.Kind(), v)
		}
	default:
		w.visitor.Attr(a.Key, kind, a.Value)
	}
	return true
}

func (w *Walker) group(name string, as []slog.Attr) (shown bool) {
	if len(as) == 0 {
		return false
	}
	if w.depth == maxDepth {
		w.visitor.Attr(name, slog.KindString, slog.StringValue("!DEPTH: too many groups in groups"))
		return true
	}
	w.depth++
	if name == "" {
		shown = w.Attrs(as)
	} else {
		mark := w.visitor.Open(name)
		w.groups = append(w.groups, name)
		shown = w.Attrs(as)
		w.groups = w.groups[:len(w.groups)-1]
		w.visitor.Close(mark, !shown)
	}
	w.depth--
	return shown
}

// Replaced returns what Replace makes of a, resolved. When Replace panics, the value becomes a text that says so: it may
// be there to hide the value, so the value must not be shown. Replace must not be nil.
func (w *Walker) Replaced(groups []string, a slog.Attr) (out slog.Attr) {
	defer func() {
		if p := recover(); p != nil {
			out = slog.Attr{Key: a.Key, Value: slog.StringValue(PanicText(p))}
		}
	}()
	if len(groups) == 0 {
		groups = nil
	}
	out = w.Replace(groups[:len(groups):len(groups)], a)
	out.Value = resolve(out.Value)
	return out
}

// resolve is slog.Value.Resolve with a text of ours for a panic: that of slog holds the stack, with the paths of source files.
func resolve(v slog.Value) (out slog.Value) {
	if v.Kind() != slog.KindLogValuer {
		return v
	}
	defer func() {
		if p := recover(); p != nil {
			out = slog.StringValue(PanicText(p))
		}
	}()
	for range maxLogValues {
		if v = v.LogValuer().LogValue(); v.Kind() != slog.KindLogValuer {
			return v
		}
	}
	return slog.StringValue("!LOOP: LogValue returns a LogValuer, again and again")
}
