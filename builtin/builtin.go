// Package builtin contains the registry of all key providers and methods of the Terraform provider. It links
// the SDKs of all clouds. Programs that need fewer kinds can use encryption/light, or build their own
// registry.
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

// Registry returns the registry of package light with the additional key providers aws_kms, gcp_kms,
// azure_vault and openbao, and the method sops. The caller may modify it.
func Registry() encryption.Registry {
	services := []driver.Block[driver.KeyProvider]{awskms.Block(), gcpkms.Block(), azurevault.Block(), openbao.Block()}
	all := light.Registry()
	all.KeyProviders = append(all.KeyProviders, services...)
	all.Methods = append(all.Methods, sops.Block(services...))
	return all
}
