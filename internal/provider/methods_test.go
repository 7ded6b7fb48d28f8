package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age/plugin"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
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

func tbgBlock(passphrase, more string) string {
	return methodProvider(fmt.Sprintf("terraform_backend_git {\nname = \"m\"\npassphrase = %q\n%s}\n", passphrase, more))
}

// Files of methods with a format of their own, and files that were encrypted
// twice, in blocks and in text.
func TestFileMethods(t *testing.T) {
	const passphrase = "throwaway aes passphrase"
	for name, c := range map[string]struct {
		vector, provider, method string
		warns                    bool
	}{
		"terraform_backend_git": {"tbg_aes", tbgBlock(passphrase, ""), "method.terraform_backend_git.m", true},
		"encrypted twice": {"tbg_aes_over_tofu_encryption", tbgBlock(passphrase, "then = \"method.aes_gcm.m\"\n"),
			"method.terraform_backend_git.m", true},
		"encrypted twice, text": {"tbg_aes_over_tofu_encryption", textProvider(envelopeText +
			"method \"terraform_backend_git\" \"m\" {\npassphrase = \"throwaway aes passphrase\"\nthen = method.aes_gcm.m\n}\nstate { method = " +
			"method.terraform_backend_git.m }\n"),
			"method.terraform_backend_git.m", true},
		"kubeform": {"kubeform_module_zoo", methodProvider("kubeform {\nname = \"m\"\nkey = " +
			quote(conformance.Get("kubeform_module_zoo").SecretKey) + "\n}\n"), "method.kubeform.m", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := conformance.Get(c.vector)
			want := outputsOf(t, v)
			want["fallback"] = cty.False
			e := evaluateVector(t, v, c.provider, "method = "+quote(c.method))
			e.wantOutputs(want)
			if c.warns {
				e.wantWarning("Weak encryption", "opened with "+c.method, "sops mode")
			} else if len(e.warnings) > 0 {
				t.Errorf("got the warnings %q", e.warnings)
			}
		})
	}
	t.Run("from the environment", func(t *testing.T) {
		v := conformance.Get("tbg_aes_implicit_locked")
		provider, method := methodProvider("terraform_backend_git {\nname = \"m\"\n}\n"), `method = "method.terraform_backend_git.m"`
		evaluateVector(t, v, provider, method).wantError("TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE")
		for name, value := range v.BackendEnv {
			t.Setenv(name, value)
		}
		evaluateVector(t, v, provider, method).wantOutputs(outputsOf(t, v))
	})
}

func TestFileMethodErrors(t *testing.T) {
	t.Parallel()
	golden := openMistakes(t, "method of files")
	for name, c := range map[string]struct {
		vector, provider string
	}{
		"wrong passphrase":   {"tbg_aes", tbgBlock("canary", "")},
		"plaintext":          {"tbg_plain", tbgBlock("canary", "")},
		"an envelope inside": {"tbg_aes_over_tofu_encryption", tbgBlock("throwaway aes passphrase", "")},
		"plaintext inside":   {"tbg_aes_amend", tbgBlock("throwaway aes passphrase", "then = \"method.aes_gcm.m\"\n")},
		"then is no method":  {"tbg_aes", tbgBlock("canary", "then = \"key_provider.pbkdf2.k\"\n")},
		"then is not there":  {"tbg_aes", tbgBlock("canary", "then = \"method.aes_gcm.n\"\n")},
		"then is a circle":   {"tbg_aes", tbgBlock("canary", "then = \"method.terraform_backend_git.m\"\n")},
		"not for this method": {"tbg_aes", methodProvider("kubeform {\nname = \"m\"\nkey = " +
			"\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"\n}\n")},
		"wrong key of secret": {"kubeform_module", methodProvider("kubeform {\nname = \"m\"\nkey = " +
			"\"ERERERERERERERERERERERERERERERERERERERERERE=\"\n}\n")},
		"key is not 32 bytes": {"kubeform_module",
			methodProvider("kubeform {\nname = \"m\"\nkey = \"b25seTE2Ynl0ZXNsb25nIQ==\"\n}\n")},
		"no identity for age":                  {"tbg_aes", methodProvider("age {\nname = \"m\"\n}\n")},
		"other identities":                     {"", methodProvider("age {\nname = \"m\"\npassphrase = \"canary\"\n}\n")},
		"identity of a plugin that is cut off": {"", methodProvider("age {\nname = \"m\"\nidentities = [\"AGE-PLUGIN-YUBIKEY-1CANARY\"]\n}\n")},
		"plugin is not installed": {"", methodProvider("age {\nname = \"m\"\nidentities = [" +
			quote(plugin.EncodeIdentity("nowhere", []byte("canary"))) + "]\n}\n")},
		"recipient of a plugin that is cut off": {"", methodProvider("age {\nname = \"m\"\nrecipients = [\"age1yubikey1canary\"]\n}\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := ageFile(t)
			if c.vector != "" {
				file = conformance.Get(c.vector).State()
			}
			method := "method.terraform_backend_git.m"
			for _, other := range []string{"kubeform", "age"} {
				if strings.Contains(c.provider, "\n"+other+" {") {
					method = "method." + other + ".m"
				}
			}
			e := evaluate(t, c.provider, reads("s", fromFile(writeTemp(t, "state", file)), "method = "+quote(method)))
			e.wantMistake(golden, name)
			if text := shownText(e.errors); strings.Contains(strings.ToLower(text), "canary") {
				t.Errorf("a secret shows:\n%s", text)
			}
		})
	}
}

const ageTestdata = "../../encryption/internal/method/age/testdata"

func ageFile(t *testing.T) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(ageTestdata, "x25519.age"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// On a real CLI: a whole file, twice, and a file that was encrypted twice.
func TestAccFileMethods(t *testing.T) {
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
	twice := conformance.Get("tbg_aes_over_tofu_encryption")
	p := newProject(t, map[string]string{"main.tf": configuration(
		methodProvider("terraform_backend_git {\nname = \"m\"\npassphrase = \"throwaway aes passphrase\"\nthen = \"method.aes_gcm.m\"\n}\n"+
			"age {\nname = \"file\"\nidentity_files = ["+quote(filepath.ToSlash(key))+"]\n}\nage {\nname = \"text\"\nidentities = ["+
			quote(string(identity))+"]\n}\n"),
		readsVector(t, "", twice, `method = "method.terraform_backend_git.m"`),
		reads("file", file, `method = "method.age.file"`),
		reads("text", file, `method = "method.age.text"`),
		output("file", "data.statecrypt_remote_state.file.outputs.greeting"),
		output("text", "data.statecrypt_remote_state.text.outputs.greeting"),
		output("with", "data.statecrypt_remote_state.text.decrypted_with"),
	)})
	want := outputsOf(t, twice)
	want["file"], want["text"], want["with"] = cty.StringVal("hello"), cty.StringVal("hello"), cty.StringVal("method.age.text")
	p.wantOutputs(want)
	if out := p.mustRun("plan"); !says("Warning: Weak encryption", "opened with method.terraform_backend_git.m").MatchString(out) {
		t.Errorf("there is no warning:\n%s", out)
	}
}
