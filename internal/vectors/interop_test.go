package vectors_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/vectors"
)

// interop is a configuration text that OpenTofu and we put to work. The method
// is called m.
type interop struct {
	text   string
	method string            // kind of m; aes_gcm when empty
	env    map[string]string // beside the text
}

// interops are all kinds that OpenTofu ships and whose service can be stood in
// for: those of Google and Microsoft are asked at names of their own. OpenTofu's
// binary knows neither static nor xor, nor yet encryption_context of aws_kms
// and associated_data of openbao.
func interops(t *testing.T) map[string]interop {
	t.Helper()
	const passphrase, quick = "passphrase = \"a passphrase for one test\"\n", "iterations = 200000\n"
	pbkdf2 := func(name, body string) string { return fmt.Sprintf("key_provider \"pbkdf2\" %q {\n%s}\n", name, body) }
	aesGCM := func(keys, more string) string {
		return fmt.Sprintf("method \"aes_gcm\" \"m\" {\nkeys = key_provider.%s\n%s}\n", keys, more)
	}
	kms := awskmstest.New(t, awskmstest.Key{ID: "alias/tofu", Master: bytes.Repeat([]byte{1}, 32)})
	kms.Allow("GenerateDataKey")
	for name, value := range map[string]string{ // the SDK reads the environment itself
		"AWS_ENDPOINT_URL_KMS": kms.URL, "AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	bao := openbaotest.New(t, bytes.Repeat([]byte{2}, 32))
	bao.MakesKeys, bao.Token = true, "s.token"
	baoEnv := map[string]string{"BAO_ADDR": bao.URL, "BAO_TOKEN": bao.Token}

	all := map[string]interop{
		"pbkdf2":          {text: pbkdf2("k", passphrase) + aesGCM("pbkdf2.k", "")},
		"pbkdf2, sha256":  {text: pbkdf2("k", passphrase+quick+"hash_function = \"sha256\"\nkey_length = 16\nsalt_length = 8\n") + aesGCM("pbkdf2.k", "")},
		"pbkdf2, alias":   {text: pbkdf2("k", passphrase+quick+"encrypted_metadata_alias = \"main\"\n") + aesGCM("pbkdf2.k", "")},
		"pbkdf2, aad":     {text: pbkdf2("k", passphrase+quick) + aesGCM("pbkdf2.k", "aad = [112, 117, 98]\n")},
		"pbkdf2, chained": {text: pbkdf2("a", passphrase+quick) + pbkdf2("b", "chain = key_provider.pbkdf2.a\n"+quick) + aesGCM("pbkdf2.b", "")},
		"openbao":         {text: "key_provider \"openbao\" \"k\" { key_name = \"tofu\" }\n" + aesGCM("openbao.k", ""), env: baoEnv},
		"openbao, chained": {text: "key_provider \"openbao\" \"k\" {\nkey_name = \"tofu\"\nkey_length = 64\n}\n" +
			pbkdf2("b", "chain = key_provider.openbao.k\n"+quick) + aesGCM("pbkdf2.b", ""), env: baoEnv},
		"aws_kms": {text: "key_provider \"aws_kms\" \"k\" {\nkms_key_id = \"alias/tofu\"\nkey_spec = \"AES_256\"\nregion = \"eu-west-1\"\n" +
			"skip_credentials_validation = true\nskip_requesting_account_id = true\n}\n" + aesGCM("aws_kms.k", "")},
	}
	if runtime.GOOS == "windows" {
		return all // the programs are scripts for sh
	}
	key := fmt.Sprintf("key_provider \"external\" \"k\" { command = [\"sh\", %q, %q] }\n", absolute(t, "../../examples/external/key-provider.sh"), exampleKeys(t))
	external := func(keys string, command ...string) string {
		quoted := func(last string) string {
			words := append(slices.Clone(command), last)
			if keys == "" {
				words = append(words, "-") // what the script takes for no key
			}
			return `["` + strings.Join(words, `", "`) + `"]`
		}
		return fmt.Sprintf("method \"external\" \"m\" {\n%s\nencrypt_command = %s\ndecrypt_command = %s\n}\n", keys, quoted("encrypt"), quoted("decrypt"))
	}
	all["external"] = interop{text: key + aesGCM("external.k", "")}
	all["external, chained"] = interop{text: key + pbkdf2("b", "chain = key_provider.external.k\n"+quick) + aesGCM("pbkdf2.b", "")}
	all["external method"] = interop{method: "external", text: external("", "sh", absolute(t, "../../encryption/method/external/testdata/external_method_no_keys/method.sh"))}
	all["external method with keys"] = interop{method: "external", text: key + external("keys = key_provider.external.k", exampleMethod(t))}
	return all
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// exampleKeys is the folder that the example of a key provider reads.
func exampleKeys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "2026-01"), []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{3}, 32))+"\n"))
	write(t, filepath.Join(dir, "current"), []byte("2026-01\n"))
	return dir
}

// exampleMethod builds the example of a method.
func exampleMethod(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tofu-method")
	if out, err := exec.Command("go", "build", "-o", program, "../../examples/external/method").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tofuPath is OpenTofu's binary. Where it is not built, the test is skipped.
func tofuPath(t *testing.T) string {
	t.Helper()
	path := os.Getenv("STATECRYPT_TOFU")
	if path == "" {
		path = absolute(t, "../../.tools/bin/tofu")
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("STATECRYPT_REQUIRE_TOFU") == "1" {
			t.Fatal(err)
		}
		t.Skipf("OpenTofu is not built: %v", err)
	}
	return path
}

const (
	interopModule = `output "text" { value = "héllo" }
output "number" { value = 123456789012345678901234567890 }
output "list" { value = tolist(["a", "b"]) }
output "secret" {
  value     = "canary-secret"
  sensitive = true
}
`
	interopOutputs = `{
		"text":{"value":"héllo","type":"string"},
		"number":{"value":123456789012345678901234567890,"type":"number"},
		"list":{"value":["a","b"],"type":["list","string"]},
		"secret":{"value":"canary-secret","type":"string","sensitive":true}}`
	interopState = `{"version":4,"terraform_version":"1.12.6","serial":41,"lineage":"a-lineage","outputs":` + interopOutputs + `,"resources":[],"check_results":null}`
)

// What OpenTofu seals, we open; what we seal, OpenTofu opens: states and plans.
func TestInterop(t *testing.T) {
	tofu := tofuPath(t)
	for name, c := range interops(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.method == "" {
				c.method = "aes_gcm"
			}
			for _, target := range []string{"state", "plan"} {
				c.text += fmt.Sprintf("%s {\nmethod = method.%s.m\nenforced = true\n}\n", target, c.method)
			}
			env := append(gittest.Environ(t.TempDir()), "TF_ENCRYPTION="+c.text, "CHECKPOINT_DISABLE=1", "TF_INPUT=0")
			for k, v := range c.env {
				env = append(env, k+"="+v)
			}
			run := func(dir string, args ...string) []byte {
				t.Helper()
				cmd := exec.Command(tofu, args...)
				cmd.Dir, cmd.Env = dir, env
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("tofu %s: %v\n%s%s", args[0], err, out, stderr.Bytes())
				}
				return out
			}
			var want map[string]vectors.Output
			if err := json.Unmarshal([]byte(interopOutputs), &want); err != nil {
				t.Fatal(err)
			}

			theirs := t.TempDir()
			write(t, filepath.Join(theirs, "main.tf"), []byte(interopModule))
			run(theirs, "plan", "-out=plan")
			run(theirs, "apply", "plan")
			state := decrypt(t, c.encryption(t).State(), filepath.Join(theirs, "terraform.tfstate"))
			parsed, err := tfstate.Parse(state)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, parsed, want)
			plan := decrypt(t, c.encryption(t).Plan(), filepath.Join(theirs, "plan"))
			archive, err := zip.NewReader(bytes.NewReader(plan), int64(len(plan)))
			if err != nil || !slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == "tfplan" }) {
				t.Errorf("this is not a plan: %v", err)
			}

			ours := t.TempDir()
			write(t, filepath.Join(ours, "main.tf"), []byte(interopModule))
			encrypt(t, c.encryption(t).State(), filepath.Join(ours, "terraform.tfstate"), []byte(interopState))
			compareJSON(t, run(ours, "output", "-json"), want)
			encrypt(t, c.encryption(t).Plan(), filepath.Join(ours, "plan"), plan)
			var shown struct {
				Planned struct {
					Outputs json.RawMessage `json:"outputs"`
				} `json:"planned_values"`
			}
			if err := json.Unmarshal(run(ours, "show", "-json", "plan"), &shown); err != nil {
				t.Fatal(err)
			}
			compareJSON(t, shown.Planned.Outputs, want)
		})
	}
}

// encryption is the configuration at work, with nothing remembered.
func (c interop) encryption(t *testing.T) *encryption.Encryption {
	t.Helper()
	registry := builtin.Registry()
	registry.KeyProviders = append(registry.KeyProviders, awskms.Block())
	cfg, err := config.Parse(c.text, "TF_ENCRYPTION", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	cfg.LookupEnv = func(name string) (string, bool) {
		v, ok := c.env[name]
		return v, ok
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func decrypt(t *testing.T, target encryption.Target, path string) []byte {
	t.Helper()
	file := readFile(t, path)
	if bytes.Contains(file, []byte("canary")) {
		t.Fatalf("%s is not encrypted", filepath.Base(path))
	}
	opened, err := target.Decrypt(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if !opened.Encrypted || opened.UsedFallback {
		t.Errorf("%s: encrypted: %t, by a fallback: %t", filepath.Base(path), opened.Encrypted, opened.UsedFallback)
	}
	return opened.Data
}

func encrypt(t *testing.T, target encryption.Target, path string, plain []byte) {
	t.Helper()
	sealed, err := target.Encrypt(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("canary")) {
		t.Fatalf("%s is not encrypted", filepath.Base(path))
	}
	write(t, path, sealed)
}

// compareJSON compares outputs as OpenTofu shows them.
func compareJSON(t *testing.T, text []byte, want map[string]vectors.Output) {
	t.Helper()
	document := fmt.Sprintf(`{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","resources":[],"outputs":%s}`, text)
	state, err := tfstate.Parse([]byte(document))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	compare(t, state, want)
}
