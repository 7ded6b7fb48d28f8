// Package texts counts the sentences of the product that a golden holds, or that have a
// reason not to be in one.
package texts

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"index/suffixarray"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../../.."

var (
	// foreign are folders without code that users run.
	foreign = regexp.MustCompile(`(^|/)(\.[^/]+|testdata|tools|examples|conformance|internal/testing|[^/]+test|testkit|damage)$`)
	// keeps are the files that tests compare with what the product says, in full; the pages
	// are generated from what it says of its arguments.
	keeps  = regexp.MustCompile(`(^|/)testdata/mistakes\.txt$|^docs/.*\.md$`)
	verb   = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z%]`)
	letter = regexp.MustCompile(`\pL`)
)

// sentence is a text of three words or more, beside its verbs.
type sentence struct {
	file string
	line int
	text string
}

// part is the longest that every text made from the sentence has, in lower case: the
// provider begins a title with a capital letter.
func (s sentence) part() string {
	longest := ""
	for _, part := range verb.Split(s.text, -1) {
		if part = normal(part); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

func normal(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// read finds the sentences of the product, in the order of their places, and the goldens.
func read(t *testing.T) (all []sentence, golden []byte) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		switch {
		case err != nil:
			return err
		case keeps.MatchString(name):
			text, err := os.ReadFile(path)
			golden = append(golden, normal(string(text))+"\n"...)
			return err
		case entry.IsDir() && path != root && foreign.MatchString(name) && filepath.Base(name) != "testdata":
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if compares(n) {
				return false
			}
			text, found := constant(n)
			if found && len(slices.DeleteFunc(strings.Fields(verb.ReplaceAllString(text, " ")), notAWord)) >= 3 {
				all = append(all, sentence{name, set.Position(n.Pos()).Line, text})
			}
			return !found
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, golden
}

func notAWord(field string) bool { return !letter.MatchString(field) }

// compares reports whether a part of the code holds what it looks for in other texts.
func compares(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		key, ok := n.Key.(*ast.Ident)
		return ok && (key.Name == "Said" || key.Name == "Flags") // of an answers.Row, of a cli.Command
	case *ast.ImportSpec:
		return true
	case *ast.Field:
		return n.Tag != nil
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "words" { // of a server or a program
			return true
		}
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		pkg, ok := f.X.(*ast.Ident)
		return ok && slices.Contains([]string{"strings", "bytes", "regexp", "lazyregexp"}, pkg.Name) &&
			!slices.Contains([]string{"Join", "NewReader", "ReplaceAll", "TrimSpace", "NewReplacer"}, f.Sel.Name)
	}
	return false
}

// constant is a text, or the sum of several.
func constant(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(n.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, okX := constant(n.X)
		y, okY := constant(n.Y)
		return x + y, okX && okY && n.Op == token.ADD
	}
	return "", false
}

// excuse is why sentences are in no golden.
type excuse struct {
	file, text *regexp.Regexp
	used       int
}

// excuses reads reasons.tsv: the least share, and patterns of a file and a text with the
// reason.
func excuses(t *testing.T) (least float64, all []*excuse) {
	t.Helper()
	content, err := os.ReadFile("reasons.tsv")
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(content), "\n")
	if least, err = strconv.ParseFloat(first, 64); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(rest) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 || fields[2] == "" {
			t.Fatalf("reasons.tsv: %q", line)
		}
		all = append(all, &excuse{file: regexp.MustCompile(fields[0]), text: regexp.MustCompile(fields[1])})
	}
	return least, all
}

// TestSentencesAreInGoldens: of what the product says, a share is seen in full by whoever
// changes it. The share does not fall. With -v, the test lists the others.
func TestSentencesAreInGoldens(t *testing.T) {
	t.Parallel()
	all, golden := read(t)
	least, reasons := excuses(t)
	index, held, excused := suffixarray.New(golden), 0, 0
	var missing bytes.Buffer
	for _, s := range all {
		switch i := slices.IndexFunc(reasons, func(e *excuse) bool { return e.file.MatchString(s.file) && e.text.MatchString(s.text) }); {
		case len(index.Lookup([]byte(s.part()), 1)) > 0:
			held++
		case i >= 0:
			reasons[i].used++
			excused++
		default:
			missing.WriteString(s.file + ":" + strconv.Itoa(s.line) + "\t" + strconv.Quote(s.text) + "\n")
		}
	}
	for _, e := range reasons {
		if e.used == 0 {
			t.Errorf("no sentence needs the reason of %s, %s", e.file, e.text)
		}
	}
	share := 100 * float64(held+excused) / float64(cmp.Or(len(all), 1))
	t.Logf("of %d sentences, %d are in goldens and %d have a reason: %.1f %%", len(all), held, excused, share)
	if len(all) < 2000 || share < least {
		t.Errorf("the share of the sentences that are in a golden was %.1f %%, and is %.1f %%: add the case of the new ones", least, share)
	}
	if testing.Verbose() {
		t.Log("the others:\n" + missing.String())
	}
}
