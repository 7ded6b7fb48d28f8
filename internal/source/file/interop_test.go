package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// What the local backend of real CLIs writes is read back, with the very same
// arguments.
func TestBackend(t *testing.T) {
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) {
			dir := filepath.ToSlash(t.TempDir())
			path, workspaces := dir+"/network.tfstate", dir+"/workspaces"
			p := cli.Project(t, `backend "local" {
  path          = "`+path+`"
  workspace_dir = "`+workspaces+`"
}`)
			where := map[string]cty.Value{"path": cty.StringVal(path), "workspace_dir": cty.StringVal(workspaces)}
			read := func(workspace string) []byte {
				values, err := unstable.NewEntry("data.x", Kind().Table, where).Decode(Kind().Table, nil)
				if err != nil {
					t.Fatal(err)
				}
				src, err := Kind().Start(source.Settings{})(source.Request{Values: values, Workspace: workspace, MaxSize: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				snap, err := src.Fetch(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return snap.Data
			}
			held := func(workspace string) []byte {
				name := path
				if workspace != "default" {
					name = workspaces + "/" + workspace + "/terraform.tfstate"
				}
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				return data
			}
			p.RoundTrip(t, read, held)
		})
	}
}
