package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// setup is what an ordinary configuration and an ordinary environment come to.
type setup struct {
	name, kind string
	code       string   // "attribute=value" pairs, with a space between them
	layer      string   // the same, of TF_ENCRYPTION
	env        []string // pairs of a name and a value

	// want names an attribute and what it comes to: "region=eu-west-1", and
	// "region=" if the variable is ignored; or "error: ", the variable or the
	// attribute that is refused, and the secret.
	want string
}

// setups are what people have in their pipelines: see also those of sources, in
// internal/source/all. Each one works, is ignored, or is an error that names
// both.
var setups = []setup{
	// AWS
	{"AWS_REGION everywhere", "aws_kms", "access_key=A secret_key=OWN", "", []string{"AWS_REGION", "eu-west-1"}, "region=eu-west-1"},
	{"Lambda: all of the environment", "aws_kms", "kms_key_id=k", "", []string{"AWS_REGION", "cn-north-1", "AWS_CA_BUNDLE", "/ca.pem"},
		"custom_ca_bundle=/ca.pem"},
	{"a region of another partition", "aws_kms", "access_key=A secret_key=OWN", "", []string{"AWS_REGION", "cn-north-1"},
		"error: AWS_REGION secret_key"},
	{"a region of GovCloud", "aws_kms", "access_key=A secret_key=OWN", "", []string{"AWS_DEFAULT_REGION", "us-gov-west-1"},
		"error: AWS_DEFAULT_REGION secret_key"},
	{"a region of the code", "aws_kms", "access_key=A secret_key=OWN region=cn-north-1", "", []string{"AWS_REGION", "eu-west-1"},
		"region=cn-north-1"},
	{"CodeBuild: a role's files beside keys", "aws_kms", "access_key=A secret_key=OWN", "", []string{"AWS_CONFIG_FILE", "/evil"},
		"shared_config_files="},
	{"a credentials file beside keys", "aws_kms", "access_key=A secret_key=OWN", "", []string{"AWS_SHARED_CREDENTIALS_FILE", "/evil"},
		"shared_credentials_files="},
	{"a profile of the code in the file of a variable", "aws_kms", "profile=ci", "", []string{"AWS_CONFIG_FILE", "/aws/config"},
		"shared_config_files=/aws/config"},
	{"a profile of the code in the credentials of a variable", "aws_kms", "profile=ci", "",
		[]string{"AWS_SHARED_CREDENTIALS_FILE", "/aws/credentials"}, "shared_credentials_files=/aws/credentials"},
	{"a company's authority beside a profile", "aws_kms", "profile=ci", "", []string{"AWS_CA_BUNDLE", "/ca.pem"},
		"error: AWS_CA_BUNDLE profile"},
	{"the machine's proxy", "aws_kms", "access_key=A secret_key=OWN", "", []string{"HTTPS_PROXY", "http://proxy.example.com"},
		"https_proxy=http://proxy.example.com"},
	{"localstack, with keys of the environment", "aws_kms", "endpoints.sts=https://sts", "",
		[]string{"AWS_ENDPOINT_URL_KMS", "http://localhost:4566"}, "endpoints.kms=http://localhost:4566"},
	{"EKS: a token of the pod", "aws_kms", "assume_role_with_web_identity.role_arn=arn:aws:iam::123456789012:role/r", "",
		[]string{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}, "assume_role_with_web_identity.web_identity_token_file=/token"},
	{"FIPS beside keys", "aws_kms", "access_key=A secret_key=OWN", "", []string{"AWS_USE_FIPS_ENDPOINT", "true"}, "use_fips_endpoint=true"},
	{"a profile with the credentials of the job", "aws_kms", "profile=dev", "",
		[]string{"AWS_ACCESS_KEY_ID", "a", "AWS_SECRET_ACCESS_KEY", "s", "AWS_CONFIG_FILE", "/aws/config"}, "shared_config_files=/aws/config"},

	// Azure
	{"ARM_TENANT_ID beside a client_secret", "azure_vault", "client_secret=OWN", "", []string{"ARM_TENANT_ID", "t"}, "tenant_id=t"},
	{"ARM_CLIENT_ID beside a client_secret", "azure_vault", "client_secret=OWN", "", []string{"ARM_CLIENT_ID", "c"}, "client_id=c"},
	{"GitHub Actions beside a client_secret", "azure_vault", "client_secret=OWN", "",
		[]string{"ACTIONS_ID_TOKEN_REQUEST_URL", "https://token.actions.githubusercontent.com"}, "oidc_request_url="},
	{"GitHub Actions signs in", "azure_vault", "use_oidc=true", "",
		[]string{"ACTIONS_ID_TOKEN_REQUEST_URL", "https://token.actions.githubusercontent.com"},
		"oidc_request_url=https://token.actions.githubusercontent.com"},
	{"another cloud", "azure_vault", "client_secret=OWN", "", []string{"ARM_ENVIRONMENT", "china"}, "error: ARM_ENVIRONMENT client_secret"},
	{"the public cloud", "azure_vault", "client_secret=OWN", "", []string{"ARM_ENVIRONMENT", "public"}, "environment=public"},
	{"another cloud, with a secret of its own", "azure_vault", "vault_uri=https://vault.vault.azure.cn", "",
		[]string{"ARM_ENVIRONMENT", "china", "ARM_CLIENT_SECRET", "s"}, "environment=china"},
	{"another cloud of TF_ENCRYPTION", "azure_vault", "client_secret=OWN", "environment=china", nil, "error: environment client_secret"},
	{"TF_ENCRYPTION brings all of it", "azure_vault", "vault_key_name=k", "client_secret=s environment=china", nil, "environment=china"},
	{"GitHub Actions beside a token of the code", "azure_vault", "use_oidc=true oidc_request_token=OWN", "",
		[]string{"ACTIONS_ID_TOKEN_REQUEST_URL", "https://a"}, "oidc_request_url="},
	{"a request token of the code, and an address of TF_ENCRYPTION", "azure_vault", "oidc_request_token=OWN", "oidc_request_url=https://a",
		nil, "error: oidc_request_url oidc_request_token"},
	{"OpenID Connect with a token of the environment", "azure_vault", "use_oidc=true client_id=c", "", []string{"ARM_OIDC_TOKEN", "t"},
		"oidc_token=t"},

	// Google
	{"GOOGLE_CREDENTIALS beside impersonation", "gcp_kms", "impersonate_service_account=a@example.com", "",
		[]string{"GOOGLE_CREDENTIALS", "c"}, "credentials=c"},
	{"GOOGLE_CREDENTIALS beside a token", "gcp_kms", "access_token=OWN", "", []string{"GOOGLE_CREDENTIALS", "c"}, "credentials="},

	// OpenBao and Vault
	{"VAULT_ADDR and VAULT_TOKEN", "openbao", "key_name=k", "", []string{"VAULT_ADDR", "https://v", "VAULT_TOKEN", "t"}, "address=https://v"},
	{"VAULT_ADDR beside a token", "openbao", "token=OWN", "", []string{"VAULT_ADDR", "https://v"}, "error: VAULT_ADDR token"},
	{"BAO_ADDR beside an address and a token", "openbao", "token=OWN address=https://own", "", []string{"BAO_ADDR", "https://v"},
		"address=https://own"},
	{"VAULT_NAMESPACE beside a token", "openbao", "token=OWN", "", []string{"VAULT_NAMESPACE", "n"}, "error: VAULT_NAMESPACE token"},
	{"BAO_NAMESPACE beside a login", "openbao", "auth_approle.role_id=r auth_approle.secret_id=OWN", "", []string{"BAO_NAMESPACE", "n"},
		"error: BAO_NAMESPACE auth_approle.secret_id"},
	{"VAULT_NAMESPACE beside a namespace and a token", "openbao", "token=OWN namespace=own", "", []string{"VAULT_NAMESPACE", "n"},
		"namespace=own"},
	{"VAULT_NAMESPACE and VAULT_TOKEN", "openbao", "key_name=k", "", []string{"VAULT_NAMESPACE", "n", "VAULT_TOKEN", "t"}, "namespace=n"},
	{"VAULT_NAMESPACE beside a token of sops", "sops", "vault_token=OWN", "", []string{"VAULT_NAMESPACE", "n"},
		"error: VAULT_NAMESPACE vault_token"},
	{"VAULT_NAMESPACE and VAULT_TOKEN for sops", "sops", "allowed_vault_addresses=https://v", "",
		[]string{"VAULT_NAMESPACE", "n", "VAULT_TOKEN", "t"}, "vault_namespace=n"},
	{"VAULT_CACERT beside a token", "openbao", "token=OWN", "", []string{"VAULT_CACERT", "/ca.pem"}, "error: VAULT_CACERT token"},
	{"VAULT_SKIP_VERIFY=false", "openbao", "token=OWN", "", []string{"VAULT_SKIP_VERIFY", "false"}, "skip_tls_verify=false"},
	{"VAULT_SKIP_VERIFY=true", "openbao", "token=OWN", "", []string{"VAULT_SKIP_VERIFY", "true"}, "error: VAULT_SKIP_VERIFY token"},
	{"GitLab: a token of the job", "openbao", "auth_jwt.role=ci", "", []string{"TERRAFORM_VAULT_AUTH_JWT", "j"}, "auth_jwt.jwt=j"},

	// only used here
	{"TF_ENCRYPTION changes the iterations", "pbkdf2", "passphrase=OWN-OWN-OWN-OWN-OWN", "iterations=1000000", nil, "iterations=1000000"},
	{"TF_ENCRYPTION names another key", "openbao", "token=OWN", "key_name=k", nil, "key_name=k"},
	{"TF_ENCRYPTION makes a key exportable", "openbao", "token=OWN", "exportable=true", nil, "error: exportable token"},
	{"TF_ENCRYPTION chooses an engine", "openbao", "token=OWN", "transit_engine_path=/secret", nil, "error: transit_engine_path token"},
	{"TF_ENCRYPTION chooses a namespace", "openbao", "token=OWN", "namespace=n", nil, "error: namespace token"},
	{"TF_ENCRYPTION chooses a namespace for sops", "sops", "vault_token=OWN", "vault_namespace=n", nil, "error: vault_namespace vault_token"},
	{"VAULT_ADDR beside age identities", "sops", "age_identities=OWN", "", []string{"VAULT_ADDR", "https://v"},
		"allowed_vault_addresses=https://v"},
}

// TestSetups: what ordinary set-ups come to.
func TestSetups(t *testing.T) {
	t.Parallel()
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			at := map[string]leaf{}
			r := routed{table: tableOf(t, s.kind)}
			for _, l := range leaves(r.table.Attrs) {
				at[strings.Join(l.path, ".")] = l
			}
			settings := map[string]cty.Value{}
			for _, pair := range strings.Fields(s.code + " " + s.layer) {
				name, value, _ := strings.Cut(pair, "=")
				at[name].inCode(settings, at[name].value(value))
			}
			table := r.table
			table.Attrs = optional(table.Attrs)
			entry := unstable.NewEntry("x", table, settings)
			for _, pair := range strings.Fields(s.layer) {
				name, _, _ := strings.Cut(pair, "=")
				setting := entry.Settings[name]
				setting.FromEnvironment = true
				entry.Settings[name] = setting
			}
			v, err := entry.Decode(table, variables(s.env...))
			if names, refused := strings.CutPrefix(s.want, "error: "); refused {
				for _, name := range strings.Fields(names) {
					if err == nil || !strings.Contains(err.Error(), name) {
						t.Errorf("got %v, want %s in an error", err, name)
					}
				}
				return
			}
			name, want, _ := strings.Cut(s.want, "=")
			if err != nil {
				t.Fatal(err)
			}
			if got := at[name].in(v); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		})
	}
}

func tableOf(t *testing.T, kind string) attr.Table {
	t.Helper()
	all := slices.Concat(unstable.Tables(builtin.Registry()))
	i := slices.IndexFunc(all, func(t attr.Table) bool { return t.Name == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return all[i]
}
