// Package layering keeps the arrows between the packages of this repository. The arrows are data, in rules.go; [Check] reads the
// import clauses of every Go file that is not a test and compares. It is run by this package's tests only.
package layering

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// module is the path that all packages of the repository share, nested modules included.
const module = "github.com/wholelog/wholelog"

// Violation is one import that no rule allows.
type Violation struct {
	File   string // slash-separated, relative to the repository's root, with the line
	Import string
	Rule   string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s imports %s: %s", v.File, v.Import, v.Rule)
}

// Check compares all Go files of a tree with the rules. It parses files instead of asking the go command, so that files for other
// systems count as well and nothing has to compile. Test files are free: they may use the fakes, testify and each other's fixtures.
func Check(tree fs.FS, rules []Rule) ([]Violation, error) {
	var found []Violation
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		v, err := checkFile(tree, name, rules)
		found = append(found, v...)
		return err
	})
	return found, err
}

func checkFile(tree fs.FS, name string, rules []Rule) ([]Violation, error) {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	rule, ruled := ruleFor(path.Dir(name), rules)
	var found []Violation
	for _, spec := range f.Imports {
		imported := strings.Trim(spec.Path.Value, "`\"")
		if ruled && rule.allows(imported) {
			continue
		}
		found = append(found, Violation{
			File:   fmt.Sprintf("%s:%d", name, files.Position(spec.Pos()).Line),
			Import: imported,
			Rule:   rule.String(),
		})
	}
	return found, nil
}

// ruleFor returns the row of a package, the longest pattern first, so that a folder may differ from the tree that holds it. A
// package that no row names may import nothing at all: a new one needs its row, which is the moment to think about its place.
func ruleFor(pkg string, rules []Rule) (best Rule, ok bool) {
	for _, r := range rules {
		if matches(r.Package, pkg) && (!ok || len(r.Package) > len(best.Package)) {
			best, ok = r, true
		}
	}
	return best, ok
}

// matches knows the patterns of the go command that are needed: a path, or a path and everything below it.
func matches(pattern, pkg string) bool {
	base, deep := strings.CutSuffix(pattern, "/...")
	return pkg == base || deep && strings.HasPrefix(pkg, base+"/")
}

func (r Rule) allows(imported string) bool {
	if inside, ok := strings.CutPrefix(imported+"/", module+"/"); ok {
		return anyMatches(r.Module, path.Clean(inside))
	}
	// The go command's own test: only paths of the standard library have no dot in their first element.
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return true
	}
	return r.AnyOutside || anyMatches(r.Outside, imported)
}

func anyMatches(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if matches(p, pkg) {
			return true
		}
	}
	return false
}

// String says what the rule permits, in the words of the failure message.
func (r Rule) String() string {
	if r.Package == "" {
		return "no rule names this package"
	}
	permitted := append([]string{"the standard library"}, r.Module...)
	permitted = append(permitted, r.Outside...)
	if r.AnyOutside {
		permitted = append(permitted, "any other module")
	}
	return fmt.Sprintf("%s may import %s only", r.Package, strings.Join(permitted, ", "))
}
