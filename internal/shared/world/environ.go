package world

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// Environ are the variables that a program gets. Only a World makes one, so no
// program starts with more than its World allows. The zero Environ is empty.
type Environ struct{ pairs []string }

// Environ returns the environment of programs.
func (w World) Environ() Environ { return Environ{keep(os.Environ(), w.Gives)} }

// Gives reports whether programs get the variable called name, in capitals.
func (w World) Gives(name string) bool {
	switch w.kind {
	case user:
		return !withholds(name)
	case code:
		return IsBare(name) || slices.Contains(ofMachine, name)
	}
	return IsBare(name)
}

// With adds variables, each as name=value. The last of a name counts.
func (e Environ) With(pairs ...string) Environ {
	return Environ{append(slices.Clone(e.pairs), pairs...)}
}

// Only keeps the variables whose names, in capitals, are wanted.
func (e Environ) Only(wanted func(name string) bool) Environ { return Environ{keep(e.pairs, wanted)} }

// Pairs are the variables, each as name=value. It is never nil, with which
// [exec.Cmd] passes on everything.
func (e Environ) Pairs() []string { return append([]string{}, e.pairs...) }

// Lookup is [Lookup] in these variables.
func (e Environ) Lookup(name string) (string, bool) { return Lookup(e.pairs)(name) }

// withheld lists variables with secrets that only this module reads. Variables of OpenTofu,
// Terraform and this module (TF_ENCRYPTION, TF_VAR_*, TF_HTTP_PASSWORD, TF_TOKEN_*,
// STATECRYPT_HTTP_PASSWORD) are withheld as well. Secrets of clouds and key services are not,
// because programs need them for their work.
var withheld = []string{
	"GIT_PASSWORD", "GIT_PASSWORD_FILE", "GITHUB_TOKEN", "GITHUB_TOKEN_FILE",
	// Only Terraform's backends, and our sources of the same names, read these.
	"ARM_ACCESS_KEY", "ARM_CUSTOMER_PROVIDED_KEY", "ARM_SAS_TOKEN", "AWS_SSE_CUSTOMER_KEY", "GOOGLE_BACKEND_CREDENTIALS",
	"GOOGLE_ENCRYPTION_KEY", "KUBE_CLIENT_KEY_DATA", "KUBE_PASSWORD", "KUBE_TOKEN", "OCI_S3_SECRET_KEY",
	"OCI_SSE_CUSTOMER_KEY", "PG_CONN_STR",
	// These make clients write secrets to files and logs.
	"SSLKEYLOGFILE", "AZURE_SDK_GO_LOGGING", "GOOGLE_SDK_GO_LOGGING_LEVEL",
}

// withholds reports whether no child gets the variable called name, in capitals.
func withholds(name string) bool {
	return slices.Contains(withheld, name) || strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "TOFU_") ||
		strings.HasPrefix(name, "STATECRYPT_HTTP_") || strings.HasSuffix(name, "_PASSPHRASE")
}

// bareNames are the variables that programs need in order to run at all, and to find the files of their user and of the
// system. None of them names a program: instead of SHELL and COMSPEC, by which ssh and others run commands of
// their configuration, programs then take /bin/sh, or the cmd.exe of Windows.
var bareNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG",
	"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// IsBare reports whether any program needs the variable called name, in capitals.
func IsBare(name string) bool {
	return slices.Contains(bareNames, name) || strings.HasPrefix(name, "LC_")
}

// ofMachine are the machine's proxies and authorities, which are for all that it sends.
var ofMachine = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE",
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
