package world

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// Environ holds the variables that a program gets. Only a World makes one, so no program starts
// with more variables than its World allows. The zero Environ is empty.
type Environ struct{ pairs []string }

// Environ returns the variables of this process that programs get.
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

// With returns e with more variables, each as name=value. If a name occurs twice, the last one counts.
func (e Environ) With(pairs ...string) Environ {
	return Environ{append(slices.Clone(e.pairs), pairs...)}
}

// Only returns the variables of e whose names, in capitals, are wanted.
func (e Environ) Only(wanted func(name string) bool) Environ { return Environ{keep(e.pairs, wanted)} }

// Pairs returns the variables, each as name=value. The result is never nil, because [exec.Cmd]
// passes on all variables if its Env is nil.
func (e Environ) Pairs() []string { return append([]string{}, e.pairs...) }

// Lookup returns the value of a variable in e, and false if e does not have it.
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

// withholds reports whether no program gets the variable called name, in capitals.
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

// IsBare reports whether every program gets the variable called name, in capitals.
func IsBare(name string) bool {
	return slices.Contains(bareNames, name) || strings.HasPrefix(name, "LC_")
}

// ofMachine lists the variables for the machine's proxies and certificate authorities, which apply to all its requests.
var ofMachine = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE",
}

// keep returns the variables whose names, in capitals, are wanted: Windows does not distinguish
// upper and lower case.
func keep(environ []string, wanted func(name string) bool) []string {
	kept := []string{} // not nil, because exec then passes on all variables
	for _, pair := range environ {
		if name, _, _ := strings.Cut(pair, "="); wanted(strings.ToUpper(name)) {
			kept = append(kept, pair)
		}
	}
	return kept
}

// Lookup returns a function that looks names up in environ. If a name occurs twice, the last one
// counts, as in a process that is started with environ.
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
