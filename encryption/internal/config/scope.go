package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// scope holds the names that expressions may use: var.* and functions. In a module, these are also
// local.*, path.* and terraform.workspace.
type scope struct {
	given   values  // the values of variables
	unknown bool    // whether the variables are not yet known
	module  *module // nil for text
	uses    func(variable, file string)
	also    string // an additional name that expressions may use; "" if there is none
	context *hcl.EvalContext
}

// newScope returns the scope of a text, or of module m if m is not nil.
func (p *parser) newScope(given values, m *module) scope {
	values, dir := map[string]cty.Value{"var": given.object()}, ""
	unknown := m == nil && len(given) == 0 && p.opts.Variables != cty.NilVal && !p.opts.Variables.IsKnown()
	if unknown {
		values["var"] = p.opts.Variables
	}
	if m != nil {
		dir = m.dir
		here := cty.StringVal(".").Mark(ofModule{}) // the value in OpenTofu, which runs in the folder
		values["path"] = cty.ObjectVal(map[string]cty.Value{"module": here, "root": here, "cwd": cty.StringVal(absolute(dir))})
		values["terraform"] = cty.ObjectVal(map[string]cty.Value{"workspace": cty.StringVal(m.workspace(p.opts.Workspace))})
	}
	callable := functions(dir)
	if !p.fromEnvironment {
		maps.Copy(callable, ofFiles(dir))
	}
	context := &hcl.EvalContext{Variables: values, Functions: callable}
	return scope{given: given, unknown: unknown, module: m, uses: p.opts.Uses, context: context}
}

// with returns the scope with an additional name.
func (s scope) with(name string, value cty.Value) scope {
	s.also, s.context = name, s.context.NewChild()
	s.context.Variables = map[string]cty.Value{name: value}
	return s
}

// ofModule marks values that are relative to the folder of the module.
type ofModule struct{}

// place evaluates an expression that may name a file. It makes a path that is relative to the
// module's folder absolute, so that the path is right in every working directory.
func (s scope) place(expr hcl.Expression) (cty.Value, error) {
	v, err := s.evaluate(expr)
	if err != nil {
		return v, err
	}
	v, err = cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		text, marks := v.Unmark()
		if len(marks) > 0 && text.Type() == cty.String && text.IsKnown() && !text.IsNull() {
			if name := text.AsString(); name == "." || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
				text = cty.StringVal(absolute(filepath.Join(s.module.dir, name)))
			}
		}
		return text, nil
	})
	v, _ = v.UnmarkDeep()
	return v, err
}

// absolute returns dir as an absolute path with forward slashes.
func absolute(dir string) string {
	if path, err := filepath.Abs(dir); err == nil {
		dir = path
	}
	return filepath.ToSlash(dir)
}

// value evaluates an expression. Its errors contain no values. They repeat only names after var.
// and local., and names of known functions, because an unquoted secret looks like any other name.
func (s scope) value(expr hcl.Expression) (cty.Value, error) {
	v, err := s.evaluate(expr)
	if err == nil {
		v, _ = v.UnmarkDeep()
	}
	return v, err
}

func (s scope) evaluate(expr hcl.Expression) (cty.Value, error) {
	err := s.checkCalls(expr)
	locals := map[string]cty.Value{}
	for _, t := range expr.Variables() { // even after a mistake, because Options.Uses is called for each variable
		wrong := s.check(t, expr)
		if name, ok := memberOf(t, "local"); ok && wrong == nil {
			locals[name], wrong = s.local(name)
		}
		err = cmp.Or(err, wrong)
	}
	if err != nil {
		return cty.NilVal, err
	}
	context := s.context.NewChild()
	context.Variables = map[string]cty.Value{"local": cty.ObjectVal(locals)}
	v, diags := expr.Value(context)
	if diags.HasErrors() {
		return cty.NilVal, failed(diags)
	}
	return v, nil
}

// checkCalls returns an error for a call to an unknown function. Otherwise, the try function would
// treat the call as an absent value, and the result would be another key.
func (s scope) checkCalls(expr hcl.Expression) error {
	native, ok := expr.(hclsyntax.Expression)
	if !ok {
		return nil
	}
	var missing []string
	_ = hclsyntax.VisitAll(native, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok {
			if _, known := s.context.Functions[call.Name]; !known {
				missing = append(missing, call.Name)
			}
		}
		return nil
	})
	if len(missing) == 0 {
		return nil
	}
	return noFunction(missing[0])
}

// local evaluates a local of the module once. It removes the local from the module during the
// evaluation, so that a circular reference ends with an error.
func (s scope) local(name string) (cty.Value, error) {
	m := s.module
	if v, done := m.values[name]; done {
		return v, nil
	}
	expr, ok := m.locals[name]
	if !ok {
		return cty.NilVal, fmt.Errorf("local.%s does not exist, or refers to itself; check its name and its value", name)
	}
	const most = 1000
	if m.inside == most {
		return cty.NilVal, fmt.Errorf("local.%s is part of a chain of more than %d locals; shorten the chain", name, most)
	}
	delete(m.locals, name)
	m.inside++
	defer func() { m.locals[name] = expr; m.inside-- }()
	v, err := s.evaluate(expr)
	if err != nil {
		return cty.NilVal, fmt.Errorf("local.%s: %w", name, err)
	}
	m.values[name] = v
	return v, nil
}

// check returns an error if a name in expr has no meaning or no value.
func (s scope) check(t hcl.Traversal, expr hcl.Expression) error {
	switch root := t.RootName(); {
	case root == "var", root == s.also:
	case (root == "method" || root == "key_provider") && len(t) != 3:
		return fmt.Errorf("this is not the address of a %s; write it like %s", root, map[string]string{
			"method": "method.aes_gcm.main", "key_provider": "key_provider.pbkdf2.main"}[root])
	case root == "method":
		return errors.New("a method cannot be used here; use key_provider.TYPE.NAME in the arguments keys and chain")
	case root == "key_provider":
		return fmt.Errorf("a reference to a %s must stand alone; remove the brackets or the other text", root)
	case s.module != nil && (root == "local" || root == "path"):
	case s.module != nil && root == "terraform":
		if name, _ := memberOf(t, root); name != "workspace" {
			return errors.New("the only value of terraform that can be used here is terraform.workspace")
		}
	case s.module != nil:
		return errors.New("only var.<name>, local.<name>, path.module and terraform.workspace can be used here; " + instead(t, expr))
	default:
		names := "var.<name>"
		if s.also != "" {
			names += " and " + s.also
		}
		return fault.Known(fmt.Errorf("only %s can be used here; %s", names, instead(t, expr)), fault.NoValue{})
	}
	name, ok := memberOf(t, "var")
	_, known := s.given[name]
	if t.RootName() == "var" && s.uses != nil {
		s.uses(name, s.given[name].file)
	}
	switch {
	case t.RootName() == "var" && s.given[name].err != nil:
		return s.given[name].refused(name)
	case !ok || s.unknown || known:
		return nil
	case s.module != nil:
		return fault.Known(fmt.Errorf("var.%s has no value and no default", name), fault.NoValue{Name: name})
	}
	return fault.Known(fmt.Errorf("var.%s has no value%s", name, s.near(name)), fault.NoValue{Name: name})
}

// near returns the end of an error message about a variable without a value. It contains the most
// similar name that has a value, or the names that variable files set.
func (s scope) near(name string) string {
	names := slices.Sorted(maps.Keys(s.given)) // so that equally similar names always give the same result
	if nearest := syntax.Nearest(name, names); nearest != "" {
		return fmt.Sprintf(". Did you mean %q?", "var."+nearest)
	}
	const few = 5
	var inFiles []string
	for _, other := range names {
		switch file := s.given[other].file; {
		case file != "" && other == "TF_VAR_"+name:
			return fmt.Sprintf("; in %.200q, rename %s to %s, because only environment variables have this prefix", file, other, name)
		case file != "":
			inFiles = append(inFiles, "var."+other)
		}
	}
	if 0 < len(inFiles) && len(inFiles) <= few {
		return "; the files with values set only " + strings.Join(inFiles, ", ")
	}
	return ""
}

// instead returns advice for a name that has no meaning here. A name with several parts, such as
// local.x or data.x.y, probably stands for a value. Other names may be text without quotes.
func instead(t hcl.Traversal, expr hcl.Expression) string {
	if name, ok := strings.CutPrefix(t.RootName(), "TF_VAR_"); ok && hclsyntax.ValidIdentifier(name) {
		return "write a variable as var.NAME, with a dot after var"
	}
	isQuoted := json.IsJSONExpression(expr)
	switch expr.(type) {
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr:
		isQuoted = true
	}
	switch isValue := len(t) > 1; {
	case isQuoted && isValue:
		return "use a variable for the value"
	case isQuoted:
		return "shell variables are not expanded here; double the dollar sign if it is part of the text"
	case isValue:
		return "use a variable for the value. If this is meant to be text, put it in quotes"
	}
	return "if this is meant to be text, put it in quotes"
}

// memberOf returns the name in root.name, or false for any other traversal.
func memberOf(t hcl.Traversal, root string) (string, bool) {
	if len(t) < 2 || t.RootName() != root {
		return "", false
	}
	name, ok := t[1].(hcl.TraverseAttr)
	return name.Name, ok
}
