// Package builtin has the registry with every key provider and method that
// comes with this module. A program that needs fewer writes a shorter list.
package builtin

import (
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/static"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/unencrypted"
)

// Registry lists everything.
func Registry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{
			pbkdf2.Block(),
			static.Block(),
		},
		Methods: []encryption.Block[encryption.Method]{
			aesgcm.Block(),
			unencrypted.Block(),
		},
	}
}
