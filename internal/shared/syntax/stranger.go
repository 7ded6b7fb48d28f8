package syntax

import "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"

var privateKey = lazyregexp.New(`(?m)^(AGE-SECRET-KEY-|AGE-PLUGIN-|-----BEGIN [A-Z ]*PRIVATE KEY)`)

// HoldsPrivateKey reports whether a line begins a private key: an identity of age or of one
// of its plugins, or a key in PEM.
func HoldsPrivateKey(text []byte) bool { return privateKey.Match(text) }
