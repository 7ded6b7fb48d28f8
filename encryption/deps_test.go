package encryption_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/statecrypt/terraform-provider-statecrypt/"

// TestDependencies: a program pays for the key providers that it lists, and for
// no other. The example program lists three and two methods.
func TestDependencies(t *testing.T) {
	t.Parallel()
	program := dependencies(t, "examples/library")
	for _, wanted := range []string{
		"encryption", "encryption/config", "encryption/method/aesgcm",
		"encryption/keyprovider/pbkdf2", "encryption/keyprovider/static", "encryption/keyprovider/external",
	} {
		if !within(program, module+wanted) {
			t.Errorf("the program does not import %s", wanted)
		}
	}
	for _, heavy := range append(heavyPackages(), "google.golang.org", "net", "crypto/tls", "testing") {
		if within(program, heavy) {
			t.Errorf("the program pulls in %s", heavy)
		}
	}
}

// heavyPackages are the SDKs of services, and what links them.
func heavyPackages() []string {
	return []string{
		"github.com/aws", "github.com/Azure", "github.com/AzureAD", "cloud.google.com", // the clouds' SDKs
		"google.golang.org/api", "google.golang.org/grpc", "github.com/googleapis", "golang.org/x/oauth2", "k8s.io",
		"github.com/openbao", "github.com/hashicorp/vault", "github.com/hashicorp/go-retryablehttp",
		"github.com/hashicorp/terraform-plugin-framework", "github.com/hashicorp/terraform-plugin-go", "github.com/hashicorp/go-plugin",
		module + "internal/provider", module + "internal/source", module + "encryption/builtin",
	}
}

// TestTestsLinkLittle: the tests of the library are built without the SDK of any
// service. Those of the kinds that call one are in the folders of the kinds, and
// those of all kinds are in builtin.
func TestTestsLinkLittle(t *testing.T) {
	t.Parallel()
	linked := dependencies(t, "-test",
		"encryption", "encryption/attr", "encryption/config", "encryption/tfstate", "encryption/encryptiontest",
		"encryption/keyprovider/external", "encryption/keyprovider/pbkdf2", "encryption/keyprovider/static", "encryption/keyprovider/xor",
		"encryption/method/aesgcm", "encryption/method/age", "encryption/method/external", "encryption/method/kubeform",
		"encryption/method/terraformbackendgit", "encryption/method/unencrypted")
	if !within(linked, "testing") {
		t.Errorf("this is not what tests link: %q", linked)
	}
	for _, heavy := range heavyPackages() {
		if within(linked, heavy) {
			t.Errorf("the tests link %s", heavy)
		}
	}
}

// TestLinksLittle: the usual pair costs little more than the parser of settings.
func TestLinksLittle(t *testing.T) {
	t.Parallel()
	const limit = 160 // packages, those of the standard library included
	linked := dependencies(t, "encryption/keyprovider/pbkdf2", "encryption/method/aesgcm")
	if len(linked) > limit {
		t.Errorf("pbkdf2 and aes_gcm link %d packages, at most %d are allowed: %q", len(linked), limit, linked)
	}
	if within(linked, "net/http") || !within(linked, module+"encryption/config") {
		t.Errorf("they link %q", linked)
	}
}

// TestSopsLinksLittle: the files of sops are read without what its key services
// need, which only the key providers given to sops.Block bring along.
func TestSopsLinksLittle(t *testing.T) {
	t.Parallel()
	const limit = 280 // packages, those of the standard library included; age and PGP are most of them
	linked := dependencies(t, "encryption/keyprovider/pbkdf2", "encryption/method/aesgcm", "encryption/method/age", "encryption/method/sops")
	if len(linked) > limit {
		t.Errorf("with age and sops, they link %d packages, at most %d are allowed: %q", len(linked), limit, linked)
	}
	for _, heavy := range []string{
		"net/http", "crypto/tls", "testing", "google.golang.org", "cloud.google.com", "github.com/aws", "github.com/Azure", "github.com/openbao",
		"github.com/hashicorp/vault", "github.com/sirupsen", "github.com/getsops/sops/v3/keyservice",
	} {
		if within(linked, heavy) {
			t.Errorf("with age and sops, they link %s", heavy)
		}
	}
	if !within(linked, "filippo.io/age") || !within(linked, "github.com/ProtonMail/go-crypto/openpgp") {
		t.Errorf("they link %q", linked)
	}
}

// TestCoreKnowsNoKinds: what there is stands in a registry, and not here.
func TestCoreKnowsNoKinds(t *testing.T) {
	t.Parallel()
	core := dependencies(t, "encryption")
	if !within(core, module+"encryption/config") {
		t.Errorf("this is not a list of dependencies: %v", core)
	}
	for _, kinds := range []string{"encryption/keyprovider", "encryption/method", "encryption/builtin"} {
		if within(core, module+kinds) {
			t.Errorf("encryption imports %s", kinds)
		}
	}
}

// dependencies lists packages of this module with all that they import; after
// "-test", with what their tests do.
func dependencies(t *testing.T, packages ...string) []string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	args := []string{"list", "-deps"}
	for _, pkg := range packages {
		if pkg != "-test" {
			pkg = module + pkg
		}
		args = append(args, pkg)
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	return strings.Fields(string(out))
}

// within reports whether one of the packages is path, or below it.
func within(packages []string, path string) bool {
	for _, p := range packages {
		if p == path || strings.HasPrefix(p, path+"/") {
			return true
		}
	}
	return false
}
