// Package light has the registry of the key providers and methods that need no SDK. Package
// builtin, in another module, adds the others. A program that needs fewer kinds makes a shorter
// registry itself.
package light

import (
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	agekeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/age"
	externalkeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/pbkdf2"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/static"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/xor"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/age"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/kubeform"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/terraformbackendgit"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/unencrypted"
)

// Registry returns the key providers pbkdf2, static, external, age and xor, and the methods
// aes_gcm, external, unencrypted, age, kubeform and terraform_backend_git. The caller may change
// it.
func Registry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []driver.Block[driver.KeyProvider]{
			pbkdf2.Block(),
			static.Block(),
			externalkeys.Block(),
			agekeys.Block(),
			xor.Block(),
		},
		Methods: []driver.Block[driver.Method]{
			aesgcm.Block(),
			external.Block(),
			unencrypted.Block(),
			age.Block(),
			kubeform.Block(),
			terraformbackendgit.Block(),
		},
	}
}
