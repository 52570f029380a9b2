package attrs

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxDump      = 64 << 10 // bytes after which no further part is shown
	maxDumpDepth = 16       // parts in parts; a cycle ends here
	dumpEllipsis = "…"      // stands for what was left out
)

// appendDump appends rv as a JSON document, as far as its limits go. Unlike encoding/json it shows unexported fields, NaN,
// channels and maps with keys of any type, goes on after a part that fails, and survives cycles. It follows the names of
// json tags, and leaves out what a tag hides.
func appendDump(dst []byte, rv reflect.Value) []byte {
	d := dumper{buf: dst, limit: len(dst) + maxDump}
	d.value(rv, 0)
	return d.buf
}

type dumper struct {
	buf   []byte
	limit int
}

func (d *dumper) full() bool { return len(d.buf) >= d.limit }

func (d *dumper) value(rv reflect.Value, depth int) {
	if depth > maxDumpDepth || d.full() {
		d.text(dumpEllipsis)
		return
	}
	if rv.IsValid() && d.method(rv) {
		return
	}
	switch rv.Kind() {
	case reflect.Bool:
		d.buf = strconv.AppendBool(d.buf, rv.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.buf = strconv.AppendInt(d.buf, rv.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.buf = strconv.AppendUint(d.buf, rv.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		d.float(rv.Float())
	case reflect.Complex64, reflect.Complex128:
		d.text(strconv.FormatComplex(rv.Complex(), 'g', -1, 128))
	case reflect.String:
		d.text(rv.String())
	case reflect.Invalid:
		d.buf = append(d.buf, "null"...)
	case reflect.Pointer, reflect.Interface:
		d.value(rv.Elem(), depth+1)
	case reflect.Struct:
		d.fields(rv, depth)
	case reflect.Map:
		d.entries(rv, depth)
	case reflect.Slice, reflect.Array:
		d.items(rv, depth)
	default:
		d.text(opaque(rv))
	}
}

// method shows a value by its own methods where it may call them: reflection refuses that for what it reached through an
// unexported field.
func (d *dumper) method(rv reflect.Value) (done bool) {
	if !rv.CanInterface() || rv.Kind() == reflect.Interface {
		return false
	}
	x := rv.Interface()
	before := len(d.buf)
	defer func() {
		if p := recover(); p != nil {
			d.buf = d.buf[:before]
			d.text(panicked(x, p).String())
			done = true
		}
	}()
	switch x := x.(type) {
	case error:
		d.text(x.Error())
	case json.Marshaler:
		doc, err := json.Marshal(x)
		if err != nil || len(doc) > d.limit-len(d.buf) {
			return false
		}
		d.buf = append(d.buf, doc...)
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		if err != nil {
			return false
		}
		d.text(string(text))
	case fmt.Stringer:
		d.text(x.String())
	default:
		return false
	}
	return true
}

func (d *dumper) text(s string) {
	d.buf = append(d.buf, '"')
	before, n := len(d.buf), 0
	d.buf, n, _ = AppendText(d.buf, s, max(d.limit, before+len(dumpEllipsis)))
	if n < len(s) {
		d.buf = append(d.buf, dumpEllipsis...)
	}
	d.buf = append(d.buf, '"')
}

func (d *dumper) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		d.text(FloatText(f))
		return
	}
	d.buf, _ = AppendFloat(d.buf, f)
}

func (d *dumper) fields(rv reflect.Value, depth int) {
	d.buf = append(d.buf, '{')
	sep := ""
	for i := range rv.NumField() {
		f := rv.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "-" || f.Name == "_" || strings.Contains(options, "omit") && rv.Field(i).IsZero() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if d.full() {
			d.rest(&sep)
			break
		}
		d.key(&sep, name)
		d.value(rv.Field(i), depth+1)
	}
	d.buf = append(d.buf, '}')
}

// entries shows a map in the order of its keys' texts, so that equal maps look equal.
func (d *dumper) entries(rv reflect.Value, depth int) {
	type entry struct {
		key   string
		value reflect.Value
	}
	var all []entry
	for it := rv.MapRange(); it.Next() && len(all) < maxDump; {
		all = append(all, entry{keyText(it.Key(), depth), it.Value()})
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	d.buf = append(d.buf, '{')
	sep := ""
	for _, e := range all {
		if d.full() {
			d.rest(&sep)
			break
		}
		d.key(&sep, e.key)
		d.value(e.value, depth+1)
	}
	d.buf = append(d.buf, '}')
}

// keyText returns a map's key as the name of a member.
func keyText(rv reflect.Value, depth int) string {
	if rv.Kind() == reflect.String {
		return rv.String()
	}
	d := dumper{limit: maxDump / 8}
	d.value(rv, depth+1)
	return strings.Trim(string(d.buf), `"`)
}

func (d *dumper) items(rv reflect.Value, depth int) {
	if rv.Kind() == reflect.Slice && rv.IsNil() {
		d.buf = append(d.buf, "null"...)
		return
	}
	if rv.Kind() == reflect.Slice && rv.Type().Elem().Kind() == reflect.Uint8 && utf8.Valid(rv.Bytes()) {
		d.text(string(rv.Bytes()[:min(rv.Len(), maxDump)]))
		return
	}
	d.buf = append(d.buf, '[')
	for i := range rv.Len() {
		if i > 0 {
			d.buf = append(d.buf, ',')
		}
		if d.full() {
			d.text(dumpEllipsis)
			break
		}
		d.value(rv.Index(i), depth+1)
	}
	d.buf = append(d.buf, ']')
}

func (d *dumper) key(sep *string, name string) {
	d.buf = append(d.buf, *sep...)
	*sep = ","
	d.text(name)
	d.buf = append(d.buf, ':')
}

// rest says, inside an object, that it had more members.
func (d *dumper) rest(sep *string) {
	d.key(sep, dumpEllipsis)
	d.text(dumpEllipsis)
}
