package drift

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// source is the source of a CLI. It has the types of those packages alone that read command lines.
type source struct {
	dir, module string
	files       *token.FileSet
	packages    map[string]*types.Package
	info        types.Info
	bodies      map[*types.Func]*ast.FuncDecl
}

// newSource reads the packages with the commands of a module.
func newSource(dir, module string) (*source, error) {
	s := &source{
		dir: dir, module: module, files: token.NewFileSet(), packages: map[string]*types.Package{},
		info: types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		},
		bodies: map[*types.Func]*ast.FuncDecl{},
	}
	_, err := s.Import(module + "/internal/command")
	return s, err
}

// parse returns the files of a folder, without tests.
func (s *source) parse(folder string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(s.dir, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || filepath.Base(name) == "testing.go" {
			continue
		}
		file, err := parser.ParseFile(s.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no Go files", filepath.Join(s.dir, folder))
	}
	return all, nil
}

// Import makes a source a [types.Importer], to which all other packages are empty.
func (s *source) Import(name string) (*types.Package, error) {
	if p := s.packages[name]; p != nil {
		return p, nil
	}
	folder, isOfModule := strings.CutPrefix(name, s.module+"/")
	if !isOfModule || !slices.Contains([]string{"internal/command", "internal/command/arguments", "internal/command/flags"}, folder) {
		p := types.NewPackage(name, path.Base(name))
		p.MarkComplete()
		s.packages[name] = p
		return p, nil
	}
	files, err := s.parse(folder)
	if err != nil {
		return nil, err
	}
	lenient := types.Config{Importer: s, Error: func(error) {}} // since types of the other packages are missing
	p, _ := lenient.Check(name, s.files, files, &s.info)
	s.packages[name] = p
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				if fn, ok := s.info.Defs[f.Name].(*types.Func); ok {
					s.bodies[fn] = f
				}
			}
		}
	}
	return p, nil
}
