package encryption_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestTestsLinkLittle: the tests of the library are built without the SDK of any
// service. Those of the kinds that call one are in the folders of the kinds, and
// those of all kinds are in builtin.
//
// Promise: Links
func TestTestsLinkLittle(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	linked := testkit.Dependencies(t, "-test",
		"encryption", "encryption/attr", "encryption/internal/config", "encryption/tfstate", "encryption/encryptiontest",
		"encryption/internal/keyprovider/...", "encryption/internal/method/...")
	if !testkit.Within(linked, "testing") {
		t.Errorf("this is not what tests link: %q", linked)
	}
	for _, heavy := range testkit.HeavyPackages() {
		if testkit.Within(linked, heavy) {
			t.Errorf("the tests link %s", heavy)
		}
	}
}

// TestLinksLittle: the kinds without an SDK link age and ssh keys, the parser of settings,
// and nothing that connects.
//
// Promise: Links
func TestLinksLittle(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	limit := testkit.ByGo(261, 273) // packages, the standard library included
	linked := testkit.Dependencies(t, "encryption/light")
	if len(linked) > limit {
		t.Errorf("package light links %d packages, at most %d are allowed: %q", len(linked), limit, linked)
	}
	connects := testkit.Within(linked, "net/http") || testkit.Within(linked, "crypto/tls")
	if connects || !testkit.Within(linked, testkit.Module+"encryption/internal/config") {
		t.Errorf("it links %q", linked)
	}
}

// TestCoreKnowsNoKinds: what there is stands in a registry, and not here.
func TestCoreKnowsNoKinds(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	core := testkit.Dependencies(t, "encryption")
	if !testkit.Within(core, testkit.Module+"encryption/internal/config") {
		t.Errorf("this is not a list of dependencies: %v", core)
	}
	for _, kinds := range []string{"encryption/internal/keyprovider", "encryption/internal/method", "encryption/light", "builtin"} {
		if testkit.Within(core, testkit.Module+kinds) {
			t.Errorf("encryption imports %s", kinds)
		}
	}
}
