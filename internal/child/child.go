// Package child starts processes: with a part of our environment, and so that
// they can be stopped together with their own children.
package child

import (
	"slices"
	"strings"
)

// withheld are secrets that only this module reads, from variables of its own
// or of OpenTofu and Terraform (TF_ENCRYPTION, TF_VAR_*, TF_HTTP_PASSWORD,
// TF_TOKEN_*). Those of the clouds and of key services are not among them: a
// program needs them to do its work, and they never were ours to hand out.
var withheld = []string{
	"GIT_PASSWORD", "GITHUB_TOKEN",
	// What only Terraform's backends and our sources of the same names read.
	"ARM_ACCESS_KEY", "ARM_SAS_TOKEN", "AWS_SSE_CUSTOMER_KEY", "GOOGLE_ENCRYPTION_KEY", "KUBE_PASSWORD",
	"KUBE_TOKEN", "OCI_S3_SECRET_KEY", "PG_CONN_STR",
}

// Environ returns environ without the variables that no child may get.
func Environ(environ []string) []string {
	return keep(environ, func(name string) bool { return !Withholds(name) })
}

// For returns what a child gets of environ: [Bare] if the environment is
// switched off, else [Environ].
func For(environ []string, on bool) []string {
	if on {
		return Environ(environ)
	}
	return Bare(environ)
}

// Withholds reports whether no child gets the variable called name.
func Withholds(name string) bool {
	name = strings.ToUpper(name) // Windows does not tell the cases apart
	return slices.Contains(withheld, name) || strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "TOFU_") ||
		strings.HasSuffix(name, "_PASSPHRASE")
}
