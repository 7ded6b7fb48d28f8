package config

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// over returns the setting s, which replaces earlier. If TF_ENCRYPTION only repeats a setting of
// the configuration, the result still counts as a setting of the configuration.
func over(s, earlier entries.Setting) entries.Setting {
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
