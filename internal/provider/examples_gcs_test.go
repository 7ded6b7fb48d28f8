package provider

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// The example for Google Cloud Storage runs as it is printed, with an account
// that may only get objects.
func TestAccExampleGCS(t *testing.T) {
	if os.Getenv("TF_ACC") == "" {
		t.Skip("TF_ACC is not set")
	}
	cli := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if !hasEphemeralValues(t, cli) {
		t.Skip("the example has an ephemeral variable, which this version does not know")
	}
	service := gcstest.New("example-tf-states")
	service.Permissions = []string{"storage.objects.get"}
	service.Put("example-tf-states", "network/production.tfstate", gcstest.Object{Data: []byte(sealExample(t, networkState))})
	internet := cloudtest.New(t, map[string]http.Handler{
		"storage.googleapis.com": service,
		"iamcredentials.googleapis.com": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("Authorization") != "Bearer canary-caller" || !strings.Contains(r.URL.Path, "/state-reader@example-project.iam.gserviceaccount.com:") ||
				!strings.Contains(string(body), "devstorage.read_only") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"accessToken":%q,"expireTime":%q}`, gcstest.Token, time.Now().Add(time.Hour).Format(time.RFC3339))
		}),
	})
	bin, dir := buildForExamples(t), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "run"), os.DirFS(filepath.Join("..", "..", "examples", "sources", "gcs"))); err != nil {
		t.Fatal(err)
	}
	rc := filepath.Join(dir, "cli.tfrc")
	text := "provider_installation {\n  dev_overrides {\n    \"statecrypt/statecrypt\" = \"" + filepath.ToSlash(bin) + "\"\n  }\n  direct {\n    exclude = [\"*/*/*\"]\n  }\n}\n"
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), cli, "apply", "-auto-approve", "-no-color", "-input=false") //nolint:gosec // the CLI under test
	cmd.Dir = filepath.Join(dir, "run")
	cmd.Env = append(internet.Environ(gittest.Environ(t.TempDir())), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+rc,
		"TF_VAR_state_passphrase=the example's passphrase", "GOOGLE_OAUTH_ACCESS_TOKEN=canary-caller")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), `vpc_id = "vpc-1"`) {
		t.Errorf("got %s", out)
	}
	state, err := os.ReadFile(filepath.Join(dir, "run", "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"canary", gcstest.Token} {
		if strings.Contains(string(state), secret) || strings.Contains(string(out), secret) {
			t.Errorf("%s is stored, or shown", secret)
		}
	}
	for _, r := range service.Requests() {
		if r != "GET /storage/v1/b/example-tf-states/o/network%2Fproduction.tfstate?alt=media" {
			t.Errorf("the service got %s", r)
		}
	}
}
