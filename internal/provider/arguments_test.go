package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

const argumentsState = `{"version":4,"terraform_version":"1.12.6","serial":7,"lineage":"l-1","resources":[],"outputs":{
	"open":{"value":"o","type":"string"},
	"null":{"value":null,"type":"string"},
	"list":{"value":["a","b"],"type":["list","string"]},
	"hidden":{"value":"hidden-canary","type":"string","sensitive":true},
	"old":{"value":1,"type":"number","deprecated":"use open\u001b[31m"}}}`

// argumentsFiles holds the state encrypted, in the open, damaged, and in two
// workspaces.
func argumentsFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	other := strings.ReplaceAll(argumentsState, `"o"`, `"of the workspace"`)
	for name, data := range map[string][]byte{
		"sealed": sealed(t, argumentsState),
		"plain":  []byte(argumentsState),
		"foreign": []byte(strings.ReplaceAll(string(sealed(t, argumentsState)), `"encrypted_data":"`,
			`"encrypted_data":"AAAA`)),
		"broken":                       []byte("{"),
		"ws/staging/terraform.tfstate": sealed(t, other),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The arguments that succeed share one root module, in this process and on a
// real CLI.
//
// Promise: Pins
func TestArguments(t *testing.T) {
	t.Parallel()
	config, want := argumentsThatSucceed(t)
	evaluate(t, config).wantOutputs(want)
}

// Promise: Pins
func TestAccArguments(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	config, want := argumentsThatSucceed(t)
	newProject(t, map[string]string{"main.tf": configuration(config)}).wantOutputs(want)
}

// argumentsThatSucceed is a data source and an output for each case.
func argumentsThatSucceed(t *testing.T) (config string, want map[string]cty.Value) {
	t.Helper()
	dir := argumentsFiles(t)
	in := func(name string) string { return fromFile(filepath.Join(dir, name)) }
	text := func(s string) cty.Value { return cty.StringVal(s) }
	list := cty.ListVal([]cty.Value{text("a"), text("b")})
	all := func() map[string]cty.Value {
		return map[string]cty.Value{"open": text("o"), "null": cty.NullVal(cty.String), "list": list, "old": cty.NumberIntVal(1)}
	}
	with := func(name string, v cty.Value) cty.Value {
		m := all()
		m[name] = v
		return cty.ObjectVal(m)
	}
	defaultsIfMissing := `on_missing = "defaults"` + "\n"
	workspaces := fmt.Sprintf("file {\npath = %s\nworkspace_dir = %s\n}\n", quote(filepath.Join(dir, "sealed")),
		quote(filepath.Join(dir, "ws")))

	config, want = textProvider(staticText), map[string]cty.Value{}
	for name, c := range map[string]struct {
		body, attribute string
		want            cty.Value
	}{
		"plain_outputs":      {in("sealed"), "outputs", cty.ObjectVal(all())},
		"names_of_sensitive": {in("sealed"), "sensitive_output_names", cty.ListVal([]cty.Value{text("hidden")})},
		"serial":             {in("sealed"), "serial", cty.NumberIntVal(7)},
		"lineage":            {in("sealed"), "lineage", text("l-1")},
		"writer":             {in("sealed"), "terraform_version", text("1.12.6")},
		"method":             {in("sealed"), "decrypted_with", text("method.aes_gcm.m")},
		"not_encrypted":      {in("plain") + "\nmethod = \"unencrypted\"", "encrypted", cty.False},
		"no_method":          {in("plain") + "\nmethod = \"unencrypted\"", "decrypted_with", cty.NullVal(cty.String)},

		"only":         {in("sealed") + "\nonly = [\"list\", \"list\"]", "outputs", cty.ObjectVal(map[string]cty.Value{"list": list})},
		"only_nothing": {in("sealed") + "\nonly = []", "outputs", cty.EmptyObjectVal},
		"only_names":   {in("sealed") + "\nonly = [\"open\"]", "sensitive_output_names", cty.ListValEmpty(cty.String)},
		"only_and_default": {in("sealed") + "\nonly = [\"new\"]\ndefaults = { new = 1, other = 2 }", "outputs",
			cty.ObjectVal(map[string]cty.Value{"new": cty.NumberIntVal(1)})},
		"default_is_extra": {in("sealed") + "\ndefaults = { new = [1, \"x\"] }", "outputs",
			with("new", cty.TupleVal([]cty.Value{cty.NumberIntVal(1), text("x")}))},
		"state_beats":       {in("sealed") + "\ndefaults = { open = \"default\" }", "outputs", cty.ObjectVal(all())},
		"null_beats":        {in("sealed") + "\ndefaults = { null = \"default\" }", "outputs", cty.ObjectVal(all())},
		"sensitive_is_kept": {in("sealed") + "\ndefaults = { hidden = \"default\" }", "outputs", cty.ObjectVal(all())},
		"map_of_defaults": {in("sealed") + "\nonly = [\"a\"]\ndefaults = tomap({ a = \"x\" })", "outputs",
			cty.ObjectVal(map[string]cty.Value{"a": text("x")})},
		"missing": {in("gone") + "\n" + defaultsIfMissing + "defaults = { new = 1 }", "outputs",
			cty.ObjectVal(map[string]cty.Value{"new": cty.NumberIntVal(1)})},
		"missing_bare":      {in("gone") + "\n" + defaultsIfMissing, "outputs", cty.EmptyObjectVal},
		"missing_exists":    {in("gone") + "\n" + defaultsIfMissing, "exists", cty.False},
		"missing_serial":    {in("gone") + "\n" + defaultsIfMissing, "serial", cty.NullVal(cty.Number)},
		"there_exists":      {in("sealed") + "\n" + defaultsIfMissing, "exists", cty.True},
		"there_no_defaults": {in("sealed") + "\n" + defaultsIfMissing + "defaults = { open = \"default\" }", "outputs", cty.ObjectVal(all())},
		"right_pins":        {in("sealed") + "\nexpected_lineage = \"l-1\"\nminimum_serial = 7", "serial", cty.NumberIntVal(7)},
		"enough":            {in("sealed") + "\nmax_size = 10000", "exists", cty.True},
		"workspace":         {workspaces + "workspace = \"staging\"", "outputs.open", text("of the workspace")},
		"workspace_default": {workspaces + "workspace = \"default\"", "outputs.open", text("o")},
		"workspace_null":    {workspaces + "workspace = null", "outputs.open", text("o")},
		"workspace_missing": {workspaces + "workspace = \"new\"\n" + defaultsIfMissing, "exists", cty.False},
		"own_method": {in("sealed") + "\nmethod = \"method.aes_gcm.m\"\nfallback {\nmethod = \"unencrypted\"\n}", "used_fallback",
			cty.False},
		"own_fallback": {in("plain") + "\nmethod = \"method.aes_gcm.m\"\nfallback {\nmethod = \"unencrypted\"\n}", "used_fallback",
			cty.True},
		"sensitive_is_null": {in("sealed"), "sensitive_outputs == null", cty.True},
	} {
		expression := "data.statecrypt_remote_state." + name + "." + c.attribute
		if strings.HasPrefix(c.attribute, "sensitive_outputs") {
			expression = "nonsensitive(" + expression + ")"
		}
		config += reads(name, c.body) + output(name, "{ value = "+expression+" }") // an output that is null would not be stored
		want[name] = cty.ObjectVal(map[string]cty.Value{"value": c.want})
	}
	return config, want
}

// A default whose name is written in another way than that of an output would be given
// beside it, and one for an output that is elsewhere would not be given at all.
func TestDefaultOfAnotherName(t *testing.T) {
	t.Parallel()
	from := fromFile(filepath.Join(argumentsFiles(t), "sealed"))
	golden := openMistakes(t, "default")
	for _, more := range [][]string{
		{"defaults = { Open = 1 }"}, {"defaults = { op_en = 1 }"}, {"defaults = { hid-den = 1 }"}, {"defaults = { opened = 1 }"},
		{"defaults = { open = 1 }"}, {"defaults = { hidden = 1 }"}, {"defaults = { Open = 1, op_en = 1 }"},
		{"sensitive_defaults = { Open = 1 }", "store_sensitive = true"}, {"defaults = { hidden = 1 }", "store_sensitive = true"},
		{"sensitive_defaults = { open = 1 }", "store_sensitive = true"},
	} {
		e := evaluate(t, textProvider(staticText), reads("s", append([]string{from}, more...)...)).succeeds()
		golden.Check(t, strings.Join(more, ", "), shownText(e.warnings))
	}
}

// Promise: Pins
func TestArgumentMistakes(t *testing.T) {
	t.Parallel()
	dir := argumentsFiles(t)
	in := func(name string) string { return fromFile(filepath.Join(dir, name)) }
	defaultsIfMissing := "on_missing = \"defaults\"\ndefaults = { open = \"default\" }"
	inherited := "provider \"statecrypt\" {\nencryption = " + quote(strings.ReplaceAll(staticText,
		"state { method = method.aes_gcm.m }", "state {\nmethod = method.unencrypted.u\nfallback {\nmethod = method.aes_gcm.m\n}\n}")) + "\n}\n"
	golden := openMistakes(t, "argument")
	for name, c := range map[string]struct {
		provider string // staticText when empty
		body     []string
	}{
		"only, misspelt":             {"", []string{in("sealed"), `only = ["opn"]`}},
		"missing":                    {"", []string{in("gone"), `defaults = { open = "default" }`}},
		"missing, only":              {"", []string{in("gone"), defaultsIfMissing, `only = ["list"]`}},
		"missing under a lineage":    {"", []string{in("gone"), defaultsIfMissing, `expected_lineage = "l-1"`}},
		"missing under a serial":     {"", []string{in("gone"), defaultsIfMissing, "minimum_serial = 0"}},
		"other lineage":              {"", []string{in("sealed"), `expected_lineage = "l-2"`}},
		"empty lineage":              {"", []string{in("sealed"), `expected_lineage = ""`}},
		"old copy":                   {"", []string{in("sealed"), "minimum_serial = 8"}},
		"fraction of a serial":       {"", []string{in("sealed"), "minimum_serial = 6.5"}},
		"not decrypted":              {"", []string{in("foreign"), defaultsIfMissing}},
		"plaintext is not missing":   {"", []string{in("plain"), defaultsIfMissing}},
		"garbage is not missing":     {"", []string{in("broken"), defaultsIfMissing}},
		"directory is not missing":   {"", []string{in("ws"), defaultsIfMissing}},
		"too large":                  {"", []string{in("sealed"), "max_size = 100"}},
		"no size":                    {"", []string{in("sealed"), "max_size = 0"}},
		"on_missing, misspelt":       {"", []string{in("sealed"), `on_missing = "default"`}},
		"defaults are no object":     {"", []string{in("sealed"), `defaults = ["x"]`}},
		"inherits no fallback":       {inherited, []string{in("sealed"), `method = "method.unencrypted.u"`}},
		"inherits no method":         {"", []string{in("sealed"), `method = "unencrypted"`}},
		"fallback without method":    {"", []string{in("sealed"), "fallback {\nmethod = \"unencrypted\"\n}"}},
		"name and method":            {"", []string{in("sealed"), `name = "x"`, `method = "unencrypted"`}},
		"name in nobody's text":      {"", []string{in("sealed"), `name = "x"`}},
		"enforced over own fallback": {"provider \"statecrypt\" {\nenforced = true\n}", []string{in("plain"), `method = "unencrypted"`}},
		"workspace of http":          {"", []string{fromHTTP("https://state.example.com/"), `workspace = "staging"`}},
		"workspace of git":           {"", []string{fromGit("https://git.example.com/a.git", "main", "a"), `workspace = "staging"`}},
		"empty workspace":            {"", []string{in("sealed"), `workspace = ""`}},
		"workspace that climbs":      {"", []string{in("sealed"), `workspace = "../ws/staging"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.provider == "" {
				c.provider = textProvider(staticText)
			}
			evaluate(t, c.provider, reads("s", c.body...)).wantMistake(golden, name)
		})
	}
}

// "default" and null name the one state that a source without workspaces has.
func TestNoWorkspaces(t *testing.T) {
	isolateGit(t)
	server := serve(t, httptest.NewServer, gives(sealed(t, argumentsState)))
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: string(sealed(t, argumentsState))})
	config, want := []string{textProvider(staticText)}, map[string]cty.Value{}
	for kind, source := range map[string]string{"http": fromHTTP(server.URL), "git": fromGit(repo.FileURL(), "main", "s")} {
		for name, workspace := range map[string]string{"default": `"default"`, "null": "null"} {
			config = append(config, reads(kind+name, source, "workspace = "+workspace),
				output(kind+name, "data.statecrypt_remote_state."+kind+name+".serial"))
			want[kind+name] = cty.NumberIntVal(7)
		}
	}
	evaluate(t, config...).wantOutputs(want)
}

// What a server refuses, delays or gets wrong is never taken for a state that
// does not exist.
//
// Promise: Pins
func TestMissingOverHTTP(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	server := serve(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err == nil {
			w.WriteHeader(status)
			return
		}
		select { // slower than anyone waits
		case <-done:
		case <-r.Context().Done():
		}
	})
	tolerant := "on_missing = \"defaults\"\ndefaults = { open = \"default\" }"
	config, want := []string{}, map[string]cty.Value{}
	for _, status := range []string{"204", "404"} {
		name := "missing_" + status
		config = append(config, reads(name, fromHTTP(server.URL+"/"+status), tolerant),
			output(name, "data.statecrypt_remote_state."+name+".outputs.open"))
		want[name] = cty.StringVal("default")
	}
	evaluate(t, config...).wantOutputs(want)
	golden := openMistakes(t, "no missing state over HTTP")
	for _, status := range []string{"401", "403", "410", "500"} {
		t.Run(status, func(t *testing.T) {
			evaluate(t, reads("s", fromHTTP(server.URL+"/"+status), tolerant)).wantMistake(golden, status)
		})
	}
	t.Run("timeout", func(t *testing.T) {
		slow := fmt.Sprintf("http {\naddress = \"%s/slow\"\nretry_max = 0\ntimeout = \"100ms\"\n}", server.URL)
		evaluate(t, reads("s", slow, tolerant)).wantMistake(golden, "timeout")
	})
	t.Run("nobody there", func(t *testing.T) {
		gone := httptest.NewServer(nil)
		gone.Close()
		evaluate(t, reads("s", fromHTTP(gone.URL), tolerant)).wantMistake(golden, "nobody there")
	})
}

// The same for git: only the file itself may be missing.
//
// Promise: Pins
func TestMissingInGit(t *testing.T) {
	isolateGit(t)
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "{}"})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "ci", Password: "git-password"})
	tolerant := func(repository, ref, path string) *evaluation {
		return evaluate(t, reads("s", fromGit(repository, ref, path), "on_missing = \"defaults\"\ndefaults = { open = \"default\" }"),
			output("open", "data.statecrypt_remote_state.s.outputs.open"))
	}
	tolerant(repo.FileURL(), "main", "gone").wantOutputs(map[string]cty.Value{"open": cty.StringVal("default")})
	golden := openMistakes(t, "no missing state in git")
	tolerant(repo.FileURL(), "nope", "s").wantMistake(golden, "no such branch")
	tolerant(repo.FileURL()+".gone", "main", "s").wantMistake(golden, "no such repository")
	tolerant(server.URL, "main", "s").wantMistake(golden, "without credentials")
}

// A data source's values are stored in the open in the reader's state.
//
// Promise: Sensitive outputs
func TestAccStoreSensitive(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	file := fromFile(writeTemp(t, "state", sealed(t, argumentsState)))
	const address = "data.statecrypt_remote_state.s"
	module := func(parts ...string) string { return configuration(append(parts, textProvider(staticText))...) }
	p := newProject(t, map[string]string{"main.tf": module(reads("s", file), output("serial", address+".serial"))})
	p.mustRun("apply", "-auto-approve")
	if strings.Contains(p.state(), "hidden-canary") {
		t.Errorf("it is stored:\n%s", p.state())
	}

	stores := reads("s", file, "store_sensitive = true", `sensitive_defaults = { hidden = "default", more = "m" }`)
	p.write("main.tf", module(stores, output("o", address+".sensitive_outputs.hidden")))
	p.wantError("Output refers to sensitive values")
	p.write("main.tf", module(stores, sensitiveOutput("all", address+".sensitive_outputs")))
	p.wantOutputs(map[string]cty.Value{"all": cty.ObjectVal(map[string]cty.Value{
		"hidden": cty.StringVal("hidden-canary"), "more": cty.StringVal("m"),
	})})
	if !strings.Contains(p.state(), "hidden-canary") {
		t.Errorf("it is not stored:\n%s", p.state())
	}
}

func TestAccWarnings(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	dir := argumentsFiles(t)
	in := func(name string) string { return fromFile(filepath.Join(dir, name)) }
	server := serve(t, httptest.NewTLSServer, gives(sealed(t, argumentsState)))
	missing := serve(t, httptest.NewServer, http.NotFound)
	p := newProject(t, map[string]string{"main.tf": configuration(
		fmt.Sprintf("provider \"statecrypt\" {\nencryption = %s\ncredentials {\nhttp {\nurl = %s\nskip_cert_verification = true\n}\nhttp "+
			"{\nurl = %s\nbearer_token = \"t\"\n}\n}\n}\n",
			quote(strings.Replace(staticText, "state {", "key_provider \"static\" \"n\" { key = \""+strings.Repeat("ab", 32)+
				"\" }\nmethod \"aes_gcm\" \"n\" { keys = key_provider.static.n }\nstate {", 1)),
			quote(server.URL+"/"), quote(missing.URL+"/")),
		reads("plain", in("plain"), `method = "method.aes_gcm.m"`, "fallback {\nmethod = \"unencrypted\"\n}"),
		reads("fallback", in("sealed"), `method = "method.aes_gcm.n"`, "fallback {\nmethod = \"method.aes_gcm.m\"\n}"),
		reads("unverified", fromHTTP(server.URL+"/s")),
		reads("gone", fromHTTP(missing.URL+"/s"), `on_missing = "defaults"`),
	)})
	out := p.mustRun("plan")
	for _, words := range [][]string{
		{"Warning: Unencrypted state", filepath.Join(dir, "plain"), `"unencrypted"`},
		{"Warning: Fallback used", "method.aes_gcm.m", "method.aes_gcm.n"},
		{"Warning: " + netfail.NotVerified, "skip_cert_verification"},
		{"Warning: " + warnDefaults, "404 Not Found"},
		{"Warning: Deprecated outputs", `"old": "use open`},
	} {
		if !says(words...).MatchString(out) {
			t.Errorf("there is no warning %q in\n%s", words, out)
		}
	}
	if strings.Contains(out, "\x1b") || strings.Contains(out, "hidden-canary") {
		t.Errorf("the warnings hold what they must not:\n%s", out)
	}
}
