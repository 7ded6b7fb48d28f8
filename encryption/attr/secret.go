package attr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Written is an attribute of an entry or of a block in it, as it was written.
type Written struct {
	Attr
	Setting
	Path string // "token", "auth_jwt.jwt"
}

// Written lists the attributes that are set, with those of nested blocks. A
// nested block replaces that of an earlier layer as a whole, so one of the
// environment sets all that may stand in it.
func (e *Entry) Written(t Table) []Written { return writtenIn("", t.Attrs, e.Settings) }

func writtenIn(prefix string, attrs []Attr, settings map[string]Setting) []Written {
	var all []Written
	for _, a := range attrs {
		s, ok := settings[a.Name]
		switch {
		case !ok:
		case a.Attrs == nil:
			all = append(all, Written{a, s, prefix + a.Name})
		default:
			all = append(all, writtenIn(prefix+a.Name+".", a.Attrs, inner(a, s))...)
		}
	}
	return all
}

func inner(block Attr, whole Setting) map[string]Setting {
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

// Secret returns a secret of the code that is sent somewhere, and whether there
// is one; one that no variable may give a place comes first. Where it goes, and
// how it is protected on the way, is for the code to say.
func (e *Entry) Secret(t Table) (found Written, ok bool) {
	for _, w := range e.Written(t) {
		if w.isSecretOfCode() && (!ok || found.Within != "" && w.Within == "") {
			found, ok = w, true
		}
	}
	return found, ok
}

// isSecretOfCode reports whether the code gives a secret that is sent somewhere.
// A password in the URL of a proxy goes to that proxy, and nowhere else.
func (w Written) isSecretOfCode() bool {
	if w.FromEnvironment {
		return w.UsesVariables
	}
	return !isEmpty(w.Value) && !w.Local && (w.Attr.Secret || w.Sensitive && !w.Place && !w.Guard)
}

func isEmpty(v cty.Value) bool {
	return v.IsNull() || v.IsKnown() && v.Type() == cty.String && v.AsString() == ""
}

// filler fills absent attributes from the environment.
type filler struct {
	env    LookupEnv
	secret *Written // of the code; may be nil
}

// fill returns the value of a variable for a. An address of this machine is no
// substitute for one that a variable names, so that is an error.
func (f filler) fill(a Attr) (text string, ok bool, err error) {
	for _, name := range a.Env {
		text, ok := f.env.Get(name)
		switch {
		case !ok:
		case f.secret == nil || f.secret.Leaves(a, name, text):
			return text, true, nil
		case a.Place && (a.Required || a.Default != cty.NilVal):
			return "", false, f.secret.Refuses(name, a.Name)
		}
	}
	return "", false, nil
}

// Leaves reports whether a variable may give a its value, beside w, which is a
// secret of the code. The proxies of the machine are for all that it sends, and
// see nothing of a verified connection.
func (w Written) Leaves(a Attr, variable, value string) bool {
	switch strings.ToUpper(variable) {
	case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY":
		return true
	}
	return !a.Place && !a.Guard || w.Within == a.Name || slices.Contains(a.Safe, value)
}

// Refuses is the error about a variable that would decide where w goes.
func (w Written) Refuses(variable, attribute string) error {
	where := w.Path
	if w.Pos != (Pos{}) {
		where += fmt.Sprintf(" (%s)", w.Pos)
	}
	return fmt.Errorf("the environment variable %s must not decide where a secret of the configuration goes: %s. "+
		"Set %s in the configuration as well, or both in the environment", variable, where, attribute)
}
