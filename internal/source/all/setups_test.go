package all

import (
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// setup is what an ordinary block of credentials and an ordinary environment
// come to.
type setup struct {
	name, kind string
	block      string // "attribute=value" pairs, with a space between them; those of blocks are "block.attribute=value"
	env        string // likewise, of variables

	// want names an attribute and what it comes to: "token=t", and "token=" if
	// the variable is ignored; or "error: ", the variable and the secret.
	want string
}

// asks is the server that data sources ask in these set-ups.
const asks = "https://state.example.com/acme/state"

// setups are what people have in their pipelines: see also those of key
// providers, in builtin. Each one works, is ignored, or is an error
// that names both.
var setups = []setup{
	// S3
	{"Lambda and CodeBuild", "s3", "", "AWS_REGION=eu-west-1 AWS_CA_BUNDLE=/ca.pem", "custom_ca_bundle=/ca.pem"},
	{"a company's authority beside MinIO's keys", "s3", "access_key=A secret_key=OWN", "AWS_CA_BUNDLE=/ca.pem",
		"error: AWS_CA_BUNDLE secret_key"},
	{"a company's authority in both", "s3", "access_key=A secret_key=OWN custom_ca_bundle=/own.pem", "AWS_CA_BUNDLE=/ca.pem",
		"custom_ca_bundle=/own.pem"},
	{"no authority, said by the code", "s3", "access_key=A secret_key=OWN custom_ca_bundle=", "AWS_CA_BUNDLE=/ca.pem", "custom_ca_bundle="},
	{"an assumed role's files beside keys", "s3", "access_key=A secret_key=OWN", "AWS_CONFIG_FILE=/aws", "shared_config_files="},
	{"an SSE-C key of the environment beside keys", "s3", "access_key=A secret_key=OWN", "AWS_SSE_CUSTOMER_KEY=" + customerKey,
		"sse_customer_key=" + customerKey},
	{"a proxy everywhere", "s3", "access_key=A secret_key=OWN", "HTTPS_PROXY=http://proxy", "https_proxy=http://proxy"},
	{"no proxy, said by the code", "s3", "access_key=A secret_key=OWN https_proxy=", "HTTPS_PROXY=http://proxy", "https_proxy="},
	{"localstack, with an endpoint of the code", "s3", "access_key=A secret_key=OWN endpoints.s3=http://localhost:4566",
		"AWS_ENDPOINT_URL_S3=http://other", "endpoints.s3=http://localhost:4566"},
	{"an endpoint of STS beside keys", "s3", "access_key=A secret_key=OWN endpoints.s3=http://localhost:4566",
		"AWS_ENDPOINT_URL_STS=http://other", "error: AWS_ENDPOINT_URL_STS secret_key"},
	{"a profile with single sign-on", "s3", "profile=dev", "AWS_PROFILE=other AWS_CONFIG_FILE=/aws/config", "shared_config_files=/aws/config"},
	{"a profile with the credentials of the job", "s3", "profile=dev",
		"AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=s AWS_CONFIG_FILE=/aws/config", "shared_config_files=/aws/config"},
	{"an SSE-C key beside a role", "s3", "sse_customer_key=" + customerKey + " assume_role.role_arn=arn:r",
		"AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=s", "assume_role.role_arn=arn:r"},
	{"FIPS beside keys", "s3", "access_key=A secret_key=OWN", "AWS_USE_FIPS_ENDPOINT=true", "use_fips_endpoint=true"},

	// Azure
	{"a managed identity", "azurerm", "client_id=c", "ARM_USE_MSI=true", "use_msi=true"},
	{"GitHub Actions beside an access key", "azurerm", "access_key=T1dO",
		"ACTIONS_ID_TOKEN_REQUEST_URL=https://a ACTIONS_ID_TOKEN_REQUEST_TOKEN=t", "oidc_request_url=https://a"},
	{"ARM_TENANT_ID beside a client_secret", "azurerm", "client_secret=OWN", "ARM_TENANT_ID=t", "tenant_id=t"},
	{"ARM_ACCESS_KEY beside a client_secret", "azurerm", "client_secret=OWN", "ARM_ACCESS_KEY=k", "access_key="},
	{"another cloud beside an access key", "azurerm", "access_key=OWN", "ARM_ENVIRONMENT=usgovernment", "error: ARM_ENVIRONMENT access_key"},
	{"another cloud of the environment", "azurerm", "", "ARM_ENVIRONMENT=china ARM_CLIENT_SECRET=s", "environment=china"},
	{"Azure Pipelines", "azurerm", "use_oidc=true", "SYSTEM_OIDCREQUESTURI=https://a SYSTEM_ACCESSTOKEN=t", "oidc_request_url=https://a"},
	{"Azure Pipelines beside a token of the code", "azurerm", "use_oidc=true oidc_request_token=OWN",
		"SYSTEM_OIDCREQUESTURI=https://a", "error: oidc_request_url oidc_request_token"},
	{"a service connection beside a secret", "azurerm", "client_secret=OWN", "ARM_OIDC_AZURE_SERVICE_CONNECTION_ID=c",
		"ado_service_connection_id="},
	{"a managed identity beside a key of the customer", "azurerm", "customer_provided_key=T1dOT1dOT1dOT1dOT1dOT1dOT1dOT1dOT1dOT1dOT1c=",
		"ARM_USE_MSI=true", "use_msi=true"},
	{"OpenID Connect with a token of the environment", "azurerm", "client_id=c", "ARM_USE_OIDC=true ARM_OIDC_TOKEN=t", "oidc_token=t"},

	// Google
	{"GOOGLE_CREDENTIALS beside impersonation", "gcs", "impersonate_service_account=a@example.com", "GOOGLE_CREDENTIALS=c", "credentials=c"},
	{"impersonation beside credentials", "gcs", "credentials=OWN", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT=a@example.com",
		"impersonate_service_account=a@example.com"},
	{"another endpoint beside credentials", "gcs", "credentials=OWN", "GOOGLE_STORAGE_CUSTOM_ENDPOINT=https://e",
		"error: GOOGLE_STORAGE_CUSTOM_ENDPOINT credentials"},
	{"a key of the environment beside credentials", "gcs", "credentials=OWN", "GOOGLE_ENCRYPTION_KEY=k", "encryption_key=k"},
	{"gcloud's credentials beside a key of the customer", "gcs", "encryption_key=OWN", "GOOGLE_APPLICATION_CREDENTIALS=/adc",
		"encryption_key=OWN"},

	// Consul
	{"Consul, all of the environment", "consul", "", "CONSUL_HTTP_ADDR=consul:8500 CONSUL_HTTP_TOKEN=t CONSUL_CACERT=/ca.pem",
		"ca_file=/ca.pem"},
	{"a token beside CONSUL_HTTP_ADDR", "consul", "access_token=OWN", "CONSUL_HTTP_ADDR=consul:8500", "error: CONSUL_HTTP_ADDR access_token"},
	{"a token and an address beside an authority", "consul", "access_token=OWN address=https://c", "CONSUL_CACERT=/ca.pem",
		"error: CONSUL_CACERT access_token"},
	{"another Consul's variables", "consul", "access_token=OWN address=https://c", "CONSUL_HTTP_ADDR=d:8500 CONSUL_CACERT=/ca.pem",
		"ca_file="},
	{"verification said twice", "consul", "access_token=OWN address=https://c", "CONSUL_HTTP_SSL_VERIFY=true", "ssl_verify=true"},

	// PostgreSQL is in internal/source/pg: its variables complete conn_str.
	{"PG_CONN_STR beside a conn_str", "pg", "conn_str=host=own", "PG_CONN_STR=host=other", "conn_str=host=own"},

	// Kubernetes
	{"KUBE_CTX beside a kubeconfig of the code", "kubernetes", "config_path=/own", "KUBE_CTX=prod", "config_context="},
	{"KUBE_CTX beside a token", "kubernetes", "token=OWN", "KUBE_CTX=prod", "error: KUBE_CTX token"},
	{"KUBE_CTX alone", "kubernetes", "", "KUBE_CTX=prod", "config_context=prod"},
	{"KUBE_TOKEN for a host of the code", "kubernetes", "host=https://k", "KUBE_TOKEN=t", "token=t"},
	{"KUBE_USER beside a token", "kubernetes", "token=OWN host=https://k", "KUBE_USER=me", "username="},
	{"KUBE_HOST beside a plugin", "kubernetes", "exec.api_version=v1 exec.command=OWN", "KUBE_HOST=https://other",
		"error: KUBE_HOST exec.command"},
	{"KUBE_HOST and a plugin with a host", "kubernetes", "host=https://k exec.api_version=v1 exec.command=OWN", "KUBE_HOST=https://other",
		"host=https://k"},
	{"aws eks get-token", "kubernetes", "host=https://k exec.api_version=v1 exec.command=aws", "AWS_PROFILE=dev HTTPS_PROXY=http://proxy",
		"exec.command=aws"},
	{"KUBE_INSECURE=false beside a token", "kubernetes", "token=OWN", "KUBE_INSECURE=false", "insecure=false"},

	// HTTP and GitLab
	{"GitLab CI: the job's own state", "http", "", "TF_HTTP_ADDRESS=" + asks + " TF_HTTP_USERNAME=ci TF_HTTP_PASSWORD=t", "password=t"},
	{"GitLab CI: another state, with a block", "http", "url=https://state.example.com/acme/",
		"TF_HTTP_ADDRESS=https://state.example.com/other TF_HTTP_USERNAME=ci TF_HTTP_PASSWORD=t", "password=t"},
	{"TF_HTTP_PASSWORD for another server", "http", "url=https://state.example.com/acme/",
		"TF_HTTP_ADDRESS=https://other.example.com/ TF_HTTP_PASSWORD=t", "password="},
	{"TF_HTTP_USERNAME beside a password", "http", "url=https://state.example.com/acme/ password=OWN", "TF_HTTP_USERNAME=ci", "username=ci"},
	{"TF_HTTP_PASSWORD beside a header", "http", "url=https://state.example.com/acme/ headers=OWN", "TF_HTTP_PASSWORD=t", "password=t"},
	{"TF_HTTP_PASSWORD and nothing else", "http", "", "TF_HTTP_PASSWORD=t", "error: TF_HTTP_PASSWORD state.example.com"},
	{"verification switched off beside a password", "http", "url=https://state.example.com/acme/ password=OWN",
		"TF_HTTP_SKIP_CERT_VERIFICATION=true", "error: TF_HTTP_SKIP_CERT_VERIFICATION password"},

	// git
	{"GIT_PASSWORD beside a username", "git", "url=https://state.example.com/acme/ username=me", "GIT_PASSWORD=t", "password=t"},
	{"GIT_USERNAME beside a password", "git", "url=https://state.example.com/acme/ password=OWN", "GIT_USERNAME=me", "username="},
	{"a company's proxy and authority beside a token", "git", "url=https://state.example.com/acme/ password=OWN",
		"HTTPS_PROXY=http://proxy SSL_CERT_FILE=/ca.pem", "password=OWN"},
	{"host keys beside a key", "git", "url=https://state.example.com/acme/ ssh_private_key_file=/own", "StrictHostKeyChecking=no",
		"error: StrictHostKeyChecking ssh_private_key_file"},

	// other vendors
	{"ALICLOUD_PROFILE beside keys", "oss", "access_key=A secret_key=OWN", "ALICLOUD_PROFILE=p", "profile="},
	{"ALICLOUD_SHARED_CREDENTIALS_FILE for a profile", "oss", "profile=p", "ALICLOUD_SHARED_CREDENTIALS_FILE=/f",
		"shared_credentials_file=/f"},
	{"an endpoint beside keys of Alibaba", "oss", "access_key=A secret_key=OWN", "OSS_ENDPOINT=https://e", "error: OSS_ENDPOINT secret_key"},
	{"TENCENTCLOUD_SECRET_ID beside a profile", "cos", "profile=p", "TENCENTCLOUD_SECRET_ID=i", "secret_id="},
	{"keys of the environment beside an SSE-C key", "oci", "sse_customer_key=" + customerKey, "OCI_S3_ACCESS_KEY=a OCI_S3_SECRET_KEY=s",
		"secret_key=s"},
}

const customerKey = "T1dOT1dOT1dOT1dOT1dOT1dOT1dOT1dOT1dOT1dOT1c="

// TestSetups: what ordinary set-ups come to.
//
// Promise: Where secrets go
func TestSetups(t *testing.T) {
	t.Parallel()
	kinds := map[string]source.Kind{}
	for _, k := range Kinds() {
		kinds[k.Name] = k
	}
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g, err := s.grant(t, kinds[s.kind])
			if names, refused := strings.CutPrefix(s.want, "error: "); refused {
				for _, name := range strings.Fields(names) {
					if err == nil || !strings.Contains(err.Error(), name) {
						t.Errorf("got %v, want %s in an error", err, name)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			path, want, _ := strings.Cut(s.want, "=")
			if got := valueOf(g.Values, kinds[s.kind].Credentials.Attrs, path); got != want {
				t.Errorf("%s is %q, want %q", path, got, want)
			}
		})
	}
}

func (s setup) grant(t *testing.T, k source.Kind) (source.Grant, error) {
	t.Helper()
	values, env := attrs{}, map[string]string{}
	for _, pair := range strings.Fields(s.block) {
		path, value, _ := strings.Cut(pair, "=")
		a, _ := k.Credentials.Attr(path)
		block, name, nested := strings.Cut(path, ".")
		switch {
		case nested:
			inner := attrs{name: text(value)}
			if before, ok := values[block]; ok {
				maps.Copy(inner, before.AsValueMap())
			}
			values[block] = cty.ObjectVal(inner)
		case a.Type == cty.Bool:
			values[path] = cty.BoolVal(value == "true")
		case a.Type.IsMapType():
			values[path] = cty.MapVal(attrs{"x": text(value)})
		default:
			values[path] = text(value)
		}
	}
	for _, pair := range strings.Fields(s.env) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	settings := source.Settings{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if s.block != "" {
		settings.Credentials.Entries = []*unstable.Entry{unstable.NewEntry("block", k.Credentials, maps.Clone(values))}
	}
	c := settings.For(k).Credentials
	if k.Credentials.Attrs[0].Name == "name" {
		return c.Named("credentials_name", "")
	}
	u, err := url.Parse(asks)
	if err != nil {
		t.Fatal(err)
	}
	return c.For(u)
}

// valueOf is the value of an attribute as text, "" if it has none.
func valueOf(v attr.Values, declared []attr.Attr, path string) string {
	block, name, nested := strings.Cut(path, ".")
	for _, a := range declared {
		switch {
		case a.Name != block:
		case nested:
			inner, _ := v.Block(block)
			return valueOf(inner, a.Attrs, name)
		case !v.Has(block):
			return ""
		case a.Type == cty.Bool:
			return map[bool]string{true: "true", false: "false"}[v.Bool(block)]
		case a.Type.IsListType():
			return strings.Join(v.Strings(block), " ")
		default:
			return v.String(block)
		}
	}
	return "no such attribute"
}

// TestReasonsOfTheHarmless: each says in a sentence why a variable does no harm,
// of which there is one; and what a data source says holds no secret, so no
// variable can do it any.
func TestReasonsOfTheHarmless(t *testing.T) {
	t.Parallel()
	others := map[string]string{ // of a table that key providers have as well, which TF_ENCRYPTION sets
		"s3.max_retries": "aws_kms", "s3.access_key": "aws_kms", "s3.retry_mode": "aws_kms",
	}
	var check func(name string, declared []attr.Attr)
	check = func(name string, declared []attr.Attr) {
		for _, a := range declared {
			path := name + "." + a.Name
			check(path, a.Attrs)
			switch {
			case a.Harmless == "" && a.HarmlessIf == nil:
			case len(strings.Fields(a.Harmless)) < 4 || !strings.HasSuffix(a.Harmless, "."):
				t.Errorf("%s: %q is no sentence", path, a.Harmless)
			case len(a.Env) == 0 && others[path] == "":
				t.Errorf("%s is harmless, and no variable sets it", path)
			}
		}
	}
	for _, k := range Kinds() {
		check(k.Name, k.Credentials.Attrs)
		check(k.Name, k.Credentials.Variables)
		for _, a := range k.Credentials.Variables {
			_, inCredentials := k.Credentials.Attr(a.StandsFor)
			if _, inSource := k.Attr(a.StandsFor); !inCredentials && !inSource {
				t.Errorf("%s: %s stands in place of %q, which is no attribute", k.Name, a.Name, a.StandsFor)
			}
		}
		for _, a := range k.Attrs {
			if a.Secrecy != attr.Public || a.Harmless != "" {
				t.Errorf("%s.%s: a data source holds no secret", k.Name, a.Name)
			}
		}
	}
}
