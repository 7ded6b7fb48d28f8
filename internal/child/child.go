// Package child starts processes: with a part of our environment, and so that
// they can be stopped together with their own children.
package child

import "strings"

// Withheld are secrets that only this module reads, from variables of its own
// or of OpenTofu and Terraform (TF_ENCRYPTION, TF_VAR_*, TF_HTTP_PASSWORD,
// TF_TOKEN_*). Those of the clouds and of key services are not among them: a
// program needs them to do its work, and they never were ours to hand out.
var (
	withheldNames = []string{
		"GIT_PASSWORD", "GITHUB_TOKEN",
		// What only Terraform's backends and our sources of the same names read.
		"ARM_ACCESS_KEY", "ARM_SAS_TOKEN", "AWS_SSE_CUSTOMER_KEY", "GOOGLE_ENCRYPTION_KEY", "KUBE_PASSWORD",
		"KUBE_TOKEN", "OCI_S3_SECRET_KEY", "PG_CONN_STR",
	}
	withheldPrefixes = []string{"TF_", "TOFU_"}
	withheldSuffixes = []string{"_PASSPHRASE"}
)

// Environ returns environ without the variables that no child may get.
func Environ(environ []string) []string {
	var kept []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !Withholds(name) {
			kept = append(kept, pair)
		}
	}
	return kept
}

// Withholds reports whether no child gets the variable called name.
func Withholds(name string) bool {
	name = strings.ToUpper(name) // Windows does not tell the cases apart
	for _, n := range withheldNames {
		if name == n {
			return true
		}
	}
	for _, p := range withheldPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	for _, s := range withheldSuffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}
