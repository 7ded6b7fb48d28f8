package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Comments of production count: whole groups, across lines, without directives, code and tests.
func TestCount(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go":               "// Package a keeps what is sealed, and that\n// of others.\npackage a\n\nvar what = \"whatever\"\n",
		"a_test.go":          "package a // what\n",
		"sub/b.go":           "package b\n\n//nolint:lint // what\n/* Whoever is for it */\n",
		"testing/c.go":       "package c // what\n",
		"clienttest/d.go":    "package d // what\n",
		"testdata/broken.go": "no Go at all",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := count(root)
	if want := (counts{words: 14, what: 1, vague: 3}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	whats, vagues := counts{words: 500, what: 1, vague: 2}.rates()
	if whats != 2 || vagues != 4 {
		t.Errorf("got %v and %v for each 1,000 words", whats, vagues)
	}
}

func TestCountBroken(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("no Go at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := count(root); err == nil {
		t.Errorf("got %+v", got)
	}
	if got, err := count(filepath.Join(root, "absent")); err == nil {
		t.Errorf("got %+v", got)
	}
}
