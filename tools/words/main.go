// Command words counts words in Go comments that often make readers stumble: clauses used as nouns ("what is sealed",
// "whoever has the lock"). It prints one line for each folder, and exits with status 1 if a folder exceeds the limits.
//
//	words FOLDER...
//
// It leaves out tests and test support. The folders may belong to another project.
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

// maxWhat and maxVague are the maximum numbers of uses per 1,000 words of comments.
const (
	maxWhat  = 3.0
	maxVague = 2.0
)

var (
	word  = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	what  = regexp.MustCompile(`(?i)\bwhat\b`)
	vague = regexp.MustCompile(`(?i)\b(?:whoever|whatever|that\s+which|those\s+of|those\s+that|that\s+of|is\s+for)\b`)
)

// counts holds the number of words, the uses of "what", and the uses of the other phrases.
type counts struct{ words, what, vague int }

func (c *counts) add(text string) {
	c.words += len(word.FindAllString(text, -1))
	c.what += len(what.FindAllString(text, -1))
	c.vague += len(vague.FindAllString(text, -1))
}

// rates returns the uses of "what" and of the other phrases per 1,000 words.
func (c counts) rates() (whats, vagues float64) {
	per := 1000 / float64(max(1, c.words))
	return float64(c.what) * per, float64(c.vague) * per
}

// isSupport reports whether a folder contains test support or test data.
func isSupport(name string) bool {
	return name == "testdata" || name == "testing" || name == "testkit" || name == "probe" || name == "vendor" ||
		strings.HasSuffix(name, "test")
}

// count counts the words in the comments of all Go files below root.
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
