package all

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// TestSecretsInPlaceOfPaths: no error shows what is in the place of a path, of a block or
// of the environment. It may be what was to be in the file.
//
// Promise: Secrets in text
func TestSecretsInPlaceOfPaths(t *testing.T) {
	rows, found := policies(t), 0
	for _, k := range Kinds() {
		if len(k.Credentials.Attrs) == 0 {
			continue
		}
		a := arenaOf(k, rows[k.Name])
		for _, path := range pathsOf(k.Credentials.Attrs) {
			found++
			t.Run(k.Name+"/"+path.name, func(t *testing.T) {
				for what, secret := range testkit.InPlaceOfPaths() {
					for base, block := range map[string]attrs{"alone": {}, "with a place": a.here(a.direct), "with a secret": a.own(a.direct)} {
						a.hides(t, what+", "+base, nil, with(block), path, secret)
					}
					for _, variable := range path.env {
						a.hides(t, what+", of the environment", map[string]string{variable: secret}, a.here(a.direct), nil, "")
						a.hides(t, what+", of the environment alone", map[string]string{variable: secret}, nil, nil, "")
					}
				}
			})
		}
	}
	if found < 20 {
		t.Errorf("only %d attributes are about files", found)
	}
}

// TestDocumentsInPlaceOfNames: no source shows a document that is in the place of a name or
// an address.
func TestDocumentsInPlaceOfNames(t *testing.T) {
	t.Parallel()
	rows := backends()
	for _, k := range Kinds() {
		place := rows[k.Name].place
		for _, a := range k.Table.Attrs {
			if a.Type != cty.String {
				continue
			}
			for what, document := range testkit.InPlaceOfPaths() {
				if what == "a token" {
					continue // which may be a name
				}
				values, err := unstable.NewEntry("data.x", k.Table, with(place, a.Name, document)).Decode(k.Table, nil)
				said := fmt.Sprint(err)
				if err == nil {
					src, err := k.Start(source.Settings{})(source.Request{Values: values, Workspace: "default", MaxSize: 1 << 20})
					if said = fmt.Sprint(src, err); err == nil {
						t.Errorf("%s.%s: %s is accepted", k.Name, a.Name, what)
					}
				}
				if strings.Contains(said, testkit.CanaryOfPaths) {
					t.Errorf("%s.%s: %s: %s", k.Name, a.Name, what, said)
				}
			}
		}
	}
}

// hides reads, and looks for the secret in what is said.
func (a arena) hides(t *testing.T, what string, env map[string]string, block attrs, at *pathAttr, secret string) {
	t.Helper()
	if at != nil {
		at.set(block, secret)
	}
	var blocks []attrs
	if block != nil {
		blocks = append(blocks, block)
	}
	warnings, err := a.readAt(t, a.where(a.direct), env, true, blocks...)
	if said := fmt.Sprint(err, warnings); strings.Contains(said, testkit.CanaryOfPaths) {
		t.Errorf("%s: %s", what, said)
	}
}

// pathAttr is an attribute that is about a file.
type pathAttr struct {
	name string // "block.attribute" inside a block
	env  []string
	set  func(block attrs, value string)
}

func pathsOf(declared []attr.Attr) (found []*pathAttr) {
	for _, a := range declared {
		switch {
		case a.Attrs != nil && a.Type == cty.NilType:
			for _, inner := range a.Attrs {
				if inner.Type != cty.String || !testkit.NamesPath(inner.Name, inner.Doc) {
					continue
				}
				found = append(found, &pathAttr{a.Name + "." + inner.Name, inner.Env, func(block attrs, value string) {
					object := attrs{}
					for _, sibling := range a.Attrs {
						object[sibling.Name] = cty.NullVal(sibling.Type)
					}
					for name, needed := range map[string]string{"role_arn": "arn:aws:iam::123456789012:role/x", "command": "x"} {
						if _, ok := object[name]; ok {
							object[name] = text(needed)
						}
					}
					object[inner.Name] = text(value)
					block[a.Name] = cty.ObjectVal(object)
				}})
			}
		case a.Type == cty.String && testkit.NamesPath(a.Name, a.Doc):
			found = append(found, &pathAttr{a.Name, a.Env, func(block attrs, value string) { block[a.Name] = text(value) }})
		case a.Type.IsListType() && testkit.NamesPath(a.Name, a.Doc):
			found = append(found, &pathAttr{a.Name, a.Env, func(block attrs, value string) {
				block[a.Name] = cty.ListVal([]cty.Value{text(value)})
			}})
		}
	}
	return found
}
