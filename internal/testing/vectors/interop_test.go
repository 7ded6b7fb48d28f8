package vectors_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

// TestMain lets this program be one that opens or seals standard input. Proxies
// and authorities are read from the environment once in a process, so only a
// process of its own has the same ones as OpenTofu.
func TestMain(m *testing.M) {
	verb, target, isWorker := strings.Cut(os.Getenv("STATECRYPT_INTEROP"), " ")
	if !isWorker {
		m.Run()
		return
	}
	if err := work(verb, target); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work does what TF_ENCRYPTION says.
func work(verb, target string) error {
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(os.Getenv("TF_ENCRYPTION"), "TF_ENCRYPTION"),
		encryption.Environment(os.LookupEnv))
	if err != nil {
		return err
	}
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	chosen := map[string]encryption.Target{"state": enc.State(), "plan": enc.Plan()}[target]
	var out []byte
	if verb == "encrypt" {
		out, err = chosen.Encrypt(context.Background(), in)
	} else {
		out, err = openSealed(chosen, in)
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(out)
	return err
}

func openSealed(target encryption.Target, file []byte) ([]byte, error) {
	opened, err := target.Decrypt(context.Background(), file)
	if err != nil {
		return nil, err
	}
	if !opened.Encrypted || opened.UsedFallback {
		return nil, fmt.Errorf("encrypted: %t, by a fallback: %t", opened.Encrypted, opened.UsedFallback)
	}
	return opened.Data, nil
}

// interop is a configuration text that OpenTofu and we put to work. The method
// is called m.
type interop struct {
	text   string
	method string // kind of m; aes_gcm when empty
	env    []string
	cloud  *cloudtest.Internet // where the service is asked at its own name
}

// interops are all kinds that OpenTofu ships. OpenTofu's binary knows neither
// static nor xor, and 1.12 knows no data that a key is bound to: for
// encryption_context of aws_kms, associated_data of openbao and
// additional_authenticated_data of gcp_kms, files of 1.13 are among the testdata.
func interops(t *testing.T) map[string]interop {
	t.Helper()
	const passphrase, quick = "passphrase = \"a passphrase for one test\"\n", "iterations = 200000\n"
	pbkdf2 := func(name, body string) string { return fmt.Sprintf("key_provider \"pbkdf2\" %q {\n%s}\n", name, body) }
	aesGCM := func(keys, more string) string {
		return fmt.Sprintf("method \"aes_gcm\" \"m\" {\nkeys = key_provider.%s\n%s}\n", keys, more)
	}
	kms := awskmstest.New(t, awskmstest.Key{ID: "alias/tofu", Master: bytes.Repeat([]byte{1}, 32)})
	kms.Allow("GenerateDataKey")
	awsEnv := []string{"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=secret"}
	aws := "key_provider \"aws_kms\" \"k\" {\nkms_key_id = \"alias/tofu\"\nkey_spec = \"AES_256\"\nregion = \"eu-west-1\"\n" +
		"skip_credentials_validation = true\nskip_requesting_account_id = true\n}\n" + aesGCM("aws_kms.k", "")
	bao := openbaotest.New(t, bytes.Repeat([]byte{2}, 32))
	bao.MakesKeys, bao.Token = true, "s.token"
	baoEnv := []string{"BAO_ADDR=" + bao.URL, "BAO_TOKEN=" + bao.Token}

	all := map[string]interop{
		"pbkdf2": {text: pbkdf2("k", passphrase) + aesGCM("pbkdf2.k", "")},
		"pbkdf2, sha256": {text: pbkdf2("k", passphrase+quick+"hash_function = \"sha256\"\nkey_length = 16\nsalt_length = 8\n") +
			aesGCM("pbkdf2.k", "")},
		"pbkdf2, alias":   {text: pbkdf2("k", passphrase+quick+"encrypted_metadata_alias = \"main\"\n") + aesGCM("pbkdf2.k", "")},
		"pbkdf2, aad":     {text: pbkdf2("k", passphrase+quick) + aesGCM("pbkdf2.k", "aad = [112, 117, 98]\n")},
		"pbkdf2, chained": {text: pbkdf2("a", passphrase+quick) + pbkdf2("b", "chain = key_provider.pbkdf2.a\n"+quick) + aesGCM("pbkdf2.b", "")},
		"openbao":         {text: "key_provider \"openbao\" \"k\" { key_name = \"tofu\" }\n" + aesGCM("openbao.k", ""), env: baoEnv},
		"openbao, chained": {text: "key_provider \"openbao\" \"k\" {\nkey_name = \"tofu\"\nkey_length = 64\n}\n" +
			pbkdf2("b", "chain = key_provider.openbao.k\n"+quick) + aesGCM("pbkdf2.b", ""), env: baoEnv},
		"aws_kms": {text: aws, env: append([]string{"AWS_ENDPOINT_URL_KMS=" + kms.URL}, awsEnv...)},
	}
	if cloudtest.Supported() {
		cloud, account := clouds(t, kms)
		google := func(more string) string {
			return "key_provider \"gcp_kms\" \"k\" {\nkms_encryption_key = \"" + googleKey + "\"\nkey_length = 32\n" + more + "}\n" +
				aesGCM("gcp_kms.k", "")
		}
		azure := func(key, more string) string {
			return fmt.Sprintf("key_provider \"azure_vault\" \"k\" {\nvault_uri = \"https://interop.vault.azure.net\"\nvault_key_name = "+
				"%q\nkey_length = 32\n%s}\n", key, more) + aesGCM("azure_vault.k", "")
		}
		all["aws_kms, own host"] = interop{text: aws, env: awsEnv, cloud: cloud}
		all["gcp_kms"] = interop{text: google(""), env: []string{"GOOGLE_CREDENTIALS=" + account.JSON}, cloud: cloud}
		all["gcp_kms, access token"] = interop{text: google("access_token = \"" + gcpkmstest.Token + "\"\n"), cloud: cloud}
		all["azure_vault"] = interop{text: azure("rsa", ""), cloud: cloud, env: []string{
			"ARM_TENANT_ID=" + azurevaulttest.Tenant, "ARM_CLIENT_ID=" + azurevaulttest.ClientID, "ARM_CLIENT_SECRET=" + azurevaulttest.Secret,
		}}
		for _, bits := range []int{128, 192, 256} {
			all[fmt.Sprint("azure_vault, symmetric ", bits)] = interop{text: azure(fmt.Sprint("aes", bits),
				fmt.Sprintf("symmetric = true\nsymmetric_key_size = %d\ntenant_id = %q\nclient_id = %q\nclient_secret = %q\n",
					bits, azurevaulttest.Tenant, azurevaulttest.ClientID, azurevaulttest.Secret)), cloud: cloud}
		}
	}
	if runtime.GOOS == "windows" {
		return all // the programs are scripts for sh
	}
	key := fmt.Sprintf("key_provider \"external\" \"k\" { command = [\"sh\", %q, %q] }\n",
		absolute(t, "../../../examples/external/key-provider.sh"), exampleKeys(t))
	external := func(keys string, command ...string) string {
		quoted := func(last string) string {
			words := append(slices.Clone(command), last)
			if keys == "" {
				words = append(words, "-") // what the script takes for no key
			}
			return `["` + strings.Join(words, `", "`) + `"]`
		}
		return fmt.Sprintf("method \"external\" \"m\" {\n%s\nencrypt_command = %s\ndecrypt_command = %s\n}\n", keys, quoted("encrypt"),
			quoted("decrypt"))
	}
	all["external"] = interop{text: key + aesGCM("external.k", "")}
	all["external, chained"] = interop{text: key + pbkdf2("b", "chain = key_provider.external.k\n"+quick) + aesGCM("pbkdf2.b", "")}
	all["external method"] = interop{method: "external", text: external("", "sh",
		absolute(t, "../../../conformance/cases/external_method_no_keys/method.sh"))}
	all["external method with keys"] = interop{method: "external", text: key + external("keys = key_provider.external.k", exampleMethod(t))}
	return all
}

const googleKey = "projects/p/locations/global/keyRings/r/cryptoKeys/interop"

// clouds are the services that are asked at their own names. They seal, too.
func clouds(t *testing.T, kms http.Handler) (*cloudtest.Internet, *cloudtest.ServiceAccount) {
	t.Helper()
	account := cloudtest.NewServiceAccount(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	aes := bytes.Repeat([]byte{5}, 32)
	google := &gcpkmstest.Service{Keys: map[string][]byte{googleKey: bytes.Repeat([]byte{4}, 32)}, AllowEncrypt: true}
	azure := &azurevaulttest.Service{
		RSA: map[string]*rsa.PrivateKey{"rsa": key}, AES: map[string][]byte{"aes128": aes[:16], "aes192": aes[:24], "aes256": aes},
		AllowEncrypt: true,
	}
	return cloudtest.New(t, map[string]http.Handler{
		"kms.eu-west-1.amazonaws.com": kms, "cloudkms.googleapis.com": gcpkmstest.CloudKMS(t, google, account),
		"interop.vault.azure.net": azure, "login.microsoftonline.com": azure,
	}), account
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
	if out, err := exec.Command("go", "build", "-o", program, "../../../examples/external/method").CombinedOutput(); err != nil {
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
	interopState = `{"version":4,"terraform_version":"1.12.6","serial":41,"lineage":"a-lineage","outputs":` + interopOutputs +
		`,"resources":[],"check_results":null}`
)

// What OpenTofu seals, we open; what we seal, OpenTofu opens: states and plans.
func TestInterop(t *testing.T) {
	tofu := testkit.Program(t, "STATECRYPT_TOFU")
	for name, c := range interops(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.method == "" {
				c.method = "aes_gcm"
			}
			for _, target := range []string{"state", "plan"} {
				c.text += fmt.Sprintf("%s {\nmethod = method.%s.m\nenforced = true\n}\n", target, c.method)
			}
			env := cloudtest.Isolated(gittest.Environ(t.TempDir()))
			if c.cloud != nil {
				env = c.cloud.Environ(env)
			}
			env = slices.Concat(env, c.env, []string{"TF_ENCRYPTION=" + c.text, "CHECKPOINT_DISABLE=1", "TF_INPUT=0"})
			// ours opens or seals a file, in a process that gets what OpenTofu gets.
			ours := func(job string, in []byte) []byte {
				t.Helper()
				cmd := exec.Command(os.Args[0])
				cmd.Stdin, cmd.Env = bytes.NewReader(in), append(env, "STATECRYPT_INTEROP="+job)
				return output(t, cmd)
			}
			exchange(t, tofu, env, func(kind string, file []byte) []byte { return ours("decrypt "+kind, file) },
				func(kind string, plain []byte) []byte { return ours("encrypt "+kind, plain) })
		})
	}
}

// What OpenTofu seals, the adapter in Node opens; what that seals, OpenTofu opens: states and plans.
func TestInteropOfNode(t *testing.T) {
	tofu := testkit.Program(t, "STATECRYPT_TOFU")
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" || runtime.GOOS == "windows" {
		t.Skip("it requires node, and sh")
	}
	all := interops(t)
	for _, name := range []string{"pbkdf2, alias", "pbkdf2, aad", "pbkdf2, chained", "external, chained", "external method"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, method := all[name].text, cmp.Or(all[name].method, "aes_gcm")
			for _, target := range []string{"state", "plan"} {
				text += fmt.Sprintf("%s {\nmethod = method.%s.m\nenforced = true\n}\n", target, method)
			}
			env := append(cloudtest.Isolated(gittest.Environ(t.TempDir())), "TF_ENCRYPTION="+text, "CHECKPOINT_DISABLE=1", "TF_INPUT=0")
			run := func(task string) func(kind string, file []byte) []byte {
				return func(kind string, file []byte) []byte {
					t.Helper()
					cmd := exec.Command(node, absolute(t, "../../../conformance/adapters/node/main.js")) //nolint:gosec // the program under test
					cmd.Stdin, cmd.Env = bytes.NewReader(file), append(slices.Clone(env), "CASE_KIND=opentofu_"+kind, "CASE_TASK="+task)
					return output(t, cmd)
				}
			}
			exchange(t, tofu, env, run("read"), run("write"))
		})
	}
}

// exchange has OpenTofu write a state and a plan, which we open, and read those
// that we seal. The kind of a file is state or plan.
func exchange(t *testing.T, tofu string, env []string, open, seal func(kind string, file []byte) []byte) {
	t.Helper()
	run := func(dir string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), tofu, args...) //nolint:gosec // the tool under test
		cmd.Dir, cmd.Env = dir, env
		return output(t, cmd)
	}
	var want map[string]conformance.Output
	if err := json.Unmarshal([]byte(interopOutputs), &want); err != nil {
		t.Fatal(err)
	}

	theirs := t.TempDir()
	write(t, filepath.Join(theirs, "main.tf"), []byte(interopModule))
	run(theirs, "plan", "-out=plan")
	run(theirs, "apply", "plan")
	state, err := tfstate.Parse(open("state", sealedFile(t, theirs, "terraform.tfstate")))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, state, want)
	plan := open("plan", sealedFile(t, theirs, "plan"))
	archive, err := zip.NewReader(bytes.NewReader(plan), int64(len(plan)))
	if err != nil || !slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == "tfplan" }) {
		t.Errorf("this is not a plan: %v", err)
	}

	ours := t.TempDir()
	write(t, filepath.Join(ours, "main.tf"), []byte(interopModule))
	write(t, filepath.Join(ours, "terraform.tfstate"), seal("state", []byte(interopState)))
	write(t, filepath.Join(ours, "plan"), seal("plan", plan))
	sealedFile(t, ours, "terraform.tfstate")
	sealedFile(t, ours, "plan")
	compareJSON(t, run(ours, "output", "-json"), want)
	var shown struct {
		Planned struct {
			Outputs json.RawMessage `json:"outputs"`
		} `json:"planned_values"`
	}
	if err := json.Unmarshal(run(ours, "show", "-json", "plan"), &shown); err != nil {
		t.Fatal(err)
	}
	compareJSON(t, shown.Planned.Outputs, want)
}

// output is what a command prints. It must not fail.
func output(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd.Args, err, out, stderr.Bytes())
	}
	return out
}

// sealedFile reads a file, which must not be in plaintext.
func sealedFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	file := readFile(t, filepath.Join(dir, name))
	if bytes.Contains(file, []byte("canary")) || bytes.HasPrefix(file, []byte("PK")) { // as a plan in plaintext does
		t.Fatalf("%s is not encrypted", name)
	}
	return file
}

// compareJSON compares outputs as OpenTofu shows them.
func compareJSON(t *testing.T, text []byte, want map[string]conformance.Output) {
	t.Helper()
	document := fmt.Sprintf(`{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","resources":[],"outputs":%s}`, text)
	state, err := tfstate.Parse([]byte(document))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	compare(t, state, want)
}
