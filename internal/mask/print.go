package mask

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// fieldsOf is the start of every walk: the fields of the struct v, or none when it is anything else.
func fieldsOf(v any) object {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Struct {
		return nil
	}
	return structFields(r)
}

// String prints the struct v for people: name{Field: value, …}.
func String(name string, v any) string {
	return string(appendText(append([]byte(nil), name...), fieldsOf(v)))
}

// JSON prints the struct v as a JSON object with the fields' names as keys, in the struct's order.
func JSON(v any) ([]byte, error) {
	return appendJSON(nil, fieldsOf(v))
}

// LogValue returns the struct v as a group.
func LogValue(v any) slog.Value {
	return logValue(fieldsOf(v))
}

// Enum returns the name of a constant, given those of all in their order from 0, and "Type(9)" for a value that is none. It is the
// String method of this module's enums.
func Enum[E ~uint8](v E, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", reflect.TypeFor[E]().Name(), uint8(v))
}

func appendText(b []byte, value any) []byte {
	switch x := value.(type) {
	case object:
		b = append(b, '{')
		for i, f := range x {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(append(b, f.name...), ": "...)
			b = appendText(b, f.value)
		}
		return append(b, '}')
	case list:
		b = append(b, '[')
		for i, e := range x {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendText(b, e)
		}
		return append(b, ']')
	case string:
		// Quotes only where the end of a text could be missed.
		if x == "" || strings.ContainsAny(x, " ,:{}[]\"\n\r\t") {
			return strconv.AppendQuote(b, x)
		}
		return append(b, x...)
	}
	return fmt.Append(b, value)
}

func appendJSON(b []byte, value any) ([]byte, error) {
	var err error
	switch x := value.(type) {
	case object:
		b = append(b, '{')
		for i, f := range x {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, f.name); err != nil {
				return nil, err
			}
			if b, err = appendJSON(append(b, ':'), f.value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case list:
		b = append(b, '[')
		for i, e := range x {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) { // JSON has no such numbers
			value = fmt.Sprint(x)
		}
	}
	j, err := json.Marshal(value)
	return append(b, j...), err
}

func logValue(value any) slog.Value {
	switch x := value.(type) {
	case object:
		attrs := make([]slog.Attr, len(x))
		for i, f := range x {
			attrs[i] = slog.Attr{Key: f.name, Value: logValue(f.value)}
		}
		return slog.GroupValue(attrs...)
	case list:
		return slog.StringValue(string(appendText(nil, x)))
	}
	return slog.AnyValue(value)
}
