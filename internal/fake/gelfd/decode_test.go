package gelfd

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s)) // a bytes.Buffer takes everything
	_ = w.Close()
	return b.String()
}

func zl(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func raw(s string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, 5)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

// ok is a message that is kept; msg is one with more members.
const ok = `{"version":"1.1","host":"h","short_message":"m"}`

func msg(members string) string { return `{"host":"h","short_message":"m",` + members + `}` }

// TestForms: what the first bytes of a payload, and its compression, decide.
func TestForms(t *testing.T) {
	big := func(n int) string { // a message of exactly n bytes
		const head, tail = `{"host":"h","short_message":"`, `"}`
		return head + strings.Repeat("a", n-len(head)-len(tail)) + tail
	}
	for _, tt := range []struct {
		name, in string
		want     Reason // "": kept
		kind     Kind
	}{
		{"plain", ok, "", Plain},
		{"gzip", gz(ok), "", Gzip},
		{"zlib", zl(ok), "", Zlib},
		{"zlib, other level", "\x78\x01" + zl(ok)[2:], "", Zlib},
		{"zlib header fails its check", "\x78\x9d" + zl(ok)[2:], BadType, ""},
		{"zlib with a small window is taken for JSON", "\x18\x19" + zl(ok)[2:], BadJSON, ""},
		{"raw deflate is taken for JSON", raw(ok), BadJSON, ""},
		{"zstd is taken for JSON", "\x28\xb5\x2f\xfd\x04\x00", BadJSON, ""},
		{"1f, then not 8b", "\x1f\x8c" + gz(ok)[2:], BadType, ""},
		{"1e, then not 0f", "\x1e\x0e" + ok, BadType, ""},
		{"a chunk where a payload is expected", "\x1e\x0f" + ok, BadType, ""},
		{"empty", "", BadType, ""},
		{"one byte", "{", BadType, ""},
		{"gzip of two members", gz(ok[:20]) + gz(ok[20:]), "", Gzip},
		{"gzip, then junk", gz(ok) + "junk that is no member", "", Gzip},
		{"gzip, then one byte", gz(ok) + "x", "", Gzip},
		{"gzip without its check sum", gz(ok)[:len(gz(ok))-8], BadInflate, ""},
		{"gzip cut short", gz(ok)[:30], BadInflate, ""},
		{"gzip header only", "\x1f\x8b", BadInflate, ""},
		{"gzip, damaged", gz(ok)[:12] + "\xff\xff\xff" + gz(ok)[15:], BadInflate, ""},
		{"gzip, second member damaged", gz(ok) + gz(ok)[:12] + "\xff\xff\xff" + gz(ok)[15:], BadInflate, ""},
		{"gzip, wrong check sum", gz(ok)[:len(gz(ok))-8] + "\x00\x00\x00\x00" + gz(ok)[len(gz(ok))-4:], BadInflate, ""},
		{"zlib without its check sum", zl(ok)[:len(zl(ok))-4], BadInflate, ""},
		{"zlib, then junk", zl(ok) + "junk", "", Zlib},
		{"inflated to the limit", gz(big(8 << 20)), "", Gzip},
		{"inflated beyond the limit: cut, so no JSON", gz(big(8<<20 + 1)), BadJSON, ""},
		{"the same by zlib", zl(big(8<<20 + 1)), BadJSON, ""},
		{"plain has no limit", big(8<<20 + 1), "", Plain},
		{"gzip within gzip", gz(gz(ok)), BadJSON, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Decode([]byte(tt.in))
			if got := reasonOf(t, err); got != tt.want || doc.Kind != tt.kind {
				t.Errorf("got %q %q (%v), want %q %q", got, doc.Kind, err, tt.want, tt.kind)
			}
		})
	}
}

func reasonOf(t *testing.T, err error) Reason {
	t.Helper()
	var r *Reject
	if err != nil && !errors.As(err, &r) {
		t.Fatalf("error %v is no *Reject", err)
	}
	if r == nil {
		return ""
	}
	if !strings.HasPrefix(err.Error(), "gelfd: refused for "+string(r.Reason)+": ") {
		t.Errorf("text %q", err)
	}
	return r.Reason
}

// TestRefused: messages of which nothing is left.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     Reason
	}{
		{"host null", `{"host":null,"short_message":"m"}`, BadHost},
		{"host number", `{"host":1,"short_message":"m"}`, BadHost},
		{"host empty", `{"host":"","short_message":"m"}`, BadHost},
		{"host blank", `{"host":" \t\u2003","short_message":"m"}`, BadHost},
		{"short_message missing", `{"host":"h"}`, BadMessage},
		{"short_message null", `{"host":"h","short_message":null}`, BadMessage},
		{"short_message number", `{"host":"h","short_message":1}`, BadMessage},
		{"short_message object", `{"host":"h","short_message":{"a":[1]}}`, BadMessage},
		{"short_message empty", `{"host":"h","short_message":""}`, BadMessage},
		{"short_message blank", `{"host":"h","short_message":" \n\u2028"}`, BadMessage},
		{"short_message of control characters", `{"host":"h","short_message":"\u0001"}`, BadMessage},
		{"short_message null is not saved by message", `{"host":"h","short_message":null,"message":"m"}`, BadMessage},
		{"short_message and message blank", `{"host":"h","short_message":" ","message":" "}`, BadMessage},
		{"message null", `{"host":"h","message":null}`, BadMessage},
		{"NaN", msg(`"_a":NaN`), BadJSON},
		{"Infinity", msg(`"_a":-Infinity`), BadJSON},
		{"BOM", "\ufeff" + ok, BadJSON},
		{"additional text of 32767 bytes", msg(`"_a":"` + strings.Repeat("a", 32767) + `"`), BadIndex},
		{"the same in two-byte characters", msg(`"_a":"` + strings.Repeat("é", 16384) + `"`), BadIndex},
		{"container of more than 32766 bytes", msg(`"_a":["` + strings.Repeat("a", 32767) + `"]`), BadIndex},
		{"dotted name of a text too long", msg(`"_a.b":"` + strings.Repeat("a", 32767) + `"`), BadIndex},
		{"host of more than 32766 bytes", `{"host":"` + strings.Repeat("h", 32767) + `","short_message":"m"}`, BadIndex},
		{"null", "null", BadJSON},
		{"array", "[" + ok + "]", BadMessage},
		{"text", `"text"`, BadMessage},
		{"only spaces", "   ", BadJSON},
		{"NUL behind", ok + "\x00", BadJSON},
		{"junk behind", ok + "}", BadJSON},
		{"cut", ok[:len(ok)-1], BadJSON},
		{"single quotes", `{'host':'h'}`, BadJSON},
		{"no quotes", `{host:"h"}`, BadJSON},
		{"comment", `/**/` + ok, BadJSON},
		{"leading zero", msg(`"_a":01`), BadJSON},
		{"plus", msg(`"_a":+1`), BadJSON},
		{"point first", msg(`"_a":.5`), BadJSON},
		{"point last", msg(`"_a":5.`), BadJSON},
		{"no exponent", msg(`"_a":5e`), BadJSON},
		{"minus alone", msg(`"_a":-`), BadJSON},
		{"hexadecimal", msg(`"_a":0x10`), BadJSON},
		{"number of 1001 characters", msg(`"_a":` + strings.Repeat("1", 1001)), BadJSON},
		{"two commas", msg(`"_a":1,,"_b":2`), BadJSON},
		{"only a comma", `{,}`, BadJSON},
		{"no comma", msg(`"_a":1 "_b":2`), BadJSON},
		{"no colon", msg(`"_a" 1`), BadJSON},
		{"no value", msg(`"_a":`), BadJSON},
		{"bad escape", msg(`"_a":"\x"`), BadJSON},
		{"bad \\u", msg(`"_a":"\u12g4"`), BadJSON},
		{"bad \\u after a surrogate", msg(`"_a":"\ud800\u12g4"`), BadJSON},
		{"short \\u", `{"a":"\u12`, BadJSON},
		{"escape at the end", `{"a":"\`, BadJSON},
		{"unfinished text", `{"a":"b`, BadJSON},
		{"unfinished array", `{"a":[1`, BadJSON},
		{"bad array element", `{"a":[x]}`, BadJSON},
		{"bad key", `{"a` + "\n", BadJSON},
		{"nested too deeply", msg(`"_a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), BadJSON},
		{"objects nested too deeply", msg(`"_a":` + strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)), BadJSON},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Decode([]byte(tt.in))
			if got := reasonOf(t, err); got != tt.want {
				t.Errorf("got %q (%v, %v), want %q", got, err, doc.Fields, tt.want)
			}
		})
	}
}

// TestFields: what is left of the members of a message that is kept.
func TestFields(t *testing.T) {
	type f = map[string]any
	drop := func(s ...string) (d []Dropped) { // name, fault, name, fault …
		for i := 0; i < len(s); i += 2 {
			d = append(d, Dropped{s[i], Fault(s[i+1])})
		}
		return d
	}
	long := strings.Repeat("a", 32766)
	deep := strings.Repeat("[", 998) + strings.Repeat("]", 998)
	for _, tt := range []struct {
		name, in string
		want     f // beside message "m" and source "h", unless these are given; nil removes
		dropped  []Dropped
	}{
		{"as it should be", ok, f{}, nil},
		{"version is ignored", msg(`"version":7`), f{}, nil},
		{"version missing", `{"host":"h","short_message":"m"}`, f{}, nil},
		{"host missing", `{"short_message":"m"}`, f{"source": nil}, nil},
		{"host trimmed", `{"host":" h ","short_message":"m"}`, f{}, nil},
		{"short_message trimmed", `{"host":"h","short_message":"\n m\t"}`, f{}, nil},
		{"message in place of short_message", `{"host":"h","message":" m "}`, f{}, nil},
		{"message beside a blank short_message", `{"host":"h","short_message":" ","message":"m"}`, f{}, nil},
		{"message beside short_message", msg(`"message":"x"`), f{}, drop("message", "taken")},
		{"no-break space is not blank", `{"host":"\u00a0","short_message":"\u2007"}`, f{"source": "\u00a0", "message": "\u2007"}, nil},

		{"timestamp", msg(`"timestamp":1625488496.012`), f{"timestamp": time.UnixMilli(1625488496012).UTC()}, nil},
		{"timestamp rounded to ms", msg(`"timestamp":1625488496.0126`), f{"timestamp": time.UnixMilli(1625488496013).UTC()}, nil},
		{"timestamp as text", msg(`"timestamp":"1625488496.5"`), f{"timestamp": time.UnixMilli(1625488496500).UTC()}, nil},
		{"timestamp with exponent", msg(`"timestamp":1.625488496e9`), f{"timestamp": time.UnixMilli(1625488496000).UTC()}, nil},
		{"timestamp in ms", msg(`"timestamp":1700000000000`), f{"timestamp": time.UnixMilli(1700000000000000).UTC()}, nil},
		{"timestamp 0", msg(`"timestamp":0`), f{}, nil},
		{"timestamp negative", msg(`"timestamp":-1`), f{}, nil},
		{"timestamp null", msg(`"timestamp":null`), f{}, nil},
		{"timestamp true", msg(`"timestamp":true`), f{}, nil},
		{"timestamp ISO", msg(`"timestamp":"2021-07-05T12:34:56Z"`), f{}, nil},
		{"timestamp NaN", msg(`"timestamp":"NaN"`), f{}, nil},

		{"level", msg(`"level":6`), f{"level": int64(6)}, nil},
		{"level 9", msg(`"level":9`), f{"level": int64(9)}, nil},
		{"level -3", msg(`"level":-3`), f{"level": int64(-3)}, nil},
		{"level as text", msg(`"level":"3"`), f{"level": int64(3)}, nil},
		{"level 3.7", msg(`"level":3.7`), f{"level": int64(3)}, nil},
		{"level warn", msg(`"level":"warn"`), f{"level": "warn"}, nil},
		{"level true", msg(`"level":true`), f{"level": int64(1)}, nil},
		{"level false", msg(`"level":false`), f{"level": int64(0)}, nil},
		{"level null", msg(`"level":null`), f{}, drop("level", "null")},
		{"level too large", msg(`"level":1e300`), f{"level": int64(math.MaxInt64)}, nil},
		{"level too small", msg(`"level":-1e300`), f{"level": -1e300}, nil},
		{"line", msg(`"line":12,"file":"a.go","facility":"f"`), f{"line": int64(12), "file": "a.go", "facility": "f"}, nil},
		{"file empty", msg(`"file":""`), f{}, drop("file", "blank")},
		{"full_message", msg(`"full_message":" x "`), f{"full_message": "x"}, nil},
		{"full_message null", msg(`"full_message":null`), f{"full_message": "null"}, nil},
		{"full_message number", msg(`"full_message":1.50`), f{"full_message": "1.50"}, nil},
		{"full_message object", msg(`"full_message":{"a":1}`), f{"full_message": `{"a":1}`}, nil},
		{"full_message of 100000 bytes", msg(`"full_message":"` + strings.Repeat("x", 100_000) + `"`), f{"full_message": strings.Repeat("x", 100_000)}, nil},
		{"short_message of 100000 bytes", `{"host":"h","short_message":"` + strings.Repeat("x", 100_000) + `"}`, f{"message": strings.Repeat("x", 100_000)}, nil},

		{"bool", msg(`"_a":true,"_b":false`), f{}, drop("_a", "bool", "_b", "bool")},
		{"null", msg(`"_a":null`), f{}, drop("_a", "null")},
		{"blank", msg(`"_a":"","_b":" \t"`), f{}, drop("_a", "blank", "_b", "blank")},
		{"text trimmed", msg(`"_a":" x\n"`), f{"a": "x"}, nil},
		{"object and array", msg(`"_a":{"b":[1,"x\n<",null,true,{}]},"_c":[]`), f{"a": `{"b":[1,"x\n<",null,true,{}]}`, "c": "[]"}, nil},
		{"object with two members", msg(`"_a":{"b":1,"c":2.50}`), f{"a": `{"b":1,"c":2.50}`}, nil},
		{"numbers", msg(`"_a":1234,"_b":1.5,"_c":-0,"_d":1e3`), f{"a": int64(1234), "b": 1.5, "c": int64(0), "d": 1000.0}, nil},
		{"largest integers", msg(`"_a":9223372036854775807,"_b":-9223372036854775808`), f{"a": int64(math.MaxInt64), "b": int64(math.MinInt64)}, nil},
		{"float beyond its range", msg(`"_a":1e999`), f{"a": math.Inf(1)}, nil},
		{"text of 32766 bytes", msg(`"_a":"` + long + `"`), f{"a": long}, nil},
		{"deep, but not too deep", msg(`"_a":` + deep), f{"a": deep}, nil},

		{"names", msg(`"_aZ09_.@-":1`), f{"aZ09__@-": int64(1)}, nil},
		{"bad names", msg(`"_a b":1,"_a/b":1,"_a:b":1,"_$":1,"_ä":1`), f{}, drop("_a b", "name", "_a/b", "name", "_a:b", "name", "_$", "name", "_ä", "name")},
		{"empty name", msg(`"":1`), f{}, drop("", "name")},
		{"underscore alone", msg(`"_":1`), f{"_": int64(1)}, nil},
		{"spaces around a name", msg(`"_ a ":1`), f{"a": int64(1)}, nil},
		{"without underscore", msg(`"a":1`), f{"a": int64(1)}, nil},
		{"two underscores", msg(`"__a":1`), f{"_a": int64(1)}, nil},
		{"_x and x: the first wins", msg(`"_x":1,"x":2`), f{"x": int64(1)}, drop("x", "taken")},
		{"x and _x: the first wins", msg(`"x":2,"_x":1`), f{"x": int64(2)}, drop("_x", "taken")},
		{"the same key: the last wins", msg(`"_x":1,"_y":2,"_x":3`), f{"x": int64(3), "y": int64(2)}, drop("_x", "duplicate")},
		{"the same standard key: the last wins", msg(`"short_message":"n"`), f{"message": "n"}, drop("short_message", "duplicate")},
		{"dots become underscores", msg(`"_a.b.c":1`), f{"a_b_c": int64(1)}, nil},
		{"a.b and a_b collide", msg(`"_a.b":1,"_a_b":2`), f{"a_b": int64(2)}, drop("_a.b", "collision")},
		{"a_b and a.b collide", msg(`"_a_b":2,"_a.b":1`), f{"a_b": int64(2)}, drop("_a.b", "collision")},
		{"two dotted names collide", msg(`"_a.b_c":1,"_a_b.c":2`), f{"a_b_c": int64(1)}, drop("_a_b.c", "collision")},

		{"_id", msg(`"_id":"x"`), f{"id": "x"}, nil},
		{"__id", msg(`"__id":"x"`), f{}, drop("__id", "reserved")},
		{
			"names of standard fields", msg(`"level":1,"facility":"f","file":"f","line":1,"_message":"x","_source":"x","_timestamp":1,"_host":"x",` +
				`"_short_message":"x","_level":2,"_facility":"x","_file":"x","_line":2`),
			f{"level": int64(1), "facility": "f", "file": "f", "line": int64(1)},
			drop("_message", "taken", "_source", "taken", "_timestamp", "taken", "_host", "reserved", "_short_message", "reserved",
				"_level", "taken", "_facility", "taken", "_file", "taken", "_line", "taken"),
		},
		{"the same without the standard ones", msg(`"_level":"x","_line":"y"`), f{"level": "x", "line": "y"}, nil},
		{"source", msg(`"source":"x"`), f{}, drop("source", "taken")},
		{"_version", msg(`"_version":"x"`), f{"version": "x"}, nil},
		{"names of the index", msg(`"_ttl":1,"_type":2,"_index":3,"_score":4`), f{"ttl": int64(1), "type": int64(2), "index": int64(3), "score": int64(4)}, nil},
		{
			"the same with two underscores", msg(`"__ttl":1,"__type":2,"__index":3,"__score":4,"__source":5,"__all":6`),
			f{},
			drop("__ttl", "reserved", "__type", "reserved", "__index", "reserved", "__score", "reserved", "__source", "reserved", "__all", "reserved"),
		},
		{"_gl2_*", msg(`"_gl2_remote_ip":"x"`), f{"gl2_remote_ip": "x"}, nil},
		{"_streams", msg(`"_streams":"x"`), f{"streams": "x"}, nil},

		{"damaged UTF-8", msg("\"_a\":\"x\xffy\""), f{"a": "x\ufffdy"}, nil},
		{"lone surrogates", msg(`"_a":"\ud800","_b":"\ud800x","_c":"\udc00","_d":"\ud800\u0041"`), f{"a": "\ufffd", "b": "\ufffdx", "c": "\ufffd", "d": "\ufffdA"}, nil},
		{"pair", msg(`"_a":"\ud83d\ude00"`), f{"a": "😀"}, nil},
		{"escapes", msg(`"_a":"x\"\\\/\b\f\n\r\t\u0000x"`), f{"a": "x\"\\/\b\f\n\r\t\x00x"}, nil},
		{"raw control characters", msg("\"_a\":\"x\x00\n\x1fy\""), f{"a": "x\x00\n\x1fy"}, nil},
		{"trailing comma", `{"host":"h","short_message":"m","_a":[1,],}`, f{"a": "[1]"}, nil},
		{"padded with spaces", " \r\n\t" + ok + strings.Repeat(" ", 3000), f{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Decode([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			want := f{"message": "m", "source": "h"}
			for k, v := range tt.want {
				want[k] = v
				if v == nil {
					delete(want, k)
				}
			}
			if !reflect.DeepEqual(doc.Fields, want) {
				t.Errorf("fields\ngot  %v\nwant %v", doc.Fields, want)
			}
			if !reflect.DeepEqual(doc.Dropped, tt.dropped) {
				t.Errorf("dropped\ngot  %v\nwant %v", doc.Dropped, tt.dropped)
			}
			if doc.Wrapped != nil || doc.More || string(doc.Raw) != tt.in {
				t.Errorf("wrapped %v, more %v, raw %q", doc.Wrapped, doc.More, doc.Raw)
			}
		})
	}
}

func TestWrapped(t *testing.T) {
	doc, err := Decode([]byte(msg(`"_a":18446744073709551615,"_b":9223372036854775808,"_c":-9223372036854775809,"_d":1`)))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(doc.Fields["a"], doc.Fields["b"], doc.Fields["c"], doc.Fields["d"]); got != "-1 -9223372036854775808 9223372036854775807 1" {
		t.Errorf("got %s", got)
	}
	if got := fmt.Sprint(doc.Wrapped); got != "[_a _b _c]" {
		t.Errorf("wrapped %s", got)
	}
}

func TestSecondObjectIsIgnored(t *testing.T) {
	for _, more := range []string{ok, "\n" + ok, " 1", " [", ` "x"`, " null"} {
		doc, err := Decode([]byte(ok + more))
		if err != nil || !doc.More {
			t.Errorf("%q: more is %v, error %v", more, doc.More, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{ok, gz(ok), zl(ok), msg(`"_a":[1,{"b":"\ud800"}],`), "{", "\x1f\x8b", `{"a":1e9,"a":null}`, "\ufeff{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		doc, err := Decode(in)
		if reason := reasonOf(t, err); reason != "" {
			return
		}
		if s, _ := doc.Fields["message"].(string); s == "" {
			t.Fatalf("kept without a message: %v", doc.Fields)
		}
		for name, v := range doc.Fields {
			switch v.(type) {
			case string, int64, float64, time.Time:
			default:
				t.Fatalf("%s is a %T", name, v)
			}
			if strings.Contains(name, ".") || !validName(name) {
				t.Fatalf("name %q", name)
			}
		}
	})
}
