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
// all secrets of an entry itself may say where they go. What is absent is filled
// from LookupEnv by the same rule: see [attr.Entry.Decode].
func (c *Config) Decode(e *attr.Entry, t attr.Table) (attr.Values, error) {
	if err := c.checkEnvironment(e, t); err != nil {
		return attr.Values{}, err
	}
	return e.Decode(t, c.LookupEnv)
}

func (c *Config) checkEnvironment(e *attr.Entry, t attr.Table) error {
	all := e.Written(t)
	for _, w := range all {
		if w.Command && w.FromEnvironment && !c.AllowExternal {
			switchOn := ""
			if c.Provider {
				switchOn = ", or with allow_external = true"
			}
			return fail(w, e, "only the environment names this command; it runs if it also stands in the configuration%s", switchOn)
		}
	}
	secret, given := e.Secret(t)
	route := slices.IndexFunc(all, func(w attr.Written) bool { return w.FromEnvironment && (w.Place || w.Guard) })
	if !given || route < 0 {
		return nil
	}
	return fail(all[route], e, "the environment must not decide where a secret of the configuration goes, or how it is protected "+
		"on the way: %s (%s). Set both in the configuration, or both in the environment and without var.*", secret.Path, secret.Pos)
}

func fail(w attr.Written, e *attr.Entry, format string, args ...any) error {
	return &attr.Error{Address: e.Address, Attr: w.Path, Pos: w.Pos, Err: fmt.Errorf(format, args...)}
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
