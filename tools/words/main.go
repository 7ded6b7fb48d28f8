// Command words counts words in the comments of Go code that readers have stumbled over: a
// clause in the place of a noun ("what is sealed", "whoever has the lock"). It prints one line
// for each folder and exits with status 1 if one has more of them than the limits allow.
//
//	words FOLDER...
//
// Tests and test support are left out. The folders may be those of another project.
package main

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxWhat and maxVague are the most uses for each 1,000 words of comments.
const (
	maxWhat  = 3.0
	maxVague = 2.0
)

var (
	word  = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	what  = regexp.MustCompile(`(?i)\bwhat\b`)
	vague = regexp.MustCompile(`(?i)\b(?:whoever|whatever|that\s+which|those\s+of|those\s+that|that\s+of|is\s+for)\b`)
)

// counts has the numbers of words, of "what" and of the other turns of phrase.
type counts struct{ words, what, vague int }

func (c *counts) add(text string) {
	c.words += len(word.FindAllString(text, -1))
	c.what += len(what.FindAllString(text, -1))
	c.vague += len(vague.FindAllString(text, -1))
}

// rates returns the uses of "what" and of the other turns of phrase for each 1,000 words.
func (c counts) rates() (whats, vagues float64) {
	per := 1000 / float64(max(1, c.words))
	return float64(c.what) * per, float64(c.vague) * per
}

// isSupport reports whether a folder holds test support or the data of tests.
func isSupport(name string) bool {
	return name == "testdata" || name == "testing" || name == "testkit" || name == "probe" || name == "vendor" ||
		strings.HasSuffix(name, "test")
}

// count adds up the comments of all Go files below root.
func count(root string) (total counts, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && isSupport(entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			total.add(group.Text()) // without directives
		}
		return nil
	})
	return total, err
}

func main() {
	flag.Parse()
	failed := false
	for _, root := range flag.Args() {
		total, err := count(root)
		if err != nil {
			fmt.Fprintln(os.Stderr, "words:", err)
			os.Exit(2)
		}
		whats, vagues := total.rates()
		fmt.Printf("%-12s %7d words, for each 1,000: %5.1f what (at most %.0f), %5.1f whoever, those of, … (at most %.0f)\n",
			root, total.words, whats, maxWhat, vagues, maxVague)
		failed = failed || whats > maxWhat || vagues > maxVague
	}
	if failed {
		os.Exit(1)
	}
}
