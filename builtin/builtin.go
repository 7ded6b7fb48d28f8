// Package builtin has the registry with the key providers and methods that the
// Terraform provider offers. With it come the SDKs of all clouds; a program
// that needs fewer, or others, writes its own list.
package builtin

import (
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
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

// Registry returns the key providers pbkdf2, static, aws_kms, gcp_kms, azure_vault,
// openbao, external, age and xor, and the methods aes_gcm, external, age, sops, kubeform,
// terraform_backend_git and unencrypted. The caller may change it.
func Registry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{
			pbkdf2.Block(),
			static.Block(),
			awskms.Block(),
			gcpkms.Block(),
			azurevault.Block(),
			openbao.Block(),
			externalkeys.Block(),
			agekeys.Block(),
			xor.Block(),
		},
		Methods: []encryption.Block[encryption.Method]{
			aesgcm.Block(),
			external.Block(),
			age.Block(),
			sops.Block(awskms.Block(), gcpkms.Block(), azurevault.Block(), openbao.Block()),
			kubeform.Block(),
			terraformbackendgit.Block(),
			unencrypted.Block(),
		},
	}
}
