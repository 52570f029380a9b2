package gelf

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("n", 300)
	for _, x := range []struct {
		name     string
		in       []slog.Attr
		want     string
		repaired int
	}{
		{"R12 underscore in front", []slog.Attr{slog.Int("foo", 1)}, `,"_foo":1`, 0},
		{"all that is allowed", []slog.Attr{slog.Int("aZ0_.-x", 1)}, `,"_aZ0_.-x":1`, 0},
		{"R11 other characters", []slog.Attr{slog.Int("a b/c:d@e$f", 1)}, `,"_a_b_c_d_e_f":1`, 1},
		{"R11 one for each character, not byte", []slog.Attr{slog.Int("größe", 1)}, `,"_gr__e":1`, 1},
		{"R11 invalid UTF-8", []slog.Attr{slog.Int("a\xff\xfeb", 1)}, `,"_a__b":1`, 1},
		{"R67 without a key", []slog.Attr{slog.Int("!BADKEY", 1)}, `,"_BADKEY":1`, 1},
		{"underscores in front go", []slog.Attr{slog.Int("__ttl", 1), slog.Int("_x", 2)}, `,"_ttl":1,"_x":2`, 2},
		{"no name", []slog.Attr{slog.Int("", 1), slog.Int("€", 2)}, `,"_unnamed":1,"_unnamed_2":2`, 2},
		{"R10 id", []slog.Attr{slog.Int("id", 1), slog.Int("_id", 2), slog.Int("id_", 3)}, `,"_id_":1,"_id__2":2,"_id__3":3`, 3},
		{"R13 names of the message's own", []slog.Attr{
			slog.Int("message", 1), slog.Int("level", 2), slog.Int("source", 3), slog.Int("time", 4), slog.Int("msg", 5), slog.Int("timestamp", 6),
			slog.Int("host", 7), slog.Int("short_message", 8), slog.Int("full_message", 9), slog.Int("streams", 10), slog.Int("truncated", 11),
		}, `,"_message_":1,"_level_":2,"_source_":3,"_time":4,"_msg":5,"_timestamp_":6,"_host_":7,"_short_message_":8,"_full_message_":9,"_streams_":10,"_truncated_":11`, 9},
		{"names of the message's own, with dots", []slog.Attr{slog.Int("full.message", 1), slog.Group("short", slog.Int("message", 2))}, `,"_full.message_":1,"_short.message_":2`, 2},
		{"names that only look so", []slog.Attr{slog.Int("identity", 1), slog.Int("Id", 2), slog.Int("gl2", 3), slog.Int("version", 4), slog.Int("file", 5), slog.Int("line", 6), slog.Int("facility", 7)}, `,"_identity":1,"_Id":2,"_gl2":3,"_version":4,"_file":5,"_line":6,"_facility":7`, 0},
		{"the server's own", []slog.Attr{slog.Int("gl2_remote_ip", 1), slog.Group("gl2", slog.Int("source", 2)), slog.Int("gl2_remote_ip", 3)}, `,"_gl2_remote_ip_":1,"_gl2.source_":2,"_gl2_remote_ip__2":3`, 3},
		{"twice", []slog.Attr{slog.Int("a", 1), slog.Int("a", 2), slog.Int("a", 3)}, `,"_a":1,"_a_2":2,"_a_3":3`, 2},
		{"the same to the server", []slog.Attr{slog.Int("a.b", 1), slog.Int("a_b", 2), slog.Group("a", slog.Int("b", 3)), slog.Int("_a.b", 4)}, `,"_a.b":1,"_a_b_2":2,"_a.b_3":3,"_a.b_4":4`, 3},
		{"a number that is taken", []slog.Attr{slog.Int("a_2", 1), slog.Int("a", 2), slog.Int("a", 3)}, `,"_a_2":1,"_a":2,"_a_3":3`, 1},
		{"long names", []slog.Attr{slog.Int(long, 1), slog.Int(long, 2)}, `,"_` + long[:256] + `":1,"_` + long[:256] + `_2":2`, 2},
		{"R64 groups", []slog.Attr{slog.Group("m", slog.Int("k", 1), slog.Group("n", slog.Int("k", 2)), slog.Int("l", 3))}, `,"_m.k":1,"_m.n.k":2,"_m.l":3`, 0},
		{"names of groups", []slog.Attr{slog.Group("my group", slog.Int("a", 1), slog.Int("b", 2)), slog.Int("c", 3)}, `,"_my_group.a":1,"_my_group.b":2,"_c":3`, 2},
		{"underscores in groups", []slog.Attr{slog.Group("_g", slog.Int("_a", 1))}, `,"_g._a":1`, 1},
		{"deep groups", []slog.Attr{slog.Group(long, slog.Group("h", slog.Int("a", 1), slog.Int("b", 2))), slog.Int("c", 3)}, `,"_` + long[:256] + `":1,"_` + long[:256] + `_2":2,"_c":3`, 2},
	} {
		h := testHandler(t, Options{})
		for range 2 { // the second time names are known
			message, tally := encode(h, info("m", x.in...))
			if got := fields(t, message); got != x.want || tally.repaired != x.repaired {
				t.Errorf("%s:\n got %s, %d repaired\nwant %s, %d repaired", x.name, got, tally.repaired, x.want, x.repaired)
			}
			keepsAll(t, message, len(x.in))
		}
	}
}

// keepsAll fails when the receiver would refuse the message, or one of its fields.
func keepsAll(t testing.TB, message string, atLeast int) gelfd.Doc {
	t.Helper()
	doc, err := gelfd.Decode([]byte(message))
	if err != nil {
		t.Fatalf("%v: %.2000s", err, message)
	}
	if len(doc.Dropped) > 0 || len(doc.Wrapped) > 0 || doc.More {
		t.Fatalf("dropped %v, wrapped %v, more %v of %.2000s", doc.Dropped, doc.Wrapped, doc.More, message)
	}
	if len(doc.Fields) < atLeast+len([]string{"message", "source", "level"}) {
		t.Fatalf("%d fields of %.2000s", len(doc.Fields), message)
	}
	return doc
}

// A table that is full, a thousand equal names, and names that were numbers of others.
func TestManyNames(t *testing.T) {
	h := testHandler(t, Options{})
	var as []slog.Attr
	for i := range 1000 {
		as = append(as, slog.Int("same", i), slog.Int(fmt.Sprint("n", i), i))
	}
	message, tally := encode(h, info("m", as...))
	keepsAll(t, message, len(as))
	if tally.repaired != 999 {
		t.Errorf("%d repaired, want 999", tally.repaired)
	}
	for _, want := range []string{`"_same":0,`, `"_same_2":1,`, `"_same_1000":999,`, `"_n999":999,`} {
		if !strings.Contains(message, want) {
			t.Errorf("no %s", want)
		}
	}
}

// Two keys in one place of the cache push each other out, and the names stay right.
func TestKnownNamesShareAPlace(t *testing.T) {
	h := testHandler(t, Options{})
	var as []slog.Attr
	var want strings.Builder
	for c := 'a'; c <= 'z'; c++ {
		for d := 'a'; d <= 'z'; d++ {
			as = append(as, slog.Int(string([]rune{c, d}), 1))
			if c != 'i' || d != 'd' {
				fmt.Fprintf(&want, `,"_%c%c":1`, c, d)
			} else {
				want.WriteString(`,"_id_":1`)
			}
		}
	}
	for range 3 {
		message, _ := encode(h, info("m", as...))
		if got := fields(t, message); got != want.String() {
			t.Fatalf("%s\nwant\n%s", got, want.String())
		}
	}
}

func TestHashNameSeesNamesAsTheServerDoes(t *testing.T) {
	same := [][2]string{{"a.b", "a_b"}, {"........", "________"}, {"abc.defg.hij", "abc_defg_hij"}, {".", "_"}, {"abcdefg.", "abcdefg_"}}
	for _, s := range same {
		if hashName([]byte(s[0])) != hashName([]byte(s[1])) {
			t.Errorf("%s and %s differ", s[0], s[1])
		}
	}
	seen := map[uint64]string{}
	for _, s := range []string{"", "a", "b", "aa", "ab", "ba", "a_", "_a", "a-", "abcdefgh", "abcdefghi", "abcdefgha", "abcdefgh_", "habcdefg", "a.a", "a/a", "-", "/"} {
		h := hashName([]byte(s))
		if other, ok := seen[h]; ok || h == 0 {
			t.Errorf("%q and %q have one hash, %x", s, other, h)
		}
		seen[h] = s
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a", "b", "a.b")
	f.Add("id", "_id", "__id")
	f.Add("gl2", "x", "gl2_x")
	f.Add("", "\xff", "größe")
	f.Add("truncated", "seq", "full.message")
	valid := regexp.MustCompile(`^"_[A-Za-z0-9_.-]+"$`)
	keys := regexp.MustCompile(`"[^"]*"`)
	h := testHandler(f, Options{})
	f.Fuzz(func(t *testing.T, a, b, c string) {
		message, _ := encode(h, info("m", slog.Int(a, 1), slog.Group(a, slog.Int(b, 2), slog.Group(c, slog.Int(a, 3))), slog.Int(b, 4), slog.Int(c, 5), slog.Int(c, 6)))
		keepsAll(t, message, 6)
		for _, key := range keys.FindAllString(fields(t, message), -1) {
			if !valid.MatchString(key) || strings.HasPrefix(key, `"__`) {
				t.Fatalf("key %s", key)
			}
		}
	})
}
