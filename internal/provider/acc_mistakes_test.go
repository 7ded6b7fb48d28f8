package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/vectors"
)

const staticBlocks = `  key_provider {
    static {
      name = "k"
      key  = "` + staticKey + `"
    }
  }
  method {
    aes_gcm {
      name = "m"
      keys = "key_provider.static.k"
    }
  }
`

const staticDefault = `  default {
    method = "method.aes_gcm.m"
  }
`

// The same mistake gets the same words from every CLI.
func TestAccMistakes(t *testing.T) {
	file := fromFile(writeTemp(t, "sealed", sealed(t, argumentsState)))
	plain := fromFile(writeTemp(t, "plain", []byte(argumentsState)))
	encrypted := fromFile(writeTemp(t, "encrypted", vectors.Get(t, "pbkdf2_defaults").State(t)))
	server := serve(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/private" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.NotFound(w, r)
	})
	block := func(body string) string { return "provider \"statecrypt\" {\n" + body + "}\n" }
	credentials := block(fmt.Sprintf("credentials {\nhttp {\nurl = \"%s/\"\nbearer_token = \"wrong\"\n}\n}\n", server.URL))
	for name, c := range map[string]struct {
		provider, body string
		words          []string
	}{
		"wrong passphrase": {textProvider(vectors.Get(t, "err_wrong_passphrase").Config(t)), encrypted,
			[]string{"Cannot decrypt the state", "Step: decrypting the file", "no method in effect has the key for this file",
				"Check the passphrase or key, the aad, and whether this is the right file"}},
		"no method": {"", encrypted,
			[]string{"Step: recognizing the file", `its metadata names "key_provider.pbkdf2.k"`, "no method for encrypted data is configured",
				"configure its key provider and a method"}},
		"plain state": {textProvider(staticText), plain,
			[]string{"Step: recognizing the file", "the file is a plaintext state; plaintext is read only if the method or a fallback is",
				"(only method.aes_gcm.m)"}},
		"plain state, no method": {"", plain,
			[]string{"the file is a plaintext state", "no method is selected"}},
		"unknown argument in a block": {block("key_provider {\npbkdf2 {\nname = \"k\"\npassphrse = \"x\"\n}\n}\n"), file,
			[]string{`An argument named "passphrse" is not expected here. Did you mean "passphrase"?`}},
		"unknown block": {block("metod {}\n"), file,
			[]string{`Blocks of type "metod" are not expected here. Did you mean "method"?`}},
		"unknown argument in text": {textProvider("key_provider \"static\" \"k\" {\n  kye = \"00\"\n}\nmethod \"aes_gcm\" \"m\" { keys = " +
			"key_provider.static.k }\nstate { method = method.aes_gcm.m }"), file, []string{"encryption:2,3", `kye`, `Did you mean "key"?`}},
		"syntax of the text": {textProvider("state {"), file, []string{"encryption:1,"}},
		"text and blocks": {block("encryption = \"\"\n" + staticBlocks), file,
			[]string{"encryption and key_provider blocks are mutually exclusive: encryption settings stand in one place"}},
		"undeclared method in blocks": {block(staticBlocks + "default {\nmethod = \"method.aes_gcm.main\"\n}\n"), file,
			[]string{"method.aes_gcm.main is not configured"}},
		"undeclared key in blocks": {block("method {\naes_gcm {\nname = \"m\"\nkeys = \"key_provider.static.k\"\n}\n}\n" + staticDefault), file,
			[]string{"key_provider.static.k: this key provider is not configured"}},
		"undeclared method in text": {textProvider("state { method = method.aes_gcm.main }"), file,
			[]string{"encryption:1,", "method.aes_gcm.main is not configured"}},
		"undeclared variable": {textProvider("key_provider \"static\" \"k\" { key = var.nobody }\nmethod \"aes_gcm\" \"m\" { keys = " +
			"key_provider.static.k }\nstate { method = method.aes_gcm.m }"), file, []string{"var.nobody"}},
		"not an address":       {block(staticBlocks), file + "\nmethod = \"aes_gcm.m\"", []string{"the address of a method is required"}},
		"twice the same entry": {block(staticBlocks + staticBlocks), file, []string{"key_provider.static.k is configured twice"}},
		"bad name": {block("method {\naes_gcm {\nname = \"a b\"\nkeys = \"key_provider.static.k\"\n}\n}\n"), file,
			[]string{"letters, digits, underscores and dashes"}},
		"default without method": {block(staticBlocks + "default {}\n"), file, []string{"method is required"}},
		"two defaults":           {block(staticBlocks + staticDefault + staticDefault), file, []string{"default", "at most 1"}},
		"no source": {block(staticBlocks + staticDefault), "",
			[]string{"exactly one of these blocks is required", "file", "git", "http"}},
		"two sources": {block(staticBlocks + staticDefault), file + "\n" + fromHTTP("https://state.example.com/"),
			[]string{"are mutually exclusive: exactly one source is read"}},
		"two files": {block(staticBlocks + staticDefault), file + "\n" + file, []string{"file", "at most 1"}},
		"no such file": {block(staticBlocks + staticDefault), fromFile("/no/such/file"),
			[]string{"Source: /no/such/file", "Step: fetching the file", "there is no state", `on_missing = "defaults"`}},
		"404": {"", fromHTTP(server.URL + "/gone"),
			[]string{"Step: fetching the file", "the server answered 404 Not Found", "no credentials were sent"}},
		"404 with credentials": {credentials, fromHTTP(server.URL + "/gone"),
			[]string{"Step: fetching the file", "the server answered 404 Not Found",
				"credentials were sent; some servers give the same answer when they do not allow access"}},
		"401": {"", fromHTTP(server.URL + "/private"),
			[]string{"the server answered 401 Unauthorized, and no credentials were sent to " + server.URL, "to credentials in the provider block"}},
		"401 with credentials": {credentials, fromHTTP(server.URL + "/private"),
			[]string{"the server refused the credentials (401 Unauthorized)"}},
		"password in the address": {"", fromHTTP("https://ci:pw@state.example.com/"),
			[]string{"a user name or password does not belong in an address"}},
		"relative address": {"", fromHTTP("state.example.com"), []string{"a URL with http or https and a host is required"}},
		"option for a ref": {"", fromGit("https://git.example.com/a.git", "--upload-pack=x", "s"),
			[]string{"a ref must not start with a dash"}},
		"path that climbs":    {"", fromGit("https://git.example.com/a.git", "main", "../s"), []string{"the path leaves the repository"}},
		"dangerous transport": {"", fromGit("ext::sh -c id", "main", "s"), []string{"repository"}},
	} {
		t.Run(name, func(t *testing.T) {
			runParallel(t, failing(configuration(c.provider, reads("s", c.body)), c.words...))
		})
	}
}

func TestAccMistakesInGit(t *testing.T) {
	needAcceptance(t)
	isolateGit(t)
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "{}"}, gittest.File{Path: "dir/s", Data: "{}"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "ci", Password: "git-password"})
	wrong := fmt.Sprintf("provider \"statecrypt\" {\ncredentials {\ngit {\nurl = \"%s/\"\nusername = \"ci\"\npassword = "+
		"\"wrong-password\"\n}\n}\n}\n", server.Origin)
	run(t,
		failing(configuration(reads("s", fromGit(repo.FileURL(), "nope", "s"))), "Step: fetching the file",
			"there is no branch, tag or ref nope in the repository"),
		failing(configuration(reads("s", fromGit(repo.FileURL(), "main", "gone"))), "Step: fetching the file", "there is no state"),
		failing(configuration(reads("s", fromGit(repo.FileURL(), "main", "dir"))), "Step: fetching the file", "dir"),
		failing(configuration(reads("s", fromGit(server.URL, "main", "s"))), "the server wants credentials and there are none", server.Origin),
		failing(configuration(wrong, reads("s", fromGit(server.URL, "main", "s"))), "the server rejected the credentials"))
}

// A value that only apply brings to light.
func TestAccUnknownValues(t *testing.T) {
	v := vectors.Get(t, "pbkdf2_sha256_key32_salt1")
	open, _ := expected(t, v)
	state := fromFile(writeTemp(t, "state", v.State(t)))
	passphrase := "resource \"terraform_data\" \"passphrase\" {\ninput = \"second throwaway passphrase\"\n}\n"
	blocks := func(value string) string {
		return fmt.Sprintf("provider \"statecrypt\" {\nkey_provider {\npbkdf2 {\nname = \"k\"\npassphrase = %s\n}\n}\nmethod {\naes_gcm "+
			"{\nname = \"m\"\nkeys = \"key_provider.pbkdf2.k\"\n}\n}\ndefault {\nmethod = \"method.aes_gcm.m\"\n}\n}\n", value)
	}
	result := output("all", "data.statecrypt_remote_state.s.outputs")
	advice := []string{"not known yet", "Add depends_on to this data source"}
	for name, c := range map[string]struct {
		provider string
		names    string // what the error says is not known
	}{
		"in a block": {blocks("terraform_data.passphrase.output"), "key_provider.pbkdf2.k.passphrase"},
		"in the text": {"provider \"statecrypt\" {\nencryption = \"${terraform_data.passphrase.output == \"\" ? \"\" : \"\"}\"\n}\n",
			"encryption"},
		"in a variable of the text": {"provider \"statecrypt\" {\nencryption = " +
			quote("key_provider \"pbkdf2\" \"k\" { passphrase = var.p }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\nstate { "+
				"method = method.aes_gcm.m }") +
			"\nencryption_variables = { p = terraform_data.passphrase.output }\n}\n", "key_provider.pbkdf2.k.passphrase"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := []resource.TestStep{failing(configuration(passphrase, c.provider, reads("s", state), result),
				append([]string{c.names}, advice...)...)}
			if name != "in the text" {
				steps = append(steps, applies(configuration(passphrase, c.provider, reads("s", state, "depends_on = [terraform_data.passphrase]"),
					result), map[string]cty.Value{"all": open}))
			}
			runParallel(t, steps...)
		})
	}
	t.Run("in the data source", func(t *testing.T) { // Terraform itself waits for it
		path := "resource \"terraform_data\" \"path\" {\ninput = " + quote(writeTemp(t, "state", v.State(t))) + "\n}\n"
		runParallel(t, applies(configuration(path, blocks(`"second throwaway passphrase"`),
			reads("s", "file {\npath = terraform_data.path.output\n}"), result), map[string]cty.Value{"all": open}))
	})
	t.Run("and not needed", func(t *testing.T) { // a key that this read does not use
		unused := fmt.Sprintf("provider \"statecrypt\" {\n%skey_provider {\npbkdf2 {\nname = \"unused\"\npassphrase = "+
			"terraform_data.passphrase.output\n}\n}\n%s}\n", staticBlocks, staticDefault)
		runParallel(t, applies(configuration(passphrase, unused, reads("s", fromFile(writeTemp(t, "s", sealed(t, argumentsState)))),
			output("serial", "data.statecrypt_remote_state.s.serial")),
			map[string]cty.Value{"serial": cty.NumberIntVal(7)}))
	})
}
