package gcs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// The gcs blocks of the examples are what the tables say, and lead to the
// object that the guide names.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"sources/gcs/main.tf", "guides/from-terraform-remote-state/gcs/new.tf"} {
		text, err := os.ReadFile(filepath.Join("../../../examples", path))
		if err != nil {
			t.Fatal(err)
		}
		parsed, diags := hclsyntax.ParseConfig(text, path, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		var places, blocks []attrs
		for _, b := range parsed.Body.(*hclsyntax.Body).Blocks {
			switch b.Type {
			case "data":
				places = append(places, gcsBlocks(t, b.Body)...)
			case "provider":
				for _, c := range b.Body.Blocks {
					if c.Type == "credentials" {
						blocks = append(blocks, gcsBlocks(t, c.Body)...)
					}
				}
			}
		}
		if len(places) != 1 || len(blocks) != 1 {
			t.Fatalf("%s: %d places, %d blocks", path, len(places), len(blocks))
		}
		req := request(t, places[0])
		req.Workspace = "production"
		src, err := newRun(settingsOf(blocks...).For(Kind())).open(req)
		if err != nil {
			t.Fatal(err)
		}
		if want := "gs://example-tf-states/network/production.tfstate"; src.String() != want || strings.HasPrefix(path, "sources") &&
			!strings.Contains(string(text), want) {
			t.Errorf("%s: got %s", path, src)
		}
	}
}

// gcsBlocks returns the attributes of the gcs blocks, all of which must be in
// the tables.
func gcsBlocks(t *testing.T, body *hclsyntax.Body) []attrs {
	t.Helper()
	var out []attrs
	for _, b := range body.Blocks {
		if b.Type != "gcs" {
			continue
		}
		a := attrs{}
		for name, attr := range b.Body.Attributes {
			v, diags := attr.Expr.Value(nil)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			_, isPlace := table().Attr(name)
			_, isCredential := credentials().Attr(name)
			if !isPlace && !isCredential {
				t.Errorf("%s: no such argument", name)
			}
			a[name] = v
		}
		out = append(out, a)
	}
	return out
}

// Every argument is documented in sentences.
func TestDocs(t *testing.T) {
	t.Parallel()
	for _, table := range []attr.Table{table(), credentials()} {
		for _, a := range table.Attrs {
			if !strings.HasSuffix(a.Doc, ".") {
				t.Errorf("%s: %s", a.Name, a.Doc)
			}
		}
	}
}
