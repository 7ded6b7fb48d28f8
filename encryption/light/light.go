// Package light has the registry with the key providers and methods that need no SDK.
// Those that do are in the package builtin of another module. A program that needs
// fewer writes its own list.
package light

import (
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	agekeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/age"
	externalkeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/static"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/xor"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/age"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/kubeform"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/terraformbackendgit"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/unencrypted"
)

// Registry returns the key providers pbkdf2, static, external, age and xor, and the
// methods aes_gcm, external, unencrypted, age, kubeform and terraform_backend_git. The
// caller may change it.
func Registry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{
			pbkdf2.Block(),
			static.Block(),
			externalkeys.Block(),
			agekeys.Block(),
			xor.Block(),
		},
		Methods: []encryption.Block[encryption.Method]{
			aesgcm.Block(),
			external.Block(),
			unencrypted.Block(),
			age.Block(),
			kubeform.Block(),
			terraformbackendgit.Block(),
		},
	}
}
