// Package builtin has the registry with the key providers and methods that the
// Terraform provider offers. A program that needs fewer, or others, writes its
// own list.
//
// The key services of the clouds, keyprovider/awskms, keyprovider/gcpkms and
// keyprovider/azurevault, stand beside it: each brings the SDK of its vendor.
package builtin

import (
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	externalkeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/static"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/xor"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/unencrypted"
)

// Registry returns the list.
func Registry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{
			pbkdf2.Block(),
			static.Block(),
			openbao.Block(),
			externalkeys.Block(),
			xor.Block(),
		},
		Methods: []encryption.Block[encryption.Method]{
			aesgcm.Block(),
			external.Block(),
			unencrypted.Block(),
		},
	}
}
