package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
)

const (
	canary    = "c4n4ry"
	canaryKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddee" // hexadecimal, but for its last byte
	oldText   = `
key_provider "static" "old" { key = "` + canaryKey + `01" }
method "aes_gcm" "old" { keys = key_provider.static.old }
`
	newText = `
key_provider "static" "new" { key = "` + canaryKey + `02" }
method "aes_gcm" "new" { keys = key_provider.static.new }
`
	onlyOld   = oldText + "state {\n  method = method.aes_gcm.old\n  enforced = true\n}\nplan { method = method.aes_gcm.old }\n"
	onlyNew   = newText + "state {\n  method = method.aes_gcm.new\n}\n"
	newAndOld = oldText + newText + "state {\n  method = method.aes_gcm.new\n  fallback { method = method.aes_gcm.old }\n}\n"
	migration = newText + plainText + "state {\n  method = method.aes_gcm.new\n  fallback { method = method.unencrypted.p }\n}\n"
	plainText = "method \"unencrypted\" \"p\" {}\n"
	plain     = `{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l-1","outputs":{` +
		`"n":{"value":12345678901234567890.1230,"type":"number"},"s":{"value":"c4n4ry<&>","type":"string","sensitive":true}},` +
		`"resources":[{"mode":"managed","type":"x","name":"y","provider":"p","instances":[{"attributes":{"id":"c4n4ry"}}]}],"check_results":null}`
)

// called is what became of a call.
type called struct {
	code           int
	stdout, stderr string
}

// statecrypt calls the program in this process, with settings in TF_ENCRYPTION.
func statecrypt(t *testing.T, settings, stdin string, args ...string) called {
	t.Helper()
	var stdout, stderr bytes.Buffer
	environ := []string{"TERM=xterm"}
	if settings != "" {
		environ = append(environ, "TF_ENCRYPTION="+settings)
	}
	code := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr, environ)
	if strings.Contains(stderr.String(), canary) || strings.Contains(stderr.String(), canaryKey) {
		t.Errorf("%q: a secret is on standard error: %s", args, stderr.String())
	}
	return called{code, stdout.String(), stderr.String()}
}

// must returns the output of a call that succeeds.
func must(t *testing.T, settings, stdin string, args ...string) string {
	t.Helper()
	c := statecrypt(t, settings, stdin, args...)
	if c.code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, c.code, c.stderr)
	}
	return c.stdout
}

// emptyPlan is an archive that is a plan by its member alone.
func emptyPlan(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	z := zip.NewWriter(&b)
	if _, err := z.Create("tfplan"); err != nil || z.Close() != nil {
		t.Fatal("the archive cannot be written")
	}
	return b.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(t.TempDir(), name)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRotation(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	if strings.Contains(sealed, canary) || sealed == must(t, onlyOld, plain, "encrypt") {
		t.Errorf("encrypt wrote %s", sealed)
	}
	file := write(t, "a.tfstate", sealed)
	if got := must(t, onlyOld, "", "decrypt", file); got != plain {
		t.Errorf("got %s", got)
	}
	rotated := must(t, newAndOld, must(t, newAndOld, sealed, "decrypt", "-"), "encrypt")
	if got := must(t, "", rotated, "decrypt", "-config", write(t, "new.hcl", onlyNew)); got != plain {
		t.Errorf("got %s", got)
	}
	if c := statecrypt(t, newAndOld, sealed, "decrypt"); !strings.Contains(c.stderr, "warning: standard input was opened by the fallback") {
		t.Errorf("no warning in %q", c.stderr)
	}
}

// A shell has emptied the file that it also writes to, and no program before has failed.
func TestEmptyInput(t *testing.T) {
	t.Parallel()
	in, err := os.Open(write(t, "state", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"encrypt"}, in, io.Discard, &stderr, []string{"TF_ENCRYPTION=" + onlyOld})
	if code != exitFailure || !strings.Contains(stderr.String(), "error: standard input: it is an empty file; a shell that writes with >") {
		t.Errorf("%d, %s", code, stderr.String())
	}
}

// Quotes around name = value of the settings make the space part of the name.
func TestSpaceInVar(t *testing.T) {
	t.Parallel()
	got := statecrypt(t, onlyOld, plain, "encrypt", "-var", "x = c4n4ry")
	if got.code != exitUsage || !strings.Contains(got.stderr, "-var requires NAME=VALUE, without a space beside the name") {
		t.Errorf("%+v", got)
	}
}

// What is encrypted with other settings than those of -config is said: nothing fails.
func TestNoteOfEnvironment(t *testing.T) {
	t.Parallel()
	config := write(t, filepath.Join(t.TempDir(), "old.hcl"), onlyOld)
	for settings, noted := range map[string]bool{onlyNew: true, "": false, " \n": false} {
		got := statecrypt(t, settings, plain, "encrypt", "-config", config)
		if got.code != 0 || strings.Contains(got.stderr, "note: TF_ENCRYPTION is set, and merged over") != noted {
			t.Errorf("%q: %+v", settings, got)
		}
	}
	if got := statecrypt(t, onlyNew, plain, "encrypt"); got.stderr != "" {
		t.Error(got.stderr)
	}
}

// What is probably not meant in a key is said when something is sealed with it, and not when
// -again has opened the file with it.
func TestNoteOfDoubts(t *testing.T) {
	t.Parallel()
	right := write(t, "right.hcl", settings("x"))
	odd := write(t, "odd.hcl", strings.Replace(settings("x"), ` passphrase"`, ` passphrase\n"`, 1))
	file := write(t, "a.tfstate", must(t, "", plain, "encrypt", "-config", right))
	const note = "note: the passphrase of key_provider.pbkdf2.k ends with a line break"
	for _, c := range []struct {
		args  []string
		noted bool
	}{
		{[]string{"encrypt", "-config", right}, false},
		{[]string{"encrypt", "-config", odd}, true},
		{[]string{"rotate", "-from", right, "-to", odd, file}, true},
		{[]string{"rotate", "-again", "-to", odd, file}, false},
		{[]string{"verify", "-config", odd, file}, false},
	} {
		got := statecrypt(t, "", plain, c.args...)
		if got.code != 0 || strings.Contains(got.stderr, note) != c.noted {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}

// The settings of a module are merged as OpenTofu does it: TF_ENCRYPTION is laid over
// the code.
func TestModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.tf"), "variable \"pass\" {}\nterraform {\n encryption {\n"+
		strings.Replace(onlyOld, `"`+canaryKey+`01"`, "var.pass", 1)+"}\n}\n")
	sealed := must(t, onlyOld, plain, "encrypt")
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"variables":     {environ: []string{"TF_VAR_pass=" + canaryKey + "01"}},
		"no variables":  {want: "var.pass"},
		"TF_ENCRYPTION": {environ: []string{"TF_ENCRYPTION=" + oldText}},
		"another method": {environ: []string{"TF_VAR_pass=" + canaryKey + "01", "TF_ENCRYPTION=" + onlyNew},
			want: "the method was chosen by TF_ENCRYPTION"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"decrypt", "-config", dir}, strings.NewReader(sealed), &stdout, &stderr, c.environ)
			if c.want == "" && (code != 0 || stdout.String() != plain) ||
				c.want != "" && (code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), c.want)) {
				t.Errorf("got %d, %q, %q", code, stdout.String(), stderr.String())
			}
			if strings.Contains(stderr.String(), canaryKey) {
				t.Errorf("a secret is on standard error: %s", stderr.String())
			}
		})
	}
}

// The values of a module are those that OpenTofu takes, and whoever seals with one of
// a file is told so: the default would be another key.
func TestValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name, text string) string { return write(t, filepath.Join(dir, name), text) }
	keys := strings.Replace(onlyOld, `"`+canaryKey+`01"`, "var.pass", 1)
	in("a.tf", "variable \"pass\" { default = \""+canaryKey+"02\" }\nterraform {\n encryption {\n"+keys+"}\n}\n")
	right, wrong := "pass = \""+canaryKey+"01\"\n", "pass = \""+canaryKey+"03\"\n"
	in("terraform.tfvars", right)
	wrongFile, rightFile, text := in("wrong.tfvars", wrong), in("right.tfvars", right), in("keys.hcl", keys)
	for name, c := range map[string]struct {
		args, environ []string
		code          int
		want          string // on standard error
	}{
		"a file of the module": {args: []string{"-config", dir},
			want: "note: var.pass is set in " + filepath.Join(dir, "terraform.tfvars") + "\n"},
		"over TF_VAR": {args: []string{"-config", dir}, environ: []string{"TF_VAR_pass=x"}, want: "terraform.tfvars"},
		"-var":        {args: []string{"-config", dir, "-var-file", wrongFile, "-var", "pass=" + canaryKey + "01"}},
		"-var-file": {args: []string{"-config", dir, "-var=pass=x", "-var-file=" + rightFile},
			want: "note: var.pass is set in " + rightFile},
		"-var, text":      {args: []string{"-config", text, "-var", "pass=" + canaryKey + "01"}, environ: []string{"TF_VAR_pass=x"}},
		"-var-file, text": {args: []string{"-config", text, "-var-file", rightFile}, want: "right.tfvars"},
		"a -var that nothing uses": {args: []string{"-config", text, "-var", canaryKey + "=x", "-var-file", rightFile},
			want: "note: the settings do not use the variable of a -var; they use var.pass\n"},
		"no name":      {args: []string{"-config", dir, "-var", canaryKey}, code: 2, want: "-var requires NAME=VALUE, such as"},
		"not declared": {args: []string{"-config", dir, "-var", "pas=" + canaryKey}, code: 1, want: `declares no variable "pas"; check the name. Did you mean "pass"?`},
		"no such file": {args: []string{"-config", dir, "-var-file", dir + "/x.tfvars"}, code: 1, want: `x.tfvars" cannot be read: no such file or directory; check the path: it is looked for in`},
		"nothing":      {args: []string{"-config", text}, code: 1, want: "var.pass has no value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"encrypt"}, c.args...), strings.NewReader(plain), &stdout, &stderr, c.environ)
			if code != c.code || !strings.Contains(stderr.String(), c.want) || strings.Contains(stderr.String(), canaryKey) ||
				c.want == "" && stderr.Len() > 0 {
				t.Fatalf("got %d, %s", code, stderr.String())
			}
			if code == 0 {
				if got := must(t, onlyOld, stdout.String(), "decrypt"); got != plain {
					t.Errorf("got %s", got)
				}
			}
		})
	}
}

// TestRefusals has each class of errors. Nothing is on standard output, whatever
// goes wrong.
func TestRefusals(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	flipped := []byte(sealed)
	same := write(t, "same.hcl", onlyOld)
	flipped[bytes.Index(flipped, []byte(`"encrypted_data":"`))+200] ^= 1
	dir, states := t.TempDir(), t.TempDir()
	write(t, filepath.Join(states, "a.tfstate"), sealed)
	for name, c := range map[string]struct {
		args     string
		settings string
		stdin    string
		code     int
		want     string
	}{
		"no command":      {args: "", code: 2, want: "statecrypt decrypt [FILE]"},
		"unknown command": {args: "decrpt", code: 2, want: `Did you mean "decrypt"`},
		"a secret flag":   {args: "decrypt -phunter2", code: 2, want: "decrypt has no flag that begins with -p; it has -config"},
		"unknown flag":    {args: "decrypt -x", code: 2, want: "decrypt has no flag -x; it has -config, -var, "},
		"misspelt flag": {args: "verify -cofnig k.hcl", code: 2,
			want: "verify has no flag -cofnig; did you mean -config; see statecrypt verify -h"},
		"no flags at all": {args: "version -v", code: 2, want: "version has no flags"},
		"flag of another command": {args: "encrypt -force", code: 2,
			want: "encrypt has no flag -force; it is a flag of decrypt, outputs, wrap; see"},
		"flag of nothing":       {args: "encrypt -dry-run", code: 2, want: "encrypt has no flag -dry-run; it has -config, -var, "},
		"inspect with settings": {args: "inspect -config k a", code: 2, want: "no flag -config; it requires no settings; leave that out; see"},
		"outputs with settings": {args: "outputs -config k a", code: 2, want: "it reads plaintext: statecrypt decrypt -config FILE STATE | "},
		"a switch with a value": {args: "decrypt -force=c4n4ry a", code: 2, want: "error: -force has no value: write -force alone; see"},
		"no value":              {args: "decrypt a -o", code: 2, want: "error: -o requires a value, and none follows; see statecrypt decrypt -h"},
		"-only with spaces":     {args: "outputs -only a b c", code: 2, want: "several names in -only are one argument, with commas"},
		"wrap of nothing":       {args: "wrap", code: 2, want: "and none was given, such as statecrypt wrap -config FILE -- terraform plan; see"},
		"-config of a program":  {args: "wrap terraform plan -config x", code: 2, want: "-config belongs before the program: statecrypt wrap"},
		"settings as a file": {args: "decrypt keys.hcl", code: 2, want: "settings are given with -config: statecrypt decrypt " +
			"-config keys.hcl …"},
		"settings as a program": {args: "wrap keys.hcl -- terraform plan", code: 2, want: "with -config: statecrypt wrap -config keys.hcl …"},
		"a synonym":             {args: "rekey x", code: 2, want: `no command "rekey". Did you mean "rotate"?`},
		"a value of a switch":   {args: "decrypt -plan true a", code: 2, want: "a flag such as -plan has no value: leave out true"},
		"no such command":       {args: "sael x", code: 2, want: `no command "sael"; there are: inspect, decrypt, encrypt, verify, rotate, outputs,`},
		"command of Terraform":  {args: "apply", code: 2, want: "run under wrap: statecrypt wrap -config FILE -- terraform plan"},
		"program before":        {args: "terraform plan", code: 2, want: "run under wrap: statecrypt wrap -config FILE -- terraform plan"},
		"almost outputs":        {args: "output x", code: 2, want: "Did you mean \"outputs\"?\n"},
		"-passphrase": {args: "decrypt -passphrase x", code: 2, want: "the settings of -config say where the key is, such " +
			"as var.passphrase"},
		"-password of rotate": {args: "rotate -password x", code: 2, want: "the settings of -from and -to say where the keys are"},
		"-raw":                {args: "outputs -raw x", code: 2, want: "jq -r .outputs.NAME.value"},
		"-dry-run":            {args: "rotate -dry-run x", code: 2, want: "statecrypt verify -config FILE tells what"},
		"-in":                 {args: "decrypt -in x", code: 2, want: "the names of files follow the flags"},
		"-recursive":          {args: "verify -recursive .", code: 2, want: "the shell or find gives the names"},
		"-in-place":           {args: "encrypt -in-place x", code: 2, want: "with -o, it writes to a file, which may be the one that is read"},
		"-in-place of rotate": {args: "rotate -in-place x", code: 2, want: "it replaces the files anyway"},
		"-method":             {args: "decrypt -method aes_gcm", code: 2, want: "state { method = method.aes_gcm.main }"},
		"-verbose":            {args: "decrypt -verbose x", code: 2, want: "there is no more to say"},
		"-recipients":         {args: "key-provider age -recipients x", code: 2, want: "did you mean -r, or -R for a file of them"},
		"outputs and a name":  {args: "outputs x vpc_id", code: 2, want: "and 2 were given; names of outputs are given with -only"},
		"-from unencrypted":   {args: "rotate -from unencrypted -to x y", code: 2, want: "statecrypt encrypt encrypts what is not encrypted"},
		"-to unencrypted":     {args: "rotate -from x -to unencrypted y", code: 2, want: "statecrypt decrypt decrypts what is encrypted"},
		"-out":                {args: "decrypt -out x", code: 2, want: "no flag -out; did you mean -o; see"},
		"a long dash":         {args: "decrypt –config k a", code: 2, want: "one begins with a long dash, as word processors write it"},
		"a slash":             {args: "decrypt /config k a", code: 2, want: "flags begin with - and not with /: -config; see"},
		"-no-color":           {args: "verify -no-color a", code: 2, want: "what it prints has no colors; leave it out"},
		"-input":              {args: "decrypt -input=false a", code: 2, want: "it asks nothing; leave it out"},
		"-chdir":              {args: "decrypt -chdir=x a", code: 2, want: "(cd FOLDER && statecrypt …)"},
		"settings at a URL":   {args: "decrypt -config https://example.com/k a", code: 1, want: "this is an address, and a path is required"},
		"settings in git":     {args: "decrypt -config git@example.com:k a", code: 1, want: "this is an address, and a path is required"},
		"rotate of both":      {args: "rotate -backend a", code: 2, want: "and one was given; leave out -backend, or the files"},
		"rotate of nothing":   {args: "rotate -from a -to b", code: 2, want: "and none was given; name the files, which are replaced"},
		"misspelt settings": {args: "decrypt -config " + strings.Replace(same, "same", "sam", 1), code: 1,
			want: `sam.hcl" cannot be read: no such file or directory; check the path: it is looked for in "` + filepath.Dir(same) + `". Did you mean "same.hcl"?`},
		"no such folder": {args: "decrypt " + dir + "/a/b/x", settings: onlyOld, code: 1,
			want: `no such file or directory; check the path: the last folder of it that exists is "` + dir + `"`},
		"a folder is named": {args: "decrypt " + dir, settings: onlyOld, code: 1, want: "is a directory; the name of a file is required"},
		"settings and state, exchanged": {args: "decrypt -config " + filepath.Join(states, "a.tfstate") + " " + same, code: 1,
			want: "is " + same + " the one with the settings?"},
		"over the settings": {args: "decrypt -config " + same + " -o " + same, stdin: sealed, code: 1,
			want: "the settings are in it; name another"},
		"a file for a key provider": {args: "key-provider age " + filepath.Join(states, "a.tfstate"), code: 2,
			want: "it encrypts no files, which statecrypt encrypt does"},
		"a folder with states": {args: "decrypt " + states, settings: onlyOld, code: 1,
			want: "the name of a file is required, such as " + filepath.Join(states, "a.tfstate")},
		"a pattern in quotation marks": {args: "decrypt " + states + "/*.tfstate", settings: onlyOld, code: 1,
			want: "this is a pattern in quotation marks; remove them"},
		"a pattern beside states": {args: "decrypt " + states + "/*.json", settings: onlyOld, code: 1,
			want: "no file matches it; there is " + filepath.Join(states, "a.tfstate")},
		"two files": {args: "decrypt a b", code: 2,
			want: "decrypt requires one file, or none for standard input, and 2 were given; settings are given with -config; see"},
		"no file":                {args: "verify", code: 2, want: "verify requires one file or more, and none was given; see"},
		"no such shell":          {args: "completion tcsh", code: 2, want: "no completion for tcsh;"},
		"no settings":            {args: "decrypt", stdin: sealed, code: 1, want: "-config, or TF_ENCRYPTION if it is exported, must say"},
		"no settings, plaintext": {args: "decrypt", stdin: plain, code: 1, want: "-config, or TF_ENCRYPTION if it is exported, must say"},
		"no settings, encrypt":   {args: "encrypt", stdin: plain, code: 1, want: "-config, or TF_ENCRYPTION if it is exported, must say"},
		"settings for states only": {args: "decrypt -plan", settings: onlyNew, stdin: sealed, code: 1,
			want: "the settings have a state block and no plan block: for a state, leave out -plan; to use the same method for both, " +
				"add plan { method = method.aes_gcm.new }"},
		"settings for plans only": {args: "wrap terraform plan", settings: strings.Replace(onlyNew, "state {", "plan {", 1), code: 1,
			want: "the settings have a plan block and no state block: to use the same method for both, add state { method = method.aes_gcm.new }"},
		"the same, with -plan": {args: "verify x", settings: strings.Replace(onlyNew, "state {", "plan {", 1), code: 1,
			want: "the settings have a plan block and no state block: for a plan, add -plan; to use the same method for both, "},
		"an abbreviated flag":  {args: "decrypt -c k.hcl", code: 2, want: "decrypt has no flag -c; did you mean -config; see"},
		"an elaborate flag":    {args: "encrypt -output x", code: 2, want: "encrypt has no flag -output; did you mean -o; see"},
		"-config of rotate":    {args: "rotate -config k.hcl", code: 2, want: "given with -from, and the new ones with -to; see"},
		"-o of rotate":         {args: "rotate -o x", code: 2, want: "rotate has no flag -o; it replaces the files themselves; see"},
		"a flag of Terraform":  {args: "wrap -auto-approve -- terraform apply", code: 2, want: "-- terraform apply -auto-approve;"},
		"a recipient":          {args: "key-provider age --recipient x", code: 2, want: "no flag -recipient; did you mean -r; see"},
		"a file of recipients": {args: "key-provider age team.txt", code: 2, want: "recipients are given with -r, and files with -R or -i; see"},
		"a flag as a value":    {args: "encrypt -config -o a b", code: 2, want: "-config requires a value, and the flag -o follows; see"},
		"settings from a pipe": {args: "encrypt -config - a", code: 2, want: "-config requires the name of a file; standard input is for"},
		"two files, -config":   {args: "decrypt -config k a b", code: 2, want: "and 2 were given; verify and rotate work on several; see"},
		"a flag first":         {args: "-config=c4n4ry decrypt a", code: 2, want: "no flag -config before the command: flags follow it;"},
		"a file first":         {args: same, code: 2, want: "is a file; a command comes first, such as statecrypt inspect FILE; see"},
		"a home in quotes":     {args: "decrypt ~/none", settings: onlyNew, code: 1, want: "in place of ~ only if it is not quoted"},
		"plaintext for a state": {args: "decrypt", settings: onlyOld, stdin: plain, code: 1, want: "it can be read as it is; " +
			"statecrypt encrypt encrypts it."},
		"a state as settings": {args: "decrypt", settings: plain, stdin: sealed, code: 1, want: "TF_ENCRYPTION:1,1: this is a state, and the " +
			"encryption settings are required here"},
		"an encrypted state as settings": {args: "decrypt", settings: sealed, stdin: sealed, code: 1, want: "this is an encrypted state, and"},
		"a plan as settings": {args: "decrypt", settings: "PK\x03\x04", stdin: sealed, code: 1,
			want: "this is a plan or another zip"},
		"single quotes": {args: "decrypt", settings: "method 'aes_gcm' \"m\" {}", stdin: sealed, code: 1,
			want: `single quotes are not used here; use double quotes (")`},
		"curly quotes": {args: "decrypt", settings: "method “aes_gcm” \"m\" {}", stdin: sealed, code: 1,
			want: `these are curly quotes, as word processors write them; use straight double quotes (")`},
		"no method": {args: "decrypt", settings: oldText, stdin: sealed, code: 1, want: "add state { method = method.aes_gcm.old }"},
		"no method for plans": {args: "encrypt -plan", settings: oldText, stdin: sealed, code: 1,
			want: "add plan { method = method.aes_gcm.old }"},
		"-plan is missing": {args: "encrypt", settings: onlyOld, stdin: emptyPlan(t), code: 1,
			want: "this is a plan, and a state is required here; add -plan"},
		"-plan is too much": {args: "encrypt -plan", settings: onlyOld, stdin: plain, code: 1,
			want: "a plan is required here; leave out -plan"},
		"outputs of a plan": {args: "outputs", stdin: emptyPlan(t), code: 1, want: "this is a plan; terraform show -json shows what is in it"},
		"outputs of output -json": {args: "outputs", stdin: `{"x":{"sensitive":false,"type":"string","value":"c4n4ry"}}`, code: 1,
			want: "output -json"},
		"settings that are broken": {args: "decrypt", settings: `key_provider {`, stdin: sealed, code: 1, want: "TF_ENCRYPTION:1"},
		"no such settings":         {args: "decrypt -config " + dir + "/none", stdin: sealed, code: 1, want: "cannot be read"},
		"wrong key":                {args: "decrypt", settings: onlyNew, stdin: sealed, code: 1, want: "add the old one as a fallback"},
		"a flipped bit":            {args: "decrypt", settings: onlyOld, stdin: string(flipped), code: 1, want: "standard input: "},
		"cut off":                  {args: "decrypt", settings: onlyOld, stdin: sealed[:len(sealed)-9], code: 1, want: "standard input: "},
		"empty": {args: "decrypt", settings: onlyOld, code: 1, want: "it is empty; name the file to read, or " +
			"see whether the program before it failed"},
		"plaintext":    {args: "decrypt", settings: onlyNew, stdin: plain, code: 1, want: `only if the method or a fallback is "unencrypted"`},
		"no such file": {args: "decrypt " + dir + "/x", settings: onlyOld, code: 1, want: "no such file"},
		"a folder":     {args: "decrypt " + dir, settings: onlyOld, code: 1, want: "is a directory"},
		"encrypted twice": {args: "encrypt", settings: onlyOld, stdin: sealed, code: 1,
			want: "encrypted already; to change its key or method, use statecrypt rotate"},
		"plaintext again": {args: "decrypt", settings: onlyNew, stdin: plain, code: 1,
			want: "it can be read as it is; statecrypt encrypt encrypts it."},
		"a pattern": {args: "decrypt " + dir + "/*.gone", settings: onlyNew, code: 1,
			want: "no such file or directory: this is a pattern, and no file matches it"},
		"a brace too many": {args: "decrypt", settings: onlyOld, stdin: sealed + "}", code: 1, want: "something follows its JSON, " +
			"which ends at byte"},
		"a URL":          {args: "decrypt https://example.com/s", settings: onlyOld, code: 1, want: "this is a URL; fetch the file first"},
		"an empty -only": {args: "outputs -only=,n", stdin: plain, code: 2, want: "a name in -only is empty"},
		"a zip": {args: "encrypt -plan", settings: onlyOld, stdin: "PK\x03\x04\xff", code: 1,
			want: "it is a zip archive, and no plan"},
		"-o is -config": {args: "encrypt -config " + same + " -o " + same, stdin: plain, code: 1, want: "the settings are in it"},
		"no settings in a file": {args: "decrypt -config " + write(t, "empty.hcl", "\n"), stdin: sealed, code: 1,
			want: "there are no encryption settings in "},
		"swapped labels": {args: "decrypt", settings: strings.Replace(onlyNew, `method "aes_gcm" "new"`, `method "new" "aes_gcm"`, 1), stdin: sealed,
			code: 1, want: "method.aes_gcm.new is not configured, but method.new.aes_gcm is: the kind comes before the name"},
		"backend without a kind": {args: "decrypt -config " + write(t, "backend.hcl", "backend {}\n"), stdin: sealed, code: 1,
			want: `must have 1 labels (type). It is in quotes, as in backend "http".`},
		"a file of the environment as values": {args: "decrypt -config " + write(t, "old.hcl", onlyOld) + " -var-file " +
			write(t, "env", "export TF_VAR_x=y\n"), stdin: sealed, code: 1, want: "sets variables of a shell"},
		"a value as a file of values": {args: "decrypt -var-file x=" + canaryKey + " -config " + write(t, "values.hcl", onlyOld), stdin: sealed,
			code: 1, want: "-var-file requires the name of a file; a value is given with -var NAME=VALUE"},
		"UTF-16": {args: "decrypt", settings: "\xff\xfes\x00", stdin: sealed, code: 1, want: "TF_ENCRYPTION:1,1: this is UTF-16"},
		"variable": {args: "decrypt", settings: strings.Replace(onlyNew, "method.aes_gcm.new", "method.aes_gcm.v", 1) +
			"key_provider \"static\" \"v\" { key = var.x }\nmethod \"aes_gcm\" \"v\" { keys = key_provider.static.v }\n", stdin: sealed, code: 1,
			want: "In TF_ENCRYPTION, write the value itself; var.NAME is for the file of -config."},
		"a method as a key": {args: "decrypt",
			settings: strings.Replace(onlyNew, "keys = key_provider.static.new", "keys = method.aes_gcm.new", 1),
			stdin:    sealed, code: 1, want: "keys and chain reference key_provider.TYPE.NAME"},
		"-config is empty":       {args: "decrypt -config=", stdin: sealed, code: 2, want: "-config is empty; is a variable empty?"},
		"-config is there twice": {args: "decrypt -config a -config b", stdin: sealed, code: 2, want: "-config is given twice"},
		"JSON in single quotes": {args: "decrypt", settings: "{'state': {}}", stdin: sealed, code: 1,
			want: `TF_ENCRYPTION:1,1: this is JSON with single quotes; JSON requires double quotes (")`},
		"base64": {args: "decrypt", settings: base64.StdEncoding.EncodeToString([]byte(onlyOld)), stdin: sealed, code: 1,
			want: "TF_ENCRYPTION:1,1: this is base64"},
		"a colon": {args: "decrypt", settings: "state {\n  method: x\n}", stdin: sealed, code: 1, want: `to set an argument, write NAME = "value"`},
		"blocks on one line": {args: "decrypt", settings: "state { fallback { } }", stdin: sealed, code: 1,
			want: "a block with blocks in it has them on lines of their own"},
		"a provider block": {args: "decrypt", settings: "provider \"statecrypt\" {\n}", stdin: sealed, code: 1,
			want: `which begins with key_provider "pbkdf2" "main"`},
		"a terraform block": {args: "decrypt", settings: "terraform {\n}", stdin: sealed, code: 1,
			want: "Only what is inside the encryption block is required here."},
		"a backend block": {args: "decrypt", settings: "backend \"http\" {\n}", stdin: sealed, code: 1, want: "It is for statecrypt " +
			"wrap, in the file of its -config"},
		"a variable block": {args: "decrypt", settings: "variable \"x\" {\n}", stdin: sealed, code: 1, want: "they are used as var.NAME"},
		"a folder to read": {args: "inspect " + t.TempDir(), code: 1, want: "is a directory; the name of a file is required"},
		"plaintext plan": {args: "decrypt -plan", settings: strings.Replace(onlyNew, "state {", "plan {", 1), stdin: emptyPlan(t), code: 1,
			want: "it can be read as it is; statecrypt encrypt -plan encrypts it."},
		"a file twice":        {args: "rotate -from a -to b x x", code: 2, want: "is named twice"},
		"a file by two names": {args: "rotate -from a -to b x ./x", code: 2, want: "is named twice"},
		"a secret command": {args: "decrypt -config " + write(t, "external.hcl", "key_provider \"external\" \"k\" { command = "+
			"[\"no-such --token="+canaryKey+"\"] }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.external.k }\n"+
			"state { method = method.aes_gcm.m }\n"),
			stdin: strings.ReplaceAll(sealed, "key_provider.static.old", "key_provider.external.k"), code: 1,
			want: "write each word of the command"},
		"-var that nothing uses": {args: "decrypt -var " + canaryKey + "=x " + dir + "/x", settings: onlyNew, code: 1,
			want: "note: a -var is for the settings of -config, and TF_ENCRYPTION uses no variables"},
		"no state": {args: "encrypt", settings: onlyOld, stdin: "c4n4ry", code: 1, want: "not a state"},
		"nothing to encrypt": {args: "encrypt " + write(t, "empty", ""), settings: onlyOld, code: 1,
			want: "a shell that writes with > to the file that is read"},
		"a state as a plan": {args: "encrypt -plan", settings: onlyOld, stdin: plain, code: 1, want: "this is a state"},
		"encrypt with plaintext": {args: "encrypt", settings: plainText + `state { method = method.unencrypted.p }`, stdin: plain, code: 1,
			want: "method.unencrypted.p encrypts nothing"},
		"command of environment": {args: "encrypt", stdin: plain, code: 1, want: "only the environment names this command",
			settings: `key_provider "external" "c" { command = ["c4n4ry"] }
				method "aes_gcm" "m" { keys = key_provider.external.c }
				state { method = method.aes_gcm.m }`},
		"outputs of nothing": {args: "outputs", code: 1, want: "standard input: it is empty"},
		"outputs, encrypted": {args: "outputs", stdin: sealed, code: 1,
			want: "encrypted (opentofu): statecrypt decrypt -config FILE STATE | statecrypt outputs"},
		"outputs, sops": {args: "outputs", stdin: `{"version":4,"outputs":{},"sops":{"mac":"x"}}`, code: 1,
			want: "encrypted (sops): statecrypt decrypt -config FILE STATE | statecrypt outputs"},
		"outputs, unknown":    {args: "outputs -only x", stdin: plain, code: 1, want: `there is no output "x"; there are: n, s`},
		"outputs, sensitive":  {args: "outputs -only n,s", stdin: plain, code: 1, want: `"s" is sensitive`},
		"outputs, version":    {args: "outputs", stdin: `{"version":5,"outputs":{}}`, code: 1, want: "format version 5"},
		"outputs, damaged":    {args: "outputs", stdin: `{"version":4,"outputs":["c4n4ry"]}`, code: 1, want: `"outputs" is not an object`},
		"outputs, no modules": {args: "outputs", stdin: `{"version":3}`, code: 1, want: "not a list"},
		"inspect, damaged": {args: "inspect", stdin: strings.Replace(sealed, `"encrypted_data":"`, `"encrypted_data":"!`, 1), code: 1,
			want: "damaged"},
		"a token in an address": {args: "decrypt https://ci:c4n4ry@git.example.com/x?private_token=c4n4ry", settings: onlyOld, code: 1,
			want: "error: https://git.example.com/x: "},
		"a token in -config": {args: "decrypt -config https://ci:c4n4ry@git.example.com/keys.hcl", code: 1,
			want: `error: "https://git.example.com/keys.hcl" cannot be read`},
		"a token in -o": {args: "decrypt -o https://ci:c4n4ry@git.example.com/x", settings: onlyOld, stdin: sealed, code: 2,
			want: "-o requires the path of a file, and https://git.example.com/x is an address"},
		"-o, a path of Windows": {args: `decrypt -o C:\temp\x`, settings: onlyOld, stdin: sealed, code: 2, want: "or a path of another system"},
		"a secret as settings":  {args: "decrypt -config pass:c4n4ry", code: 1, want: "and pass:… is how other programs name a secret"},
		"workflow command":      {args: "decrypt ##[x]", settings: onlyOld, code: 1, want: `#\u0023[x]`},
		"a file cannot replace": {args: "decrypt -o " + dir, settings: onlyOld, stdin: sealed, code: 1,
			want: "it is a directory; the name of a file is required"},
		"no folder": {args: "decrypt -o " + dir + "/none/x", settings: onlyOld, stdin: sealed, code: 1,
			want: "cannot be written: its folder must be made first: no such file or directory"},
		"no folder to write to": {args: "decrypt -o " + dir + "/no/file", settings: onlyOld, stdin: sealed, code: 1,
			want: "cannot be written"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := statecrypt(t, c.settings, c.stdin, strings.Fields(c.args)...)
			if got.code != c.code || got.stdout != "" || !strings.Contains(got.stderr, c.want) || strings.Contains(got.stderr, canary) {
				t.Errorf("got %d, %q, %q", got.code, got.stdout, got.stderr)
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("these were left: %v, %v", left, err)
	}
}

// TestUnusableFallback: a fallback that cannot be built is an error when its turn comes.
func TestUnusableFallback(t *testing.T) {
	t.Parallel()
	settings := func(first, second string) string {
		return oldText + `method "aes_gcm" "m" { keys = key_provider.static.gone }` + "\nstate {\n  method = method.aes_gcm." + first +
			"\n  fallback { method = method.aes_gcm." + second + " }\n}\n"
	}
	sealed := must(t, settings("old", "m"), plain, "encrypt")
	if got := must(t, settings("old", "m"), sealed, "decrypt"); got != plain {
		t.Errorf("got %s", got)
	}
	got := statecrypt(t, settings("m", "old"), sealed, "decrypt")
	if got.code != 1 || !strings.Contains(got.stderr, "key_provider.static.gone") {
		t.Errorf("got %+v", got)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string { return write(t, filepath.Join(dir, name), text) }
	o, n, p := file("old", must(t, onlyOld, plain, "encrypt")), file("new", must(t, onlyNew, plain, "encrypt")), file("plain", plain)
	byOld, byNew, byPlain := o+": fallback, method.aes_gcm.old\n", n+": ok, method.aes_gcm.new\n", p+": fallback, method.unencrypted.p\n"
	for name, c := range map[string]struct {
		settings string
		files    []string
		code     int
		want     string
	}{
		"primary":              {settings: newAndOld, files: []string{n}, code: 0, want: byNew},
		"fallback":             {settings: newAndOld, files: []string{o, n}, code: 3, want: byOld + byNew},
		"not opened":           {settings: newAndOld, files: []string{p, o}, code: 1, want: p + ": does not open\n" + byOld},
		"not opened, last":     {settings: newAndOld, files: []string{o, p}, code: 1, want: byOld + p + ": does not open\n"},
		"not there":            {settings: newAndOld, files: []string{dir + "/x", n}, code: 1, want: dir + "/x: does not open\n" + byNew},
		"plaintext allowed":    {settings: migration, files: []string{p, n}, code: 3, want: byPlain + byNew},
		"the key has changed":  {settings: onlyNew, files: []string{o}, code: 1, want: o + ": does not open\n"},
		"enforced, old method": {settings: onlyOld, files: []string{o}, code: 0, want: o + ": ok, method.aes_gcm.old\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := statecrypt(t, c.settings, "", append([]string{"verify"}, c.files...)...); got.code != c.code || got.stdout != c.want {
				t.Errorf("got %d, %q, %q", got.code, got.stdout, got.stderr)
			}
		})
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	for name, c := range map[string]struct{ file, json, text string }{
		"encrypted": {file: sealed, json: `{"file":"-","kind":"encrypted","format":"opentofu","encryption_version":"v0","serial":7,"lineage":"l-1",` +
			`"key_providers":["key_provider.static.old"]}`,
			text: "standard input: encrypted opentofu v0\n  serial: 7\n  lineage: l-1\n  key provider: key_provider.static.old\n"},
		"state":  {file: plain, json: `{"file":"-","kind":"state","serial":7,"lineage":"l-1"}`, text: "standard input: state\n  serial: 7\n  lineage: l-1\n"},
		"serial": {file: `{"version":4,"serial":"7"}`, json: `{"file":"-","kind":"state"}`, text: "standard input: state\n"},
		"plan":   {file: emptyPlan(t), json: `{"file":"-","kind":"plan"}`, text: "standard input: plan\n"},
		"empty":  {file: "", json: `{"file":"-","kind":"empty"}`, text: "standard input: empty\n"},
		"other":  {file: "x", json: `{"file":"-","kind":"unknown"}`, text: "standard input: unknown: it is not JSON from byte 1 on; check which file is read, or restore an intact copy\n"},
		"record": {file: `{"version":3,"backend":{"type":"http"}}`, json: `{"file":"-","kind":"backend_record"}`, text: "standard input: backend_record\n"},
		"sops": {file: `{"version":4,"sops":{"mac":"x"}}`, json: `{"file":"-","kind":"encrypted","format":"sops"}`,
			text: "standard input: encrypted sops\n"},
		"hostile": {file: `{"version":4,"lineage":"\u001b[2J ::error::"}`, json: `{"file":"-","kind":"state","lineage":"\u001b[2J ::error::"}`,
			text: "standard input: state\n  lineage: \\u001b[2J :\\u003aerror::\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := must(t, "", c.file, "inspect", "-json"); got != c.json+"\n" {
				t.Errorf("got %s", got)
			}
			if got := must(t, "", c.file, "inspect"); got != c.text {
				t.Errorf("got %s", got)
			}
		})
	}
	hostile := must(t, "", `{"version":4,"lineage":"##vso[x] \u009b\u202e"}`, "inspect", "-json")
	if want := `"lineage":"#\u0023vso[x] \u009b\u202e"}` + "\n"; !strings.HasSuffix(hostile, want) || !json.Valid([]byte(hostile)) {
		t.Errorf("got %s", hostile)
	}
	for name, file := range map[string]string{"envelope": sealed[:len(sealed)-1], "plan": "PK\x03\x04", "state": plain[:len(plain)-1]} {
		if got := statecrypt(t, "", file, "inspect"); got.code != 1 || got.stdout != "" || !strings.Contains(got.stderr, "the file ") {
			t.Errorf("%s, cut off: got %+v", name, got)
		}
	}
	a, missing := write(t, "a", sealed), filepath.Join(t.TempDir(), "x")
	got := statecrypt(t, "", "", "inspect", missing, a, "-json")
	if got.code != 1 || strings.Count(got.stdout, "\n") != 1 || !strings.Contains(got.stderr, "x: no such file") {
		t.Errorf("got %+v", got)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	got := statecrypt(t, "", plain, "outputs")
	if strings.Contains(got.stdout, canary) || !strings.Contains(got.stdout, `12345678901234567890.1230`) ||
		!strings.Contains(got.stderr, `the sensitive output "s" is left out`) {
		t.Errorf("got %+v", got)
	}
	compact := func(text string) string {
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(text)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const head = `{"lineage":"l-1","outputs":{`
	const tail = `},"resources":[],"serial":7,"terraform_version":"1.9.0","version":4}`
	const secret = `"s":{"value":"c4n4ry\u003c\u0026\u003e","type":"string","sensitive":true}`
	for args, want := range map[string]string{
		"outputs":                            head + `"n":{"value":12345678901234567890.1230,"type":"number"}` + tail,
		"outputs -only s -sensitive":         head + secret + tail,
		"outputs -sensitive -only=s,":        "",
		"outputs -only=":                     "",
		"outputs|-only|n, s|-sensitive":      head + `"n":{"value":12345678901234567890.1230,"type":"number"},` + secret + tail,
		"outputs -only n -only s -sensitive": head + `"n":{"value":12345678901234567890.1230,"type":"number"},` + secret + tail,
	} {
		words := strings.Fields(args)
		if strings.Contains(args, "|") {
			words = strings.Split(args, "|")
		}
		got := statecrypt(t, "", plain, words...)
		if want == "" {
			if got.code != exitUsage || got.stdout != "" {
				t.Errorf("%s: got %+v", args, got)
			}
		} else if compact(got.stdout) != want {
			t.Errorf("%s: got %s", args, compact(got.stdout))
		}
	}
	odd := strings.NewReplacer(`"outputs"`, `"OUTPUTS"`, `"sensitive"`, "\"\u017fensitive\"").Replace(plain)
	if got := must(t, "", odd, "outputs"); strings.Contains(got, canary) || !strings.Contains(got, `12345678901234567890.1230`) {
		t.Errorf("in another case: got %s", got)
	}
	v3 := string(conformance.Get("plain_v3").State())
	if got := compact(must(t, "", v3, "outputs", "-only", "str")); got != `{"lineage":"aaaa","modules":[{"depends_on":[],"outputs":{"str":`+
		`{"sensitive":false,"type":"string","value":"public"}},"path":["root"],"resources":{}}],"serial":42,"terraform_version":"0.11.14","version":3}` {
		t.Errorf("got %s", got)
	}
	v1 := string(conformance.Get("plain_v1").State())
	if got := compact(must(t, "", v1, "outputs")); got !=
		`{"modules":[{"depends_on":[],"outputs":{"o":"public"},"path":["root"],"resources":{}}],"serial":42,"version":1}` {
		t.Errorf("got %s", got)
	}
	if got := statecrypt(t, "", `{"version":3,"modules":[{"path":["root","x"],"outputs":{}}]}`, "outputs"); got.code != 1 || got.stdout != "" {
		t.Errorf("got %+v", got)
	}
}

func TestOutputFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := write(t, filepath.Join(dir, "state"), plain)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("state", link); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	} else if err != nil {
		link = state
	}
	if out := must(t, onlyOld, "", "encrypt", "-o", link, state); out != "" { // flags after and before; the input is replaced
		t.Errorf("got %s", out)
	}
	sealed := read(t, state)
	if info, err := os.Lstat(state); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if read(t, link) != sealed || strings.Contains(sealed, canary) {
		t.Errorf("got %s", sealed)
	}
	if got := statecrypt(t, onlyNew, "", "decrypt", state, "-o", state); got.code != 1 || read(t, state) != sealed {
		t.Errorf("a file was replaced by nothing: %+v", got)
	}
	must(t, onlyOld, "", "decrypt", state, "-o", filepath.Join(dir, "new"))
	if got := read(t, filepath.Join(dir, "new")); got != plain {
		t.Errorf("got %s", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := replace.File(ended, state, []byte("x"), nil); err == nil || read(t, state) != sealed {
		t.Errorf("after an interruption: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 3 {
		t.Errorf("these were left: %v, %v", left, err)
	}
}

// What other tools wrote becomes OpenTofu's.
func TestConversion(t *testing.T) {
	t.Parallel()
	const sops = "../../conformance/cases/tbg_sops_age/"
	tbg := conformance.Get("tbg_aes")
	for name, c := range map[string]struct{ settings, file, plain, warning string }{
		"sops": {settings: "method \"sops\" \"s\" {\nage_identities = [" + quoted(read(t, sops+"age_identity.txt")) + "]\nuse_gpg = false\n}\n" +
			"state { method = method.sops.s }", file: read(t, sops+"state.raw"), plain: read(t, sops+"backend_get_response.json")},
		"terraform-backend-git": {settings: "method \"terraform_backend_git\" \"t\" { passphrase = " +
			quoted(tbg.BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"]) + "}\nstate { method = method.terraform_backend_git.t }",
			file: string(tbg.State()), plain: string(tbg.Plain()), warning: "unsalted MD5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened := statecrypt(t, c.settings, c.file, "decrypt")
			if opened.code != 0 || !strings.Contains(opened.stderr, c.warning) {
				t.Fatalf("got %+v", opened)
			}
			got := must(t, onlyNew, must(t, onlyNew, opened.stdout, "encrypt"), "decrypt")
			var a, b any
			if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(c.plain), &b) != nil {
				t.Fatal("this is not JSON")
			}
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			if !bytes.Equal(x, y) {
				t.Errorf("got  %s\nwant %s", x, y)
			}
		})
	}
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// The texts are written by hand, so each has to have what the table has.
func TestTexts(t *testing.T) {
	t.Parallel()
	page := must(t, "", "", "-h")
	for _, x := range commands() {
		help := must(t, "", "", x.name, "-h")
		if again := must(t, "", "", "help", x.name); again != help {
			t.Errorf("help %s: got %s", x.name, again)
		}
		if !strings.Contains(help, "\nExample") || !strings.HasPrefix(strings.Join(strings.Fields(help), " "), "Usage: statecrypt "+x.name+" ") ||
			!strings.Contains(page, "\n  statecrypt "+x.name+" ") {
			t.Errorf("%s: the help is %s", x.name, help)
		}
		for flag := range strings.FieldsSeq(x.flags) {
			if !strings.Contains(help, "\n  -"+flag+" ") {
				t.Errorf("%s: the help does not explain -%s", x.name, flag)
			}
		}
		if described := strings.Count(help, "\n  -"); described != len(strings.Fields(x.flags)) {
			t.Errorf("%s: the help explains %d flags", x.name, described)
		}
		for _, shell := range []string{"bash", "zsh"} {
			script := must(t, "", "", "completion", shell)
			row := x.name + ") compadd -- " + "-" + strings.ReplaceAll(x.flags, " ", " -") + " ;;"
			if shell == "bash" {
				row = x.name + ") words='" + "-" + strings.ReplaceAll(x.flags, " ", " -") + "' ;;"
			}
			if !strings.Contains(script, x.name+" ") || x.flags != "" && !strings.Contains(script, row) {
				t.Errorf("%s: no %q in %s", shell, row, script)
			}
		}
		fish := must(t, "", "", "completion", "fish")
		for flag := range strings.FieldsSeq(x.flags) {
			if !hasFishRow(fish, x.name, flag) {
				t.Errorf("fish: no -%s of %s", flag, x.name)
			}
		}
	}
	for _, args := range []string{"-version", "--version", "version"} {
		if got := must(t, "", "", args); got != "statecrypt dev\n" {
			t.Errorf("%s: got %q", args, got)
		}
	}
}

func hasFishRow(script, command, flag string) bool {
	for line := range strings.Lines(script) {
		_, seen, _ := strings.Cut(line, "seen_subcommand_from ")
		names, rest, _ := strings.Cut(seen, "'")
		if strings.Contains(" "+names+" ", " "+command+" ") && (strings.Contains(rest+" ", "-o "+flag) || strings.Contains(rest, "-s "+flag)) {
			return true
		}
	}
	return false
}

// A pipe does not say how much it will bring, and standard input may be a file that
// was read in part.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 1 << 16, 3<<20 + 5} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * 7)
		}
		pipe := &call{stdin: io.MultiReader(bytes.NewReader(want))}
		if got, err := pipe.read(stdinName); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		f, err := os.Open(write(t, "f", string(want)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Seek(int64(size/2), io.SeekStart)
		if got, err := (&call{stdin: f}).read(stdinName); err != nil || !bytes.Equal(got, want[size/2:]) {
			t.Errorf("a file of %d bytes: got %d, %v", size, len(got), err)
		}
		_ = f.Close()
	}
}

// printsEnvironment returns a module, and a terraform that prints its environment.
func printsEnvironment(t *testing.T) (dir, program string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script")
	}
	dir = t.TempDir()
	program = write(t, filepath.Join(dir, "terraform"), "#!/bin/sh\nenv\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "main.tf"), "terraform {\n backend \"http\" {}\n}\n")
	return dir, program
}

// Terraform does not get the variables that the settings use, by whatever spelling,
// and gets all others.
func TestWrapWithholds(t *testing.T) {
	t.Parallel()
	dir, program := printsEnvironment(t)
	module := t.TempDir()
	write(t, filepath.Join(module, "a.tofu"), "variable \"pass\" {}\nlocals { key = var.pass }\nterraform {\n encryption {\n"+
		strings.Replace(onlyOld, `"`+canaryKey+`01"`, "local.key", 1)+"}\n}\n")
	for name, config := range map[string]string{
		"attribute": write(t, "keys.hcl", strings.Replace(onlyOld, `"`+canaryKey+`01"`, "var.pass", 1)),
		"index":     write(t, "keys.hcl", strings.Replace(onlyOld, `"`+canaryKey+`01"`, `var["pass"]`, 1)),
		"module":    module,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			code := run(t.Context(), []string{"wrap", "-config", config, "--", program, "-chdir=" + dir, "plan"}, strings.NewReader(""), &out, &out,
				[]string{"TF_VAR_pass=" + canaryKey + "01", "TF_VAR_other=kept", "STATECRYPT_HTTP_ADDRESS=http://127.0.0.1:1/",
					"PATH=" + os.Getenv("PATH")})
			text := out.String()
			if code != 0 || strings.Contains(text, canaryKey) || name != "index" && !strings.Contains(text, "TF_VAR_other=kept") {
				t.Errorf("%d\n%s", code, text)
			}
		})
	}
}

// Terraform has flags of the same names: one before the program is not its own.
func TestWrapVariables(t *testing.T) {
	t.Parallel()
	dir, program := printsEnvironment(t)
	keys, values := write(t, "keys.hcl", onlyOld), write(t, "prod.tfvars", "region = \"eu\"\n")
	for _, flag := range []string{"-var-file=" + values, "-var=region=eu"} {
		var out bytes.Buffer
		arguments := []string{"wrap", "-config", keys, flag, "--", program, "-chdir=" + dir, "plan"}
		code := run(t.Context(), arguments, strings.NewReader(""), &out, &out,
			[]string{"STATECRYPT_HTTP_ADDRESS=http://127.0.0.1:1/", "PATH=" + os.Getenv("PATH")})
		name, _, _ := strings.Cut(flag, "=")
		if want := "as in statecrypt wrap -- terraform plan " + name + " …"; code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%d\n%s", code, out.String())
		}
	}
}

// The file of -config says where the state is, and variables add what it leaves
// out, but not where its secret goes.
func TestWrapBackend(t *testing.T) {
	t.Parallel()
	dir, program := printsEnvironment(t)
	for name, c := range map[string]struct {
		block   string
		environ []string
		want    string
	}{
		"a block": {block: `address = "http://127.0.0.1:1/" ` + "\n" + `password = var.state`, want: "TF_HTTP_ADDRESS=https://127.0.0.1:"},
		"a lock": {block: `address = "http://127.0.0.1:1/"`, want: "TF_HTTP_LOCK_ADDRESS=",
			environ: []string{"STATECRYPT_HTTP_LOCK_ADDRESS=http://127.0.0.1:1/", "STATECRYPT_HTTP_UNLOCK_ADDRESS=http://127.0.0.1:1/"}},
		"a lock for good": {block: `address = "http://127.0.0.1:1/"`, environ: []string{"STATECRYPT_HTTP_LOCK_ADDRESS=http://127.0.0.1:1/"},
			want: "unlock_address: lock_address requires it: without it, each lock would stay"},
		"retries": {block: "address = \"http://127.0.0.1:1/\"\nretry_max = 7", want: "TF_HTTP_RETRY_MAX=7\n"},
		"variables": {
			environ: []string{"STATECRYPT_HTTP_ADDRESS=http://127.0.0.1:1/", "STATECRYPT_HTTP_PASSWORD=" + canary},
			want:    "TF_HTTP_ADDRESS=https://127.0.0.1:",
		},
		"none":       {want: "backend.http.address: this argument is required"},
		"old names":  {environ: []string{"TF_HTTP_ADDRESS=http://127.0.0.1:1/"}, want: "the environment variable STATECRYPT_HTTP_ADDRESS"},
		"no address": {block: `address = "ftp://` + canary + `"`, want: "backend.http.address: an http or https URL is required"},
		"redirection": {
			block: "password = var.state", environ: []string{"STATECRYPT_HTTP_ADDRESS=http://127.0.0.1:1/"}, want: "STATECRYPT_HTTP_ADDRESS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := onlyOld
			if c.block != "" {
				text += "backend \"http\" {\n" + c.block + "\n}\n"
			}
			environ := append(c.environ, "PATH="+os.Getenv("PATH"))
			if strings.Contains(c.block, "var.state") {
				environ = append(environ, "TF_VAR_state="+canary)
			}
			var out bytes.Buffer
			code := run(t.Context(), []string{"wrap", "-config", write(t, "keys.hcl", text), "--", program, "-chdir=" + dir, "plan"},
				strings.NewReader(""), &out, &out, environ)
			if shown := out.String(); !strings.Contains(shown, c.want) || (code == 0) != strings.HasPrefix(c.want, "TF_") ||
				strings.Contains(shown, canary) {
				t.Errorf("%d\n%s", code, shown)
			}
		})
	}
}
