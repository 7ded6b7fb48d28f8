package config

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// scope is what expressions in the text may use: var.* and the functions.
type scope struct {
	variables cty.Value
	context   *hcl.EvalContext
}

func newScope(variables cty.Value) scope {
	if variables == cty.NilVal || variables.IsNull() {
		variables = cty.EmptyObjectVal
	}
	return scope{variables: variables, context: &hcl.EvalContext{
		Variables: map[string]cty.Value{"var": variables},
		Functions: functions(),
	}}
}

// value evaluates an expression. Its errors hold no value and no piece of the
// text: an unquoted secret reads like the name of a variable.
func (s scope) value(expr hcl.Expression) (cty.Value, error) {
	for _, t := range expr.Variables() {
		if err := s.check(t); err != nil {
			return cty.NilVal, err
		}
	}
	v, diags := expr.Value(s.context)
	if diags.HasErrors() {
		return cty.NilVal, safeError(diags)
	}
	return v, nil
}

func (s scope) check(t hcl.Traversal) error {
	switch t.RootName() {
	case "var":
	case "key_provider", "method":
		return fmt.Errorf("a reference to a %s must stand alone", t.RootName())
	default:
		return errors.New("only var.<name> can be used here, with its value in encryption_variables; if this is " +
			"meant to be text, put it in quotes")
	}
	if len(t) < 2 || !s.variables.IsKnown() {
		return nil
	}
	name, ok := t[1].(hcl.TraverseAttr)
	if ok && !s.has(name.Name) {
		return fmt.Errorf("var.%s has no value: add %s to encryption_variables", name.Name, name.Name)
	}
	return nil
}

func (s scope) has(name string) bool {
	if s.variables.Type().IsObjectType() {
		return s.variables.Type().HasAttribute(name)
	}
	return s.variables.HasIndex(cty.StringVal(name)).True()
}

func safeError(diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		if d.Summary == "Call to unknown function" {
			return errors.New("call to a function that does not exist here")
		}
		return errors.New(lowerFirst(d.Summary))
	}
	return errors.New("invalid expression")
}
