package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/kubernetes/kubetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// stored is a folder whose states go to the cluster of a kubeconfig.
func stored(t *testing.T, cli clitest.CLI, suffix, config string) *clitest.Project {
	t.Helper()
	return cli.Project(t, fmt.Sprintf(`backend "kubernetes" {
  secret_suffix  = %q
  namespace      = "infra"
  config_path    = %q
  config_context = "right"
}`, suffix, config))
}

// States that a real CLI writes through its kubernetes backend are read back:
// small ones, of workspaces, and large ones, which Terraform splits.
func TestWrittenByCLIs(t *testing.T) {
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) {
			s := kubetest.New(t)
			s.Writable = true
			config := kubeconfig(t, s.URL, trusting(s), map[string]any{"token": s.Token})
			p := stored(t, cli, "prod", config)
			check := func(workspace string) (size int) {
				t.Helper()
				s.Requests()
				s.Change(func() { s.Writable = false }) // from here on, only reads are allowed
				defer s.Change(func() { s.Writable = true })
				r := request(t, attrs{"secret_suffix": text("prod"), "namespace": text("infra")}, nil)
				r.Workspace, r.MaxSize = workspace, 64<<20
				src, err := Kind().Start(settingsOf(attrs{"config_path": text(config), "config_context": text("right")}))(r)
				if err != nil {
					t.Fatal(err)
				}
				snap := sourcetest.Fetch(t, src)
				p.Check(t, workspace, snap.Data)
				for _, r := range s.Requests() {
					if !strings.HasPrefix(r, "GET /api/v1/namespaces/infra/secrets/tfstate-"+workspace+"-prod") {
						t.Errorf("asked for %s", r)
					}
				}
				return len(snap.Data)
			}
			for _, workspace := range clitest.Workspaces {
				p.Apply(t, workspace)
				check(workspace)
			}

			if cli.Name != "terraform" {
				return // OpenTofu knows no parts
			}
			p.Enlarge(t, 2*chunk+1000)
			p.Apply(t, "staging-1")
			if n := len(s.Names("/api/v1/namespaces/infra/secrets/tfstate-staging-1-prod-part-")); n == 0 {
				t.Skip("this Terraform does not split states")
			}
			if size := check("staging-1"); size < 2*chunk {
				t.Errorf("got %d bytes", size)
			}
		})
	}
}
