// Package child starts processes: with a part of our environment, and so that
// they can be stopped together with their own children.
package child

import (
	"runtime"
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

// What programs need in order to run at all, and to find the files of their
// user.
var bareNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG",
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// Bare returns of environ only what programs need in order to run: the
// environment of children if the environment is switched off.
func Bare(environ []string) []string {
	return keep(environ, func(name string) bool { return slices.Contains(bareNames, name) || strings.HasPrefix(name, "LC_") })
}

// keep returns the variables whose names, in capitals, are wanted: Windows does
// not tell the cases apart.
func keep(environ []string, wanted func(name string) bool) []string {
	kept := []string{} // and not nil, with which exec passes on everything
	for _, pair := range environ {
		if name, _, _ := strings.Cut(pair, "="); wanted(strings.ToUpper(name)) {
			kept = append(kept, pair)
		}
	}
	return kept
}

// Lookup looks names up in environ, where the last of a name counts, as for
// processes that are started with it.
func Lookup(environ []string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range slices.Backward(environ) {
			key, value, _ := strings.Cut(pair, "=")
			if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
				return value, true
			}
		}
		return "", false
	}
}
