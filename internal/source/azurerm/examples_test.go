package azurerm

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// The examples read the blob that they say.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sources/azurerm/main.tf", "guides/from-terraform-remote-state/azurerm/new.tf"} {
		credentials, place, workspace := exampleBlocks(t, filepath.Join("..", "..", "..", "examples", filepath.FromSlash(name)))
		req := request(t, place, nil)
		req.Workspace = workspace
		src, err := kind(nil).Start(settings(credentials))(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := `blob "network.tfstateenv:prod" in the container tfstate of the storage account acmestates`; src.String() != want {
			t.Errorf("%s: got %s", name, src)
		}
	}
}

// exampleBlocks returns the azurerm blocks of a file, and its workspace.
func exampleBlocks(t *testing.T, path string) (credentials, place attrs, workspace string) {
	t.Helper()
	file, diags := hclparse.NewParser().ParseHCLFile(path)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	scope := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{"client_secret": cty.StringVal("x")})}}
	values := func(b *hclsyntax.Block) attrs {
		out := attrs{}
		for name, a := range b.Body.Attributes {
			v, diags := a.Expr.Value(scope)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			out[name] = v
		}
		return out
	}
	var find func(within string, body *hclsyntax.Body)
	find = func(within string, body *hclsyntax.Body) {
		for _, b := range body.Blocks {
			switch {
			case b.Type == "azurerm" && within == "credentials":
				credentials = values(b)
			case b.Type == "azurerm" && within == "data":
				place = values(b)
			}
			if b.Type == "data" {
				workspace = values(b)["workspace"].AsString()
			}
			find(b.Type, b.Body)
		}
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		t.Fatal("this is not HCL syntax")
	}
	find("", body)
	return credentials, place, workspace
}
