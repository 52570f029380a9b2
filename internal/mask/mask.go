// Package mask prints configurations without their secrets. It is the machinery behind the String, GoString, MarshalJSON and
// LogValue methods of every Options and Handler.
//
// What a reader sees is what was set: fields that are zero, which means their default, are left out. Funcs, interfaces,
// pointers (a *tls.Config for one) and channels are never looked into; they show as "set" or "unset", always. Durations and
// enums show as text, header values and fields with the name of a secret as [Hidden], and user-info in URLs is hidden wherever
// it stands in a string. Printing never panics.
package mask

import (
	"cmp"
	"encoding"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// Hidden stands in the place of a secret.
const Hidden = "***"

// panicked stands in the place of a text whose method panicked.
const panicked = "!PANIC"

// field is one member of an object. Its value is a string, bool, int64, uint64, float64, object or list.
type field struct {
	name  string
	value any
}

type (
	object []field
	list   []any
)

// isSecret says whether a name marks a text as secret.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range [...]string{"token", "password", "passwd", "secret", "authorization", "cookie", "credential", "apikey", "api_key"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// structFields returns the exported fields of a struct that have something to say.
func structFields(v reflect.Value) object {
	var o object
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		if value, ok := printable(f.Name, v.Field(i)); ok {
			o = append(o, field{f.Name, value})
		}
	}
	return o
}

// printable returns what may be seen of v, the value called name; ok is false when that says nothing.
func printable(name string, v reflect.Value) (value any, ok bool) {
	switch v.Kind() {
	case reflect.Func, reflect.Interface, reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		if v.IsNil() {
			return "unset", true
		}
		return "set", true
	case reflect.Struct:
		if m, ok := v.Interface().(encoding.TextMarshaler); ok { // times and addresses
			return text(m), !v.IsZero()
		}
		o := structFields(v)
		return o, len(o) > 0
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
		if isSecret(name) && !v.IsZero() {
			return Hidden, true
		}
	}
	switch v.Kind() {
	case reflect.Map:
		o := mapFields(v)
		return o, len(o) > 0
	case reflect.Slice, reflect.Array:
		return elements(name, v), !v.IsZero() && v.Len() > 0
	}
	return scalar(v), !v.IsZero()
}

// mapFields returns a map's entries, sorted. Of headers only the names may be seen.
func mapFields(v reflect.Value) object {
	header := v.Type() == reflect.TypeFor[http.Header]()
	var o object
	for _, key := range v.MapKeys() {
		name := fmt.Sprint(scalar(key))
		if header {
			o = append(o, field{name, Hidden})
			continue
		}
		if value, ok := printable(name, v.MapIndex(key)); ok {
			o = append(o, field{name, value})
		}
	}
	slices.SortFunc(o, func(a, b field) int { return cmp.Compare(a.name, b.name) })
	return o
}

// elements returns all elements of a slice or an array. Places count there, so that zeros are shown.
func elements(name string, v reflect.Value) list {
	l := make(list, v.Len())
	for i := range l {
		l[i], _ = printable(name, v.Index(i))
	}
	return l
}

// scalar returns v as text when it has a text, else as it is.
func scalar(v reflect.Value) any {
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return guarded(s.String)
	}
	switch {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	case v.CanFloat():
		return v.Float()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	}
	return Text(fmt.Sprint(v))
}

func text(m encoding.TextMarshaler) string {
	return guarded(func() string {
		b, err := m.MarshalText()
		if err != nil {
			return err.Error()
		}
		return string(b)
	})
}

// guarded calls a method that may be anybody's, and hides what its text should not show.
func guarded(f func() string) (s string) {
	defer func() {
		if recover() != nil {
			s = panicked
		}
	}()
	return Text(f())
}

// Error returns the text of err as [Text] leaves it: "" for nil, "!PANIC" when its method panics.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return guarded(err.Error)
}

// Text hides the user-info of every URL in s: "http://user:pass@host/" becomes "http://***@host/". What stands between "://"
// and the last @ before a space or a quote counts as user-info. That hides too much where a path holds an @, and enough where
// a password holds a slash that should have been escaped.
func Text(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "://")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString("://")
		end := strings.IndexAny(rest, " \t\r\n\"'`<>")
		if end < 0 {
			end = len(rest)
		}
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
			b.WriteString(Hidden)
			rest = rest[at:]
		}
		s = rest
	}
}
