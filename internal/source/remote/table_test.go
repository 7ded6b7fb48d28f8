package remote

import (
	"maps"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// leftOut are the arguments and variables of the backends that are not ours.
var leftOut = map[string]string{
	"workspaces.tags":    "it says which workspaces are listed, and labels new ones; workspace names the one to read",
	"workspaces.project": "it says which workspaces are listed, and where new ones are made; names are unique in an organization",
	"TF_CLOUD_PROJECT":   "as workspaces.project",
	"TF_WORKSPACE": "workspace is an argument of every source, and none reads the variable, which is for the configuration that " +
		"runs",
	"TF_FORCE_LOCAL_BACKEND": "it says where operations run",
	"TFE_RUN_ID":             "it labels states that are written",
	"TFC_RUN_ID":             "it is for runs on the service",
	"TFC_AGENT_VERSION":      "it is for runs on the service",
}

// Every argument of the backends remote and cloud, and every variable that they
// read, is in the data source, in credentials, or left out for a reason.
func TestEveryArgumentOfTheBackends(t *testing.T) {
	backends := []string{
		// backend/remote/backend.go, ConfigSchema
		"hostname", "organization", "token", "workspaces.name", "workspaces.prefix",
		// cloud/backend.go, ConfigSchema and what it reads of the environment
		"workspaces.tags", "workspaces.project",
		"TF_CLOUD_HOSTNAME", "TF_CLOUD_ORGANIZATION", "TF_CLOUD_PROJECT", "TF_WORKSPACE", "TF_FORCE_LOCAL_BACKEND", "TFE_RUN_ID", "TFC_RUN_ID",
		"TFC_AGENT_VERSION",
	}
	ours := map[string]bool{}
	var add func(prefix string, attrs []attr.Attr)
	add = func(prefix string, attrs []attr.Attr) {
		for _, a := range attrs {
			if a.Attrs != nil {
				add(a.Name+".", a.Attrs)
				continue
			}
			ours[prefix+a.Name] = true
			for _, v := range a.Env {
				ours[v] = true
			}
		}
	}
	add("", table().Attrs)
	add("", credentials().Attrs)
	for _, name := range backends {
		if _, out := leftOut[name]; ours[name] == out {
			t.Errorf("%s: ours %t, left out %t", name, ours[name], out)
		}
		delete(ours, name)
	}
	for name := range leftOut {
		if !slices.Contains(backends, name) {
			t.Errorf("%s is left out, and nobody's", name)
		}
	}
	// What the backends have not.
	want := []string{"client_ca_certificate_pem", "outputs_only", "proxy", "skip_cert_verification", "state_version", "url"}
	if got := slices.Sorted(maps.Keys(ours)); !slices.Equal(got, want) {
		t.Errorf("besides theirs there are %q, want %q", got, want)
	}
}

// The names of workspaces are those that the backends make.
func TestWorkspaceNames(t *testing.T) {
	for _, r := range []struct {
		block     cty.Value
		workspace string
		want      string // "" for an error
	}{
		{named("network"), "default", "network"},
		{named("network"), "", "network"},
		{named("network"), "network", "network"}, // what cloud calls it
		{named("network"), "staging", ""},
		{named("default"), "default", "default"},
		{prefixed("net-"), "staging", "net-staging"},
		{prefixed("net-"), "net-staging", "net-staging"}, // the backend does not repeat the prefix
		{prefixed("net-"), "net", "net-net"},
		{prefixed("net-"), "default", ""},
		{prefixed("net-"), "", ""},
		{cty.NilVal, "staging", "staging"},
		{cty.NilVal, "default", ""},
		{cty.NilVal, "a.b_c~d+e@f", "a.b_c~d+e@f"},
		{cty.NilVal, "Über-1", "Über-1"},
		{cty.NilVal, "a/b", ""},
		{cty.NilVal, "a b", ""},
		{cty.NilVal, "..", ""},
		{cty.NilVal, "%2e%2e", ""},
	} {
		a := attrs{"organization": text("acme")}
		if r.block != cty.NilVal {
			a["workspaces"] = r.block
		}
		src, err := ask{attrs: a, workspace: r.workspace, settings: source.Settings{}}.open(t)
		if r.want == "" {
			if err == nil {
				t.Errorf("%#v, %q: got %s, want an error", r.block, r.workspace, src)
			}
			continue
		}
		if err != nil || src.String() != "workspace acme/"+r.want+" at app.terraform.io" {
			t.Errorf("%#v, %q: got %v, %v, want %s", r.block, r.workspace, src, err, r.want)
		}
	}
}

func TestString(t *testing.T) {
	for want, change := range map[string]attrs{
		"workspace acme/network at tfe.example.com:8443":                                  {"hostname": text("TFE.example.com:8443")},
		"workspace acme/network at tfe.example.com":                                       {"hostname": text("tfe.example.com:443")},
		"workspace acme/network at café.fr":                                               {"hostname": text("café.fr")},
		"the outputs of workspace acme/network at app.terraform.io":                       {"outputs_only": cty.True},
		"state version sv-g4rqST72reoHMM5a of workspace acme/network at app.terraform.io": {"state_version": text("sv-g4rqST72reoHMM5a")},
	} {
		a := network("app.terraform.io")
		maps.Copy(a, change)
		src, err := ask{attrs: a}.open(t)
		if err != nil || src.String() != want {
			t.Errorf("got %v, %v, want %s", src, err, want)
		}
	}
}
