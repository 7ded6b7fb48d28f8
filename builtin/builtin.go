// Package builtin has the registry with the key providers and methods that the
// Terraform provider offers. With it come the SDKs of all clouds; a program
// that needs fewer uses that of encryption/light, or writes its own list.
package builtin

import (
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

// Registry returns that of package light, with the key providers aws_kms, gcp_kms,
// azure_vault and openbao, and the method sops. The caller may change it.
func Registry() encryption.Registry {
	services := []driver.Block[driver.KeyProvider]{awskms.Block(), gcpkms.Block(), azurevault.Block(), openbao.Block()}
	all := light.Registry()
	all.KeyProviders = append(all.KeyProviders, services...)
	all.Methods = append(all.Methods, sops.Block(services...))
	return all
}
