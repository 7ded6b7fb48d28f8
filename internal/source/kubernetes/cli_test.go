package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
)

// clis are the real programs that write states: OpenTofu where make has built
// it, and terraform where there is one.
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

// States that a real CLI writes through its kubernetes backend are read back:
// small ones, of workspaces, and large ones, which Terraform splits.
func TestRealBackend(t *testing.T) {
	for name, cli := range clis(t) {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t)
			s.Writable = true
			dir := t.TempDir()
			config := kubeconfig(t, s.URL, trusting(s), map[string]any{"token": s.Token})
			file(t, filepath.Join(dir, "main.tf"), fmt.Sprintf(`
				terraform {
				  backend "kubernetes" {
				    secret_suffix          = "prod"
				    namespace              = "infra"
				    config_path            = %q
				    config_context         = "right"
				  }
				}
				variable "large" { default = "" }
				output "greeting" { value = "hello from ${terraform.workspace}" }
				output "large" { value = var.large }
			`, config), 0o600)
			run := func(args ...string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), cli, args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_WORKSPACE=", "KUBE_CONFIG_PATH=", "TF_DATA_DIR=")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
				}
			}
			greeting := func(workspace, want string) (size int) {
				t.Helper()
				s.Requests()
				s.Change(func() { s.Writable = false }) // from here on, only reads are allowed
				defer s.Change(func() { s.Writable = true })
				r := request(t, attrs{"secret_suffix": text("prod"), "namespace": text("infra")}, nil)
				r.Workspace, r.MaxSize = workspace, 64<<20
				src, err := start(settingsOf(attrs{"config_path": text(config), "config_context": text("right")}))(r)
				if err != nil {
					t.Fatal(err)
				}
				var state struct {
					Outputs map[string]struct{ Value string }
				}
				snap := fetch(t, src)
				if err := json.Unmarshal(snap.Data, &state); err != nil || state.Outputs["greeting"].Value != want {
					t.Errorf("got %v, %v", state.Outputs["greeting"], err)
				}
				for _, r := range s.Requests() {
					if !strings.HasPrefix(r, "GET /api/v1/namespaces/infra/secrets/tfstate-"+workspace+"-prod") {
						t.Errorf("asked for %s", r)
					}
				}
				return len(snap.Data)
			}
			run("init", "-input=false")
			run("apply", "-auto-approve", "-input=false")
			greeting("default", "hello from default")
			run("workspace", "new", "staging")
			run("apply", "-auto-approve", "-input=false")
			greeting("staging", "hello from staging")

			if name != "terraform" {
				return // OpenTofu knows no parts
			}
			large := hardToPack(2*chunk + 1000)
			vars, _ := json.Marshal(map[string]string{"large": large})
			file(t, filepath.Join(dir, "terraform.tfvars.json"), string(vars), 0o600)
			run("apply", "-auto-approve", "-input=false")
			if n := len(s.Names("/api/v1/namespaces/infra/secrets/tfstate-staging-prod-part-")); n == 0 {
				t.Skip("this Terraform does not split states")
			}
			if size := greeting("staging", "hello from staging"); size < len(large) {
				t.Errorf("got %d bytes", size)
			}
		})
	}
}

// hardToPack is text whose gzip stream has at least size bytes.
func hardToPack(size int) string {
	var b bytes.Buffer
	x := uint32(1)
	for b.Len() < size*3/2 {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[x>>26])
	}
	return b.String()
}
