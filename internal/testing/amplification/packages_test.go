package amplification

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parsers are the packages that make something of foreign bytes.
var parsers = regexp.MustCompile(`^(encoding/(json|xml|base64|hex|pem|csv|gob|asn1)|compress/.*|archive/.*|filippo\.io/age.*|.*yaml.*|.*/openpgp|` +
	`.*/internal/(shared/)?(jsonwalk|meter)|.*/hcl/v2/(hclparse|hclsyntax|json)|.*/msgpack.*|.*/protowire|.*/aws-sdk-go-v2/config|.*/cty/json|.*/kubestate)$`)

// keepers says, for each package that imports one of them, what keeps a stranger's
// bytes from costing more than they may: readers of this test, by name, or "its own
// grammar" in the package's TestCosts, or tests of the package, of bytes that come
// from the user's own programs and files. A dash says why there is nothing to keep.
func keepers() map[string]string {
	return map[string]string{
		"encryption":                                     "envelope; outputs",
		"encryption/driver":                              "TestDecodeStored",
		"encryption/internal/config":                     "- the user's own text; TestNesting of encryption has it nest",
		"builtin/keyprovider/awskms":                     "its own grammar",
		"builtin/keyprovider/azurevault":                 "its own grammar",
		"encryption/internal/keyprovider/external":       "TestInput TestAnswers",
		"builtin/keyprovider/gcpkms":                     "its own grammar",
		"builtin/keyprovider/openbao":                    "its own grammar",
		"encryption/internal/keyprovider/pbkdf2":         "TestSuite",
		"encryption/internal/keyprovider/static":         "TestSuite",
		"encryption/internal/keyprovider/xor":            "- the chain's own metadata; its parts are decoded by their key providers",
		"encryption/internal/agefile":                    "age; age, keys",
		"encryption/internal/ageplugin":                  "TestFaults",
		"encryption/internal/keyprovider/age":            "age, keys",
		"encryption/internal/method/age":                 "age",
		"encryption/internal/method/external":            "TestFailures",
		"encryption/internal/method/kubeform":            "kubeform TestLayers",
		"builtin/method/sops":                            "sops, JSON; sops, YAML; sops, states; sops, programs",
		"encryption/internal/method/terraformbackendgit": "terraform_backend_git",
		"encryption/tfstate":                             "outputs; outputs, sparse; resource",
		"internal/auth/awsauth":                          "its own grammar",
		"internal/auth/azureauth":                        "its own grammar",
		"internal/auth/googleauth":                       "its own grammar",
		"internal/connections/web":                       "gzip",
		"internal/shared/address":                        "- a text has at most maxAddress bytes",
		"internal/shared/jsonwalk":                       "TestSkip; outputs",
		"internal/shared/recognize":                      "envelope",
		"internal/kubestate":                             "Crossplane; Kubeform; Kubeform module; manifest in YAML",
		"encryption/internal/program":                    "TestMuchIsCut",
		"internal/overview":                              "TestCosts",
		"internal/provider":                              "outputs; resource; TestHostileFiles",
		"internal/source":                                "its own grammar",
		"internal/source/azurerm":                        "its own grammar",
		"internal/source/consul":                         "its own grammar",
		"internal/source/cos":                            "its own grammar",
		"internal/source/file":                           "- it reads at most max_size bytes, and decodes none",
		"internal/source/gcs":                            "its own grammar",
		"internal/source/git":                            "its own grammar",
		"internal/source/httpsource":                     "its own grammar; gzip",
		"internal/source/kubernetes":                     "its own grammar",
		"internal/source/object":                         "its own grammar",
		"internal/source/oss":                            "its own grammar",
		"internal/source/pg":                             "- one value of at most max_size bytes, which it does not decode",
		"internal/source/remote":                         "its own grammar",
		"internal/store":                                 "its own grammar",
		"internal/store/azurerm":                         "its own grammar",
		"internal/store/digest":                          "- the sum of a state in hexadecimal digits, which it only encodes",
		"internal/store/file":                            "its own grammar",
		"internal/store/gcs":                             "its own grammar",
		"internal/store/git":                             "- the source git reads for it",
		"internal/store/httpstore":                       "its own grammar",
		"internal/store/s3":                              "its own grammar",
		"internal/wrap/files":                            "- it reads the files of a run within a limit, and decodes none",
		"internal/wrap/module":                           "its own grammar",
		"internal/wrap/plan":                             "its own grammar",
		"internal/wrap/proxy":                            "TestHugeAnswers",
		"internal/wrap/states":                           "TestHugeErrored; envelope",
		"cmd/statecrypt":                                 "outputs; envelope",
	}
}

// TestEveryReaderIsKept fails when a package begins to read what strangers write,
// and nothing says what that may cost.
//
// Promise: Cost
func TestEveryReaderIsKept(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	names := map[string]bool{}
	for _, r := range readers(t, newBench(t)) {
		names[r.name] = true
	}
	kept := keepers()
	for dir, imports := range packages(t, root) {
		what, listed := kept[dir]
		delete(kept, dir)
		switch {
		case !listed:
			t.Errorf("%s imports %s: say in keepers what bounds what a stranger's bytes cost there", dir, imports)
		case !strings.HasPrefix(what, "-"):
			for _, missing := range missing(t, filepath.Join(root, dir), what, names) {
				t.Errorf("%s is kept by %q, which is no reader and no test of it", dir, missing)
			}
		}
	}
	for dir := range kept {
		t.Errorf("%s reads nothing, or is not there", dir)
	}
}

// packages returns the parsers that each package imports, except those for tests.
func packages(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, top := range []string{"encryption", "builtin", "internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			dir, _ := filepath.Rel(root, filepath.Dir(path))
			dir = filepath.ToSlash(dir)
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || isForTests(dir):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range file.Imports {
				if name := strings.Trim(i.Path.Value, `"`); parsers.MatchString(name) && !slices.Contains(found[dir], name) {
					found[dir] = append(found[dir], name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func isForTests(dir string) bool {
	own := []string{"conformance", "conformance/cmd/conformance", "internal/shared/meter", "internal/shared/probe"}
	return strings.HasSuffix(dir, "test") || strings.HasPrefix(dir, "internal/testing/") || slices.Contains(own, dir)
}

var testName = regexp.MustCompile(`^Test[A-Za-z0-9]+$`)

// missing returns what is neither a reader nor a test in dir.
func missing(t *testing.T, dir, what string, readers map[string]bool) (all []string) {
	t.Helper()
	for _, part := range strings.Split(what, "; ") {
		if readers[part] || part == ownGrammar && hasTest(t, dir, "TestCosts") && feeds(t, dir) {
			continue
		}
		for _, name := range strings.Fields(part) {
			if !readers[name] && (!testName.MatchString(name) || !hasTest(t, dir, name)) {
				all = append(all, name)
			}
		}
	}
	return all
}

// ownGrammar stands for a TestCosts, which has the answers of a service grow, or
// files.
const ownGrammar = "its own grammar"

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	return inTests(t, dir, regexp.MustCompile(`(?m)^func `+name+`\(`))
}

// feeds reports whether tests in dir hand what a grammar makes to the package, by one
// of the ways that there are.
func feeds(t *testing.T, dir string) bool {
	t.Helper()
	return inTests(t, dir, regexp.MustCompile(`amplification\.(Grow|NewAnswers)\(|\.RunCosts\(t|sourcetest\.Costs\(t`))
}

func inTests(t *testing.T, dir string, pattern *regexp.Regexp) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		content, err := os.ReadFile(file)
		return err == nil && pattern.Match(content)
	})
}
