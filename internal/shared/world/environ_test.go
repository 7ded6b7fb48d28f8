package world

import (
	"slices"
	"testing"
)

func TestEnviron(t *testing.T) {
	kept := []string{"PATH=x", "HOME=x", "AWS_SECRET_ACCESS_KEY=x", "BAO_TOKEN=x", "VAULT_TOKEN=x", "GH_TOKEN=x", "odd"}
	secret := []string{
		"TF_ENCRYPTION=s", "TF_VAR_passphrase=s", "TF_HTTP_PASSWORD=s", "TF_TOKEN_app_terraform_io=s", "tf_encryption=s",
		"TOFU_X=s", "GIT_PASSWORD=s", "git_password=s", "GITHUB_TOKEN=s", "STATE_PASSPHRASE=s",
	}
	if got := granted(append(slices.Clone(kept), secret...)); !slices.Equal(got, kept) {
		t.Errorf("kept %q, want %q", got, kept)
	}
}

func TestBare(t *testing.T) {
	kept := []string{"PATH=x", "HOME=x", "LC_ALL=x", "Path=x", "SystemRoot=x"}
	other := []string{"AWS_PROFILE=s", "AZURE_CONFIG_DIR=s", "HTTPS_PROXY=s", "TF_ENCRYPTION=s", "BAO_TOKEN=s", "odd", "PATHS=s"}
	if got := bare(append(slices.Clone(kept), other...)); !slices.Equal(got, kept) {
		t.Errorf("kept %q, want %q", got, kept)
	}
	if got := bare(nil); got == nil {
		t.Error("nothing is nil, and a command with that inherits everything")
	}
}
