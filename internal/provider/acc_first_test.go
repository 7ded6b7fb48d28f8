package provider

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// firstLines are the most lines that the first examples of the front page may
// have, closing braces included.
const firstLines = 8

// The first examples of the front page read a state that is in S3, in git or in
// a file: one has no provider block at all, one no more than a passphrase.
func TestAccFirst(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	first := filepath.Join("..", "..", "examples", "first")
	block := readText(t, filepath.Join(first, "passphrase", "provider.tf"))
	if n := strings.Count(block, "\n"); n > firstLines {
		t.Errorf("the example has %d lines, want at most %d", n, firstLines)
	}
	environment := readText(t, filepath.Join(first, "environment", "main.tf"))
	if strings.Contains(environment, "provider \"") {
		t.Errorf("the example has a provider block:\n%s", environment)
	}
	state := []byte(sealExample(t, guideState))
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "network/terraform.tfstate", Data: string(state)})
	s3 := environment // the data source of the example, and its output
	others := reads("git", fromGit(repo.FileURL(), "main", "network/terraform.tfstate")) +
		reads("file", fromFile(writeTemp(t, "terraform.tfstate", state))) +
		output("git", "data.statecrypt_remote_state.git.outputs.vpc_id") +
		output("file", "data.statecrypt_remote_state.file.outputs.vpc_id") +
		output("with", "data.statecrypt_remote_state.file.decrypted_with")
	want := map[string]cty.Value{"vpc_id": cty.StringVal("vpc-1"), "git": cty.StringVal("vpc-1"), "file": cty.StringVal("vpc-1"),
		"with": cty.StringVal("method.aes_gcm.main")}
	variable := "variable \"state_passphrase\" {\ntype = string\nsensitive = true\n}\n"
	for name, c := range map[string]struct{ provider, env string }{
		"passphrase": {provider: variable + block},
		"environment": {env: "TF_ENCRYPTION=key_provider \"pbkdf2\" \"main\" { passphrase = \"the example's passphrase\" }\n" +
			"method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }\nstate { method = method.aes_gcm.main }"},
		"a whole file": {provider: "provider \"statecrypt\" {\nencryption = file(\"${path.module}/versions.txt\")\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"settings.tf": configuration(c.provider), "s3.tf": s3, "others.tf": others}
			s := storeFirst(t, state)
			if name == "a whole file" {
				s.files = map[string]string{"versions.txt": "terraform {\n  required_version = \">= 1.8\"\n  encryption {\n" +
					"    key_provider \"pbkdf2\" \"main\" { passphrase = \"the example's passphrase\" }\n" +
					"    method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }\n    state { method = method.aes_gcm.main }\n  }\n}\n"}
			}
			p := s.project(t, files)
			if c.env != "" {
				p.setenv(c.env)
			}
			p.wantOutputs(want)
		})
	}
}

// storeFirst is the bucket of the first examples, with keys in the environment.
func storeFirst(t *testing.T, state []byte) store {
	t.Helper()
	return store{
		hosts: map[string]http.Handler{
			"acme-states.s3.eu-west-1.amazonaws.com": bucket(t, "acme-states", "network/terraform.tfstate", state)},
		env: []string{"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=canary"},
	}
}
