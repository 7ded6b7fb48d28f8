package config

import (
	"errors"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// ErrCommand means that only the environment names a command, and that
// [Config.AllowCommands] is not set.
var ErrCommand = errors.New("only the environment names this command; it runs only if the configuration names it as well")

// Decode decodes one of the entries, with the environment of the settings.
//
// Whoever can set a variable of a pipeline must not thereby choose what runs in
// it: a command that only TF_ENCRYPTION names is [ErrCommand], unless AllowCommands
// is set. A layer that repeats what the code says changes nothing. What the
// environment may say beside a secret of the code is decided by
// [attr.Entry.Resolve].
func (c *Config) Decode(e *attr.Entry, t attr.Table) (attr.Values, error) {
	if err := c.checkCommands(e, t); err != nil {
		return attr.Values{}, err
	}
	return e.Decode(t, c.LookupEnv)
}

func (c *Config) checkCommands(e *attr.Entry, t attr.Table) error {
	for _, w := range e.Written(t) {
		if w.Command && w.FromEnvironment && !c.AllowCommands {
			return &attr.Error{Address: e.Address, Attr: w.Path, Pos: w.Pos, Err: ErrCommand}
		}
	}
	return nil
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
