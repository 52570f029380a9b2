package syslog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
)

// This is what the package's comment says about texts and names, a second time and slowly, for the fuzz test to compare with.

// lineOf is a text as plain text and structured data show it.
func lineOf(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // U+FFFD for what is none
		}
		s = s[size:]
	}
	return b.String()
}

// textOf is a message as MSG shows it.
func textOf(s string, f Format) string {
	if rest, ok := strings.CutPrefix(s, "\uFEFF"); ok && f == RFC5424 {
		return `\ufeff` + lineOf(rest)
	}
	return lineOf(s)
}

// docTextOf is a text as it comes out of a JSON parser.
func docTextOf(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == 0 {
			b.WriteString(`\x00`)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// wordOf is a name or a value of text attributes.
func wordOf(s string) string {
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == '=' || r == '"' || r == 0x7f || r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r)
	}) {
		return strconv.Quote(s)
	}
	return s
}

// paramOf is the PARAM-NAME of a path: 32 characters of what a name may have, of which the outer groups go first.
func paramOf(path []string) string {
	var parts []string
	for _, p := range path {
		p = strings.Map(func(r rune) rune {
			if r <= ' ' || r >= 0x7f || r == '=' || r == ']' || r == '"' {
				return '_'
			}
			return r
		}, p)
		if p == "" {
			p = "_"
		}
		parts = append(parts, p)
	}
	name, groups := parts[len(parts)-1], strings.Join(parts[:len(parts)-1], ".")
	for groups != "" && len(groups)+len(".")+len(name) > 32 {
		_, groups, _ = strings.Cut(groups, ".")
	}
	if groups != "" {
		name = groups + "." + name
	}
	return name[:min(len(name), 32)]
}

// field is an attribute that was logged: its path, and its value as text.
type field struct {
	path  []string
	value string
	text  bool // it was a text, so that JSON has it in quotes
	list  bool // it was a list of one text, and value is its JSON
}

// kept says whether got is want, or what a mark says is the beginning of it.
func kept(got, want string, cut bool) bool {
	if got == want {
		return true
	}
	i := strings.LastIndex(got, markStart)
	return cut && i >= 0 && strings.HasPrefix(want, got[:i]) && strings.HasSuffix(got, markEnd)
}

// checkParams compares structured data with what was logged. When something was cut, some may be missing.
func checkParams(t *testing.T, got []syslogd.Param, want []field, cut bool) {
	t.Helper()
	for _, w := range want {
		name, value := paramOf(w.path), w.value
		if w.text || w.list {
			value = lineOf(value)
		}
		if len(got) > 0 && got[0].Name == name && kept(got[0].Value, value, cut) {
			got = got[1:]
		} else if !cut {
			t.Fatalf("%.200q of %q is missing before %.200q", value, name, got)
		}
	}
	if len(got) > 0 {
		t.Fatalf("%.200q was not logged", got)
	}
}

// checkWords compares attributes behind a text.
func checkWords(t *testing.T, got string, want []field) {
	t.Helper()
	for _, w := range want {
		value := w.value
		if w.text || w.list {
			value = wordOf(value)
		}
		rest, ok := strings.CutPrefix(got, " "+wordOf(strings.Join(w.path, "."))+"="+value)
		if !ok {
			t.Fatalf("%.200q of %q is missing before %.200q", value, w.path, got)
		}
		got = rest
	}
	if got != "" {
		t.Fatalf("%.200q was not logged", got)
	}
}

// checkDoc compares the members of a JSON document, the record's own first, and returns the text.
func checkDoc(t *testing.T, doc string, own, want []field, cut bool) (text string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(doc))
	leaves := members(t, d, nil)
	if len(leaves) < 2 || leaves[0].path[0] != "msg" || leaves[1].path[0] != "level" || !json.Valid([]byte(doc)) {
		t.Fatalf("%.200q", doc)
	}
	text, leaves = leaves[0].value, leaves[2:]
	reserved := []string{"msg", "level"}
	for _, o := range own {
		reserved = append(reserved, o.path[0])
		if len(leaves) == 0 || leaves[0].path[0] != o.path[0] || leaves[0].value != o.value || leaves[0].text != o.text {
			t.Fatalf("%+v is missing before %+v", o, leaves)
		}
		leaves = leaves[1:]
	}
	for _, w := range want {
		var path []string
		for _, name := range w.path {
			path = append(path, docTextOf(name))
		}
		if slices.Contains(reserved, path[0]) {
			path[0] += "_"
		}
		value := w.value
		if w.text || w.list {
			value = docTextOf(value)
		}
		if w.list {
			value = strings.ReplaceAll(value, `\u0000`, `\\x00`)
		}
		found := len(leaves) > 0 && slices.Equal(leaves[0].path, path) && leaves[0].text == w.text
		if found && w.list {
			var got, all []string
			found = json.Unmarshal([]byte(leaves[0].value), &got) == nil && json.Unmarshal([]byte(value), &all) == nil && slices.Equal(got, all)
		} else if found {
			found = kept(leaves[0].value, value, cut)
		}
		if found {
			leaves = leaves[1:]
		} else if !cut {
			t.Fatalf("%.200q of %q is missing before %+v", value, path, leaves)
		}
	}
	if len(leaves) > 0 {
		t.Fatalf("%+v was not logged", leaves)
	}
	return text
}

// members lists what an object holds that is no object, in order.
func members(t *testing.T, d *json.Decoder, path []string) (all []field) {
	t.Helper()
	next := func() json.Token {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	if next() != json.Delim('{') {
		t.Fatal("no object")
	}
	for d.More() {
		inner := append(slices.Clip(path), next().(string))
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		switch raw[0] {
		case '{':
			all = append(all, members(t, json.NewDecoder(bytes.NewReader(raw)), inner)...)
		case '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			all = append(all, field{path: inner, value: s, text: true})
		default:
			all = append(all, field{path: inner, value: string(raw)})
		}
	}
	next()
	return all
}
