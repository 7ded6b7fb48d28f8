package wrap_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// Each way around the encryption that wrap can see is refused before the child is
// run.
//
// Promise: Only encrypted states
func TestRefused(t *testing.T) {
	t.Parallel()
	module := func(name, text string) map[string]string { return map[string]string{name: text} }
	mistakes := wraptest.OpenMistakes(t, "refused")
	for name, c := range map[string]struct {
		args    []string
		environ []string
		program string
		files   map[string]string // "" removes one
		here    bool              // in this folder, without -chdir
		leave   bool
		moveIn  bool
	}{
		"no command":            {program: "-"},
		"another program":       {program: "terragrunt", args: []string{"plan"}},
		"a shell":               {program: "sh", args: []string{"-c", "terraform plan"}},
		"a name that begins so": {program: "terraform-wrapper", args: []string{"plan"}},
		"all in one word":       {program: "terraform plan", here: true},
		"not in PATH":           {program: "terraform-0.0.0-none", args: []string{"plan"}},
		"no such program":       {program: filepath.Join(t.TempDir(), "none", "terraform"), args: []string{"plan"}},

		"no subcommand":          {args: nil},
		"nothing but the name":   {here: true},
		"without chdir":          {args: []string{"plan"}, here: true},
		"an empty subcommand":    {args: []string{"", "apply", "l.tfplan"}},
		"a flag before it":       {args: []string{"-no-color", "apply"}},
		"another chdir":          {args: []string{"-chdir=elsewhere", "plan"}},
		"chdir after it":         {args: []string{"plan", "-chdir=elsewhere"}},
		"a space after it":       {args: []string{"apply ", "l.tfplan"}},
		"two in one":             {args: []string{"state mv", "a", "b"}},
		"an unknown one":         {args: []string{"state", "migrate"}},
		"tests":                  {args: []string{"test"}},
		"an old name":            {args: []string{"env", "new", "x"}},
		"all in a variable":      {environ: []string{"TF_CLI_ARGS=apply l.tfplan"}},
		"a variable for none":    {environ: []string{"TF_CLI_ARGS_=apply l.tfplan"}},
		"an unknown flag":        {args: []string{"plan", "-frobnicate=x"}},
		"a secret":               {args: []string{"plan", "-phunter2"}},
		"the end of flags":       {args: []string{"apply", "--", "-plan"}},
		"three dashes":           {args: []string{"apply", "---state=x"}},
		"no value":               {args: []string{"plan", "-out"}},
		"an empty argument":      {args: []string{"apply", ""}},
		"a flag after a plan":    {args: []string{"apply", "l.tfplan", "-auto-approve"}},
		"two plans":              {args: []string{"apply", "a.tfplan", "b.tfplan"}},
		"a folder for destroy":   {args: []string{"destroy", "x"}},
		"a plan to save":         {args: []string{"plan", "x"}},
		"a plan to destroy":      {args: []string{"destroy", "x"}},
		"more than it takes":     {args: []string{"validate", "x"}},
		"half a subcommand":      {args: []string{"state"}},
		"half, and another":      {args: []string{"providers", "lok"}},
		"a flag of another":      {args: []string{"apply", "-out=x"}},
		"a misspelt subcommand":  {args: []string{"aply", "-no-color"}},
		"a misspelt second word": {args: []string{"state", "lst"}},
		"a misspelt flag":        {args: []string{"apply", "-autoapprove"}},

		"backend-config":             {args: []string{"init", "-backend-config=address=x"}},
		"backend-config, two words":  {args: []string{"init", "-backend-config", "address=x"}},
		"backend-config, two dashes": {args: []string{"init", "--backend-config=address=x"}},
		"backend-config, false":      {args: []string{"init", "-backend-config=false"}},
		"migrate-state":              {args: []string{"init", "-migrate-state"}},
		"migrate-state, false":       {args: []string{"init", "-migrate-state=false"}},
		"force-copy":                 {args: []string{"init", "-force-copy"}},
		"reconfigure":                {args: []string{"init", "-reconfigure"}},
		"from-module":                {args: []string{"init", "-from-module=x"}},
		"state":                      {args: []string{"apply", "-state=x"}},
		"state, false":               {args: []string{"apply", "-state=false"}},
		"state, two words":           {args: []string{"state", "list", "-state", "x"}},
		"state-out":                  {args: []string{"state", "mv", "--state-out=x", "a", "b"}},
		"state-out, false":           {args: []string{"state", "mv", "-state-out=false", "a", "b"}},
		"backup":                     {args: []string{"state", "rm", "-backup=x", "a"}},
		"backup-out":                 {args: []string{"state", "mv", "-backup-out=x", "a", "b"}},
		"a workspace":                {args: []string{"plan"}, environ: []string{"TF_WORKSPACE=w"}},
		"a new workspace":            {args: []string{"workspace", "new", "-state=x", "w"}},
		"a flag of wrap":             {args: []string{"plan", "-config=x"}},
		"config of import":           {args: []string{"import", "-config=x", "a", "b"}},

		"TF_CLI_ARGS":             {args: []string{"init"}, environ: []string{"TF_CLI_ARGS=-no-color -backend-config=address=x"}},
		"TF_CLI_ARGS_init":        {args: []string{"init"}, environ: []string{"TF_CLI_ARGS_init=-migrate-state -force-copy"}},
		"TF_CLI_ARGS_state_mv":    {args: []string{"state", "mv", "a", "b"}, environ: []string{"TF_CLI_ARGS_state_mv=-state-out=x"}},
		"TF_CLI_ARGS, quotes":     {args: []string{"init"}, environ: []string{`TF_CLI_ARGS='-no-color'`}},
		"TF_CLI_ARGS, backslash":  {args: []string{"init"}, environ: []string{`TF_CLI_ARGS_init=\-no-color`}},
		"TF_CLI_ARGS, semicolon":  {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan;"}},
		"TF_CLI_ARGS, ampersand":  {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan&"}},
		"TF_CLI_ARGS, greater":    {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan >x"}},
		"TF_CLI_ARGS, pipe":       {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan |x"}},
		"TF_CLI_ARGS, backticks":  {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=`l.tfplan`"}},
		"TF_CLI_ARGS, dollar":     {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=$(l.tfplan)"}},
		"TF_CLI_ARGS, no-break":   {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=-no-color\u00a0l.tfplan"}},
		"TF_CLI_ARGS, tabulator":  {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=-no-color\vl.tfplan"}},
		"TF_CLI_ARGS, a canary":   {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=-var=x='" + canary + "'"}},
		"TF_CLI_ARGS, two plans":  {args: []string{"apply", "x"}, environ: []string{"TF_CLI_ARGS_apply=l.tfplan"}},
		"TF_CLI_ARGS, then flags": {args: []string{"apply", "-no-color"}, environ: []string{"TF_CLI_ARGS=l.tfplan"}},

		"init, a provider's state":     {args: []string{"init", "-enable-pluggable-state-storage-experiment"}},
		"init, a provider's lock file": {args: []string{"init", "-state-provider-lock-file=x"}},
		"a state that was not written": {args: []string{"apply"}, files: module("errored.tfstate", string(seal(t, sealing, state)))},
		"no place for a state":         {args: []string{"apply"}, files: module("errored.tfstate/x", "")},
		"a plan called -":              {args: []string{"apply", "-"}, files: module("-", plan(t, "local", ""))},
		"a plan that is no file":       {args: []string{"apply", "folder"}, files: module("folder/x", "")},

		"no address":               {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_ADDRESS="}},
		"Terraform's address":      {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_ADDRESS=", "TF_HTTP_ADDRESS=https://h/"}},
		"a wrong address":          {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_ADDRESS=ftp://" + canary}},
		"a password in an address": {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_ADDRESS=https://u:" + canary + "@h/"}},
		"a wrong lock address":     {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_LOCK_ADDRESS=http://[" + canary}},
		"a wrong switch":           {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_SKIP_CERT_VERIFICATION=" + canary}},
		"a wrong number":           {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_RETRY_MAX=" + canary}},
		"a wrong authority":        {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_CLIENT_CA_CERTIFICATE_PEM=" + canary}},
		"a certificate alone":      {args: []string{"plan"}, environ: []string{"STATECRYPT_HTTP_CLIENT_CERTIFICATE_PEM=-----BEGIN " + canary}},

		"no module":           {args: []string{"init"}, files: module("main.tf", "")},
		"no backend":          {args: []string{"init"}, files: module("main.tf", "terraform {}\n")},
		"a local backend":     {args: []string{"init"}, files: module("main.tf", inside(`backend "local" {}`))},
		"s3":                  {args: []string{"apply"}, files: module("main.tf", inside(`backend "s3" {}`))},
		"cloud":               {args: []string{"plan"}, files: module("more.tf", inside("cloud {}"))},
		"a state store":       {args: []string{"plan"}, files: module("more.tf", inside(`state_store "a" {}`))},
		"another file":        {args: []string{"init"}, files: module("z.tf", inside(`backend "local" {}`))},
		"an override":         {args: []string{"init"}, files: module("override.tf", inside(`backend "local" {}`))},
		"an override of one":  {args: []string{"init"}, files: module("x_override.tf", inside(`backend "http" { address = "x" }`))},
		"OpenTofu's file":     {args: []string{"init"}, files: module("main.tofu", inside(`backend "local" {}`))},
		"JSON":                {args: []string{"init"}, files: module("x.tf.json", `{"terraform":{"backend":{"local":{}}}}`)},
		"JSON, an argument":   {args: []string{"init"}, files: module("x.tf.json", `{"terraform":[{"backend":{"http":{"address":"x"}}}]}`)},
		"an address":          {args: []string{"init"}, files: module("main.tf", inside(`backend "http" { address = "`+canary+`" }`))},
		"a lock address":      {args: []string{"plan"}, files: module("main.tf", inside(`backend "http" { lock_address = "x" }`))},
		"a null":              {args: []string{"plan"}, files: module("main.tf", inside(`backend "http" { address = null }`))},
		"a block inside":      {args: []string{"plan"}, files: module("main.tf", inside("backend \"http\" {\nx {}\n}"))},
		"not HCL":             {args: []string{"plan"}, files: module("more.tf", "x = "+canary+" {")},
		"an encryption block": {args: []string{"apply"}, files: module("more.tf", inside("encryption {}"))},

		"help, false":            {args: []string{"apply", "-help=false", "l.tfplan"}},
		"leave, nowhere to go":   {args: []string{"init", "-migrate-state"}, leave: true},
		"leave, another command": {args: []string{"apply"}, leave: true},
		"leave, no migration":    {args: []string{"init"}, leave: true},
		"leave, and move in":     {args: []string{"init", "-migrate-state"}, leave: true, moveIn: true},
		"move in, by a plan":     {args: []string{"plan"}, moveIn: true},
		"move in, with flags":    {args: []string{"init", "-migrate-state"}, moveIn: true},

		"no such plan":             {args: []string{"apply", "tfplan"}},
		"no such plan, in a flag":  {args: []string{"graph", "-type=plan", "-plan=x"}},
		"a folder, not the record": {args: []string{"init"}, files: map[string]string{"OWN/terraform.tfstate/x": "y"}},
		"not a plan":               {args: []string{"apply", "x"}, files: map[string]string{"x": "no"}},
		"an empty zip":             {args: []string{"apply", "x"}, files: map[string]string{"x": archive(t)}},
		"a cloud plan":             {args: []string{"apply", "x"}, files: map[string]string{"x": `{"remote_plan_format":1,"run_id":"x","hostname":"y"}`}},
		"a state":                  {args: []string{"apply", "x"}, files: map[string]string{"x": state}},
		"a folder":                 {args: []string{"apply", "."}},
		"a sealed state":           {args: []string{"apply", "x"}, files: map[string]string{"x": string(seal(t, sealing, state))}},
		"a plan for elsewhere":     {args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": plan(t, "http", "address")}},
		"a plan, the password": {args: []string{"apply", "-auto-approve", "tfplan"},
			files: map[string]string{"tfplan": plan(t, "http", "password")}},
		"a plan, another kind": {args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": plan(t, "local", "")}},
		"a plan, in a variable": {args: []string{"apply"}, environ: []string{"TF_CLI_ARGS_apply=tfplan"},
			files: map[string]string{"tfplan": plan(t, "local", "")}},
		"a plan, called like the command": {args: []string{"apply", "apply"}, files: map[string]string{"apply": plan(t, "local", "")}},
		"a plan, twice in its archive":    {args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": archive(t, "", "")}},
		"a plan, damaged":                 {args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": archive(t, "\xff")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "ready", c.args...)
			o.Environ, o.Wishes.Leave, o.Wishes.EncryptExisting = append(o.Environ, c.environ...), c.leave, c.moveIn
			for path, text := range c.files {
				path = strings.Replace(path, "OWN", own(dir), 1)
				write(t, filepath.Join(dir, path), text)
				if text == "" {
					_ = os.Remove(filepath.Join(dir, path))
				}
			}
			if c.here {
				o.Command = append(o.Command[:1:1], c.args...)
			}
			switch c.program {
			case "":
			case "-":
				o.Command = nil
			default:
				o.Command[0] = c.program
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if code == 0 || err == nil {
				t.Errorf("got %d, %v", code, err)
			}
			if out.String() != "" {
				t.Errorf("the child was run: %s", out)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, own(dir), ".*")); left != nil {
				t.Errorf("%s is left behind", left)
			}
		})
	}
}

// The child gets what was read, in one spelling.
//
// Promise: Only encrypted states
func TestArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		environ []string
		want    []string // after -chdir
	}{
		"flags": {
			args: []string{"plan", "--lock=false", "-var", "a=-b", "-var-file=x y", "-no-color", "--refresh"},
			want: []string{"plan", "-lock=false", "-var=a=-b", "-var-file=x y", "-no-color", "-refresh"},
		},
		"a value like a flag": {args: []string{"plan", "-var", "-state=x"}, want: []string{"plan", "-var=-state=x"}},
		"two words":           {args: []string{"state", "mv", "-dry-run", "a b", "c"}, want: []string{"state", "mv", "-dry-run", "a b", "c"}},
		"standard input":      {args: []string{"state", "push", "-"}, want: []string{"state", "push", "-"}},
		"variables": {
			args: []string{"state", "rm", "-lock=true", "x"},
			environ: []string{"TF_CLI_ARGS=-lock=false -no-color", "TF_CLI_ARGS_state_rm=\t-dry-run\n", "TF_CLI_ARGS_state=-no",
				"TF_CLI_ARGS_plan='"},
			want: []string{"state", "rm", "-dry-run", "-lock=false", "-no-color", "-lock=true", "x"},
		},
		"an argument of a variable": {
			args: []string{"output"}, environ: []string{"TF_CLI_ARGS_output=-raw text"}, want: []string{"output", "-raw", "text"},
		},
		"help":            {args: []string{"apply", "-help"}, want: []string{"apply", "-help"}},
		"help about all":  {args: []string{"--help"}, want: []string{"-help"}},
		"version":         {args: []string{"-v"}, environ: []string{"TF_CLI_ARGS='"}, want: []string{"-v"}},
		"version, a word": {args: []string{"version", "-json"}, want: []string{"version", "-json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "arguments environ", c.args...)
			o.Environ = append(o.Environ, c.environ...)
			code, err := wrap.Run(t.Context(), o)
			dir, _ = filepath.EvalSymlinks(dir)
			want := fmt.Sprintf("%q\n", append([]string{"-chdir=" + dir}, c.want...))
			if code != 0 || err != nil || !strings.HasPrefix(out.String(), want) {
				t.Errorf("got %d, %v: %s\nwant %s", code, err, out, want)
			}
			if strings.Contains(out.String(), "TF_CLI_ARGS") {
				t.Errorf("the child can read the variables: %s", out)
			}
		})
	}
}

// The child works in the folder that wrap has looked at: as the system follows
// links, and not as the text reads.
//
// Promise: Only encrypted states
func TestPaths(t *testing.T) {
	t.Parallel()
	o, dir, out := scripted(t, newStore(t), "ready", "plan")
	there := t.TempDir()
	write(t, filepath.Join(there, "in", "x"), "")
	write(t, filepath.Join(there, "mm", "main.tf"), inside(`backend "local" {}`))
	write(t, filepath.Join(there, "p.tfplan"), plan(t, "local", ""))
	write(t, filepath.Join(dir, "mm", "main.tf"), inside(empty))
	write(t, filepath.Join(dir, "p.tfplan"), plan(t, "http", ""))
	if err := os.Symlink(filepath.Join(there, "in"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	mistakes := wraptest.OpenMistakes(t, "paths")
	for name, c := range map[string]struct{ chdir, plan string }{
		"module by a link": {chdir: dir + "/link/../mm"}, "plan by a link": {chdir: dir, plan: "link/../p.tfplan"},
		"no such folder": {chdir: dir + "/nowhere"}, "no name": {}, "a home": {chdir: "~"},
	} {
		again := o
		again.Command = []string{o.Command[0], "-chdir=" + c.chdir, "apply"}
		if c.plan != "" {
			again.Command = append(again.Command, c.plan)
		}
		code, err, told := run(t, again)
		mistakes.Ended(t, name, told, code, err)
		if out.String() != "" {
			t.Errorf("%s: the child was run: %s", name, out)
		}
	}
}

// What does no harm is let through.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		files map[string]string
	}{
		"a plan":           {args: []string{"apply", "tfplan"}, files: map[string]string{"tfplan": plan(t, "http", "")}},
		"init":             {args: []string{"init", "-input=false"}},
		"state":            {args: []string{"state", "pull"}},
		"errored.tfstate":  {args: []string{"plan"}, files: map[string]string{"errored.tfstate": string(seal(t, sealing, state))}},
		"JSON":             {args: []string{"plan"}, files: map[string]string{"main.tf": " ", "x.tf.json": `{"terraform":{"backend":{"http":{}}}}`}},
		"hidden":           {args: []string{"plan"}, files: map[string]string{".x.tf": inside(`backend "local" {}`)}},
		"a record":         {args: []string{"plan"}, files: map[string]string{".terraform/terraform.tfstate": `{"backend":{"type":"s3"}}`}},
		"a record of ours": {args: []string{"plan"}, files: map[string]string{"OWN/terraform.tfstate": `{"backend":{"type":"s3"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "ready GET", c.args...)
			for path, text := range c.files {
				path = strings.Replace(path, "OWN", own(dir), 1)
				write(t, filepath.Join(dir, path), text)
			}
			code, err := wrap.Run(t.Context(), o)
			// What wrap says may come before what the child printed earlier.
			lines := slices.DeleteFunc(strings.Split(out.String(), "\n"), func(l string) bool { return strings.HasPrefix(l, "statecrypt: ") })
			if code != 0 || err != nil || len(lines) < 2 || lines[0] != "ready" || lines[1] != "GET 404 " {
				t.Errorf("%d, %v\n%s", code, err, out)
			}
		})
	}
}

// Before a run that changes something, it is tried whether a state can be written.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	readOnly := keys + `method "sops" "s" {}` + "\nstate {\nmethod = method.unencrypted.u\nfallback { method = method.aes_gcm.m }\n}"
	mine, err := age.GenerateX25519Identity()
	another, errAnother := age.GenerateX25519Identity()
	if err := errors.Join(err, errAnother); err != nil {
		t.Fatal(err)
	}
	theirs := `method "age" "theirs" {
 recipients = ["` + mine.Recipient().String() + "\"]\nidentities = [\"" + another.String() + "\"]\n}\n" +
		`method "age" "mine" { identities = ["` + mine.String() + "\"] }\n" +
		"state {\nmethod = method.age.theirs\nfallback { method = method.age.mine }\n}"
	mistakes := wraptest.OpenMistakes(t, "rehearsal")
	alone := strings.Replace(theirs, "fallback { method = method.age.mine }", "", 1)
	for name, c := range map[string]struct{ text, command, script string }{
		"for others alone":       {text: alone, command: "apply"},
		"not encrypted, errored": {text: readOnly, command: "plan", script: "GET leave=errored.tfstate"},
		"for others":             {text: theirs, command: "apply"},
		"not encrypted":          {text: readOnly, command: "apply"},
		"not encrypted, reader":  {text: readOnly, command: "plan"},
		"wrong key": {text: `key_provider "static" "k" { key = "` + canary + `" }` + "\n" + `method "aes_gcm" "m" { keys = key_provider.static.k }` +
			"\nstate { method = method.aes_gcm.m }",
			command: "apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _, out := scripted(t, newStore(t), cmp.Or(c.script, "ready"), c.command)
			o.Keys.State = target(t, c.text)
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if (out.String() == "") != (err != nil) && c.script == "" {
				t.Errorf("it printed %q", out)
			}
		})
	}
}

// inside is a module with text in its terraform block.
func inside(text string) string { return "terraform {\n" + text + "\n}\n" }

// plan is a plan, as far as it is looked at, with one setting or none.
func plan(t *testing.T, kind, setting string) string {
	t.Helper()
	return planOf(t, kind, setting, "")
}

// planOf is a plan with a text in it.
func planOf(t *testing.T, kind, setting, text string) string {
	t.Helper()
	config := map[string]cty.Value{}
	for _, name := range []string{"address", "password", "retry_max"} {
		config[name] = cty.NullVal(cty.String)
		if name == setting {
			config[name] = cty.StringVal(canary)
		}
	}
	object := cty.ObjectVal(config)
	packed, err := msgpack.Marshal(object, object.Type())
	if err != nil {
		t.Fatal(err)
	}
	message := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	backend := append(message(1, []byte(kind)), message(2, message(1, packed))...)
	version := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
	return archive(t, string(append(version, message(13, backend)...))+string(message(3, []byte(text))))
}

// holds reports whether a plan has a text in it, and our backend without settings.
func holds(t *testing.T, content []byte, text string) bool {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := fs.ReadFile(archive, "tfplan")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(plan, []byte(text)) && bytes.Contains(plan, []byte("\xa8password\xc0")) && bytes.Contains(plan, []byte("\x04http"))
}

// archive is a zip archive with members as in a plan.
func archive(t *testing.T, tfplans ...string) string {
	t.Helper()
	var b strings.Builder
	z := zip.NewWriter(&b)
	_, _ = z.Create("tfstate")
	for _, tfplan := range tfplans {
		w, err := z.Create("tfplan")
		if err == nil {
			_, err = w.Write([]byte(tfplan))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
