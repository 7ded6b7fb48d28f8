package attr

import (
	"errors"
	"regexp"
)

// Unencrypted is the address of the built-in method that reads plaintext, and
// the kind of the methods that do so under another name.
const Unencrypted = "unencrypted"

// The names that OpenTofu allows for key providers and methods.
var (
	namePattern          = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	keyAddressPattern    = regexp.MustCompile(`^key_provider\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	methodAddressPattern = regexp.MustCompile(`^method\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
)

// IsName reports whether s may be the name of a key provider or method.
func IsName(s string) bool { return namePattern.MatchString(s) }

// IsMethodAddress reports whether s has the shape of a method's address, such
// as "method.aes_gcm.main", or is the built-in "unencrypted".
func IsMethodAddress(s string) bool { return s == Unencrypted || methodAddressPattern.MatchString(s) }

// IsMethod reports whether s may name a method in an argument: by its address
// or, if it has no settings, by its kind.
func IsMethod(s string) bool { return IsMethodAddress(s) || IsName(s) }

// IsKeyProviderAddress reports whether s has the shape of a key provider's
// address, such as "key_provider.pbkdf2.main".
func IsKeyProviderAddress(s string) bool { return keyAddressPattern.MatchString(s) }

// ErrMethodRequired is the mistake of an attribute with [Attr.Method] that
// holds something else than the address of a method.
var ErrMethodRequired = errors.New("a method is required, such as method.aes_gcm.main")
