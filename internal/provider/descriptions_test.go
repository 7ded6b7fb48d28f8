package provider

import (
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

const maxDescription = 200 // characters; what needs more is in a guide

// The pages of the documentation list every argument, so each gets a sentence
// or two.
func TestDescriptionsAreShort(t *testing.T) {
	t.Parallel()
	schemas, err := NewServer("test").GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]*tfprotov6.Schema{"provider": schemas.Provider}
	maps.Copy(pages, schemas.DataSourceSchemas)
	for name, schema := range schemas.EphemeralResourceSchemas {
		pages["ephemeral "+name] = schema
	}
	if len(pages) != 6 {
		t.Fatalf("there are %d pages", len(pages))
	}
	for name, schema := range pages {
		for _, a := range schema.Block.Attributes {
			checkDescription(t, name+"."+a.Name, a.Description)
		}
		for _, b := range schema.Block.BlockTypes {
			checkBlock(t, name+"."+b.TypeName, b.Block)
		}
	}
}

func checkBlock(t *testing.T, at string, block *tfprotov6.SchemaBlock) {
	t.Helper()
	checkDescription(t, at, block.Description)
	for _, a := range block.Attributes {
		checkDescription(t, at+"."+a.Name, a.Description)
	}
	for _, b := range block.BlockTypes {
		checkBlock(t, at+"."+b.TypeName, b.Block)
	}
}

func checkDescription(t *testing.T, at, text string) {
	t.Helper()
	text, _, _ = strings.Cut(text, " Variable") // the names of variables are at the end
	if n := utf8.RuneCountInString(text); n == 0 || n > maxDescription {
		t.Errorf("%s has %d characters: %s", at, n, text)
	}
}
