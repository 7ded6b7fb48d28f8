package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// TestForms: what becomes a part of a path is declared so, and refused if it could lead
// out of it, whoever says it.
//
// Promise: Where secrets go
func TestForms(t *testing.T) {
	t.Parallel()
	var declared []string
	for _, block := range builtin.Registry().KeyProviders {
		table := block.Table
		table.Attrs = optional(table.Attrs)
		var look func(path []string, attrs []attr.Attr)
		look = func(path []string, attrs []attr.Attr) {
			for _, a := range attrs {
				l := leaf{Attr: a, path: append(slices.Clone(path), a.Name)}
				look(l.path, a.Attrs)
				if a.Form != attr.Name && a.Form != attr.Path {
					continue
				}
				declared = append(declared, block.Name+" "+strings.Join(l.path, "."))
				for _, text := range []string{"..", "a/../b", "../../tenant-b/x", ".", "a//b", `a\..\b`, "a\nb", "/"} {
					settings := map[string]cty.Value{}
					l.inCode(settings, cty.StringVal(text))
					_, err := unstable.NewEntry("x", table, settings).Decode(table, nil)
					if err == nil || strings.Contains(err.Error(), text) && len(text) > 2 {
						t.Errorf("%s %s = %q: got %v", block.Name, a.Name, text, err)
					}
					for _, variable := range a.Env {
						if _, err := unstable.NewEntry("x", table, nil).Decode(table, variables(variable, text)); err == nil ||
							!strings.Contains(err.Error(), variable) {
							t.Errorf("%s %s = %q: got %v", block.Name, variable, text, err)
						}
					}
				}
			}
		}
		look(nil, table.Attrs)
	}
	want := []string{ // requests to AWS have one path
		"azure_vault tenant_id", "azure_vault vault_key_name", "gcp_kms impersonate_service_account", "gcp_kms kms_encryption_key",
		"openbao auth_approle.mount_path", "openbao auth_jwt.mount_path", "openbao auth_kubernetes.mount_path", "openbao key_name",
		"openbao transit_engine_path",
	}
	if slices.Sort(declared); !slices.Equal(declared, want) {
		t.Errorf("got %q", declared)
	}
}
