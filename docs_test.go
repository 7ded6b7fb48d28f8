package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A promise is worth what its test is worth, so the tests that the threat model
// names have to exist.
func TestThreatModelNamesTests(t *testing.T) {
	guide, err := os.ReadFile("templates/guides/threat-model.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	if err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		tests.Write(code)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(guide), -1)
	if len(names) < 30 {
		t.Errorf("the guide names %d tests", len(names))
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+name[1]+"(t *testing.T)") {
			t.Errorf("there is no test %s", name[1])
		}
	}
}
