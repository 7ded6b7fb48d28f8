package all

import (
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	machine "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// forPrograms are the secret variables of sources that programs get, with the
// reason why others than Terraform's backends read them.
var forPrograms = []struct{ why, names string }{
	{"an identity of Azure, with which a program may ask for a key", "ARM_CLIENT_CERTIFICATE ARM_CLIENT_CERTIFICATE_PASSWORD " +
		"ARM_CLIENT_CERTIFICATE_PATH ARM_CLIENT_SECRET ARM_CLIENT_SECRET_FILE_PATH ARM_OIDC_REQUEST_TOKEN ARM_OIDC_TOKEN " +
		"ARM_OIDC_TOKEN_FILE_PATH AZURE_FEDERATED_TOKEN_FILE"},
	{"the identity of a job, for programs of its CI system", "ACTIONS_ID_TOKEN_REQUEST_TOKEN SYSTEM_ACCESSTOKEN"},
	{"an identity of AWS", "AWS_CONFIG_FILE AWS_SHARED_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_WEB_IDENTITY_TOKEN " +
		"AWS_WEB_IDENTITY_TOKEN_FILE"},
	{"an identity of Google", "GOOGLE_APPLICATION_CREDENTIALS GOOGLE_CREDENTIALS GOOGLE_OAUTH_ACCESS_TOKEN"},
	{"an identity of Alibaba Cloud", "ALICLOUD_ACCESS_KEY_SECRET ALICLOUD_PROFILE ALICLOUD_SECRET_KEY ALICLOUD_SECURITY_TOKEN"},
	{"an identity of Tencent Cloud", "TENCENTCLOUD_PROFILE TENCENTCLOUD_SECRET_KEY TENCENTCLOUD_SECURITY_TOKEN"},
	{"Consul's own program reads them", "CONSUL_CLIENT_KEY CONSUL_HTTP_AUTH CONSUL_HTTP_TOKEN CONSUL_HTTP_TOKEN_FILE"},
	{"the path of a key, which the user of the program can read anyway", "SSH_PRIVATE_KEY"},
	{"proxies are for all programs", "HTTPS_PROXY https_proxy KUBE_PROXY_URL"},
}

// TestSecretsOfChildren: a program that is started here, such as one for keys, gets
// no secret of a variable that only a backend of Terraform and its source read.
//
// Promise: Where secrets go
func TestSecretsOfChildren(t *testing.T) {
	listed := map[string]bool{} // :: name → a table has it
	for _, some := range forPrograms {
		for name := range strings.FieldsSeq(some.names) {
			listed[name] = false
		}
	}
	for _, k := range Kinds() {
		for _, name := range secretVariables(slices.Concat(k.Credentials.Attrs, k.Credentials.Variables)) {
			t.Setenv(name, "canary")
			_, given := machine.Here().Environ().Lookup(name)
			if _, meant := listed[name]; given != meant {
				t.Errorf("%s: a program gets %s: %t", k.Name, name, given)
			} else if meant {
				listed[name] = true
			}
		}
	}
	for name, found := range listed {
		if !found {
			t.Errorf("%s is no secret of a source", name)
		}
	}
}

func secretVariables(attrs []attr.Attr) (names []string) {
	for _, a := range attrs {
		names = append(names, secretVariables(a.Attrs)...)
		if a.Secrecy != attr.Public {
			names = append(names, a.Env...)
		}
	}
	return names
}
