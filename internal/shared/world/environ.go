package world

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// Environ holds the environment variables that a program gets. Only a World can create one, so a program
// never gets more variables than its World allows. The zero Environ is empty.
type Environ struct{ pairs []string }

// Environ returns the variables of this process that programs may get.
func (w World) Environ() Environ { return Environ{keep(os.Environ(), w.Gives)} }

// Gives reports whether programs get the variable called name, which must be in upper case.
func (w World) Gives(name string) bool {
	switch w.kind {
	case user:
		return !withholds(name)
	case code:
		return IsBare(name) || slices.Contains(ofMachine, name)
	}
	return IsBare(name)
}

// With returns a copy of e with additional variables, each in the form name=value. If a name occurs more than
// once, the last value wins.
func (e Environ) With(pairs ...string) Environ {
	return Environ{append(slices.Clone(e.pairs), pairs...)}
}

// Only returns the variables in e whose names the function wanted accepts. The names are passed to it in upper case.
func (e Environ) Only(wanted func(name string) bool) Environ { return Environ{keep(e.pairs, wanted)} }

// Pairs returns the variables, each in the form name=value. The result is never nil, because [exec.Cmd]
// passes on all variables of this process if its Env is nil.
func (e Environ) Pairs() []string { return append([]string{}, e.pairs...) }

// Lookup returns the value of a variable in e, and whether e contains it.
func (e Environ) Lookup(name string) (string, bool) { return Lookup(e.pairs)(name) }

// withheld lists variables that programs do not get. Most are secrets for this module only. The function
// withholds adds variables of OpenTofu, Terraform and this module (TF_ENCRYPTION, TF_VAR_*, TF_HTTP_PASSWORD,
// TF_TOKEN_*, STATECRYPT_HTTP_PASSWORD). Programs do get the secrets of clouds and key services, because they
// need them for their work.
var withheld = []string{
	"GIT_PASSWORD", "GIT_PASSWORD_FILE", "GITHUB_TOKEN", "GITHUB_TOKEN_FILE",
	// Only Terraform's backends and our sources of the same name read these.
	"ARM_ACCESS_KEY", "ARM_CUSTOMER_PROVIDED_KEY", "ARM_SAS_TOKEN", "AWS_SSE_CUSTOMER_KEY", "GOOGLE_BACKEND_CREDENTIALS",
	"GOOGLE_ENCRYPTION_KEY", "KUBE_CLIENT_KEY_DATA", "KUBE_PASSWORD", "KUBE_TOKEN", "OCI_S3_SECRET_KEY",
	"OCI_SSE_CUSTOMER_KEY", "PG_CONN_STR",
	// These make clients write secrets to files or logs.
	"SSLKEYLOGFILE", "AZURE_SDK_GO_LOGGING", "GOOGLE_SDK_GO_LOGGING_LEVEL",
}

// withholds reports whether programs never get the variable called name, which must be in upper case.
func withholds(name string) bool {
	return slices.Contains(withheld, name) || strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "TOFU_") ||
		strings.HasPrefix(name, "STATECRYPT_HTTP_") || strings.HasSuffix(name, "_PASSPHRASE")
}

// bareNames lists the variables that programs need to run at all, and to find the files of their user and of
// the system. None of them names a program. Programs such as ssh use SHELL or COMSPEC to run commands from
// their configuration; without these variables, they use /bin/sh, or cmd.exe on Windows.
var bareNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG",
	"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// IsBare reports whether every program gets the variable called name, which must be in upper case.
func IsBare(name string) bool {
	return slices.Contains(bareNames, name) || strings.HasPrefix(name, "LC_")
}

// ofMachine lists the variables for the machine's proxies and certificate authorities, which apply to all
// requests.
var ofMachine = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE",
}

// keep returns the variables that wanted accepts. The function gets names in upper case, because Windows does
// not distinguish case.
func keep(environ []string, wanted func(name string) bool) []string {
	kept := []string{} // not nil, because exec.Cmd then passes on all variables
	for _, pair := range environ {
		if name, _, _ := strings.Cut(pair, "="); wanted(strings.ToUpper(name)) {
			kept = append(kept, pair)
		}
	}
	return kept
}

// Lookup returns a function that looks up names in environ. If a name occurs more than once, the last value
// wins, as in a process that is started with environ.
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
