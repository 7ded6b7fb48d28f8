package variables_test

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/all"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/mixes"
)

// computed are the functions of linked packages that compute the name of the
// variable that they read, or that look at the whole environment. What callers in
// their package pass to them is found, and so is what is written in them; what
// else they read is listed here. A function that is not listed is one to look at.
var computed = map[string]string{
	"os.Environ": "", "os.Getenv": "", "os.LookupEnv": "", "os/exec.Cmd.environ": "",
	"internal/syscall/execenv.Default": "", "golang.org/x/sys/unix.Environ": "", "golang.org/x/sys/unix.Getenv": "",
	"golang.org/x/sys/windows.Environ": "", "golang.org/x/sys/windows.Getenv": "", "testing.common.Setenv": "",

	// With the environment off, what they make is not used: see the table.
	"cloud.google.com/go/auth/credentials/internal/externalaccount.runtimeEnvironment.existingEnv": "",
	"cloud.google.com/go/auth/credentials/internal/externalaccount.runtimeEnvironment.getenv":      "",
	"cloud.google.com/go/auth/credentials/internal/externalaccount.getenv":                         "",
	"cloud.google.com/go/auth/credentials.DetectDefault":                                           "GOOGLE_APPLICATION_CREDENTIALS",
	"cloud.google.com/go/auth/internal/transport/cert.secureConnectSource.getClientCertificate":    "", // expands a file of the user
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds.DefaultNewCommandBuilder.NewCommand":    "", // not used: see awsauth
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity.shellExec":                                   "", // of az, which azureauth starts itself

	"github.com/hashicorp/go-plugin.Client.Start":                                 "", // of a client; this is a server
	"github.com/hashicorp/go-plugin.Serve":                                        "TF_PLUGIN_MAGIC_COOKIE",
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server.New":            "TF_LOG_SDK_PROTO_DATA_DIR",
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server.New":            "TF_LOG_SDK_PROTO_DATA_DIR",
	"github.com/hashicorp/terraform-plugin-log/tflog.WithLevelFromEnv":            "TF_LOG_PROVIDER",
	"github.com/hashicorp/terraform-plugin-log/tfsdklog.WithLevelFromEnv":         "TF_LOG_SDK TF_LOG_SDK_PROTO TF_LOG_SDK_FRAMEWORK",
	"github.com/hashicorp/go-secure-stdlib/parseutil.parsePath":                   "", // env:// in settings of a server
	"google.golang.org/grpc/internal/envconfig.boolFromEnv":                       "",
	"google.golang.org/grpc/internal/envconfig.uint64FromEnv":                     "",
	"google.golang.org/grpc/internal/envconfig.goroutineLabelsFromEnv":            "",
	"golang.org/x/net/http/httpproxy.getEnvAny":                                   "",
	"vendor/golang.org/x/net/http/httpproxy.getEnvAny":                            "",
	"github.com/jackc/pgx/v5/pgconn.parseEnvSettings":                             "",
	"k8s.io/client-go/features.envVarFeatureGates.getEnabledMapFromEnvVar":        "KUBE_FEATURE_*",
	"k8s.io/client-go/plugin/pkg/client/auth/exec.newAuthenticator":               "", // not used: see kubernetes/plugin.go
	"k8s.io/client-go/tools/clientcmd.PathOptions.GetEnvVarFiles":                 "KUBECONFIG",
	"github.com/openbao/openbao/api/v2.ReadBaoVariable":                           "VAULT_*",
	"github.com/openbao/openbao/api/v2.LookupBaoVariable":                         "VAULT_*",
	"github.com/aws/aws-sdk-go-v2/config.EnvConfig.GetServiceBaseEndpoint":        "AWS_ENDPOINT_URL_*",
	"github.com/aws/aws-sdk-go-v2/config.setAIDEndPointModeFromEnvVal":            "",
	"github.com/aws/aws-sdk-go-v2/config.setBoolPtrFromEnvVal":                    "",
	"github.com/aws/aws-sdk-go-v2/config.setDefaultsModeFromEnvVal":               "",
	"github.com/aws/aws-sdk-go-v2/config.setEC2IMDSClientEnableState":             "",
	"github.com/aws/aws-sdk-go-v2/config.setEC2IMDSEndpointMode":                  "",
	"github.com/aws/aws-sdk-go-v2/config.setEndpointDiscoveryTypeFromEnvVal":      "",
	"github.com/aws/aws-sdk-go-v2/config.setInt64PtrFromEnvVal":                   "",
	"github.com/aws/aws-sdk-go-v2/config.setIntFromEnvVal":                        "",
	"github.com/aws/aws-sdk-go-v2/config.setRequestChecksumCalculationFromEnvVal": "",
	"github.com/aws/aws-sdk-go-v2/config.setResponseChecksumValidationFromEnvVal": "",
	"github.com/aws/aws-sdk-go-v2/config.setRestrictFilePermissionsFromEnvVal":    "",
	"github.com/aws/aws-sdk-go-v2/config.setRetryModeFromEnvVal":                  "",
	"github.com/aws/aws-sdk-go-v2/config.setStringFromEnvVal":                     "",
	"github.com/aws/aws-sdk-go-v2/config.setUseDualStackEndpointFromEnvVal":       "",
	"github.com/aws/aws-sdk-go-v2/config.setUseFIPSEndpointFromEnvVal":            "",

	// Here is the only one of ours, and where main hands on all of it.
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world.World.Environ": "",
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world.World.Lookup":  "",
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world.World.Refuse":  "",
	"github.com/statecrypt/terraform-provider-statecrypt/cmd/statecrypt.main":                 "",
}

// TestEveryVariableIsKnown looks for the variables that the packages linked into
// the provider and the command read, on three systems, and for what becomes of
// each.
//
// Promise: use_environment = false
// Promise: Where secrets go
func TestEveryVariableIsKnown(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads the source of all packages that are linked")
	}
	t.Parallel()
	read := map[string][]string{} // :: variable → functions
	seen := map[string]bool{}     // :: computed function that exists
	for path, files := range linked(t) {
		for site, names := range scan(t, path, files) {
			own, listed := computed[site.function]
			switch {
			case !site.computed:
			case !listed:
				t.Errorf("%s computes the name of a variable, or reads all of them: list it in computed, with the names of "+
					"those that its callers do not write, or with \"\"; its source is in %s", site.function, folder(files))
			default:
				seen[site.function] = true
				names = append(names, strings.Fields(own)...)
			}
			for _, name := range names {
				read[name] = append(read[name], site.function+", in "+folder(files))
			}
		}
	}
	for function := range computed {
		if !seen[function] {
			t.Errorf("%s reads no variable: take it out of computed", function)
		}
	}
	checkKnown(t, read)
}

func checkKnown(t *testing.T, read map[string][]string) {
	t.Helper()
	declared := declaredVariables()
	matched := map[string]bool{} // :: name of the table
	for _, name := range slices.Sorted(maps.Keys(read)) {
		n := 0
		for _, some := range mixes.Table() {
			for pattern := range strings.FieldsSeq(some.Names) {
				if pattern == name {
					matched[pattern] = true
					n++
				}
			}
		}
		switch {
		case n == 0 && !declared[name]:
			t.Errorf("%s is read by\n\t%s:\nlook there what it does, and give it a row in internal/testing/mixes/table.go",
				name, strings.Join(slices.Compact(slices.Sorted(slices.Values(read[name]))), "\n\t"))
		case n > 1:
			t.Errorf("%s is in internal/testing/mixes/table.go %d times", name, n)
		}
	}
	for _, some := range mixes.Table() {
		for pattern := range strings.FieldsSeq(some.Names) {
			if !matched[pattern] {
				t.Errorf("no linked package reads %s: take it out of internal/testing/mixes/table.go", pattern)
			}
		}
		if len(some.Why) < 20 {
			t.Errorf("%s: the reason is %q", some.Names, some.Why)
		}
	}
}

// declaredVariables are those that an attribute of some kind names.
func declaredVariables() map[string]bool {
	declared := map[string]bool{}
	eachVariable(func(name, _ string) { declared[name] = true })
	return declared
}

// eachVariable visits the variables of all kinds, with the address of the argument that each
// is for.
func eachVariable(visit func(name, argument string)) {
	var add func(at string, attrs []attr.Attr)
	add = func(at string, attrs []attr.Attr) {
		for _, a := range attrs {
			for _, name := range a.Env {
				visit(name, at+cmp.Or(a.StandsFor, a.Name))
			}
			add(at+a.Name+".", a.Attrs)
		}
	}
	for _, kind := range all.Kinds() {
		add(kind.Name+".", kind.Attrs)
		add("credentials."+kind.Name+".", kind.Credentials.Attrs)
		for _, v := range kind.Credentials.Variables { // some are for what is read
			if slices.ContainsFunc(kind.Attrs, func(a attr.Attr) bool { return a.Name == v.StandsFor }) {
				add(kind.Name+".", []attr.Attr{v})
			} else {
				add("credentials."+kind.Name+".", []attr.Attr{v})
			}
		}
	}
	registry := builtin.Registry()
	for _, block := range registry.KeyProviders {
		add("key_provider."+block.Table.Name+".", block.Table.Attrs)
	}
	for _, block := range registry.Methods {
		add("method."+block.Table.Name+".", block.Table.Attrs)
	}
}

// Whoever looks for the variable of an argument finds it beside the argument, and in one list,
// which is made of what is beside the arguments.
func TestVariablesAreNamed(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../../../docs/guides/variables.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	eachVariable(func(name, argument string) {
		_, row, _ := strings.Cut(string(list), "`"+name+"`")
		row, _, _ = strings.Cut(row, "\n")
		if found++; !strings.Contains(row, "[`"+argument+"`](") {
			t.Errorf("the list of variables has no %s for %s", name, argument)
		}
	})
	if found < 150 {
		t.Errorf("there are %d variables", found)
	}
}

// linked returns the files of all packages, on any of three systems.
func linked(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles", ".", "./cmd/statecrypt")
		list.Dir = "../../.."
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
			var p struct {
				ImportPath, Dir string
				GoFiles         []string
			}
			if err := decoder.Decode(&p); err != nil {
				t.Fatal(err)
			}
			if found[p.ImportPath] == nil {
				found[p.ImportPath] = map[string]bool{}
			}
			for _, name := range p.GoFiles {
				found[p.ImportPath][filepath.Join(p.Dir, name)] = true
			}
		}
	}
	return found
}

// folder returns where the source of a package is.
func folder(files map[string]bool) string {
	for file := range files {
		return filepath.Dir(file)
	}
	return ""
}

// site is a function that reads variables.
type site struct {
	function string // with its package and its receiver
	computed bool   // names are not all there is to it
}

var (
	mentions = regexp.MustCompile(`\b(os|syscall|windows|unix)\.(Getenv|LookupEnv|Environ|ExpandEnv)\b|\bgogetenv\(`)
	readers  = regexp.MustCompile(`^((os|syscall|windows|unix)\.(Getenv|LookupEnv|Environ|ExpandEnv)|gogetenv)$`)
	variable = regexp.MustCompile(`^_?[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$|^PG[A-Z]+$|^(no|https?)_proxy$`)
)

// source is a package that reads variables.
type source struct {
	path    string
	files   []*ast.File
	strings map[string][]string // :: constant or list → its values
	found   map[site][]string
	helpers map[string]site // :: name of a function that computes → it
}

func scan(t *testing.T, path string, files map[string]bool) map[site][]string {
	t.Helper()
	s := &source{path: path, strings: map[string][]string{}, found: map[site][]string{}, helpers: map[string]site{}}
	isReader := false
	for name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		isReader = isReader || mentions.Match(text)
	}
	if !isReader {
		return nil
	}
	for name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, file)
	}
	s.declarations()
	s.declarations() // constants of constants
	s.each(s.direct)
	s.each(s.callers)
	return s.found
}

// declarations remembers constants and lists of strings.
func (s *source) declarations() {
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				for i, name := range v.Names {
					if i < len(v.Values) {
						s.strings[name.Name] = s.values(v.Values[i])
					}
				}
			}
			return true
		})
	}
}

// values are the strings that an expression stands for, nil if it is not known.
func (s *source) values(e ast.Expr) []string {
	switch x := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
			return []string{text}
		}
	case *ast.Ident:
		return s.strings[x.Name]
	case *ast.CompositeLit:
		var all []string
		for _, element := range x.Elts {
			all = append(all, s.values(element)...)
		}
		return all
	}
	return nil
}

// each visits what is declared, with the name of the function, which is that of
// the variable outside of functions.
func (s *source) each(visit func(function string, node ast.Node)) {
	for _, file := range s.files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				visit(receiver(f)+f.Name.Name, f)
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if v, ok := n.(*ast.ValueSpec); ok {
					visit(v.Names[0].Name, v)
					return false
				}
				return true
			})
		}
	}
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	e := f.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if index, ok := e.(*ast.IndexExpr); ok {
		e = index.X
	}
	return name(e) + "."
}

// name is that of a function that is called.
func name(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return name(x.X) + "." + x.Sel.Name
	}
	return "?"
}

// direct finds the calls that read. A mention that is no call hands the function
// on.
func (s *source) direct(function string, node ast.Node) {
	called := map[ast.Node]bool{}
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && readers.MatchString(name(call.Fun)) {
			called[call.Fun] = true
			if len(call.Args) == 1 && s.values(call.Args[0]) != nil {
				s.add(site{function: s.path + "." + function}, s.values(call.Args[0])...)
				return true
			}
			s.computes(function, node)
		}
		if e, ok := n.(ast.Expr); ok && !called[n] && readers.MatchString(name(e)) && !isName(node, e) {
			s.computes(function, node)
		}
		return true
	})
}

// isName reports whether e is the name in its own declaration.
func isName(node ast.Node, e ast.Expr) bool {
	f, ok := node.(*ast.FuncDecl)
	return ok && f.Name == e
}

// computes remembers a function, with the names that are written in it.
func (s *source) computes(function string, node ast.Node) {
	here := site{function: s.path + "." + function, computed: true}
	s.helpers[function[strings.LastIndex(function, ".")+1:]] = here
	s.add(here)
	ast.Inspect(node, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			s.addVariables(here, s.values(e))
		}
		return true
	})
}

// callers finds what is passed to functions that compute.
func (s *source) callers(_ string, node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		full := name(call.Fun)
		helper, ok := s.helpers[full[strings.LastIndex(full, ".")+1:]]
		for _, argument := range call.Args {
			if ok {
				s.addVariables(helper, s.values(argument))
			}
		}
		return true
	})
}

func (s *source) addVariables(at site, names []string) {
	for _, name := range names {
		if variable.MatchString(name) {
			s.add(at, name)
		}
	}
}

func (s *source) add(at site, names ...string) { s.found[at] = append(s.found[at], names...) }
