package provider

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

// ownErrors are mistakes that Terraform itself reports.
var ownErrors = map[string]struct {
	heading string   // of the guide on troubleshooting; what Terraform says
	says    []string // what else, as the guide quotes it
	config  string
	command []string // default: plan
	prepare func(*testing.T, *project)
	newOnly bool // only versions with ephemeral values report it
}{
	"encrypted": {heading: `The state file does not have a "version" attribute`,
		config: configuration("data \"terraform_remote_state\" \"s\" {\nbackend = \"local\"\nconfig = { path = \"sealed.tfstate\" }\n}\n")},
	"a sensitive output in outputs": {heading: `This object does not have an attribute named "db_password".`,
		config: configuration(troubled, output("o", "data.statecrypt_remote_state.s.outputs.db_password"))},
	"sensitive_outputs without store_sensitive": {heading: "This value is null, so it does not have any attributes.",
		says:   []string{"Attempt to get attribute from null value"},
		config: configuration(troubled, output("o", "data.statecrypt_remote_state.s.sensitive_outputs.db_password"))},
	"OpenTofu's syntax in the provider block": {heading: "No labels are expected for key_provider blocks.",
		says:   []string{"Extraneous label for key_provider"},
		config: configuration("provider \"statecrypt\" {\nkey_provider \"static\" \"k\" {}\n}\n" + reads("s", fromFile("plain.tfstate")))},
	"an argument of the backend": {heading: "is not expected here.", says: []string{"Unsupported argument"},
		config: configuration(reads("s", "s3 {\nbucket = \"b\"\nkey = \"k\"\nencrypt = true\n}"))},
	"ephemeral in an output": {heading: "Ephemeral value not allowed", newOnly: true,
		config: configuration(troubled, opened, output("o", openedPassword))},
	"ephemeral output of the root": {heading: "Ephemeral output not allowed", newOnly: true,
		config: configuration(troubled, opened, "output \"o\" {\nephemeral = true\nvalue = "+openedPassword+"\n}\n")},
	"ephemeral in a resource": {heading: "Invalid use of ephemeral value", newOnly: true,
		says:   []string{"Ephemeral values are not valid"},
		config: configuration(troubled, opened, "resource \"terraform_data\" \"it\" {\ninput = "+openedPassword+"\n}\n")},
	"apply without the variable": {heading: "No value for required variable", newOnly: true,
		says:   []string{"was set during the plan phase, and so must also be set during the apply phase"},
		config: configuration(ephemeralVariables("state_passphrase"), "resource \"terraform_data\" \"it\" {}\n"),
		prepare: func(_ *testing.T, p *project) {
			p.mustRun("plan", "-out=tfplan", "-var=state_passphrase=canary")
		}, command: []string{"apply", "tfplan"}},
	"a module without required_providers": {heading: "hashicorp/statecrypt", config: troubled, command: []string{"init"},
		says: []string{"provider registry registry.terraform.io does not have a provider named"}, prepare: withRegistry},
	"a private authority": {heading: "x509: certificate signed by unknown authority", config: troubled, command: []string{"init"},
		prepare: func(t *testing.T, p *project) {
			t.Helper()
			withRegistry(t, p)
			p.setenv("SSL_CERT_FILE=" + os.DevNull)
		}},
}

const openedPassword = "ephemeral.statecrypt_remote_state.s.sensitive_outputs.db_password"

var (
	troubled = "provider \"statecrypt\" {\ndefault {\nmethod = \"unencrypted\"\n}\n}\n" + reads("s", fromFile("plain.tfstate"))
	opened   = "ephemeral \"statecrypt_remote_state\" \"s\" {\n" + fromFile("plain.tfstate") + "\n}\n"
)

// TestAccTerraformsOwnErrors: what Terraform says of common mistakes is what the guide
// on troubleshooting quotes.
func TestAccTerraformsOwnErrors(t *testing.T) {
	needAcceptance(t)
	if isTofu() {
		t.Skip("the guide quotes Terraform")
	}
	t.Parallel()
	for name, own := range ownErrors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if own.newOnly && !knowsEphemeral() {
				t.Skip("this version has no ephemeral values")
			}
			p := newProject(t, map[string]string{"main.tf": own.config, "sealed.tfstate": string(sealed(t, argumentsState)),
				"plain.tfstate": strings.Replace(guideState, `"password"`, `"db_password"`, 1)})
			if own.prepare != nil {
				own.prepare(t, p)
			}
			if own.command == nil {
				own.command = []string{"plan"}
			}
			out, err := p.run(own.command...)
			section := troubleshooting(t, own.heading)
			for _, text := range append([]string{own.heading}, own.says...) {
				if err == nil || !says(text).MatchString(out) || !says(text).MatchString(section) {
					t.Errorf("%q is not in both of:\n%s\n%s", text, out, section)
				}
			}
		})
	}
}

// troubleshooting is the section of the guide with this text in its heading.
func troubleshooting(t *testing.T, text string) string {
	t.Helper()
	guide := readText(t, filepath.Join("..", "..", "templates", "guides", "troubleshooting.md.tmpl"))
	sections := strings.Split(guide, "\n### ")
	i := slices.IndexFunc(sections, func(section string) bool {
		heading, _, _ := strings.Cut(section, "\n")
		return strings.Contains(heading, "`"+text+"`")
	})
	if i < 0 {
		t.Fatalf("the guide has no heading %q", text)
	}
	return sections[i]
}

// withRegistry has the project find a registry without providers.
func withRegistry(t *testing.T, p *project) {
	t.Helper()
	registry := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/terraform.json" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"providers.v1":"/v1/providers/"}`))
	})
	p.env = cloudtest.New(t, map[string]http.Handler{"registry.terraform.io": registry}).Environ(p.env)
	p.setenv("TF_CLI_CONFIG_FILE=" + writeTemp(t, "cli.tfrc", nil))
}
