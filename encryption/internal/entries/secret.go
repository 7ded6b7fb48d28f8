package entries

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// written is an attribute of an entry or of a block in it, as it was written.
type written struct {
	attr.Attr
	Setting
	Path string // "token", "auth_jwt.jwt"

	block string // that it is in; "" for the entry itself
}

// written lists the attributes that are set, with those of nested blocks. A
// nested block replaces that of an earlier layer as a whole, so one of the
// environment sets all of its attributes.
func (e *Entry) written(t attr.Table) []written { return writtenIn("", t.Attrs, e.Settings) }

func writtenIn(block string, attrs []attr.Attr, settings map[string]Setting) []written {
	var all []written
	for _, a := range attrs {
		s, ok := settings[a.Name]
		switch {
		case !ok:
		case a.Attrs == nil:
			all = append(all, written{a, s, block + a.Name, block})
		default:
			all = append(all, writtenIn(block+a.Name+".", a.Attrs, inner(a, s))...)
		}
	}
	return all
}

func inner(block attr.Attr, whole Setting) map[string]Setting {
	var values map[string]cty.Value
	if v := whole.Value; !v.IsNull() && v.IsKnown() && (v.Type().IsObjectType() || v.Type().IsMapType()) {
		values = v.AsValueMap()
	}
	settings := map[string]Setting{}
	for _, a := range block.Attrs {
		s := whole
		if s.Value = values[a.Name]; s.Value.IsNull() {
			s.Value = a.Default // such as the file with a pod's token
		}
		if s.Value != cty.NilVal || whole.FromEnvironment {
			settings[a.Name] = s
		}
	}
	return settings
}

// secrets are those of the code that are sent somewhere, or that a layer of the
// environment writes where they would be seen. Where they go, and how they are
// protected on the way, is for the code to say.
func (e *Entry) secrets(t attr.Table) []written {
	sends := sendsSecrets(t.Attrs)
	if !sends && !e.isLayered() {
		return nil // as for data sources, of which there can be many
	}
	var all []written
	for _, w := range e.written(t) {
		if sends && w.isSecretOfCode() || w.showsVariables() {
			all = append(all, w)
		}
	}
	return all
}

// isLayered reports whether a layer of the environment sets something.
func (e *Entry) isLayered() bool {
	for _, s := range e.Settings {
		if s.FromEnvironment {
			return true
		}
	}
	return false
}

// showsVariables reports whether a layer of the environment uses variables of the
// code in what nobody keeps secret: a name ends up in files and in errors, and is
// read by whoever is asked for it.
func (w written) showsVariables() bool {
	return w.FromEnvironment && w.UsesVariables && !isSecret(w.Attr)
}

func sendsSecrets(attrs []attr.Attr) bool {
	for _, a := range attrs {
		if isSecret(a) && !a.Local || sendsSecrets(a.Attrs) {
			return true
		}
	}
	return false
}

func (w written) isSecretOfCode() bool {
	switch {
	case w.Local:
		return false
	case w.FromEnvironment:
		return w.UsesVariables
	}
	return isSecret(w.Attr) && !isEmpty(w.Value)
}

func isEmpty(v cty.Value) bool {
	return v.IsNull() || v.IsKnown() && v.Type() == cty.String && v.AsString() == ""
}

// checkCommands refuses those that only TF_ENCRYPTION names.
func (e *Entry) checkCommands(t attr.Table, scope Scope) error {
	if scope.AllowCommands || !e.isLayered() {
		return nil
	}
	for _, w := range e.written(t) {
		if w.Form == attr.Command && w.FromEnvironment {
			return &attr.Error{Address: e.Address, Attr: w.Path, Pos: w.Pos, Err: errCommand()}
		}
	}
	return nil
}

// checkLayer refuses what TF_ENCRYPTION sets beside secrets of the code. One that
// brings all secrets of an entry may say where they go.
func (e *Entry) checkLayer(t attr.Table, secrets []written) error {
	if len(secrets) == 0 {
		return nil
	}
	for _, w := range e.written(t) {
		for _, secret := range secrets {
			if w.FromEnvironment && w.endangers(secret) {
				return &attr.Error{Address: e.Address, Attr: w.Path, Pos: w.Pos, Err: secret.refuse("a setting of TF_ENCRYPTION", w.Path)}
			}
		}
	}
	return nil
}

// endangers reports whether w must not come from the environment beside a secret
// of the code. An identity is never a mixture of both; one that uses variables of
// the code comes from the environment as a whole.
func (w written) endangers(secret written) bool {
	switch {
	case w.Path == secret.Path:
		return w.showsVariables()
	case w.block == secret.block && shareGroup(w.Attr, secret.Attr) && !secret.FromEnvironment:
		return true
	}
	return !isHarmless(w.Attr, textOf(w.Value))
}

func shareGroup(a, b attr.Attr) bool {
	return a.Group != "" && (a.Group == b.Group || a.Group == b.UnlessGroup) || a.UnlessGroup != "" && a.UnlessGroup == b.Group
}

// textOf is a value as a variable would have it; "" if none can.
func textOf(v cty.Value) string {
	switch {
	case v.IsNull() || !v.IsKnown():
		return ""
	case v.Type() == cty.String:
		return v.AsString()
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	}
	return ""
}

// refuse is the error about what the environment must not say beside w.
func (w written) refuse(what, attribute string) error {
	if w.Path == attribute {
		return fmt.Errorf("%s must not be combined with a secret of the configuration, which var.* may hold. Set %s in the configuration "+
			"as well, or without var.*", what, attribute)
	}
	where := w.Path
	if w.Pos != (attr.Pos{}) {
		where += fmt.Sprintf(" (%s)", w.Pos)
	}
	variables := ""
	if w.UsesVariables {
		variables = " and without var.*"
	}
	return fmt.Errorf("%s must not be combined with a secret of the configuration: %s. Set %s in the configuration as well, "+
		"or both in the environment%s", what, where, attribute, variables)
}

// isSecret reports whether the value is a secret, or names one.
func isSecret(a attr.Attr) bool { return a.Sensitive || a.Secret }

// isHarmless reports whether the environment may set a to value beside a secret
// of the code.
func isHarmless(a attr.Attr, value string) bool {
	return a.Harmless != "" && (a.HarmlessIf == nil || a.HarmlessIf(value))
}
