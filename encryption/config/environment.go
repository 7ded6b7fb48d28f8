package config

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// Decode decodes one of the entries, with the environment of the settings.
//
// Whoever can set a variable of a pipeline must not thereby choose what runs in
// it, or get what the code keeps secret. So these are errors:
//   - a command that only TF_ENCRYPTION names, unless AllowExternal is set;
//   - a setting of TF_ENCRYPTION that decides where a secret of the code goes
//     or how it is protected on the way. The code's are also the values of
//     var.*, wherever they are used.
//
// A layer that repeats what the code says changes nothing, and one that brings
// all secrets of an entry itself may say where they go. LookupEnv may still
// fill an address that is absent beside a secret of the code: the code has left
// it to whoever runs the program.
func (c *Config) Decode(e *attr.Entry, t attr.Table) (attr.Values, error) {
	if err := c.checkEnvironment(e, t); err != nil {
		return attr.Values{}, err
	}
	return e.Decode(t, c.LookupEnv)
}

// written is an attribute of an entry or of a block in it, as it was written.
type written struct {
	attr.Attr
	attr.Setting
	path string // "token", "auth_jwt.jwt"
}

func (c *Config) checkEnvironment(e *attr.Entry, t attr.Table) error {
	all := writtenIn("", t.Attrs, e.Settings)
	for _, w := range all {
		if w.Command && w.FromEnvironment && !c.AllowExternal {
			return w.fail(e, "only the environment names this command; "+
				"it runs if it also stands in the configuration, or with allow_external = true")
		}
	}
	secret := slices.IndexFunc(all, written.isSecretOfCode)
	route := slices.IndexFunc(all, func(w written) bool { return w.FromEnvironment && (w.Place || w.Guard) })
	if secret < 0 || route < 0 {
		return nil
	}
	return all[route].fail(e, "the environment must not decide where a secret of the configuration goes, or how it is protected "+
		"on the way: %s (%s). Set both in the configuration, or both in the environment and without var.*", all[secret].path, all[secret].Pos)
}

// isSecretOfCode reports whether the code gives a secret that is sent somewhere.
// A password in the URL of a proxy goes to that proxy, and nowhere else.
func (w written) isSecretOfCode() bool {
	if w.FromEnvironment {
		return w.UsesVariables
	}
	return !w.Value.IsNull() && !w.Local && (w.Secret || w.Sensitive && !w.Place && !w.Guard)
}

func (w written) fail(e *attr.Entry, format string, args ...any) error {
	return &attr.Error{Address: e.Address, Attr: w.path, Pos: w.Pos, Err: fmt.Errorf(format, args...)}
}

// writtenIn lists the attributes that are set, with those of nested blocks. A
// nested block replaces that of an earlier layer as a whole, so one of the
// environment sets all that may stand in it.
func writtenIn(prefix string, attrs []attr.Attr, settings map[string]attr.Setting) []written {
	var all []written
	for _, a := range attrs {
		s, ok := settings[a.Name]
		switch {
		case !ok:
		case a.Attrs == nil:
			all = append(all, written{a, s, prefix + a.Name})
		default:
			all = append(all, writtenIn(prefix+a.Name+".", a.Attrs, inner(a, s))...)
		}
	}
	return all
}

func inner(block attr.Attr, whole attr.Setting) map[string]attr.Setting {
	var values map[string]cty.Value
	if v := whole.Value; !v.IsNull() && v.IsKnown() && (v.Type().IsObjectType() || v.Type().IsMapType()) {
		values = v.AsValueMap()
	}
	settings := map[string]attr.Setting{}
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

// over returns s in the place of earlier. The environment does not decide
// anything by repeating it.
func over(s, earlier attr.Setting) attr.Setting {
	if s.Err == nil && earlier.Err == nil && isSame(s.Value, earlier.Value) {
		s.FromEnvironment = s.FromEnvironment && earlier.FromEnvironment
	}
	return s
}

// isSame reports whether two values are equal, or both absent.
func isSame(a, b cty.Value) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	return a.RawEquals(b)
}
