package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

const maxName = 100 // maximum length of a name in an error, in bytes

// variable is a variable that a module declares.
type variable struct {
	constraint cty.Type
	optional   *typeexpr.Defaults // defaults of optional attributes; nil if there are none
	isList     bool               // whether the type is not primitive, so that text is parsed as an expression
	notNull    bool
	preset     cty.Value // the default, as written; NilVal if there is none
	broken     bool      // whether the type is invalid
}

// declare merges a variable block over the blocks in earlier files.
func (v *variable) declare(block *hcl.Block) {
	content, _, _ := block.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "type"}, {Name: "default"},
		{Name: "nullable"}}})
	if written, ok := content.Attributes["type"]; ok {
		v.setType(written.Expr)
	}
	if written, ok := content.Attributes["default"]; ok {
		if value, diags := written.Expr.Value(nil); !diags.HasErrors() {
			v.preset = value
		}
	}
	if written, ok := content.Attributes["nullable"]; ok {
		value, diags := written.Expr.Value(nil)
		v.notNull = !diags.HasErrors() && value.RawEquals(cty.False)
	}
}

func (v *variable) setType(expr hcl.Expression) {
	v.optional, v.isList, v.broken = nil, true, false
	switch hcl.ExprAsKeyword(expr) { // short for list(any) and map(any)
	case "list":
		v.constraint = cty.List(cty.DynamicPseudoType)
		return
	case "map":
		v.constraint = cty.Map(cty.DynamicPseudoType)
		return
	}
	var diags hcl.Diagnostics
	v.constraint, v.optional, diags = typeexpr.TypeConstraintWithDefaults(expr)
	v.isList, v.broken = !v.constraint.IsPrimitiveType(), diags.HasErrors()
}

// value is the value of a variable, or an error if there is none.
type value struct {
	cty.Value
	file string // the variable file that sets the value; "" if no file does
	err  error
}

// refused returns the error for a variable whose value is wrong.
func (v value) refused(name string) error {
	if v.file != "" {
		return fmt.Errorf("var.%s: the value in %s: %w", name, v.file, v.err)
	}
	return fmt.Errorf("var.%s: %w", name, v.err)
}

// text returns the value of a variable that is set to this text by TF_VAR_… or -var. V is nil if
// the declaration of the variable is not known.
func (v *variable) text(text string) value {
	if v == nil || !v.isList {
		return value{Value: cty.StringVal(text)}
	}
	if err := ExpectExpression([]byte(text)); err != nil {
		return value{err: err}
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() { // the details of diags repeat the text
		return value{err: errors.New("the variable is not a string, so its value must be an expression like [1, 2]")}
	}
	return evaluate(expr, "")
}

// evaluate returns the value of an expression, which must not contain references.
func evaluate(expr hcl.Expression, file string) value {
	v, diags := expr.Value(nil)
	switch {
	case len(expr.Variables()) > 0:
		return value{err: errors.New(`this is a name, not a value; put text in double quotes (")`), file: file}
	case diags.HasErrors():
		return value{err: failed(diags), file: file}
	}
	return value{Value: v, file: file}
}

// fit converts a value to the declared type. If the value is null but the variable must not be
// null, it returns the default.
func (v *variable) fit(given value) value {
	if given.err != nil {
		return given
	}
	if v.broken {
		given.err = errors.New("the variable has an invalid type; write a type like string")
		return given
	}
	fitted := given.Value
	if v.optional != nil && !fitted.IsNull() {
		fitted = v.optional.Apply(fitted)
	}
	fitted, err := convert.Convert(fitted, v.constraint)
	switch {
	case err != nil: // err may name members of the value
		given.err = fmt.Errorf("the value does not match the type of the variable (%s)", v.constraint.FriendlyNameForConstraint())
	case fitted.IsNull() && v.notNull && v.preset == cty.NilVal:
		given.err = errors.New("the variable must not be null")
	case fitted.IsNull() && v.notNull && !v.preset.IsNull():
		return v.fit(value{Value: v.preset})
	}
	given.Value = fitted
	return given
}

// values maps the names of variables to their values.
type values map[string]value

// given returns the values of variables from the options and, if m is not nil, from the module's
// variable files. Files take precedence over the environment, arguments over both, and Variables
// over everything.
func (o Options) given(m *module) (values, error) {
	all := values{}
	for name, text := range o.Environment {
		all[name] = m.declared(name).text(text)
	}
	files, err := m.valueFiles()
	for _, file := range files {
		failed := keyfile.ExpectRegular(file) // only a file named by -var-file may be a pipe
		if failed == nil {
			failed = all.readFile(file)
		} else {
			failed = fmt.Errorf("%.200q cannot be read: %w", file, failed)
		}
		err = errors.Join(err, failed)
	}
	for _, argument := range o.Arguments {
		if path, ok := strings.CutPrefix(argument, "-var-file="); ok {
			err = errors.Join(err, all.readFile(path))
			continue
		}
		name, text, ok := strings.Cut(strings.TrimPrefix(argument, "-var="), "=")
		switch {
		case !ok || name == "":
			err = errors.Join(err, errors.New("the flag -var has no name or no value; write -var NAME=VALUE"))
		case m != nil && m.declared(name) == nil:
			err = errors.Join(err, fmt.Errorf("-var: the module declares no variable %s; check the name%s", outside.Quoted(name, maxName),
				syntax.Suggest(name, slices.Sorted(maps.Keys(m.variables)))))
		default:
			all[name] = m.declared(name).text(text)
		}
	}
	if t := o.Variables.Type(); (t.IsObjectType() || t.IsMapType()) && !o.Variables.IsNull() && o.Variables.IsKnown() {
		for name, v := range o.Variables.AsValueMap() {
			all[name] = value{Value: v}
		}
	}
	return all, err
}

// readFile adds the values in a variable file, in either syntax.
func (all values) readFile(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the caller chooses the file
	switch {
	case err != nil && (recognize.IsContent(path) || strings.Contains(path, "=")): // the path may be a secret
		return errors.New("the flag -var-file has a value instead of a file name; use -var NAME=VALUE for a value")
	case err != nil:
		return fmt.Errorf("%.200q cannot be read: %w", path, keyfile.Explain(path, err))
	}
	asJSON := strings.HasSuffix(path, ".json")
	if !asJSON && !strings.HasSuffix(path, ".tfvars") { // for example, a pipe
		asJSON = strings.HasPrefix(strings.TrimSpace(string(text)), "{")
	}
	if what := isState(strings.TrimSpace(string(text))); what != "" {
		return fmt.Errorf("%.200q is %s, not a file with values of variables", path, what)
	}
	body, err := parseBody(text, path, asJSON, formOfValues)
	if isObject := strings.HasPrefix(strings.TrimSpace(string(text)), "{"); err != nil && isObject != asJSON {
		form, name := "HCL", ".tfvars"
		if isObject {
			form, name = "JSON", ".json"
		}
		return fmt.Errorf("%.200q contains %s; rename the file to a name that ends in %s", path, form, name)
	}
	if err != nil && ofShell.Match(text) {
		return fmt.Errorf(`%.200q sets shell variables; write lines like passphrase = "…" in this file. To load shell variables, run "set -a; . FILE"`, path)
	}
	if err != nil {
		return err
	}
	attrs, diags := body.JustAttributes()
	if diags.HasErrors() {
		var pos attr.Pos
		if diags[0].Subject != nil {
			pos = position(*diags[0].Subject)
		}
		return &attr.Error{Pos: pos, Err: errors.New("this is not an argument; " + formOfValues)}
	}
	for name, a := range attrs {
		all[name] = evaluate(a.Expr, path)
	}
	return nil
}

var ofShell = lazyregexp.New(`(?m)^(export |set |\$env:)\s*[A-Za-z_]\w*\s*=`)

// valueFiles returns the paths of the variable files that OpenTofu reads by default, in order.
func (m *module) valueFiles() (paths []string, err error) {
	if m == nil {
		return nil, nil
	}
	for _, name := range []string{"terraform.tfvars", "terraform.tfvars.json"} {
		path := filepath.Join(m.dir, name)
		switch _, err := os.Stat(path); {
		case err == nil:
			paths = append(paths, path)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	entries, err := os.ReadDir(m.dir) // sorted by name
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".auto.tfvars") || strings.HasSuffix(e.Name(), ".auto.tfvars.json") {
			paths = append(paths, filepath.Join(m.dir, e.Name()))
		}
	}
	return paths, err
}

// declared returns the declaration of a variable, or nil if there is none.
func (m *module) declared(name string) *variable {
	if m == nil {
		return nil
	}
	return m.variables[name]
}

// fit converts the values to the types that the module declares, and adds defaults.
func (m *module) fit(all values) {
	for name, v := range m.variables {
		given, ok := all[name]
		switch {
		case ok:
			all[name] = v.fit(given)
		case v.preset != cty.NilVal:
			all[name] = v.fit(value{Value: v.preset})
		}
	}
}

// object returns the object that var refers to. It leaves out values that have an error.
func (all values) object() cty.Value {
	usable := map[string]cty.Value{}
	for name, v := range all {
		if v.err == nil {
			usable[name] = v.Value
		}
	}
	return cty.ObjectVal(usable)
}
