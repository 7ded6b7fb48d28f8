package variables_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
)

// starters are the functions of linked packages that start a program, with what becomes
// of it. One that is not listed is one to look at: a value that TF_ENCRYPTION sets may
// lead to it, which attr.Values.LeadsToCommand is there to refuse.
var starters = map[string]string{
	"os.startProcess":                         "what starts all others",
	"os/exec.Cmd.Start":                       "likewise",
	"golang.org/x/sys/unix.Exec":              "likewise",
	"golang.org/x/sys/execabs.Command":        "likewise",
	"golang.org/x/sys/execabs.CommandContext": "likewise",

	// Ours.
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world.Command":   "the only way to a program",
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world.ownGroup":  "taskkill, of what Command started",
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/child.Process.run": "Terraform, which the user names",
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap.Become":            "likewise, without wrap, for a shim",

	// Those that a value leads to. What starts them asks first.
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds.DefaultNewCommandBuilder.NewCommand": "of a profile: awsauth",
	"cloud.google.com/go/auth/credentials/internal/externalaccount.runtimeEnvironment.run":      "of credentials: googleauth",
	"filippo.io/age/plugin.openClientConnection":                                                "of identities: ageplugin",

	// TF_ENCRYPTION names no kubeconfig.
	"k8s.io/client-go/plugin/pkg/client/auth/exec.Authenticator.refreshCredsLocked": "of a kubeconfig: kubernetes",

	// Those that a file of the machine, or a variable, names.
	"cloud.google.com/go/auth/internal/transport/cert.secureConnectSource.getClientCertificate": "~/.secureConnect",
	"github.com/googleapis/enterprise-certificate-proxy/client.Cred":                            "a certificate's",

	// Those that are always the same, on the machine or nowhere.
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity.buildCmd":                "az and the like; azureauth starts az itself",
	"github.com/pkg/browser.runCmd":                                            "a browser, to sign in to Azure, which nothing here does",
	"github.com/hashicorp/go-sockaddr.routeInfo.GetDefaultInterfaceName":       "ip or route, for templates of a server",
	"github.com/hashicorp/go-sockaddr.routeInfo.GetDefaultInterfaceNameLegacy": "likewise",
	"github.com/hashicorp/go-plugin.Client.Start":                              "of a client; this is a server",
}

var (
	mayStart = regexp.MustCompile(`"os/exec"|/execabs"|\b(StartProcess|ForkExec|CreateProcess\w*)\b|\b(syscall|unix)\.Exec\b`)
	starts   = regexp.MustCompile(`^(exec|execabs)\.Command(Context)?$|` +
		`^(os|syscall|windows|unix)\.(StartProcess|ForkExec|Exec|CreateProcess\w*)$`)
)

// TestEveryProgramIsKnown looks for what the packages linked into the provider and the
// command start, on three systems.
//
// Promise: TF_ENCRYPTION
func TestEveryProgramIsKnown(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads the source of all packages that are linked")
	}
	t.Parallel()
	seen := map[string]string{} // :: function → file
	for path, files := range linked(t) {
		for file := range files {
			for _, function := range startsIn(t, file) {
				seen[path+"."+function] = file
			}
		}
	}
	for _, function := range slices.Sorted(maps.Keys(seen)) {
		if starters[function] == "" {
			t.Errorf("%s starts a program: say in starters who names the program, and what keeps TF_ENCRYPTION from it; see %s",
				function, seen[function])
		}
	}
	for function := range starters {
		if seen[function] == "" {
			t.Errorf("%s starts no program: take it out of starters", function)
		}
	}
}

// startsIn returns the functions of a file that start a program, or hand on what does.
func startsIn(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !mayStart.Match(text) {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	s := &source{files: []*ast.File{file}}
	s.each(func(function string, node ast.Node) {
		ast.Inspect(node, func(n ast.Node) bool {
			made, isLiteral := n.(*ast.CompositeLit)
			e, isName := n.(*ast.SelectorExpr)
			if isName && starts.MatchString(name(e)) || isLiteral && made.Type != nil && name(made.Type) == "exec.Cmd" {
				functions = append(functions, function)
			}
			return true
		})
	})
	return functions
}
