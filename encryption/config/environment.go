package config

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// Decode decodes one of the entries, with the environment of the settings.
//
// Whoever can set a variable of a pipeline must not thereby choose what runs in
// it: a command that only TF_ENCRYPTION names is [attr.ErrCommand], unless AllowCommands
// is set. A layer that repeats what the code says changes nothing. What the
// environment may say beside a secret of the code is decided by
// [attr.Entry.Resolve].
func (c *Config) Decode(e *attr.Entry, t attr.Table) (attr.Values, error) {
	return e.Resolve(t, attr.Scope{Lookup: c.LookupEnv, AllowCommands: c.AllowCommands})
}

// over returns s in the place of earlier. The environment does not decide
// anything by repeating it.
func over(s, earlier attr.Setting) attr.Setting {
	same := s.Err == nil && earlier.Err == nil && isSame(s.Value, earlier.Value)
	s.FromEnvironment = s.FromEnvironment && !(same && !earlier.FromEnvironment)
	s.Replaces = earlier.IsSet() && (!same || earlier.Replaces)
	return s
}

// isSame reports whether two values are equal, or both absent.
func isSame(a, b cty.Value) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	return a.RawEquals(b)
}
