package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// The functions in this file read references as syntax. They do not look up the entries, because
// the text of one layer may name an entry of another layer. A missing entry is reported only when
// it is used.

// keyReference returns a function that reads the address of a key provider, or a literal key. A
// literal key gets the address own.
func (p *parser) keyReference(own string) func(hcl.Expression) (cty.Value, error) {
	return func(expr hcl.Expression) (cty.Value, error) {
		v, err := p.address(expr, "key_provider", syntax.IsKeyProviderAddress, errKeyRequired)
		switch t := v.Type(); {
		case err != errKeyRequired: //nolint:errorlint // a wrapped error has another reason
		case !v.IsWhollyKnown():
			return v, nil
		case t.IsObjectType() || t.IsMapType():
			p.config.literals[own], err = literalKey(v)
			return cty.StringVal(own), err
		}
		return v, err
	}
}

// methodReference reads the address of a method.
func (p *parser) methodReference(expr hcl.Expression) (cty.Value, error) {
	return p.address(expr, "method", syntax.IsMethodAddress, syntax.ErrMethodRequired)
}

// address reads the address of an entry, written as a bare reference, a string or a template. If
// the value is known but is not an address, it returns the value and the error in required.
func (p *parser) address(expr hcl.Expression, root string, isAddress func(string) bool, required error) (cty.Value, error) {
	if address, ok := traversal(expr, root); ok {
		return cty.StringVal(address), nil
	}
	v, err := p.scope.value(expr)
	switch {
	case err != nil && cutShort(expr) != nil:
		return v, meant(required, root, cutShort(expr))
	case err != nil || !v.IsKnown() || v.IsNull():
		return v, err
	case v.Type() == cty.String && isAddress(v.AsString()):
		return v, nil
	}
	return v, required
}

var errKeyRequired = errors.New("this is not the address of a key provider; write an address like key_provider.pbkdf2.main")

// cutShort returns the names in expr if they are probably the end of an address, such as
// pbkdf2.main. Otherwise, it returns nil.
func cutShort(expr hcl.Expression) hcl.Traversal {
	t, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() || slices.Contains([]string{"var", "local", "path", "key_provider", "method"}, t.RootName()) {
		return nil
	}
	return t
}

// meant adds to err the address that the user probably meant, which ends with the names in written.
func meant(err error, root string, written hcl.Traversal) error {
	if name, ok := written[len(written)-1].(hcl.TraverseAttr); ok && len(written) == 2 {
		return fmt.Errorf("%w. Did you mean %s.%s.%s?", err, root, written.RootName(), name.Name)
	}
	return err
}

func literalKey(v cty.Value) (literal, error) {
	wrong := errors.New("this literal key is not valid; write an object with the byte lists encryption_key and decryption_key")
	var l literal
	for name, list := range v.AsValueMap() {
		if name != "encryption_key" && name != "decryption_key" {
			return l, wrong
		}
		if list.IsNull() {
			continue
		}
		b, ok := syntax.Bytes(list)
		if !ok {
			return l, wrong
		}
		if name == "encryption_key" {
			l.encryption = b
		} else {
			l.decryption = b
		}
	}
	if l.encryption == nil && l.decryption == nil {
		return l, wrong
	}
	return l, nil
}

// targetMethod returns the address of a target's method. If there is none, it records a mistake and
// returns "".
func (p *parser) targetMethod(target string, written *hcl.Attribute) string {
	v, err := p.methodReference(written.Expr)
	if err != nil || !v.IsKnown() || v.IsNull() {
		if !errors.Is(err, syntax.ErrMethodRequired) {
			err = syntax.ErrMethodRequired
		}
		p.fail(target, written.Name, position(written.Range), err)
		return ""
	}
	return v.AsString()
}

// traversal returns the address that expr names as syntax: root.type.name. It also accepts JSON
// strings and templates that contain only a reference.
func traversal(expr hcl.Expression, root string) (string, bool) {
	if wrapped, ok := expr.(*hclsyntax.TemplateWrapExpr); ok {
		expr = wrapped.Wrapped
	}
	t, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() {
		// In JSON, a template is a plain string until it is evaluated.
		literal, diags := expr.Value(nil)
		if diags.HasErrors() || literal.IsNull() || !literal.IsKnown() || literal.Type() != cty.String ||
			!strings.HasPrefix(literal.AsString(), "${") {
			return "", false
		}
		template, diags := hclsyntax.ParseTemplate([]byte(literal.AsString()), "", hcl.InitialPos)
		if wrapped, ok := template.(*hclsyntax.TemplateWrapExpr); ok && !diags.HasErrors() {
			return traversal(wrapped.Wrapped, root)
		}
		return "", false
	}
	if len(t) != 3 || t.RootName() != root {
		return "", false
	}
	kind, kindOK := t[1].(hcl.TraverseAttr)
	name, nameOK := t[2].(hcl.TraverseAttr)
	return root + "." + kind.Name + "." + name.Name, kindOK && nameOK
}
