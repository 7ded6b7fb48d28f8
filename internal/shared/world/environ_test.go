package world

import (
	"os"
	"slices"
	"testing"
)

// TestWorlds: what programs get, and what is found, in each world.
//
// Promise: Where secrets go
func TestWorlds(t *testing.T) {
	names := map[kind][]string{
		none: {"PATH", "HOME", "LC_ALL", "Path", "SystemRoot"},
		code: {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE"},
		user: {
			"AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AZURE_CONFIG_DIR", "AZURE_KUBERNETES_TOKEN_PROXY", "BAO_TOKEN", "VAULT_TOKEN", "GH_TOKEN",
			"LD_PRELOAD", "GIT_SSL_CAINFO", "PATHS", "odd", "SHELL", "ComSpec", "EDITOR", "VISUAL", "PAGER", "BROWSER", "ENV", "BASH_ENV",
		},
		user + 1: { // secrets that are ours
			"TF_ENCRYPTION", "TF_VAR_passphrase", "TF_HTTP_PASSWORD", "TF_TOKEN_app_terraform_io", "tf_encryption", "TOFU_X", "GIT_PASSWORD",
			"git_password", "GITHUB_TOKEN", "STATE_PASSPHRASE",
		},
	}
	for _, some := range names {
		for _, name := range some {
			t.Setenv(name, "x")
		}
	}
	for which, w := range map[kind]World{
		none: For(nil, false), code: For(os.LookupEnv, true), user: For(os.LookupEnv, false),
	} {
		if again := w.Beside(false); again != w || w.Beside(true) != (World{min(which, code)}) || w.kind != which {
			t.Errorf("%v: beside nothing, it is %v", w, again)
		}
		for from, some := range names {
			for _, name := range some {
				_, given := w.Environ().Lookup(name)
				_, found := w.Lookup(name)
				if want := from <= which; given != want || found != (which == user || want && which == code) {
					t.Errorf("%v: programs get %s: %t; it is found: %t", w, name, given, found)
				}
			}
		}
	}
	if !slices.Contains(Here().Environ().Pairs(), "odd=x") || (World{}) != For(nil, true) {
		t.Error("the user's world, or the zero one, is another")
	}
}
