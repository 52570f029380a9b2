package attrs

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"
)

const (
	// PanicMark begins the text that stands for a value whose method panicked.
	PanicMark = "!PANIC: "
	// NilText stands for nil of every type.
	NilText = "<nil>"

	maxPointers = 8       // pointers to pointers that are followed
	maxKeptDoc  = 1 << 16 // a larger JSON buffer is not kept
	maxWeight   = 8 << 20 // bytes of memory beyond which a value is not shown as a whole
	maxNesting  = 1000    // the same for parts in parts: a long list would use up the stack, which nothing recovers from
)

// plain turns a value of any type into a scalar or, when it has parts, a JSON document. It shows content, never an
// address. Calls to the value's methods are guarded.
func (w *Walker) plain(x any) (v slog.Value, doc []byte) {
	if w.doc.Cap() > maxKeptDoc {
		w.doc = bytes.Buffer{}
	}
	defer func() {
		if p := recover(); p != nil {
			v, doc = panicked(x, p), nil
		}
	}()
	switch x := x.(type) {
	case nil:
		return slog.StringValue(NilText), nil
	case error: // before Marshaler: an error is asked for its text, whatever else it can do
		return slog.StringValue(x.Error()), nil
	case json.Marshaler:
		return w.marshal(x)
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		if err != nil {
			return w.dump(x)
		}
		return slog.StringValue(string(text)), nil
	case fmt.Stringer:
		return slog.StringValue(x.String()), nil
	case []byte:
		if x != nil && utf8.Valid(x) {
			return slog.StringValue(string(x)), nil
		}
	}
	return w.reflected(reflect.ValueOf(x))
}

// reflected is plain for values without methods of their own: named scalars, pointers and what has parts.
func (w *Walker) reflected(rv reflect.Value) (slog.Value, []byte) {
	for range maxPointers {
		if rv.Kind() != reflect.Pointer || rv.IsNil() {
			break
		}
		rv = rv.Elem()
	}
	switch rv.Kind() {
	case reflect.Bool:
		return slog.BoolValue(rv.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return slog.Int64Value(rv.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return slog.Uint64Value(rv.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return slog.Float64Value(rv.Float()), nil
	case reflect.Complex64, reflect.Complex128:
		return slog.StringValue(strconv.FormatComplex(rv.Complex(), 'g', -1, 128)), nil
	case reflect.String:
		return slog.StringValue(rv.String()), nil
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if rv.IsNil() {
			return slog.StringValue(NilText), nil
		}
	}
	switch rv.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array:
		if s := (scales{left: maxWeight}); !s.put(rv, 0) {
			return w.dump(rv.Interface())
		}
		return w.marshal(rv.Interface())
	case reflect.Interface: // behind a pointer; it may hold that pointer itself, and dump ends there
		return w.dump(rv.Addr().Interface())
	}
	return slog.StringValue(opaque(rv)), nil // a func, channel, unsafe pointer or a chain of pointers
}

// scales weigh a value before it is encoded: encoding/json makes the whole document before it writes a byte of it, so a slice of
// millions would take seconds and hundreds of megabytes in a log call, for a record that is cut to a fraction of that.
type scales struct{ left int }

// put adds the weight of rv, about what encoding/json would walk over, and says whether the scales still hold.
func (s *scales) put(rv reflect.Value, depth int) bool {
	const least = 4 // of any value, with what stands around it
	s.left -= least
	if s.left < 0 || depth > maxNesting {
		return false
	}
	switch rv.Kind() {
	case reflect.String:
		s.left -= rv.Len()
	case reflect.Slice, reflect.Array:
		elem := rv.Type().Elem()
		if k := elem.Kind(); reflect.Bool <= k && k <= reflect.Complex128 {
			size := max(least, int(elem.Size()))
			if rv.Len() > s.left/size {
				return false
			}
			s.left -= rv.Len() * size
			break
		}
		for i := range rv.Len() {
			if !s.put(rv.Index(i), depth+1) {
				return false
			}
		}
	case reflect.Map:
		key, value := reflect.New(rv.Type().Key()).Elem(), reflect.New(rv.Type().Elem()).Elem()
		for it := rv.MapRange(); it.Next(); {
			key.SetIterKey(it)
			value.SetIterValue(it)
			if !s.put(key, depth+1) || !s.put(value, depth+1) {
				return false
			}
		}
	case reflect.Struct:
		for i := range rv.NumField() {
			// Unexported fields are no part of the document, but an embedded struct may hold some that are.
			if f := rv.Field(i); (f.CanInterface() || f.Kind() == reflect.Struct) && !s.put(f, depth+1) {
				return false
			}
		}
	case reflect.Pointer, reflect.Interface:
		return rv.IsNil() || s.put(rv.Elem(), depth+1)
	}
	return s.left >= 0
}

// marshal returns what encoding/json makes of x. Where that fails (a channel, a cycle, NaN, a panic) or shows less than there
// is (a struct without exported fields is "{}"), the parts are dumped.
func (w *Walker) marshal(x any) (slog.Value, []byte) {
	if !w.encode(x) {
		return w.dump(x)
	}
	doc := bytes.TrimSuffix(w.doc.Bytes(), []byte("\n"))
	if v, ok := scalar(doc); ok {
		return v, nil
	}
	if _, own := x.(json.Marshaler); !own && bytes.Contains(doc, []byte("{}")) {
		return w.dump(x)
	}
	return slog.Value{}, doc
}

func (w *Walker) encode(x any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	w.doc.Reset()
	return w.json.Encode(x) == nil
}

func (w *Walker) dump(x any) (slog.Value, []byte) {
	doc := appendDump(nil, reflect.ValueOf(x))
	if v, ok := scalar(doc); ok {
		return v, nil
	}
	return slog.Value{}, doc
}

// scalar returns the value of a JSON document that is neither object nor array.
func scalar(doc []byte) (slog.Value, bool) {
	switch doc[0] {
	case '{', '[':
		return slog.Value{}, false
	case '"':
		var s string
		if json.Unmarshal(doc, &s) != nil {
			s = string(doc)
		}
		return slog.StringValue(s), true
	case 't', 'f':
		return slog.BoolValue(doc[0] == 't'), true
	case 'n':
		return slog.StringValue(NilText), true
	}
	number := string(doc)
	if i, err := strconv.ParseInt(number, 10, 64); err == nil {
		return slog.Int64Value(i), true
	}
	if bytes.ContainsAny(doc, ".eE") {
		if f, err := strconv.ParseFloat(number, 64); err == nil && !math.IsInf(f, 0) {
			return slog.Float64Value(f), true
		}
	}
	return slog.StringValue(number), true // an integer or exponent that no machine type holds
}

// opaque names what has no content to show by its type.
func opaque(rv reflect.Value) string {
	switch rv.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Pointer, reflect.Interface:
		if rv.IsNil() {
			return NilText
		}
	}
	return rv.Type().String()
}

// panicked is what stands for x after one of its methods panicked with p.
func panicked(x, p any) slog.Value {
	// Methods that do not expect a nil receiver are the usual case, and no fault worth more than a word.
	if rv := reflect.ValueOf(x); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return slog.StringValue(NilText)
	}
	return slog.StringValue(PanicText(p))
}

// PanicText returns the text that stands for something whose code panicked with p. It never holds an address and never
// panics.
func PanicText(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%s%T", PanicMark, p)
		}
	}()
	switch p := p.(type) {
	case error:
		return PanicMark + p.Error()
	case fmt.Stringer:
		return PanicMark + p.String()
	case string:
		return PanicMark + p
	}
	return fmt.Sprintf("%s%T", PanicMark, p)
}

// Text returns a resolved value as a String value: a text as it is, everything else as its JSON text.
func (w *Walker) Text(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return v
	case slog.KindAny:
		scalar, doc := w.plain(v.Any())
		if doc != nil {
			return slog.StringValue(string(doc))
		}
		return slog.StringValue(scalar.String())
	case slog.KindGroup:
		return slog.StringValue(v.Kind().String()) // slog's own text of it could show addresses
	}
	return slog.StringValue(v.String())
}
