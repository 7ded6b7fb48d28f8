package builtin_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestDependencies: a program that takes its kinds from package light pays for no SDK.
//
// Promise: Links
func TestDependencies(t *testing.T) {
	t.Parallel()
	program := testkit.Dependencies(t, "examples/library")
	for _, wanted := range []string{
		"encryption", "encryption/internal/config", "encryption/light", "encryption/internal/method/aesgcm",
		"encryption/internal/keyprovider/age",
	} {
		if !testkit.Within(program, testkit.Module+wanted) {
			t.Errorf("the program does not import %s", wanted)
		}
	}
	for _, heavy := range append(testkit.HeavyPackages(), "google.golang.org", "net/http", "crypto/tls", "testing") {
		if testkit.Within(program, heavy) {
			t.Errorf("the program pulls in %s", heavy)
		}
	}
}

// TestSopsLinksLittle: the files of sops are read without what its key services
// need, which only the key providers given to sops.Block bring along.
//
// Promise: Links
func TestSopsLinksLittle(t *testing.T) {
	t.Parallel()
	// Most belong to the standard library, to age, and to PGP with its algorithms against quantum computers.
	limit := testkit.ByGo(334, 346) // packages
	linked := testkit.Dependencies(t, "encryption/light", "builtin/method/sops")
	if len(linked) > limit {
		t.Errorf("package light and sops link %d packages, at most %d are allowed: %q", len(linked), limit, linked)
	}
	for _, heavy := range []string{
		"net/http", "crypto/tls", "testing", "google.golang.org", "cloud.google.com", "github.com/aws", "github.com/Azure", "github.com/openbao",
		"github.com/hashicorp/vault", "github.com/sirupsen", "github.com/getsops/sops/v3/keyservice",
		"github.com/getsops/sops/v3/audit", // which connects to the database of /etc/sops/audit.yaml when a program starts
	} {
		if testkit.Within(linked, heavy) {
			t.Errorf("package light and sops link %s", heavy)
		}
	}
	if !testkit.Within(linked, "filippo.io/age") || !testkit.Within(linked, "github.com/ProtonMail/go-crypto/openpgp") {
		t.Errorf("they link %q", linked)
	}
}
