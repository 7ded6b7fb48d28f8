package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/vectors"
)

const envelopeText = `
key_provider "pbkdf2" "k" { passphrase = "correct-horse-battery-staple" }
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
`

// methodProvider has these blocks inside method.
func methodProvider(blocks string) string {
	return "provider \"statecrypt\" {\nkey_provider {\npbkdf2 {\nname = \"k\"\npassphrase = \"correct-horse-battery-staple\"\n}\n}\n" +
		"method {\naes_gcm {\nname = \"m\"\nkeys = \"key_provider.pbkdf2.k\"\n}\n" + blocks + "}\n}\n"
}

// Files of methods with a format of their own, and files that were encrypted
// twice, in blocks and in text.
func TestAccFileMethods(t *testing.T) {
	tbg := func(more string) string {
		return "terraform_backend_git {\nname = \"m\"\npassphrase = \"throwaway aes passphrase\"\n" + more + "}\n"
	}
	for name, c := range map[string]struct {
		vector, provider, method string
		warns                    bool
	}{
		"terraform_backend_git": {"tbg_aes", methodProvider(tbg("")), "method.terraform_backend_git.m", true},
		"encrypted twice": {"tbg_aes_over_tofu_encryption", methodProvider(tbg("then = \"method.aes_gcm.m\"\n")),
			"method.terraform_backend_git.m", true},
		"encrypted twice, text": {"tbg_aes_over_tofu_encryption", textProvider(envelopeText +
			"method \"terraform_backend_git\" \"m\" {\npassphrase = \"throwaway aes passphrase\"\nthen = method.aes_gcm.m\n}\nstate { method = " +
			"method.terraform_backend_git.m }\n"),
			"method.terraform_backend_git.m", true},
		"kubeform": {"kubeform_module_zoo", methodProvider("kubeform {\nname = \"m\"\nkey = " +
			quote(vectors.Get(t, "kubeform_module_zoo").SecretKey) + "\n}\n"), "method.kubeform.m", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := vectors.Get(t, c.vector)
			p := vectorProject(t, v, c.provider, "method = "+quote(c.method))
			want := outputsOf(t, v)
			want["fallback"] = cty.False
			p.wantOutputs(want)
			if out := p.mustRun("plan"); says("Warning: Weak encryption", "opened with "+c.method, "sops mode").MatchString(out) != c.warns {
				t.Errorf("a warning: %t:\n%s", !c.warns, out)
			}
		})
	}
}

func TestAccFileMethodEnvironment(t *testing.T) {
	v := vectors.Get(t, "tbg_aes_implicit_locked")
	p := vectorProject(t, v, methodProvider("terraform_backend_git {\nname = \"m\"\n}\n"), `method = "method.terraform_backend_git.m"`)
	p.wantError("TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE")
	for name, value := range v.BackendEnv {
		p.setenv(name + "=" + value)
	}
	p.wantOutputs(outputsOf(t, v))
}

func TestAccFileMethodErrors(t *testing.T) {
	tbg := func(passphrase, more string) string {
		return methodProvider(fmt.Sprintf("terraform_backend_git {\nname = \"m\"\npassphrase = %q\n%s}\n", passphrase, more))
	}
	for name, c := range map[string]struct {
		vector, provider string
		want             []string
	}{
		"wrong passphrase": {"tbg_aes", tbg("canary", ""), []string{"Step: decrypting the file", "no method in effect has the key for this file",
			"the passphrase is another one"}},
		"plaintext": {"tbg_plain", tbg("canary", ""), []string{"Step: recognizing the file", "the file is a plaintext state"}},
		"an envelope inside": {"tbg_aes_over_tofu_encryption", tbg("throwaway aes passphrase", ""),
			[]string{"Step: recognizing the file", `add then = "method.…" to it`}},
		"plaintext inside": {"tbg_aes_amend", tbg("throwaway aes passphrase", "then = \"method.aes_gcm.m\"\n"),
			[]string{"Step: recognizing the file", "it decrypted a plaintext state, which is not for its then"}},
		"then is no method": {"tbg_aes", tbg("canary", "then = \"key_provider.pbkdf2.k\"\n"),
			[]string{"method.terraform_backend_git.m.then: a method is required"}},
		"then is not there": {"tbg_aes", tbg("canary", "then = \"method.aes_gcm.n\"\n"), []string{"method.aes_gcm.n is not configured"}},
		"then is a circle":  {"tbg_aes", tbg("canary", "then = \"method.terraform_backend_git.m\"\n"), []string{"in a circle"}},
		"not for this method": {"tbg_aes", methodProvider("kubeform {\nname = \"m\"\nkey = " +
			"\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"\n}\n"),
			[]string{"Step: recognizing the file", "neither an encrypted state nor a plaintext one"}},
		"wrong key of secret": {"kubeform_module", methodProvider("kubeform {\nname = \"m\"\nkey = " +
			"\"ERERERERERERERERERERERERERERERERERERERERERE=\"\n}\n"), []string{"Step: decrypting the file", "secretbox: authentication failed"}},
		"key is not 32 bytes": {"kubeform_module", methodProvider("kubeform {\nname = \"m\"\nkey = \"b25seTE2Ynl0ZXNsb25nIQ==\"\n}\n"),
			[]string{"method.kubeform.m.key: the key has 16 bytes; Kubeform's have 32"}},
		"no identity for age": {"tbg_aes", methodProvider("age {\nname = \"m\"\n}\n"),
			[]string{"one of identities, identity_files and passphrase is required"}},
		"other identities": {"", methodProvider("age {\nname = \"m\"\npassphrase = \"canary\"\n}\n"),
			[]string{"Step: decrypting the file", `it is encrypted for "X25519"`}},
		"identity of a plugin": {"", methodProvider("age {\nname = \"m\"\nidentities = [\"AGE-PLUGIN-YUBIKEY-1CANARY\"]\n}\n"),
			[]string{"Step: decrypting the file", "plugins are programs, and none is run here"}},
	} {
		t.Run(name, func(t *testing.T) {
			needAcceptance(t)
			t.Parallel()
			file := ageFile(t)
			if c.vector != "" {
				file = vectors.Get(t, c.vector).State(t)
			}
			method := "method.terraform_backend_git.m"
			for _, other := range []string{"kubeform", "age"} {
				if strings.Contains(c.provider, "\n"+other+" {") {
					method = "method." + other + ".m"
				}
			}
			p := newProject(t, map[string]string{"main.tf": configuration(c.provider,
				reads("s", fromFile(writeTemp(t, "state", file)), "method = "+quote(method)))})
			p.wantError(c.want...)
			if out, _ := p.run("plan"); strings.Contains(strings.ToLower(out), "canary") {
				t.Errorf("a secret shows:\n%s", out)
			}
		})
	}
}

const ageTestdata = "../../encryption/method/age/testdata"

func ageFile(t *testing.T) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(ageTestdata, "x25519.age"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAccAge(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	key, err := filepath.Abs(filepath.Join(ageTestdata, "x25519.key"))
	if err != nil {
		t.Fatal(err)
	}
	identity, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	file := fromFile(writeTemp(t, "state", ageFile(t)))
	p := newProject(t, map[string]string{"main.tf": configuration(
		methodProvider("age {\nname = \"file\"\nidentity_files = ["+quote(filepath.ToSlash(key))+"]\n}\nage {\nname = \"text\"\nidentities = ["+
			quote(string(identity))+"]\n}\n"),
		reads("file", file, `method = "method.age.file"`),
		reads("text", file, `method = "method.age.text"`),
		output("file", "data.statecrypt_remote_state.file.outputs.greeting"),
		output("text", "data.statecrypt_remote_state.text.outputs.greeting"),
		output("with", "data.statecrypt_remote_state.text.decrypted_with"),
	)})
	p.wantOutputs(map[string]cty.Value{"file": cty.StringVal("hello"), "text": cty.StringVal("hello"),
		"with": cty.StringVal("method.age.text")})
}
