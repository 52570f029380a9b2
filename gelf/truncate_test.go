package gelf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wholelog/wholelog/chunk"
)

// truncated is truncate to at most 128 datagrams of size, without compression: whole expected bytes are possible.
func truncated(t testing.TB, record string, size int) string {
	t.Helper()
	c := compressor{mode: CompressNone}
	got, ok := c.truncate([]byte(record), size)
	if !ok {
		t.Fatal("nothing fits")
	}
	return string(got)
}

// At 64 bytes a datagram, 128 of them hold this much.
const room64 = chunk.MaxChunks * (64 - chunk.HeaderSize)

func TestTruncateOrder(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct{ name, record, want string }{
		{
			"full_message first",
			`{"version":"1.1","host":"h","short_message":"` + a(2000) + `","full_message":"` + a(8000) + `","timestamp":1.5,"level":6,"_x":"` + a(3000) + `"}`,
			`{"version":"1.1","host":"h","short_message":"` + a(2000) + `","full_message":"` + a(1539) + `","timestamp":1.5,"level":6,"_x":"` + a(3000) + `","_truncated":6461}`,
		},
		{
			"then the longest text",
			`{"version":"1.1","host":"h","short_message":"s","full_message":"` + a(8000) + `","_x":"` + a(9000) + `","_y":"` + a(1000) + `","_n":12}`,
			`{"version":"1.1","host":"h","short_message":"s","_x":"` + a(5565) + `","_y":"` + a(1000) + `","_n":12,"_truncated":11435}`,
		},
		{
			"equals alike",
			`{"version":"1.1","host":"h","short_message":"s","_x":"` + a(9001) + `","_y":"` + a(9000) + `","_n":12}`,
			`{"version":"1.1","host":"h","short_message":"s","_x":"` + a(3283) + `","_y":"` + a(3282) + `","_n":12,"_truncated":11436}`,
		},
		{
			"short_message before small texts",
			`{"version":"1.1","host":"h","short_message":"` + a(20_000) + `","_request":"` + a(256) + `"}`,
			`{"version":"1.1","host":"h","short_message":"` + a(6320) + `","_request":"` + a(256) + `","_truncated":13680}`,
		},
		{
			"short_message after all other text, and never to a blank",
			`{"version":"1.1","host":"` + a(6580) + `","short_message":" \n\u0020` + a(300) + `","_x":"` + a(300) + `"}`,
			`{"version":"1.1","host":"` + a(6580) + `","short_message":" \n\u0020` + a(4) + `","_truncated":596}`,
		},
		{
			"whole fields at last, the largest first",
			`{"version":"1.1","host":"` + a(6500) + `","short_message":"` + a(300) + `","_small":1,"_large":[` + strings.Repeat("1,", 100) + `1],"_x":"` + a(300) + `"}`,
			`{"version":"1.1","host":"` + a(6500) + `","short_message":"` + a(82) + `","_small":1,"_truncated":721}`,
		},
		{
			"sums add up in one field",
			`{"version":"1.1","host":"h","_truncated":1000,"short_message":"` + a(20_000) + `"}`,
			`{"version":"1.1","host":"h","short_message":"` + a(6590) + `","_truncated":14410}`,
		},
		{
			"white space between tokens",
			" {\t\"version\" : \"1.1\" , \"host\":\"h\",\r\n \"short_message\" : \"" + a(20_000) + "\" , \"_o\" : { \"k\" : [ \"}\\\"\" , 1 ] } }\n",
			`{"version":"1.1","host":"h","short_message":"` + a(6561) + `","_o":{ "k" : [ "}\"" , 1 ] },"_truncated":13439}`,
		},
	} {
		got := truncated(t, c.record, 64)
		if got != c.want {
			t.Errorf("%s: %d bytes\n got %s\nwant %s", c.name, len(got), abridge(got), abridge(c.want))
		}
		if len(got) != room64 {
			t.Errorf("%s: %d bytes, %d fit", c.name, len(got), room64)
		}
		checkTruncated(t, []byte(c.record), []byte(got))
	}
}

// abridge writes runs of the letter a as their number.
func abridge(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		n := len(s) - len(strings.TrimLeft(s, "a"))
		if n > 3 {
			fmt.Fprintf(&b, "a×%d", n)
			s = s[n:]
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

func TestTruncateImpossible(t *testing.T) {
	for name, record := range map[string]string{
		"required fields alone are too long": `{"host":"` + strings.Repeat("h", 7000) + `","short_message":"x"}`,
		"no object":                          `[` + strings.Repeat("1,", 5000) + `1]`,
		"no JSON":                            `{"short_message":"` + strings.Repeat("x", 7000),
		"no value":                           `{"a":` + strings.Repeat(" ", 7000) + `}`,
		"no key":                             `{1:"` + strings.Repeat("x", 7000) + `"}`,
		"no comma":                           `{"a":"` + strings.Repeat("x", 7000) + `""b":1}`,
	} {
		c := compressor{mode: CompressNone}
		if got, ok := c.truncate([]byte(record), 64); ok {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestR19_LimitsCountBytes(t *testing.T) {
	r := newRig(t, udpConfig{chunkSize: 100, compression: CompressNone})
	record := []byte(`{"short_message":"` + strings.Repeat("€", 40) + `"}`)
	if err := r.send(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	got := r.messages(t, 100) // checks the length of every datagram
	if len(got) != 1 || !bytes.Equal(got[0], record) || len(r.sent) != 2 {
		t.Errorf("%d datagrams make %q", len(r.sent), got)
	}
}

func TestR20_CutsFallBetweenCharacters(t *testing.T) {
	for name, text := range map[string]string{
		"ASCII":             "abc",
		"two to four bytes": "é€😀x",
		"short escapes":     `\n\\\"\tx\/`,
		"backslashes":       `\\`,
		"unicode escapes":   `\u00e9\u20ACx\\u0041\\\u0041`,
		"surrogate pairs":   `x\ud83d\ude00\uD83D\uDE00`,
		"lone surrogates":   `\ud83d\ud83dx\ude00\\ud83d\ude00`,
	} {
		whole := strings.Repeat(text, 20)
		for n := range len(whole) + 1 {
			end := boundary([]byte(whole), n)
			if end > n || n-end > 11 {
				t.Fatalf("%s: cut at %d for %d", name, end, n)
			}
			head, tail := decode(t, whole[:end]), decode(t, whole[end:])
			if head+tail != decode(t, whole) {
				t.Fatalf("%s: cut at %d: %q + %q", name, end, head, tail)
			}
			if got := decodedLen([]byte(whole[end:])); got != len(tail) {
				t.Fatalf("%s: decodedLen(%q) is %d, want %d", name, whole[end:], got, len(tail))
			}
		}
	}
}

// decode returns the text that the inside of a JSON string stands for.
func decode(t testing.TB, inside string) string {
	t.Helper()
	var s string
	if err := json.Unmarshal([]byte(`"`+inside+`"`), &s); err != nil {
		t.Fatalf("%q: %v", inside, err)
	}
	return s
}

// Whatever is cut, it is cut because there is no room: nine tenths of 128 chunks are in use.
func TestTruncateUsesTheRoom(t *testing.T) {
	manyTexts := func(n int) string {
		var b strings.Builder
		b.WriteString(`m","full_message":"` + prose(n/2))
		for i := range 200 {
			fmt.Fprintf(&b, `","_f%d":"%s`, i, prose(n/400+i))
		}
		return b.String()
	}
	for name, fill := range map[string]func(int) string{"prose": prose, "noise": noise, "many texts": manyTexts} {
		for _, c := range []struct {
			mode Compression
			size int
		}{
			{CompressAuto, 64},
			{CompressNone, 64},
			{CompressZlib, 64},
			{CompressAuto, 300},
			{CompressNone, 300},
			{CompressGzip, 300},
			{CompressAuto, 1232},
		} {
			if name == "many texts" && c.size == 64 {
				continue // the keys of 200 fields do not fit
			}
			limit := chunk.MaxChunks * (c.size - chunk.HeaderSize)
			record := recordOf(limit*6, fill)
			comp := compressor{mode: c.mode}
			if len(comp.pack(record, c.size)) <= limit {
				t.Fatalf("%s, %+v: nothing to cut", name, c)
			}
			got, ok := comp.truncate(record, c.size)
			if !ok {
				t.Fatalf("%s, %+v: nothing fits", name, c)
			}
			if chunks := chunk.Count(len(got), c.size); chunks > 128 || chunks < 116 {
				t.Errorf("%s, %+v: %d chunks", name, c, chunks)
			}
			checkTruncated(t, record, inflate(t, got))
		}
	}
}

// checkTruncated holds a shortened record against the whole one: valid, texts are beginnings of what they were, everything that a
// receiver needs is there, and _truncated counts every byte that is not.
func checkTruncated(t testing.TB, whole, short []byte) {
	t.Helper()
	if !utf8.Valid(short) || !json.Valid(short) {
		t.Fatalf("not valid: %q", short)
	}
	var before, after map[string]json.RawMessage
	if err := json.Unmarshal(whole, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(short, &after); err != nil {
		t.Fatal(err)
	}
	gone := 0
	for key, value := range before {
		var text, cut string
		isText := json.Unmarshal(value, &text) == nil && value[0] == '"'
		now, present := after[key]
		switch {
		case key == "_truncated":
			if n, err := strconv.ParseUint(string(value), 10, 62); err == nil {
				gone += int(n)
			} else {
				gone += len(value)
			}
		case !present && isText:
			gone += len(text)
		case !present:
			gone += len(value)
		case isText:
			if err := json.Unmarshal(now, &cut); err != nil || !strings.HasPrefix(text, cut) {
				t.Errorf("%s was %q and is %q", key, text, now)
			}
			gone += len(text) - len(cut)
		case !bytes.Equal(value, now):
			t.Errorf("%s was %s and is %s", key, value, now)
		}
	}
	for _, key := range []string{"version", "host", "timestamp", "level"} {
		if !bytes.Equal(before[key], after[key]) {
			t.Errorf("%s was %s and is %s", key, before[key], after[key])
		}
	}
	var was, is string
	if json.Unmarshal(before["short_message"], &was) == nil && strings.TrimSpace(was) != "" {
		if err := json.Unmarshal(after["short_message"], &is); err != nil || strings.TrimSpace(is) == "" {
			t.Errorf("short_message became %q", is)
		}
	}
	n := 0
	if raw, ok := after["_truncated"]; ok {
		if err := json.Unmarshal(raw, &n); err != nil {
			t.Error(err)
		}
	}
	if n != gone {
		t.Errorf("_truncated is %d, %d bytes are gone", n, gone)
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add(`{"version":"1.1","host":"h","short_message":"m","full_message":"\ud83d\ude00\n\\","timestamp":1.5,"level":6,"_x":"€uro"}`, 300, 64, byte(1))
	f.Add(`{"host":"h","short_message":" \u0020x","_truncated":7,"_a":[1,"]"],"_b":{"c":"}"},"_c":true}`, 1000, 70, byte(0))
	f.Add(`{"short_message":"\t","_truncated":"seven","":"","_e":null}`, 400, 65, byte(3))
	f.Add(`{"short_message":"m","_truncated":null}`, 1999, 64, byte(2))
	f.Fuzz(func(t *testing.T, record string, times, size int, mode byte) {
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(record), &fields) != nil || fields == nil || !utf8.ValidString(record) {
			return
		}
		size = 64 + int(uint(size)%100)
		times = int(uint(times) % 2000)
		whole := enlarge(record, times)
		if whole == nil {
			return
		}
		c := compressor{mode: Compression(mode % 4)}
		got, ok := c.truncate(whole, size)
		if !ok {
			return
		}
		if n := chunk.Count(len(got), size); n > chunk.MaxChunks {
			t.Fatalf("%d chunks", n)
		}
		checkTruncated(t, whole, inflate(t, got))
	})
}

// enlarge repeats the inside of every string value of an object, or returns nil for an object that this test cannot follow: one
// with equal keys, or with a key spelled in another way than the encoder does.
func enlarge(record string, times int) []byte {
	seen := map[string]bool{}
	out := []byte("{")
	s := scanner{[]byte(record)}
	s.skip('{')
	for !s.skip('}') {
		s.skip(',')
		key := s.value()
		s.skip(':')
		value := s.value()
		if seen[string(key)] || bytes.ContainsRune(key, '\\') {
			return nil
		}
		seen[string(key)] = true
		if value[0] == '"' && string(key) != `"host"` {
			value = []byte(`"` + strings.Repeat(string(value[1:len(value)-1]), times) + `"`)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}')
}
