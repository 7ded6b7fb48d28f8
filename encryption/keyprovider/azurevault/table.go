package azurevault

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

func table() config.Table {
	return config.Table{
		Name: "azure_vault",
		Doc:  "Has the key of a file encrypted and decrypted by a key of Azure Key Vault or of a Managed HSM. To read, the key permission `decrypt` is enough (the data action `Microsoft.KeyVault/vaults/keys/decrypt/action`). Of the ways to authenticate, the first that is set up is used: client certificate, client secret, OpenID Connect, managed identity, AKS workload identity, Azure CLI. With `use_environment = false`, AKS workload identity is refused, the Azure CLI gets no environment but what it needs to run, and where a variable that Azure's client reads by itself is set (`IDENTITY_ENDPOINT`, `MSI_ENDPOINT` and the like for a managed identity, `AZURE_REGIONAL_AUTHORITY_NAME`), there is an error.",
		Attrs: []config.Attr{
			{Name: "vault_uri", Type: cty.String, Required: true, Doc: "The URL of the vault, such as `https://example.vault.azure.net`."},
			{Name: "vault_key_name", Type: cty.String, Required: true, Doc: "The name of the key: 1 to 127 letters, digits and hyphens."},
			{Name: "key_length", Type: cty.Number, Required: true, Doc: "Length of new keys in bytes; `aes_gcm` needs 16, 24 or 32. A file that is read has its own."},
			{Name: "symmetric", Type: cty.Bool, Default: cty.False, Doc: "The vault's key is an AES key, which only a Managed HSM has, and not an RSA key. It matters for new keys; a file that is read names its algorithm. Defaults to `false`."},
			{Name: "symmetric_key_size", Type: cty.Number, Doc: "The size of the AES key in bits: `128`, `192` or `256`. Required with `symmetric`."},

			text("tenant_id", "The tenant to sign in to.", "ARM_TENANT_ID"),
			text("subscription_id", "The subscription whose account the Azure CLI is to use.", "ARM_SUBSCRIPTION_ID"),
			text("client_id", "The client ID of a service principal, or of a managed identity.", "ARM_CLIENT_ID"),
			text("client_id_file_path", "The path of a file that holds the client ID.", "ARM_CLIENT_ID_FILE_PATH"),
			secret("client_secret", "The client secret of a service principal.", "ARM_CLIENT_SECRET"),
			text("client_secret_file_path", "The path of a file that holds the client secret.", "ARM_CLIENT_SECRET_FILE_PATH"),
			secret("client_certificate", "The client certificate of a service principal with its private key, as PKCS#12 in base64.", "ARM_CLIENT_CERTIFICATE"),
			secret("client_certificate_password", "The password of the client certificate.", "ARM_CLIENT_CERTIFICATE_PASSWORD"),
			text("client_certificate_path", "The path of a PKCS#12 file with the client certificate and its private key.", "ARM_CLIENT_CERTIFICATE_PATH"),
			flag("use_oidc", "Sign in with an OpenID Connect token: `oidc_token`, `oidc_token_file_path`, or one that `oidc_request_url` gives."),
			secret("oidc_token", "The OpenID Connect token.", "ARM_OIDC_TOKEN"),
			text("oidc_token_file_path", "The path of a file that holds the OpenID Connect token.", "ARM_OIDC_TOKEN_FILE_PATH"),
			text("oidc_request_url", "The https address that gives OpenID Connect tokens, as GitHub Actions has one.", "ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL"),
			secret("oidc_request_token", "The token for `oidc_request_url`.", "ARM_OIDC_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
			flag("use_msi", "Sign in as the managed identity of this machine."),
			text("msi_endpoint", "The address that gives tokens of the managed identity, where it is not that of a virtual machine."),
			flag("use_aks_workload_identity", "Sign in with AKS workload identity, which is set up by `AZURE_CLIENT_ID`, `AZURE_TENANT_ID` and `AZURE_FEDERATED_TOKEN_FILE`."),
			{Name: "use_cli", Type: cty.Bool, Default: cty.True, Doc: "Sign in with the Azure CLI when nothing else is set up. Defaults to `true`."},
			{Name: "environment", Type: cty.String, Default: cty.StringVal("public"), Env: []string{"ARM_ENVIRONMENT"}, Doc: "The cloud: `public`, `usgovernment` or `china`. Defaults to `public`."},
			text("metadata_host", "The host that describes a cloud of its own, asked at `/metadata/endpoints`. It goes before `environment`.", "ARM_METADATA_HOST"),
		},
	}
}

func text(name, doc string, env ...string) config.Attr {
	return config.Attr{Name: name, Type: cty.String, Env: env, Doc: doc}
}

func secret(name, doc string, env ...string) config.Attr {
	return config.Attr{Name: name, Type: cty.String, Sensitive: true, Env: env, Doc: doc}
}

func flag(name, doc string) config.Attr {
	return config.Attr{Name: name, Type: cty.Bool, Default: cty.False, Doc: doc + " Defaults to `false`."}
}

func build(v config.Values, o Options) (encryption.KeyProvider, error) {
	p := &Provider{
		vault:     v.String("vault_uri"),
		name:      v.String("vault_key_name"),
		algorithm: azkeys.EncryptionAlgorithmRSAOAEP256,
		patience:  defaultPatience,
		access: access{
			options: o,
			tenant:  v.String("tenant_id"), subscription: v.String("subscription_id"),
			clientID: v.String("client_id"), clientIDFile: v.String("client_id_file_path"),
			secret: v.String("client_secret"), secretFile: v.String("client_secret_file_path"),
			certificate: v.String("client_certificate"), certificateFile: v.String("client_certificate_path"),
			certificatePassword: v.String("client_certificate_password"),
			useOIDC:             v.Bool("use_oidc"),
			token:               v.String("oidc_token"), tokenFile: v.String("oidc_token_file_path"),
			requestURL: v.String("oidc_request_url"), requestToken: v.String("oidc_request_token"),
			useMSI: v.Bool("use_msi"), msiEndpoint: v.String("msi_endpoint"),
			useAKS: v.Bool("use_aks_workload_identity"), useCLI: v.Bool("use_cli"),
			metadataHost: v.String("metadata_host"),
			environment:  v.ReadsEnvironment(),
		},
	}
	length, err := v.Int("key_length", 1, maxKeyLength)
	if err != nil {
		return nil, err
	}
	p.keyLength = int(length)
	if err := p.checkVault(v); err != nil {
		return nil, err
	}
	if err := p.access.check(v); err != nil {
		return nil, err
	}
	if v.Bool("symmetric") {
		return p, p.setSymmetric(v)
	}
	return p, nil
}

func (p *Provider) setSymmetric(v config.Values) error {
	size, err := v.Int("symmetric_key_size", 128, 256)
	switch {
	case err != nil:
		return err
	case size == 128:
		p.algorithm = azkeys.EncryptionAlgorithmA128GCM
	case size == 192:
		p.algorithm = azkeys.EncryptionAlgorithmA192GCM
	case size == 256:
		p.algorithm = azkeys.EncryptionAlgorithmA256GCM
	default:
		return v.Errorf("symmetric_key_size", "with symmetric, one of 128, 192 and 256 is required")
	}
	return nil
}

// The rules for names are Azure's:
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules#microsoftkeyvault
var (
	keyName   = regexp.MustCompile(`^[0-9A-Za-z-]{1,127}$`)
	vaultName = regexp.MustCompile(`^[A-Za-z][0-9A-Za-z-]{1,22}[0-9A-Za-z]$`)
)

func (p *Provider) checkVault(v config.Values) error {
	if !keyName.MatchString(p.name) {
		return v.Errorf("vault_key_name", "a key's name has 1 to 127 letters, digits and hyphens")
	}
	u, err := url.Parse(p.vault)
	if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return v.Errorf("vault_uri", "an address such as https://example.vault.azure.net is required")
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	if !vaultName.MatchString(name) || strings.Contains(name, "--") {
		return v.Errorf("vault_uri", "a vault's name has 3 to 24 letters, digits and single hyphens; it begins with a letter and does not end with a hyphen")
	}
	return nil
}

// check looks at what can be wrong without any I/O.
func (a *access) check(v config.Values) error {
	var ok bool
	if a.cloud, ok = clouds(v.String("environment")); !ok && a.metadataHost == "" {
		return v.Errorf("environment", "one of public, usgovernment and china is required; for another cloud, set metadata_host")
	}
	if u, err := url.Parse("https://" + a.metadataHost + "/"); err != nil || u.Host != a.metadataHost {
		return v.Errorf("metadata_host", "a host name is required, without a scheme and a path")
	}
	if u, err := url.Parse(a.requestURL); a.useOIDC && a.requestURL != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return v.Errorf("oidc_request_url", "an https address is required")
	}
	if u, err := url.Parse(a.msiEndpoint); a.msiEndpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return v.Errorf("msi_endpoint", "an http or https address is required")
	}
	return nil
}

// clouds knows the names that OpenTofu does.
func clouds(environment string) (cloud.Configuration, bool) {
	switch environment {
	case "", "public", "global", "canary":
		return cloud.AzurePublic, true
	case "usgovernment", "usgovernmentl4", "usgovernmentl5", "dod":
		return cloud.AzureGovernment, true
	case "china":
		return cloud.AzureChina, true
	}
	return cloud.Configuration{}, false
}
