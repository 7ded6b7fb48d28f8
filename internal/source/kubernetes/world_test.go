package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// TestPluginGetsNoEnvironment: without the environment, a credential plugin gets
// what any program needs in order to run. With it, it gets its own, but nothing of
// ours.
func TestPluginGetsNoEnvironment(t *testing.T) {
	s := prod(t)
	for name, value := range map[string]string{
		"AWS_PROFILE": "theirs", "HTTPS_PROXY": "theirs",
		"AWS_SECRET_ACCESS_KEY": "theirs", "TF_VAR_x": "canary", "KUBE_TOKEN": "canary", "SSLKEYLOGFILE": "canary",
	} {
		t.Setenv(name, value)
	}
	plugin := credentialPlugin(t, map[string]any{"token": s.Token}, "env >$dir/env")
	a := access(s)
	delete(a, "token")
	a["exec"] = execBlock(attrs{"command": text(plugin)})
	for name, on := range map[string]bool{"on": true, "off": false} {
		settings := settingsOf(a)
		if on {
			settings.LookupEnv = environment{}.lookup
		}
		sourcetest.Fetch(t, open(t, settings))
		saw, err := os.ReadFile(filepath.Join(filepath.Dir(plugin), "env"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(saw), "canary") || strings.Contains(string(saw), "theirs") != on || !strings.Contains(string(saw), "PATH=") {
			t.Errorf("%s: the plugin saw\n%s", name, saw)
		}
	}
}
