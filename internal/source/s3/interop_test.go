package s3

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the protocol asks for it
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption" //nolint:depguard // opens what was read, as its user does
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2" //nolint:depguard // as above
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"      //nolint:depguard // as above
	"github.com/statecrypt/terraform-provider-statecrypt/internal/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object/s3test"
)

// clis are the real programs that write states: OpenTofu where it is named,
// and terraform where there is one.
func clis(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	if tofu := os.Getenv("STATECRYPT_TOFU"); tofu != "" {
		found["tofu"] = tofu
	}
	if terraform, err := exec.LookPath("terraform"); err == nil {
		found["terraform"] = terraform
	}
	if len(found) == 0 {
		t.Skip("there is neither STATECRYPT_TOFU nor terraform in PATH")
	}
	return found
}

const sealing = `
key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}
`

// States that a real CLI writes through its s3 backend are read back: of both
// kinds of workspaces, in clear and encrypted by OpenTofu, and by S3 with a key
// of the customer.
func TestRealBackend(t *testing.T) {
	for name, cli := range clis(t) {
		for _, kind := range []string{"plain", "encrypted", "customer key"} {
			if kind == "encrypted" && name != "tofu" {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) { testRealBackend(t, cli, kind) })
		}
	}
}

func testRealBackend(t *testing.T, cli, kind string) {
	server := s3test.New(t, bucket)
	front := faults.New(t, server, faults.Options{})
	ca := file(t, front.CA)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TF_CLI_CONFIG_FILE=" + os.DevNull, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1"}
	more, customerKey := "", ""
	switch kind {
	case "encrypted":
		env = append(env, "TF_ENCRYPTION="+sealing)
	case "customer key":
		customerKey = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
		env = append(env, "AWS_SSE_CUSTOMER_KEY="+customerKey)
		more = "encrypt = true"
	}
	dir := t.TempDir()
	main := fmt.Sprintf(`
terraform {
  backend "s3" {
    bucket         = %q
    key            = %q
    region         = "eu-west-1"
    access_key     = "AKIATEST"
    secret_key     = "canary-secret"
    use_path_style = true

    endpoints        = { s3 = %q }
    custom_ca_bundle = %q

    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    %s
  }
}
output "greeting" { value = "hello from ${terraform.workspace}" }
`, bucket, key, front.URL, ca, more)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), cli, args...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	reads := func(workspace, path string) {
		t.Helper()
		server.Change(func() { server.Writes = false }) // from here on, only reads are allowed
		server.Requests()
		b := block(front.URL).with("custom_ca_bundle", ca)
		if customerKey != "" {
			b = b.with(customerKeyAttr, customerKey)
		}
		src, err := open(asks(), settings(nil, b), workspace)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(snap.Data, server.Get(t, bucket, path)) {
			t.Error("these are not the bytes of the object")
		}
		if got := server.Requests(); len(got) != 1 || got[0].Method != "GET" || got[0].Path != "/"+bucket+"/"+path {
			t.Errorf("got requests %+v", got)
		}
		checkGreeting(t, snap.Data, kind == "encrypted", "hello from "+workspace)
	}
	server.Change(func() { server.Writes = true })
	run("init", "-input=false")
	run("apply", "-auto-approve", "-input=false")
	reads("default", key)
	server.Change(func() { server.Writes = true })
	run("workspace", "new", "staging")
	run("apply", "-auto-approve", "-input=false")
	reads("staging", "env:/staging/"+key)

	if customerKey != "" { // as S3 really had it
		sum := md5.Sum(bytes.Repeat([]byte{8}, 32)) //nolint:gosec // see above
		server.Seal(bucket, key, base64.StdEncoding.EncodeToString(sum[:]))
		if _, err := read(t, asks(), settings(nil, block(front.URL).with("custom_ca_bundle", ca).with(customerKeyAttr, customerKey))); err == nil {
			t.Error("it was read with another key")
		}
	}
}

func checkGreeting(t *testing.T, data []byte, sealed bool, want string) {
	t.Helper()
	if sealed {
		registry := encryption.Registry{
			KeyProviders: []encryption.Block[encryption.KeyProvider]{pbkdf2.Block()},
			Methods:      []encryption.Block[encryption.Method]{aesgcm.Block()},
		}
		cfg, err := config.Parse(sealing, "sealing", registry.Options(cty.NilVal))
		if err != nil {
			t.Fatal(err)
		}
		enc, err := encryption.New(registry, cfg)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := enc.State().Decrypt(t.Context(), data)
		if err != nil || !opened.Encrypted {
			t.Fatalf("it was not encrypted, or does not open: %v", err)
		}
		data = opened.Data
	}
	var state struct {
		Outputs map[string]struct{ Value string }
	}
	if err := json.Unmarshal(data, &state); err != nil || state.Outputs["greeting"].Value != want {
		t.Errorf("got %q, %v", state.Outputs["greeting"].Value, err)
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
