package azurevault

import (
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// keyHarmless is the value of [attr.Attr.Harmless] for attributes that describe a key.
const keyHarmless = "It says which key the vault is asked for, and not which vault is asked."

func table() attr.Table {
	return attr.Table{
		Name:       "azure_vault",
		OtherNames: []string{"azure", "key_vault"},
		Example:    []string{`vault_uri = "https://example.vault.azure.net"`, `vault_key_name = "tf-state"`, "key_length = 32"},
		Doc: "A key of Azure Key Vault or of a Managed HSM encrypts the key of each file. Reading requires the key permission `decrypt`. " +
			"The first way to authenticate that is set up is used.",
		Attrs: append([]attr.Attr{
			{Name: "vault_uri", Type: cty.String, Required: true, Check: attr.Text(checkVault),
				Doc: "The URL of the vault, such as `https://example.vault.azure.net`."},
			{Name: "vault_key_name", Type: cty.String, Required: true, Form: attr.Name, Harmless: keyHarmless,
				Check: attr.Is(isKeyName, "this is not a valid key name; use 1 to 127 letters, digits and hyphens"),
				Doc:   "The name of the key: 1 to 127 letters, digits and hyphens."},
			{Name: "key_length", Type: cty.Number, Required: true, Harmless: keyHarmless, Check: attr.Between(1, maxKeyLength),
				Doc: "The length of new keys in bytes; `aes_gcm` needs 16, 24 or 32. A file that is read has its own."},
			{Name: "symmetric", Type: cty.Bool, Default: cty.False, Harmless: keyHarmless, Doc: "The vault's key is an AES key, which " +
				"only a Managed HSM has, and not an RSA key. It matters for new keys; a file that is read names " +
				"its algorithm. Defaults to `false`."},
			{Name: "symmetric_key_size", Type: cty.Number, Harmless: keyHarmless, Doc: "The size of the AES key in bits: `128`, `192` or " +
				"`256`. Required with `symmetric`."},
		}, azureauth.Attrs(nil)...),
	}
}

func build(v attr.Values, o Options) (_ driver.KeyProvider, err error) {
	p := &provider{
		Wrapping: driver.Wrapping[metadata]{Kind: kind, Parse: parse},

		vault:     v.String("vault_uri"),
		name:      v.String("vault_key_name"),
		keyLength: int(v.Int("key_length")),
		algorithm: azkeys.EncryptionAlgorithmRSAOAEP256,
		patience:  defaultPatience,
	}
	if p.access, err = azureauth.New(v, world.For(v.Environment(), false)); err != nil {
		return nil, err
	}
	p.access.Transport, p.credential = o.Transport, o.Credential
	if o.Transport == nil {
		client := azureauth.HTTPClient(world.For(v.Environment(), false))
		p.access.Transport, p.own = client, client.Transport
	}
	if v.Bool("symmetric") {
		return p, p.setSymmetric(v)
	}
	return p, nil
}

func (p *provider) setSymmetric(v attr.Values) error {
	p.algorithm = map[int64]azkeys.EncryptionAlgorithm{
		128: azkeys.EncryptionAlgorithmA128GCM, 192: azkeys.EncryptionAlgorithmA192GCM, 256: azkeys.EncryptionAlgorithmA256GCM,
	}[v.Int("symmetric_key_size")]
	if p.algorithm == "" {
		return v.Errorf("symmetric_key_size", "the value must be 128, 192 or 256, because the argument symmetric is set")
	}
	return nil
}

// These patterns follow Azure's naming rules; see
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules#microsoftkeyvault.
var (
	keyName   = lazyregexp.New(`^[0-9A-Za-z-]+$`)
	vaultName = lazyregexp.New(`^[A-Za-z][0-9A-Za-z-]{1,22}[0-9A-Za-z]$`)
)

func isKeyName(text string) bool { return len(text) <= 127 && keyName.MatchString(text) }

func checkVault(text string) error {
	u := recognize.Server(text)
	if u == nil || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		if strings.Contains(text, "/keys/") {
			return errors.New("this is the address of a key; remove /keys/ and everything after it, and set vault_key_name to " +
				"the name of the key")
		}
		return errors.New("this is not an https address; write an address like https://example.vault.azure.net")
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	if !vaultName.MatchString(name) || strings.Contains(name, "--") {
		return errors.New("this is not a valid vault name; use 3 to 24 letters, digits and single hyphens. The name must begin " +
			"with a letter, and must not end with a hyphen")
	}
	return nil
}
