package tfstate_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDependencies: whoever reads states links neither a framework nor a
// network.
func TestDependencies(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	const module = "github.com/statecrypt/terraform-provider-statecrypt/"
	if !slices.Contains(all, module+"internal/jsonwalk") {
		t.Fatalf("this is not a list of dependencies: %v", all)
	}
	heavy := []string{"net", "crypto", "os/exec", "testing", "github.com/hashicorp/terraform-plugin-framework", module + "encryption/config",
		module + "encryption/method", module + "encryption/keyprovider"}
	for _, pkg := range all {
		if slices.ContainsFunc(heavy, func(h string) bool { return pkg == h || strings.HasPrefix(pkg, h+"/") }) {
			t.Errorf("it imports %s", pkg)
		}
	}
	const most = 110 // 105 with Go 1.26
	if len(all) > most {
		t.Errorf("it imports %d packages, and may import %d", len(all), most)
	}
}
