package encryption_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

// expressions are what modules make keys of, and what that is in OpenTofu, as JSON.
var expressions = []struct{ text, want string }{
	{`path.module`, `"."`},
	{`path.root`, `"."`},
	{`"${path.module}/p.txt"`, `"./p.txt"`},
	{`path.cwd == abspath(path.module)`, `true`},
	{`terraform.workspace`, `"default"`},
	{`yamldecode(file("p.yaml"))`, `{"a":1,"b":["x",true],"c":{"k":"v"},"d":{"k":"v"},"e":"2026-01-02T00:00:00Z","f":true,"g":"no","h":null,"i":1.5}`},
	{`yamldecode("a: !!str 1").a`, `"1"`},
	{`yamlencode({ b = [1, "x"], a = null })`, `"\"a\": null\n\"b\":\n- 1\n- \"x\"\n"`},
	{`templatefile("${path.module}/p.tftpl", { name = "you", list = ["a", "b"] })`, `"Hello you!AB"`},
	{`templatefile("p.tftpl", { name = 1, list = toset(["b", "a"]) })`, `"Hello 1!AB"`},
	{`lookup({ a = "x" }, "a", "y")`, `"x"`},
	{`lookup({ a = "x" }, "b", "y")`, `"y"`},
	{`lookup(tomap({ a = 1 }), "b", "2")`, `2`},
	{`lookup({ a = "x" }, "a")`, `"x"`},
	{`filebase64("p.txt")`, `"Y29ycmVjdCBob3JzZQ=="`},
	{`fileexists("p.txt")`, `true`},
	{`fileexists("${path.root}/none.txt")`, `false`},
	{`filesha256("p.txt")`, `"4104d36f8da2c254349f85836793ebe029e0c957063a34c91c2e9203187b5631"`},
	{`filemd5(abspath("p.txt"))`, `"3cb4e732631f47e6eb961f34554b7cde"`},
	{`filebase64sha512("p.txt")`, `"VraY3v7bWkNbY0r+MyC7rz/c2SC2xQOkRvx7endrKY1HnRumqLYXgI6wv1ec6aldZoNHvKtxSQhayTyyeZUZew=="`},
	{`basename("/etc/keys/a.txt")`, `"a.txt"`},
	{`dirname("keys/a.txt")`, `"keys"`},
	{`one(["x"])`, `"x"`},
	{`one([])`, `null`},
	{`one(toset(["y"]))`, `"y"`},
	{`sha512("x")`, `"a4abd4448c49562d828115d13a1fccea927f52b4d5459297f8b43e42da89238bc13626e43dcb38ddb082488927ec904fb42057443983e88585179d50551afe62"`},
	{`sha1("x")`, `"11f6ad8ec52a2984abaafd7c3b516503785c2072"`},
	{`md5("x")`, `"9dd4e461268c8034f5c8564e155c67a6"`},
	{`base64sha256("x")`, `"LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="`},
	{`startswith("prod-eu", "prod")`, `true`},
	{`endswith("prod-eu", "us")`, `false`},
	{`strcontains("prod-eu", "-")`, `true`},
	{`length("äöü")`, `3`},
	{`length({ a = 1, b = 2 })`, `2`},
	{`length([])`, `0`},
	{`zipmap(["a", "b"], [1, 2])`, `{"a":1,"b":2}`},
	{`setunion(["a"], ["b", "a"])`, `["a","b"]`},
	{`setintersection(["a", "b"], ["b"])`, `["b"]`},
	{`setsubtract(["a", "b"], ["b"])`, `["a"]`},
	{`toset(["b", "a", "b"])`, `["a","b"]`},
	{`urlencode("a b&c/d")`, `"a+b%26c%2Fd"`},
	{`urldecode("a+b%26c")`, `"a b\u0026c"`},
	{`title("hello world")`, `"Hello World"`},
	{`strrev("abc")`, `"cba"`},
	{`chunklist(["a", "b", "c"], 2)`, `[["a","b"],["c"]]`},
	{`coalescelist([], ["x"])`, `["x"]`},
	{`regexall("[a-z]+", "a1b2")`, `["a","b"]`},
	{`[abs(-1.5), ceil(1.2), floor(-1.2), pow(2, 10), signum(-3), log(8, 2)]`, `[1.5,2,-2,1024,-1,3]`},
	{`formatdate("YYYY-MM-DD", "2026-01-02T03:04:05Z")`, `"2026-01-02"`},
	{`timeadd("2026-01-02T03:04:05Z", "1h")`, `"2026-01-02T04:04:05Z"`},
	{`try(lookup({}, "a"), "none")`, `"none"`},
	{`[for k, v in yamldecode("{x: 1, y: 2}") : "${k}=${v}"]`, `["true=2","x=1"]`},
}

// folder has files that the expressions read, and these.
func folder(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	all := map[string]string{
		"p.txt":   "correct horse",
		"p.yaml":  "a: 1\nb: [x, y]\nc: &n {k: v}\nd: *n\ne: 2026-01-02\nf: yes\ng: \"no\"\nh: ~\ni: 1.50\n",
		"p.tftpl": "Hello ${name}!%{ for x in list ~} ${upper(x)}%{ endfor ~}",
	}
	maps.Copy(all, files)
	dir = t.TempDir()
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inWorkspace is the layer of a module, in a workspace that TF_WORKSPACE names.
func inWorkspace(dir, name string) encryption.Layer {
	return encryption.Module(dir, unstable.With(func(o *unstable.Options) { o.Workspace = name }))
}

// TestExpressions: each expression has the value that it has in OpenTofu, which seals a state
// with all of them.
//
// Promise: Modules
func TestExpressions(t *testing.T) {
	t.Parallel()
	sealed := seal(t, block(right), state)
	var all []string
	for _, e := range expressions {
		all = append(all, "jsonencode("+e.text+")")
		dir := folder(t, map[string]string{"main.tf": inTerraform("jsonencode("+e.text+") == local.want ? "+right+" : jsonencode("+e.text+")") +
			fmt.Sprintf("locals {\n  want = %q\n}\n", e.want)})
		if err := open(t, encryption.Module(dir), sealed); err != nil {
			t.Errorf("%s: %v", e.text, err)
		}
	}
	if tofu := os.Getenv("STATECRYPT_TOFU"); tofu != "" {
		dir := folder(t, map[string]string{"main.tf": inTerraform("jsonencode(local.all)") + "locals {\n  all = [\n    " +
			strings.Join(all, ",\n    ") + "\n  ]\n}\n"})
		if err := open(t, encryption.Module(dir), sealIn(t, dir, tofu, nil, true, nil)); err != nil {
			t.Errorf("what OpenTofu has sealed: %v", err)
		}
	}
}

// TestWorkspace: terraform.workspace is the one that a variable names, or else the one that is
// selected.
//
// Promise: Modules
func TestWorkspace(t *testing.T) {
	t.Parallel()
	passphrase := `"correct horse battery ${terraform.workspace}"`
	sealed := map[string][]byte{}
	for _, workspace := range []string{"default", "staple"} {
		sealed[workspace] = seal(t, block(strings.Replace(passphrase, "${terraform.workspace}", workspace, 1)), state)
	}
	for name, c := range map[string]struct{ variable, selected, want string }{
		"nothing":         {want: "default"},
		"selected":        {selected: "staple", want: "staple"},
		"with a line end": {selected: "staple\n", want: "staple"},
		"a variable":      {variable: "staple", selected: "other", want: "staple"},
		"default again":   {variable: "default", selected: "staple", want: "default"},
	} {
		files := map[string]string{"main.tf": inTerraform(passphrase)}
		if c.selected != "" {
			files[".terraform/environment"] = c.selected
		}
		if err := open(t, inWorkspace(folder(t, files), c.variable), sealed[c.want]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := golden(t, "names of terraform")
	for _, text := range []string{"terraform.env", "terraform.applying", "terraform"} {
		err := open(t, encryption.Module(folder(t, map[string]string{"main.tf": inTerraform(text)})), sealed["default"])
		g.Error(t, text, err)
	}
}

// TestMissingFunctions: the error names the function, also if try would pass over it, and
// functions of files are not for the environment.
//
// Promise: TF_ENCRYPTION
// Promise: Modules
func TestMissingFunctions(t *testing.T) {
	t.Parallel()
	sealed, says := seal(t, block(right), state), golden(t, "missing functions")
	for _, text := range []string{
		`uuid()`, `try(uuid(), ` + right + `)`, `can(cidrhost("10.0.0.0/8", 1)) ? "c4n4ry" : ` + right, `join("", [for x in ["a"] : bcrypt(x)])`,
		`c4n4ry("x")`, `yamldecod("x")`, `lookup({}, "c4n4ry")`, `one(["a", "b"])`, `length(1)`,
		`lookup("c4n4ry", "c4n4ry")`, `lookup({})`, `urldecode("%zzc4n4ry")`, `yamldecode("[c4n4ry")`, `fileexists(path.module)`,
		`filebase64("none.txt")`, `templatefile("p.tftpl", {})`, `templatefile("p.tftpl", "c4n4ry")`, `templatefile("self.tftpl", {})`,
		`templatefile("broken.tftpl", {})`, `templatefile("none.tftpl", {})`,
		`yamldecode("a: &a [x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: [*c,*c,*c]")`,
	} {
		dir := folder(t, map[string]string{"main.tf": inTerraform(text), "self.tftpl": `${templatefile("self.tftpl", {})}`, "broken.tftpl": "\n${c4n4ry"})
		says.Error(t, text, open(t, encryption.Module(dir), sealed))
	}
	dir := folder(t, nil)
	for _, name := range []string{"fileexists", "templatefile", "filebase64", "filemd5", "filesha1", "filesha256", "filesha512",
		"filebase64sha256"} {
		text := fmt.Sprintf("%s(%q) == null ? %s : %[3]s", name, filepath.Join(dir, "p.txt"), right)
		text = strings.Replace(text, `.txt")`, map[bool]string{true: `.txt", {})`, false: `.txt")`}[name == "templatefile"], 1)
		environment := func(string) (string, bool) {
			return strings.TrimSuffix(strings.TrimPrefix(block(text), "encryption {\n"), "}\n"), true
		}
		says.Error(t, "TF_ENCRYPTION, "+name, open(t, encryption.Environment(environment), sealed))
		if err := open(t, encryption.Code(block(text), "test.hcl"), sealed); err != nil {
			t.Errorf("the same in a file: %v", err)
		}
	}
}

// TestPlacesInModules: what may name a file leads to the folder of the module, wherever the
// program runs; what a key is made of is text.
//
// Promise: Modules
func TestPlacesInModules(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"key": "0123456789abcdef", "main.tf": `
locals { here = "${path.module}/key" }
terraform {
  encryption {
    key_provider "static" "k" { key_file = local.here }
    method "aes_gcm" "m" { keys = key_provider.static.k }
    state { method = method.aes_gcm.m }
  }
}
`})
	sealed := seal(t, `key_provider "static" "k" { key = "30313233343536373839616263646566" }
method "aes_gcm" "m" { keys = key_provider.static.k }
state { method = method.aes_gcm.m }`, state)
	if err := open(t, encryption.Module(dir), sealed); err != nil {
		t.Error(err)
	}
	dir = folder(t, map[string]string{"main.tf": inTerraform(`"${path.module}/correct horse battery"`)})
	if err := open(t, encryption.Module(dir), seal(t, block(`"./correct horse battery"`), state)); err != nil {
		t.Error(err)
	}
}
