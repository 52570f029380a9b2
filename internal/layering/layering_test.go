package layering

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// The arrows of this repository. A failure names the file, the import and the rule: move the code down, or the need is new and
// the row in rules.go changes with a reason.
func TestArrows(t *testing.T) {
	found, err := Check(os.DirFS("../.."), Rules())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// Every row that DESIGN gives a direction to, as a program that goes the wrong way.
func TestRulesForbid(t *testing.T) {
	for _, tc := range []struct{ pkg, imported string }{
		{"chunk", module + "/jitter"},
		{"chunk", "github.com/klauspost/compress/gzip"},
		{"jitter", module + "/delivery"},
		{"delivery", module + "/resolve"},
		{"resolve", module + "/internal/pool"},
		{"resolve", module + "/internal/ship"},
		{"internal/pool", module + "/internal/ship"},
		{"internal/pool", module + "/internal/fake/dnsd"},
		{"internal/ship", module + "/gelf"},
		{"internal/ship", module + "/chunk"},
		{"internal/ship", module + "/internal/attrs"},
		{"internal/attrs", module + "/internal/ship"},
		{"gelf", module + "/syslog"},
		{"gelf", module},
		{"gelf", module + "/internal/leak"},
		{"gelf", module + "/internal/fake/gelfd"},
		{"gelf", "github.com/stretchr/testify/require"},
		{"syslog", module + "/chunk"},
		{"hec", module + "/gelf"},
		{"internal/fake/gelfd", module + "/gelf"},
		{"examples/quickstart", module + "/internal/ship"},
		{"examples/quickstart", "github.com/stretchr/testify/require"},
		{"adapters/zapadapter", module + "/gelf"},
		{"interop", module + "/internal/ship"},
		{"surprise", "fmt"},
		{"gelfish", "fmt"},
	} {
		found, err := Check(source(tc.pkg+"/x.go", tc.imported), Rules())
		if err != nil || len(found) != 1 {
			t.Errorf("%s → %s: found %v, %v; want one violation", tc.pkg, tc.imported, found, err)
		}
	}
}

func TestRulesAllow(t *testing.T) {
	for _, tc := range []struct{ pkg, imported string }{
		{"chunk", "encoding/binary"},
		{"delivery", module + "/jitter"},
		{"internal/pool", "golang.org/x/sync/singleflight"},
		{"internal/ship", module + "/internal/pool"},
		{"gelf", module + "/chunk"},
		{"gelf", "github.com/klauspost/compress/gzip"},
		{".", module + "/gelf"},
		{"internal/fake/gelfd", module + "/chunk"},
		{"examples/quickstart", module + "/internal/fake/gelfd"},
		{"examples/quickstart", module + "/gelf"},
		{"adapters/zapadapter", "go.uber.org/zap/zapcore"},
		{"benchmarks", module + "/internal/ship"},
	} {
		found, err := Check(source(strings.TrimPrefix(tc.pkg+"/x.go", "./"), tc.imported), Rules())
		if err != nil || len(found) != 0 {
			t.Errorf("%s → %s: found %v, %v; want none", tc.pkg, tc.imported, found, err)
		}
	}
}

func TestCheckReport(t *testing.T) {
	tree := fstest.MapFS{
		"low/a.go":          {Data: []byte("package low\n\nimport (\n\t\"fmt\"\n\tup \"" + module + "/high\"\n)\n")},
		"low/a_windows.go":  {Data: []byte("package low\n\nimport `" + module + "/high`\n")},
		"low/a_test.go":     {Data: []byte("package low\n\nimport \"" + module + "/high\"\n")},
		"low/testdata/b.go": {Data: []byte("package not even Go")},
		".cache/c.go":       {Data: []byte("package not even Go")},
		"high/h.go":         {Data: []byte("package high\n\nimport \"" + module + "/low\"\n")},
		"high/inner/i.go":   {Data: []byte("package inner\n\nimport \"" + module + "/low\"\n")},
	}
	rules := []Rule{
		{Package: "low", Outside: []string{"example.com/x"}},
		{Package: "high/...", Module: []string{"low"}},
		{Package: "high/inner", AnyOutside: true},
	}
	found, err := Check(tree, rules)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range found {
		got = append(got, v.String())
	}
	want := []string{
		"high/inner/i.go:3 imports " + module + "/low: high/inner may import the standard library, any other module only",
		"low/a.go:5 imports " + module + "/high: low may import the standard library, example.com/x only",
		"low/a_windows.go:3 imports " + module + "/high: low may import the standard library, example.com/x only",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCheckErrors(t *testing.T) {
	if _, err := Check(fstest.MapFS{"chunk/x.go": {Data: []byte("not Go")}}, Rules()); err == nil {
		t.Error("a file that is not Go passes")
	}
	if _, err := Check(os.DirFS("no such folder"), Rules()); err == nil {
		t.Error("a missing tree passes")
	}
	found, err := Check(source("surprise/x.go", "fmt"), Rules())
	if err != nil || len(found) != 1 || found[0].Rule != "no rule names this package" {
		t.Errorf("an unknown package gives %v, %v", found, err)
	}
}

// source is a tree of one file with one import.
func source(name, imported string) fstest.MapFS {
	return fstest.MapFS{name: {Data: []byte("package x\n\nimport _ \"" + imported + "\"\n")}}
}
