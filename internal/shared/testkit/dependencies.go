package testkit

import (
	"go/build"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Module is the prefix of all import paths in this repository.
const Module = "github.com/statecrypt/terraform-provider-statecrypt/"

// Dependencies returns the given packages of this repository and all packages that they import. If "-test" is
// among the arguments, the result includes the imports of tests.
func Dependencies(t *testing.T, packages ...string) []string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	args := []string{"list", "-deps"}
	for _, pkg := range packages {
		if pkg != "-test" {
			pkg = Module + pkg
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

// ByGo returns a limit for [Dependencies]: the first for Go 1.26, the second for later versions, whose
// standard library uses more packages for encoding/json.
func ByGo(go126, later int) int {
	if slices.Contains(build.Default.ReleaseTags, "go1.27") {
		return later
	}
	return go126
}

// Within reports whether packages contains path or a package below it.
func Within(packages []string, path string) bool {
	for _, p := range packages {
		if p == path || strings.HasPrefix(p, path+"/") {
			return true
		}
	}
	return false
}

// HeavyPackages returns the prefixes of service SDKs, and of the packages that link them.
func HeavyPackages() []string {
	return []string{
		"github.com/aws", "github.com/Azure", "github.com/AzureAD", "cloud.google.com", // the clouds' SDKs
		"google.golang.org/api", "google.golang.org/grpc", "github.com/googleapis", "golang.org/x/oauth2", "k8s.io",
		"github.com/openbao", "github.com/hashicorp/vault", "github.com/hashicorp/go-retryablehttp",
		"github.com/hashicorp/terraform-plugin-framework", "github.com/hashicorp/terraform-plugin-go", "github.com/hashicorp/go-plugin",
		Module + "internal/provider", Module + "internal/source", Module + "builtin",
	}
}
