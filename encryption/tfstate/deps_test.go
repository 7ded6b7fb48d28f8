package tfstate_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestDependencies: whoever reads states links neither a framework nor a
// network.
//
// Promise: Links
func TestDependencies(t *testing.T) {
	t.Parallel()
	all := testkit.Dependencies(t, "encryption/tfstate")
	if !testkit.Within(all, testkit.Module+"internal/shared/jsonwalk") {
		t.Fatalf("this is not a list of dependencies: %v", all)
	}
	for _, heavy := range []string{
		"net", "crypto", "os/exec", "testing", "github.com/hashicorp/terraform-plugin-framework", testkit.Module + "encryption/internal/config",
		testkit.Module + "encryption/internal", testkit.Module + "encryption/light",
	} {
		if testkit.Within(all, heavy) {
			t.Errorf("it imports %s", heavy)
		}
	}
	if most := testkit.ByGo(108, 118); len(all) > most {
		t.Errorf("it imports %d packages, and may import %d", len(all), most)
	}
}
