package drift

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// backends returns the arguments of each backend, by the name that its kind of source has here.
// The arguments of a block are written as in "assume_role.role_arn".
func (s *source) backends() (map[string][]string, error) {
	folders := map[string]string{"internal/backend/local": "file", "internal/backend/remote": "remote", "internal/cloud": "remote"}
	more, err := os.ReadDir(filepath.Join(s.dir, "internal/backend/remote-state"))
	for _, entry := range more {
		name := entry.Name()
		if name == "azure" {
			name = "azurerm"
		}
		folders["internal/backend/remote-state/"+entry.Name()] = name
	}
	all := map[string][]string{}
	for folder, name := range folders {
		arguments, wrong := s.names(folder, schema)
		if wrong == nil && len(arguments) == 0 {
			wrong = fmt.Errorf("%s has no arguments: the source is not built as it was", folder)
		}
		err = errors.Join(err, wrong)
		all[name] = append(all[name], arguments...)
	}
	return all, err
}

// kinds returns the arguments of each key provider or method, with those of its blocks.
func (s *source) kinds(what string) (map[string][]string, error) {
	names, err := filepath.Glob(filepath.Join(s.dir, "internal/encryption", what, "*", "descriptor.go"))
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no %s was found: the source is not built as it was", what)
	}
	all := map[string][]string{}
	for _, name := range names {
		folder := path.Base(filepath.Dir(name))
		arguments, wrong := s.names("internal/encryption/"+what+"/"+folder, hcl)
		if wrong == nil && len(arguments) == 0 && folder != "unencrypted" {
			wrong = fmt.Errorf("the %s %s has no arguments: the source is not built as it was", what, folder)
		}
		err = errors.Join(err, wrong)
		if folder == "aesgcm" {
			folder = "aes_gcm"
		}
		all[folder] = arguments
	}
	return all, err
}

// names returns the names that the files of a folder declare.
func (s *source) names(folder string, declared func(n ast.Node, add func(string)) bool) (names []string, err error) {
	files, err := s.parse(folder)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool { return declared(n, func(name string) { names = append(names, name) }) })
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// schema adds the arguments of a map of schemas. A block gives those that it holds.
func schema(n ast.Node, add func(string)) bool {
	lit, ok := n.(*ast.CompositeLit)
	if !ok {
		return true
	}
	of, ok := lit.Type.(*ast.MapType)
	if !ok || !slices.Contains([]string{"Attribute", "NestedBlock", "Schema"}, last(of.Value)) {
		return true
	}
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		name := text(pair.Key)
		holds := false
		ast.Inspect(pair.Value, func(n ast.Node) bool {
			return schema(n, func(inner string) {
				add(name + "." + inner)
				holds = true
			})
		})
		if !holds {
			add(name)
		}
	}
	return false
}

// hcl adds the names in tags of structs, and those in schemas of bodies.
func hcl(n ast.Node, add func(string)) bool {
	switch n := n.(type) {
	case *ast.Field:
		if n.Tag != nil {
			tag, _ := strconv.Unquote(n.Tag.Value)
			if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("hcl"), ","); name != "" {
				add(name)
			}
		}
	case *ast.CompositeLit:
		list, ok := n.Type.(*ast.ArrayType)
		if !ok || !slices.Contains([]string{"AttributeSchema", "BlockHeaderSchema"}, last(list.Elt)) {
			return true
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if pair, ok := n.(*ast.KeyValueExpr); ok && slices.Contains([]string{"Name", "Type"}, last(pair.Key)) {
				add(text(pair.Value))
			}
			return true
		})
	}
	return true
}

// last returns the name at the end of an expression, such as Schema of *schema.Schema.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return last(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// text returns a text of the source, or the name of the constant in its place, which no table has.
func text(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok {
		unquoted, _ := strconv.Unquote(lit.Value)
		return unquoted
	}
	return last(e)
}

// members returns the members of the JSON of a state, with the types that have them.
func (s *source) members() (names []string, err error) {
	files, err := s.parse("internal/states/statefile")
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "V4") {
				return true
			}
			ast.Inspect(spec, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok && field.Tag != nil {
					tag, _ := strconv.Unquote(field.Tag.Value)
					if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); name != "" {
						names = append(names, spec.Name.Name+" "+name)
					}
				}
				return true
			})
			return false
		})
	}
	if err == nil && !slices.Contains(names, "stateV4 lineage") {
		err = errors.New("the members of a state were not found: the source is not built as it was")
	}
	return names, err
}

var (
	rpc          = regexp.MustCompile(`(?m)^\s*rpc (\w+)`)
	capabilities = regexp.MustCompile(`(?s)message (\w*Capabilities) \{(.*?)\n\}`)
	protoField   = regexp.MustCompile(`(?m)^\s*\w+ (\w+) = \d+;`)
)

// protocol returns the calls of plugin protocol 6, and the capabilities, with their messages.
func protocol(pattern string) (calls, can []string, err error) {
	names, err := filepath.Glob(pattern)
	for _, name := range names {
		var data []byte
		if data, err = os.ReadFile(name); err != nil {
			return nil, nil, err
		}
		for _, m := range rpc.FindAllStringSubmatch(string(data), -1) {
			calls = append(calls, m[1])
		}
		for _, m := range capabilities.FindAllStringSubmatch(string(data), -1) {
			for _, f := range protoField.FindAllStringSubmatch(m[2], -1) {
				can = append(can, m[1]+" "+f[1])
			}
		}
	}
	if err == nil && (len(calls) == 0 || len(can) == 0) {
		err = fmt.Errorf("%s says nothing of calls and capabilities", pattern)
	}
	return calls, can, err
}
