package kubernetes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// TestPluginGetsNoEnvironment: without the environment, a credential plugin gets
// what any program needs in order to run. With it, it gets its own, also beside what the
// block sets, but nothing of ours.
//
// Promise: use_environment = false
func TestPluginGetsNoEnvironment(t *testing.T) {
	s := prod(t)
	for name, value := range map[string]string{
		"AWS_PROFILE": "theirs", "AWS_SECRET_ACCESS_KEY": "theirs", "LD_LIBRARY_PATH": "theirs", "HTTPS_PROXY": "http://machine.test",
		"TF_VAR_x": "canary", "KUBE_TOKEN": "canary", "SSLKEYLOGFILE": "canary",
	} {
		t.Setenv(name, value)
	}
	plugin := credentialPlugin(t, map[string]any{"token": s.Token}, "env >$dir/env")
	alone := attrs{"command": text(plugin)}
	own := attrs{"command": text(plugin), "env": cty.MapVal(attrs{"OWN": text("own")})}
	for name, c := range map[string]struct {
		exec attrs
		env  attr.LookupEnv
		want string // what of theirs, of the machine and of the code it sees
	}{
		"on":                             {alone, environment{}.lookup, "theirs machine"},
		"on, and variables of the code":  {own, environment{}.lookup, "theirs machine OWN=own"},
		"off":                            {alone, nil, ""},
		"off, and variables of the code": {own, nil, "OWN=own"},
	} {
		a := access(s)
		delete(a, "token")
		a["exec"] = execBlock(c.exec)
		settings := settingsOf(a)
		settings.LookupEnv = c.env
		sourcetest.Fetch(t, open(t, settings))
		saw, err := os.ReadFile(filepath.Join(filepath.Dir(plugin), "env"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"canary", "theirs", "machine", "OWN=own", "PATH="} {
			want := part == "PATH=" || slices.Contains(strings.Fields(c.want), part)
			if strings.Contains(string(saw), part) != want {
				t.Errorf("%s: the plugin saw\n%s", name, saw)
			}
		}
	}
}
