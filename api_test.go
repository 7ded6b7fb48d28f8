package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

// TestAPI compares what the library exports with the lists in testdata/api.txt. After
// a change that is meant:
//
//	go test . -run TestAPI -update
//
// Promise: API
func TestAPI(t *testing.T) {
	t.Parallel()
	checkAPI(t, "encryption", 6)
	checkAPI(t, "builtin", 5)
}

func checkAPI(t *testing.T, top string, least int) {
	t.Helper()
	var all strings.Builder
	for _, dir := range publicPackages(t, top, least) {
		fmt.Fprintf(&all, "package %s\n", filepath.ToSlash(dir))
		declared := declarations(t, dir)
		for _, d := range declared {
			if shared := sharedType(t, d); shared != "" {
				t.Errorf("%s: %q has a type of %s", dir, d, shared)
			}
		}
		slices.Sort(declared)
		all.WriteString("\n" + strings.Join(declared, "\n") + "\n\n")
	}
	list := filepath.Join(top, "testdata", "api.txt")
	if *update {
		if err := os.WriteFile(list, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := readText(t, list)
	before, after := strings.Split(want, "\n"), strings.Split(all.String(), "\n")
	for _, line := range before {
		if !slices.Contains(after, line) {
			t.Errorf("- %s", line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			t.Errorf("+ %s", line)
		}
	}
	if t.Failed() || want != all.String() {
		t.Error("the API has changed; if this is meant, run go test . -run TestAPI -update, and add a line to the changelog")
	}
}

// sharedType returns the package of internal/shared that a declaration has a type of, "" if
// there is none. Values may come from there.
func sharedType(t *testing.T, declared string) string {
	t.Helper()
	if strings.HasPrefix(declared, "var ") || strings.HasPrefix(declared, "const ") {
		return ""
	}
	packages, err := os.ReadDir("internal/shared")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if p.IsDir() && regexp.MustCompile(`\b`+p.Name()+`\.[A-Z]`).MatchString(declared) {
			return p.Name()
		}
	}
	return ""
}

// publicPackages returns the folders below top with packages that other programs
// import; those for tests of the kinds themselves are not among them.
func publicPackages(t *testing.T, top string, least int) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(top, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case d.Name() == "testdata" || d.Name() == "internal" || strings.HasSuffix(dir, "test") && filepath.Dir(dir) != top:
			return filepath.SkipDir
		}
		if pkg, err := build.ImportDir(dir, 0); err == nil && len(pkg.GoFiles) > 0 {
			dirs = append(dirs, dir)
		}
		return nil
	})
	if err != nil || len(dirs) < least {
		t.Fatalf("%q, %v", dirs, err)
	}
	return dirs
}

// declarations returns what a package exports, one text for each name, and
// complains about names without a comment.
func declarations(t *testing.T, dir string) []string {
	t.Helper()
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range pkg.GoFiles {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if !ast.IsExported(receiver(d)) {
					continue
				}
				if d.Doc == nil && !(d.Recv != nil && (d.Name.Name == "Error" || d.Name.Name == "Unwrap")) {
					t.Errorf("%s: %s has no comment", dir, d.Name.Name)
				}
				d.Doc, d.Body = nil, nil
				out = append(out, text(t, set, d))
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if _, imports := spec.(*ast.ImportSpec); !imports {
						out = append(out, d.Tok.String()+" "+text(t, set, withoutComments(t, dir, d, spec)))
					}
				}
			}
		}
	}
	return out
}

// receiver returns the name of the type that a method belongs to, or that of the
// function.
func receiver(d *ast.FuncDecl) string {
	name := d.Name.Name
	if d.Recv != nil {
		ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if ok {
				name = id.Name
			}
			return !ok
		})
	}
	return name
}

func isInterface(s *ast.TypeSpec) bool {
	_, is := s.Type.(*ast.InterfaceType)
	return is
}

func withoutComments(t *testing.T, dir string, d *ast.GenDecl, spec ast.Spec) ast.Spec {
	t.Helper()
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Doc == nil && d.Doc == nil {
			t.Errorf("%s: %s has no comment", dir, s.Name.Name)
		}
		s.Doc, s.Comment = nil, nil
		ast.Inspect(s, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				if _, method := f.Type.(*ast.FuncType); method && f.Doc == nil && isInterface(s) {
					t.Errorf("%s: %s.%s has no comment", dir, s.Name.Name, f.Names[0].Name)
				}
				f.Doc, f.Comment = nil, nil
			}
			return true
		})
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil && (d.Doc == nil || d.Lparen.IsValid()) {
			t.Errorf("%s: %s has no comment", dir, s.Names[0].Name)
		}
		s.Doc, s.Comment = nil, nil
	}
	return spec
}

// text prints a declaration, without what is empty because it is not exported.
func text(t *testing.T, set *token.FileSet, node any) string {
	t.Helper()
	var b bytes.Buffer
	if err := printer.Fprint(&b, set, node); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		inner := strings.TrimLeft(l, "\t")
		lines[i] = l[:len(l)-len(inner)] + strings.Join(strings.Fields(inner), " ") // without alignment
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		return strings.TrimSpace(l) == "" || strings.Contains(l, "contains filtered or unexported")
	}), "\n")
}
