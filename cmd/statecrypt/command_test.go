package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
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

// plainNext is plain after it got another key in a store that counts.
var plainNext = strings.Replace(plain, `"serial":7,`, `"serial":8,`, 1)

// called is what became of a call.
type called struct {
	code           int
	stdout, stderr string
}

// statecrypt calls the program in this process, with settings in TF_ENCRYPTION.
func statecrypt(t *testing.T, settings, stdin string, args ...string) called {
	t.Helper()
	var stdout, stderr bytes.Buffer
	environ := []string{"TERM=xterm", "TF_VAR_secret=" + canary}
	if settings != "" {
		environ = append(environ, "TF_ENCRYPTION="+settings)
	}
	code := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr, environ)
	if strings.Contains(stderr.String(), canary) || strings.Contains(stderr.String(), canaryKey) {
		t.Errorf("%q: a secret is on standard error: %s", args, stderr.String())
	}
	if said := stdout.String() + stderr.String(); strings.Contains(said, fault.Config) {
		t.Errorf("%q: a placeholder is not filled in: %s", args, said)
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

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
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
	openMistakes(t, "warning").check(t, "opened by a fallback", statecrypt(t, newAndOld, sealed, "decrypt"))
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
	openMistakes(t, "read from").check(t, "a file that a shell has emptied", called{code: code, stderr: stderr.String()})
}

// What is encrypted with other settings than those of -config is said: nothing fails.
func TestNoteOfEnvironment(t *testing.T) {
	t.Parallel()
	config := write(t, filepath.Join(t.TempDir(), "old.hcl"), onlyOld)
	mistakes := openMistakes(t, "note")
	for settings, noted := range map[string]bool{onlyNew: true, "": false, " \n": false} {
		got := statecrypt(t, settings, plain, "encrypt", "-config", config)
		if noted {
			mistakes.check(t, "settings over settings", got)
		} else if got.code != 0 || got.stderr != "" {
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
	testkit.OneGoroutine(t)
	t.Parallel()
	right := write(t, "right.hcl", settings("x"))
	odd := write(t, "odd.hcl", strings.Replace(settings("x"), ` passphrase"`, ` passphrase\n"`, 1))
	file := write(t, "a.tfstate", must(t, "", plain, "encrypt", "-config", right))
	mistakes := openMistakes(t, "doubt")
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
		if c.noted {
			mistakes.check(t, c.args[0], got)
		} else if got.code != 0 || strings.Contains(got.stderr, "passphrase") {
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
	mistakes := openMistakes(t, "of a module")
	for name, c := range map[string]struct {
		environ []string
		fails   bool
	}{
		"variables":      {environ: []string{"TF_VAR_pass=" + canaryKey + "01"}},
		"no variables":   {fails: true},
		"TF_ENCRYPTION":  {environ: []string{"TF_ENCRYPTION=" + oldText}},
		"another method": {environ: []string{"TF_VAR_pass=" + canaryKey + "01", "TF_ENCRYPTION=" + onlyNew}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"decrypt", "-config", dir}, strings.NewReader(sealed), &stdout, &stderr, c.environ)
			if c.fails {
				mistakes.check(t, name, called{code: code, stderr: stderr.String()})
			} else if code != 0 || stdout.String() != plain {
				t.Errorf("got %d, %q, %q", code, stdout.String(), stderr.String())
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
	mistakes := openMistakes(t, "value of a variable")
	for name, c := range map[string]struct{ args, environ []string }{
		"a file of the module":     {args: []string{"-config", dir}},
		"over TF_VAR":              {args: []string{"-config", dir}, environ: []string{"TF_VAR_pass=x"}},
		"-var":                     {args: []string{"-config", dir, "-var-file", wrongFile, "-var", "pass=" + canaryKey + "01"}},
		"-var-file":                {args: []string{"-config", dir, "-var=pass=x", "-var-file=" + rightFile}},
		"-var, text":               {args: []string{"-config", text, "-var", "pass=" + canaryKey + "01"}, environ: []string{"TF_VAR_pass=x"}},
		"-var-file, text":          {args: []string{"-config", text, "-var-file", rightFile}},
		"a -var that nothing uses": {args: []string{"-config", text, "-var", canaryKey + "=x", "-var-file", rightFile}},
		"no name":                  {args: []string{"-config", dir, "-var", canaryKey}},
		"not declared":             {args: []string{"-config", dir, "-var", "pas=" + canaryKey}},
		"no such file":             {args: []string{"-config", dir, "-var-file", dir + "/x.tfvars"}},
		"nothing":                  {args: []string{"-config", text}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"encrypt"}, c.args...), strings.NewReader(plain), &stdout, &stderr, c.environ)
			mistakes.check(t, name, called{code: code, stderr: stderr.String()})
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
//
// Promise: Files of the command
func TestRefusals(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	flipped := []byte(sealed)
	same := write(t, "same.hcl", onlyOld)
	at := bytes.Index(flipped, []byte(`"encrypted_data":"`)) + 200
	flipped[at] = map[bool]byte{true: 'B', false: 'A'}[flipped[at] == 'A'] // which is base64, too
	dir, states := t.TempDir(), t.TempDir()
	write(t, filepath.Join(states, "a.tfstate"), sealed)
	module, ofOpenTofu := t.TempDir(), write(t, "enc.tf", "terraform {\n  encryption {\n"+onlyOld+"  }\n}\n")
	write(t, filepath.Join(module, "main.tf"), "terraform {\n  backend \"s3\" {}\n}\nresource \"x\" \"y\" {}\n")
	write(t, filepath.Join(module, "more.tf"), "variable \"x\" {}\n")
	unusable := oldText + `method "aes_gcm" "m" { keys = key_provider.static.gone }` + "\nstate {\n  method = method.aes_gcm.m\n" +
		"  fallback { method = method.aes_gcm.old }\n}\n"
	variable := write(t, "variable.hcl", strings.Replace(onlyOld, `"`+canaryKey+`01"`, "var.key", 1))
	large := write(t, "large", "")
	if err := os.Truncate(large, 3<<30); err != nil {
		t.Skip(err)
	}
	mistakes := openMistakes(t, "refused")
	for name, c := range map[string]struct{ args, settings, stdin string }{
		"no command":                     {},
		"unknown command":                {args: "decrpt"},
		"a secret flag":                  {args: "decrypt -phunter2"},
		"unknown flag":                   {args: "decrypt -x"},
		"misspelt flag":                  {args: "verify -cofnig k.hcl"},
		"no flags at all":                {args: "version -v"},
		"flag of another command":        {args: "encrypt -force"},
		"flag of nothing":                {args: "encrypt -dry-run"},
		"encrypt -backend":               {args: "encrypt -config k.hcl -backend"},
		"version of wrap":                {args: "wrap --version"},
		"a path as settings":             {args: "decrypt", settings: same, stdin: sealed},
		"inspect with settings":          {args: "inspect -config k a"},
		"outputs with settings":          {args: "outputs -config k a"},
		"a switch with a value":          {args: "decrypt -force=c4n4ry a"},
		"no value":                       {args: "decrypt a -o"},
		"-only with spaces":              {args: "outputs -only a b c"},
		"wrap of nothing":                {args: "wrap"},
		"-config of a program":           {args: "wrap terraform plan -config x"},
		"settings as a file":             {args: "decrypt keys.hcl"},
		"settings as a program":          {args: "wrap keys.hcl -- terraform plan"},
		"a synonym":                      {args: "rekey x"},
		"a value of a switch":            {args: "decrypt -plan true a"},
		"no such command":                {args: "sael x"},
		"command of Terraform":           {args: "apply"},
		"program before":                 {args: "terraform plan"},
		"almost outputs":                 {args: "output x"},
		"to lock":                        {args: "lock x"},
		"to unlock":                      {args: "unlock x"},
		"to make a key":                  {args: "keygen"},
		"a command of the program":       {args: "plan -config keys.hcl"},
		"-passphrase":                    {args: "decrypt -passphrase x"},
		"-password of rotate":            {args: "rotate -password x"},
		"-raw":                           {args: "outputs -raw x"},
		"-dry-run":                       {args: "rotate -dry-run x"},
		"-in":                            {args: "decrypt -in x"},
		"-recursive":                     {args: "verify -recursive ."},
		"-in-place":                      {args: "encrypt -in-place x"},
		"-in-place of rotate":            {args: "rotate -in-place x"},
		"-method":                        {args: "decrypt -method aes_gcm"},
		"-recipients":                    {args: "key-provider age -recipients x"},
		"outputs and a name":             {args: "outputs x vpc_id"},
		"-from unencrypted":              {args: "rotate -from unencrypted -to x y"},
		"-to unencrypted":                {args: "rotate -from x -to unencrypted y"},
		"-out":                           {args: "decrypt -out x"},
		"a long dash":                    {args: "decrypt –config k a"},
		"-input":                         {args: "decrypt -input=false a"},
		"-chdir":                         {args: "decrypt -chdir=x a"},
		"settings at a URL":              {args: "decrypt -config https://example.com/k a"},
		"settings in git":                {args: "decrypt -config git@example.com:k a"},
		"rotate of both":                 {args: "rotate -backend a"},
		"rotate of nothing":              {args: "rotate -from a -to b"},
		"misspelt settings":              {args: "decrypt -config " + strings.Replace(same, "same", "sam", 1)},
		"no such folder":                 {args: "decrypt " + dir + "/a/b/x", settings: onlyOld},
		"settings and state, exchanged":  {args: "decrypt -config " + filepath.Join(states, "a.tfstate") + " " + same},
		"a file for a key provider":      {args: "key-provider age " + filepath.Join(states, "a.tfstate")},
		"a folder with states":           {args: "decrypt " + states, settings: onlyOld},
		"two files":                      {args: "decrypt a b"},
		"no file":                        {args: "verify"},
		"no such shell":                  {args: "completion tcsh"},
		"no settings":                    {args: "decrypt", stdin: sealed},
		"no settings, plaintext":         {args: "decrypt", stdin: plain},
		"no settings, encrypt":           {args: "encrypt", stdin: plain},
		"settings for states only":       {args: "decrypt -plan", settings: onlyNew, stdin: sealed},
		"settings for plans only":        {args: "wrap terraform plan", settings: strings.Replace(onlyNew, "state {", "plan {", 1)},
		"the same, with -plan":           {args: "verify x", settings: strings.Replace(onlyNew, "state {", "plan {", 1)},
		"an abbreviated flag":            {args: "decrypt -c k.hcl"},
		"an elaborate flag":              {args: "encrypt -output x"},
		"-config of rotate":              {args: "rotate -config k.hcl"},
		"-o of rotate":                   {args: "rotate -o x"},
		"a flag of Terraform":            {args: "wrap -auto-approve -- terraform apply"},
		"a recipient":                    {args: "key-provider age --recipient x"},
		"a file of recipients":           {args: "key-provider age team.txt"},
		"a flag as a value":              {args: "encrypt -config -o a b"},
		"no value before a program":      {args: "wrap -lineage -- terraform plan"},
		"settings from a pipe":           {args: "encrypt -config - a"},
		"two files, -config":             {args: "decrypt -config k a b"},
		"a flag first":                   {args: "-config=c4n4ry decrypt a"},
		"a file first":                   {args: same},
		"a home in quotes":               {args: "decrypt ~/none", settings: onlyNew},
		"plaintext for a state":          {args: "decrypt", settings: onlyOld, stdin: plain},
		"a state as settings":            {args: "decrypt", settings: plain, stdin: sealed},
		"an encrypted state as settings": {args: "decrypt", settings: sealed, stdin: sealed},
		"a plan as settings":             {args: "decrypt", settings: "PK\x03\x04", stdin: sealed},
		"single quotes":                  {args: "decrypt", settings: "method 'aes_gcm' \"m\" {}", stdin: sealed},
		"curly quotes":                   {args: "decrypt", settings: "method “aes_gcm” \"m\" {}", stdin: sealed},
		"no method":                      {args: "decrypt", settings: oldText, stdin: sealed},
		"no method for plans":            {args: "encrypt -plan", settings: oldText, stdin: sealed},
		"-plan is missing":               {args: "encrypt", settings: onlyOld, stdin: emptyPlan(t)},
		"-plan is too much":              {args: "encrypt -plan", settings: onlyOld, stdin: plain},
		"outputs of a plan":              {args: "outputs", stdin: emptyPlan(t)},
		"outputs of output -json":        {args: "outputs", stdin: `{"x":{"sensitive":false,"type":"string","value":"c4n4ry"}}`},
		"settings that are broken":       {args: "decrypt", settings: `key_provider {`, stdin: sealed},
		"no such settings":               {args: "decrypt -config " + dir + "/none", stdin: sealed},
		"wrong key":                      {args: "decrypt", settings: onlyNew, stdin: sealed},
		"a flipped bit":                  {args: "decrypt", settings: onlyOld, stdin: string(flipped)},
		"cut off":                        {args: "decrypt", settings: onlyOld, stdin: sealed[:len(sealed)-9]},
		"empty":                          {args: "decrypt", settings: onlyOld},
		"plaintext":                      {args: "decrypt", settings: onlyNew, stdin: plain},
		"no such file":                   {args: "decrypt " + dir + "/x", settings: onlyOld},
		"a folder":                       {args: "decrypt " + dir, settings: onlyOld},
		"encrypted twice":                {args: "encrypt", settings: onlyOld, stdin: sealed},
		"a pattern":                      {args: "decrypt " + dir + "/*.gone", settings: onlyNew},
		"a brace too many":               {args: "decrypt", settings: onlyOld, stdin: sealed + "}"},
		"a URL":                          {args: "decrypt https://example.com/s", settings: onlyOld},
		"an empty -only":                 {args: "outputs -only=,n", stdin: plain},
		"a zip":                          {args: "encrypt -plan", settings: onlyOld, stdin: "PK\x03\x04\xff"},
		"-o is -config":                  {args: "encrypt -config " + same + " -o " + same, stdin: plain},
		"no settings in a file":          {args: "decrypt -config " + write(t, "empty.hcl", "\n"), stdin: sealed},
		"no settings in a module":        {args: "decrypt -config " + module, stdin: sealed},
		"wrap, no settings in a module":  {args: "wrap -config " + module + " -- terraform plan"},
		"wrap, settings in a module":     {args: "wrap -config " + ofOpenTofu + " -- terraform plan"},
		"a file of a module":             {args: "decrypt -config " + filepath.Join(module, "main.tf"), stdin: sealed},
		"a file without terraform":       {args: "decrypt -config " + filepath.Join(module, "more.tf"), stdin: sealed},
		"a module beside settings":       {args: "decrypt -config " + write(t, "keys.hcl", "terraform {}\n"), stdin: sealed},
		"values in JSON":                 {args: "decrypt -config " + write(t, "x.tfvars.json", `{"x":"`+canaryKey+`"}`), stdin: sealed},
		"swapped labels": {args: "decrypt", settings: strings.Replace(onlyNew, `method "aes_gcm" "new"`, `method "new" "aes_gcm"`, 1),
			stdin: sealed},
		"backend without a kind": {args: "decrypt -config " + write(t, "backend.hcl", "backend {}\n"), stdin: sealed},
		"a file of the environment as values": {args: "decrypt -config " + write(t, "old.hcl", onlyOld) + " -var-file " +
			write(t, "env", "export TF_VAR_x=y\n"), stdin: sealed},
		"a value as a file of values": {args: "decrypt -var-file x=" + canaryKey + " -config " + write(t, "values.hcl", onlyOld),
			stdin: sealed},
		"UTF-16": {args: "decrypt", settings: "\xff\xfes\x00", stdin: sealed},
		"variable": {args: "decrypt",
			settings: strings.Replace(onlyNew, "method.aes_gcm.new", "method.aes_gcm.v", 1) +
				"key_provider \"static\" \"v\" { key = var.x }\nmethod \"aes_gcm\" \"v\" { keys = key_provider.static.v }\n",
			stdin: sealed},
		"a method as a key": {args: "decrypt",
			settings: strings.Replace(onlyNew, "keys = key_provider.static.new", "keys = method.aes_gcm.new", 1), stdin: sealed},
		"-config is empty":       {args: "decrypt -config=", stdin: sealed},
		"-config is there twice": {args: "decrypt -config a -config b", stdin: sealed},
		"JSON in single quotes":  {args: "decrypt", settings: "{'state': {}}", stdin: sealed},
		"base64":                 {args: "decrypt", settings: base64.StdEncoding.EncodeToString([]byte(onlyOld)), stdin: sealed},
		"a colon":                {args: "decrypt", settings: "state {\n  method: x\n}", stdin: sealed},
		"blocks on one line":     {args: "decrypt", settings: "state { fallback { } }", stdin: sealed},
		"a provider block":       {args: "decrypt", settings: "provider \"statecrypt\" {\n}", stdin: sealed},
		"a terraform block":      {args: "decrypt", settings: "terraform {\n}", stdin: sealed},
		"a backend block":        {args: "decrypt", settings: "backend \"http\" {\n}", stdin: sealed},
		"a variable block":       {args: "decrypt", settings: "variable \"x\" {\n}", stdin: sealed},
		"a folder to read":       {args: "inspect " + t.TempDir()},
		"plaintext plan":         {args: "decrypt -plan", settings: strings.Replace(onlyNew, "state {", "plan {", 1), stdin: emptyPlan(t)},
		"a file twice":           {args: "rotate -from a -to b x x"},
		"a file by two names":    {args: "rotate -from a -to b x ./x"},
		"a secret command": {args: "decrypt -config " + write(t, "external.hcl", `key_provider "external" "k" { command = [`+
			`"no-such --token=`+canaryKey+"\"] }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.external.k }\n"+
			"state { method = method.aes_gcm.m }\n"),
			stdin: strings.ReplaceAll(sealed, "key_provider.static.old", "key_provider.external.k")},
		"-var that nothing uses": {args: "decrypt -var " + canaryKey + "=x " + dir + "/x", settings: onlyNew},
		"no state":               {args: "encrypt", settings: onlyOld, stdin: "c4n4ry"},
		"nothing to encrypt":     {args: "encrypt " + write(t, "empty", ""), settings: onlyOld},
		"a state as a plan":      {args: "encrypt -plan", settings: onlyOld, stdin: plain},
		"encrypt with plaintext": {args: "encrypt", settings: plainText + `state { method = method.unencrypted.p }`, stdin: plain},
		"command of environment": {args: "encrypt", stdin: plain,
			settings: `key_provider "external" "c" { command = ["c4n4ry"] }
				method "aes_gcm" "m" { keys = key_provider.external.c }
				state { method = method.aes_gcm.m }`},
		"outputs of nothing":        {args: "outputs"},
		"outputs, encrypted":        {args: "outputs", stdin: sealed},
		"outputs, sops":             {args: "outputs", stdin: `{"version":4,"outputs":{},"sops":{"mac":"x"}}`},
		"outputs, unknown":          {args: "outputs -only x", stdin: plain},
		"outputs, sensitive":        {args: "outputs -only n,s", stdin: plain},
		"outputs, version":          {args: "outputs", stdin: `{"version":5,"outputs":{}}`},
		"outputs, damaged":          {args: "outputs", stdin: `{"version":4,"outputs":["c4n4ry"]}`},
		"outputs, no modules":       {args: "outputs", stdin: `{"version":3}`},
		"inspect, damaged":          {args: "inspect", stdin: strings.Replace(sealed, `"encrypted_data":"`, `"encrypted_data":"!`, 1)},
		"a token in an address":     {args: "decrypt https://ci:c4n4ry@git.example.com/x?private_token=c4n4ry", settings: onlyOld},
		"a token in -config":        {args: "decrypt -config https://ci:c4n4ry@git.example.com/keys.hcl"},
		"a token in -o":             {args: "decrypt -o https://ci:c4n4ry@git.example.com/x", settings: onlyOld, stdin: sealed},
		"-o, a path of Windows":     {args: `decrypt -o C:\temp\x`, settings: onlyOld, stdin: sealed},
		"a secret as settings":      {args: "decrypt -config pass:c4n4ry"},
		"workflow command":          {args: "decrypt ##[x]", settings: onlyOld},
		"a file cannot replace":     {args: "decrypt -o " + dir, settings: onlyOld, stdin: sealed},
		"no folder":                 {args: "decrypt -o " + dir + "/none/x", settings: onlyOld, stdin: sealed},
		"-var in two words":         {args: "decrypt -var passphrase c4n4ry a"},
		"-var with spaces":          {args: "decrypt -config k -var passphrase=c4n4ry a b c"},
		"-from is -to":              {args: "rotate -from a -to a x"},
		"a URL of a file":           {args: "decrypt file:///none", settings: onlyOld},
		"a key as a file":           {args: "decrypt|-----BEGIN PRIVATE KEY-----c4n4ry"},
		"a key as settings":         {args: "decrypt|-config|AGE-SECRET-KEY-1C4N4RYc4n4ry"},
		"text as settings":          {args: "decrypt|-config|" + onlyOld},
		"settings of a space":       {args: "decrypt", settings: " ", stdin: sealed},
		"-recipient of encrypt":     {args: "encrypt -recipient x"},
		"-key-file":                 {args: "decrypt -key-file x"},
		"-backup":                   {args: "rotate -backup x"},
		"-json of outputs":          {args: "outputs -json x"},
		"-address of wrap":          {args: "wrap -address x -- terraform plan"},
		"-C of wrap":                {args: "wrap -C x -- terraform plan"},
		"-i of encrypt":             {args: "encrypt -i x"},
		"-password-file":            {args: "decrypt -password-file x"},
		"a name with a space":       {args: "decrypt " + write(t, filepath.Join(states, "two words"), "")},
		"edit":                      {args: "edit x"},
		"state":                     {args: "state list"},
		"content as a command":      {args: `{"version":4,"lineage":"c4n4ry"}`},
		"a dash before a command":   {args: "-decrypt x"},
		"-only, all":                {args: "outputs -only all", stdin: plain},
		"-only, output.NAME":        {args: "outputs -only output.n", stdin: plain},
		"-only, no commas":          {args: "outputs|-only|n s", stdin: plain},
		"-only, a part of one":      {args: "outputs -only n.x", stdin: plain},
		"a space in -var":           {args: "encrypt|-var|x = c4n4ry", settings: onlyOld, stdin: plain},
		"an empty -only, alone":     {args: "outputs -only=", stdin: plain},
		"an empty -only, last":      {args: "outputs -sensitive -only=s,", stdin: plain},
		"no key for a method":       {args: "decrypt", settings: unusable, stdin: sealed},
		"age without identities":    {args: "decrypt", settings: "method \"age\" \"m\" {}\nstate {\n  method = method.age.m\n}", stdin: sealed},
		"no value of a variable":    {args: "encrypt -config " + variable, stdin: plain},
		"outputs, a module":         {args: "outputs", stdin: `{"version":3,"modules":[{"path":["root","x"],"outputs":{}}]}`},
		"inspect, cut off":          {args: "inspect", stdin: sealed[:len(sealed)-1]},
		"inspect, a plan, cut off":  {args: "inspect", stdin: "PK\x03\x04"},
		"inspect, a state, cut off": {args: "inspect", stdin: plain[:len(plain)-1]},
		"too large":                 {args: "decrypt " + large, settings: onlyOld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(c.args)
			if strings.Contains(c.args, "|") {
				args = strings.Split(c.args, "|")
			}
			got := statecrypt(t, c.settings, c.stdin, args...)
			if got.code == 0 || got.stdout != "" {
				t.Errorf("%d, %s", got.code, got.stdout)
			}
			mistakes.check(t, name, got)
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("these were left: %v, %v", left, err)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string { return write(t, filepath.Join(dir, name), text) }
	o, n, p := file("old", must(t, onlyOld, plain, "encrypt")), file("new", must(t, onlyNew, plain, "encrypt")), file("plain", plain)
	mistakes := openMistakes(t, "verify")
	for name, c := range map[string]struct {
		settings string
		files    []string
	}{
		"primary":              {settings: newAndOld, files: []string{n}},
		"fallback":             {settings: newAndOld, files: []string{o, n}},
		"not opened":           {settings: newAndOld, files: []string{p, o}},
		"not opened, last":     {settings: newAndOld, files: []string{o, p}},
		"not there":            {settings: newAndOld, files: []string{dir + "/x", n}},
		"plaintext allowed":    {settings: migration, files: []string{p, n}},
		"the key has changed":  {settings: onlyNew, files: []string{o}},
		"enforced, old method": {settings: onlyOld, files: []string{o}},
	} {
		mistakes.checkAll(t, name, statecrypt(t, c.settings, "", append([]string{"verify"}, c.files...)...))
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	mistakes := openMistakes(t, "inspect")
	for name, c := range map[string]struct{ file, json string }{
		"encrypted": {file: sealed,
			json: `{"file":"-","kind":"encrypted","format":"opentofu","encryption_version":"v0","serial":7,"lineage":"l-1",` +
				`"key_providers":["key_provider.static.old"]}`},
		"state":  {file: plain, json: `{"file":"-","kind":"state","serial":7,"lineage":"l-1"}`},
		"serial": {file: `{"version":4,"serial":"7"}`, json: `{"file":"-","kind":"state"}`},
		"plan":   {file: emptyPlan(t), json: `{"file":"-","kind":"plan"}`},
		"empty":  {file: "", json: `{"file":"-","kind":"empty"}`},
		"other":  {file: "x", json: `{"file":"-","kind":"unknown"}`},
		"record": {file: `{"version":3,"backend":{"type":"http"}}`, json: `{"file":"-","kind":"backend_record"}`},
		"sops":   {file: `{"version":4,"sops":{"mac":"x"}}`, json: `{"file":"-","kind":"encrypted","format":"sops"}`},
		"hostile": {file: `{"version":4,"lineage":"\u001b[2J ::error::"}`,
			json: `{"file":"-","kind":"state","lineage":"\u001b[2J ::error::"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := must(t, "", c.file, "inspect", "-json"); got != c.json+"\n" {
				t.Errorf("got %s", got)
			}
			mistakes.checkAll(t, name, statecrypt(t, "", c.file, "inspect"))
		})
	}
	for name, c := range map[string]struct{ file, kind string }{
		"a byte order mark":      {file: "\xef\xbb\xbf" + plain, kind: "state"},
		"something behind it":    {file: plain + "x", kind: "state"},
		"cut off":                {file: plain[:len(plain)/2], kind: "state"},
		"damaged encrypted data": {file: strings.Replace(sealed, `"encrypted_data":"`, `"encrypted_data":"!`, 1), kind: "encrypted"},
		"an archive":             {file: "PK\x03\x04", kind: "unknown"},
	} {
		got := statecrypt(t, "", c.file, "inspect", "-json")
		if got.code != 1 || !strings.HasPrefix(got.stdout, `{"file":"-","kind":"`+c.kind+`","`) {
			t.Errorf("%s: %+v", name, got)
		}
		mistakes.checkAll(t, name, got)
	}
	hostile := must(t, "", `{"version":4,"lineage":"##vso[x] \u009b\u202e"}`, "inspect", "-json")
	if want := `"lineage":"#\u0023vso[x] \u009b\u202e"}` + "\n"; !strings.HasSuffix(hostile, want) || !json.Valid([]byte(hostile)) {
		t.Errorf("got %s", hostile)
	}
	a, missing := write(t, "a", sealed), filepath.Join(t.TempDir(), "x")
	got := statecrypt(t, "", "", "inspect", missing, a, "-json")
	if strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("got %+v", got)
	}
	mistakes.check(t, "one of two is not there", got)
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	got := statecrypt(t, "", plain, "outputs")
	if strings.Contains(got.stdout, canary) || !strings.Contains(got.stdout, `12345678901234567890.1230`) {
		t.Errorf("got %+v", got)
	}
	openMistakes(t, "outputs").check(t, "a sensitive one", got)
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
		"outputs|-only|n, s|-sensitive":      head + `"n":{"value":12345678901234567890.1230,"type":"number"},` + secret + tail,
		"outputs -only n -only s -sensitive": head + `"n":{"value":12345678901234567890.1230,"type":"number"},` + secret + tail,
	} {
		words := strings.Fields(args)
		if strings.Contains(args, "|") {
			words = strings.Split(args, "|")
		}
		got := statecrypt(t, "", plain, words...)
		if compact(got.stdout) != want {
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
}

// Promise: Files of the command
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
	mistakes := openMistakes(t, "conversion")
	for name, c := range map[string]struct{ settings, file, plain string }{
		"sops": {settings: "method \"sops\" \"s\" {\nage_identities = [" + quoted(read(t, sops+"age_identity.txt")) + "]\nuse_gpg = false\n}\n" +
			"state { method = method.sops.s }", file: read(t, sops+"state.raw"), plain: read(t, sops+"backend_get_response.json")},
		"terraform-backend-git": {settings: "method \"terraform_backend_git\" \"t\" { passphrase = " +
			quoted(tbg.BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"]) + "}\nstate { method = method.terraform_backend_git.t }",
			file: string(tbg.State()), plain: string(tbg.Plain())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened := statecrypt(t, c.settings, c.file, "decrypt")
			mistakes.check(t, name, opened)
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

// Each command has its help, and completions; a page of the docs has the help of those with flags.
func TestTexts(t *testing.T) {
	t.Parallel()
	page, guide := must(t, "", "", "-h"), read(t, "../../docs/guides/command.md")+read(t, "../../docs/guides/looking-at-states.md")
	for _, x := range commands() {
		help := must(t, "", "", x.Name, "-h")
		if x.Flags != "" && !strings.Contains(guide, "\n## "+x.Name+"\n\n```text\n"+help) {
			t.Errorf("the pages of the command lack the help of %s", x.Name)
		}
		if again := must(t, "", "", "help", x.Name); again != help {
			t.Errorf("help %s: got %s", x.Name, again)
		}
		if !strings.Contains(help, "\nExample") || !strings.HasPrefix(strings.Join(strings.Fields(help), " "), "Usage: statecrypt "+x.Name+" ") ||
			!strings.Contains(page, "\n  statecrypt "+x.Name+" ") {
			t.Errorf("%s: the help is %s", x.Name, help)
		}
		for _, shell := range []string{"bash", "zsh", "powershell"} {
			script := must(t, "", "", "completion", shell)
			row := x.Name + ") compadd -- -" + strings.Join(x.FlagNames(), " -") + " ;;"
			switch shell {
			case "bash":
				row = x.Name + ") words='-" + strings.Join(x.FlagNames(), " -") + "' ;;"
			case "powershell":
				row = "\n    '" + x.Name + "' = '-" + strings.Join(x.FlagNames(), " -") + "'\n"
			}
			if !strings.Contains(script, x.Name+" ") || x.Flags != "" && !strings.Contains(script, row) {
				t.Errorf("%s: no %q in %s", shell, row, script)
			}
		}
		fish := must(t, "", "", "completion", "fish")
		for _, flag := range x.FlagNames() {
			if !hasFishRow(fish, x.Name, flag) {
				t.Errorf("fish: no -%s of %s", flag, x.Name)
			}
		}
	}
	for _, args := range []string{"-version", "--version", "version"} {
		if got := must(t, "", "", args); got != "statecrypt dev\n" {
			t.Errorf("%s: got %q", args, got)
		}
	}
}

// TestFlags: the code reads each flag that a help explains, and no other.
func TestFlags(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used, explained := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, use := range regexp.MustCompile(`c\.(?:on|text|isGiven|flags\[)\(?"([^"]+)"`).FindAllStringSubmatch(read(t, name), -1) {
			used[use[1]] = true
		}
	}
	for _, flag := range []string{"var", "var-file", "lineage", "minimum-serial"} { // [call.add] keeps their values
		used[flag] = true
	}
	for _, flag := range commands().FlagNames() {
		explained[flag] = true
	}
	if !maps.Equal(used, explained) {
		t.Errorf("the code reads %q, and the help explains %q", slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(explained)))
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

// printsEnvironment returns a module, and a terraform that prints its environment, and the record of its backend.
func printsEnvironment(t *testing.T) (dir, program string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script")
	}
	dir = t.TempDir()
	program = write(t, filepath.Join(dir, "terraform"), "#!/bin/sh\nenv\n"+
		"cat \"${1#-chdir=}/$TF_DATA_DIR/terraform.tfstate\" 2>/dev/null\ntrue\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "main.tf"), "terraform {\n backend \"http\" {}\n}\n")
	return dir, program
}

// Terraform does not get the variables that the settings use, by whatever spelling,
// and gets all others.
//
// Promise: Only encrypted states
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
	mistakes := openMistakes(t, "variable of wrap")
	for _, flag := range []string{"-var-file=" + values, "-var=region=eu"} {
		var out bytes.Buffer
		arguments := []string{"wrap", "-config", keys, flag, "--", program, "-chdir=" + dir, "plan"}
		code := run(t.Context(), arguments, strings.NewReader(""), io.Discard, &out,
			[]string{"STATECRYPT_HTTP_ADDRESS=http://127.0.0.1:1/", "PATH=" + os.Getenv("PATH")})
		name, _, _ := strings.Cut(flag, "=")
		mistakes.check(t, name, called{code: code, stderr: out.String()})
	}
	noValue := write(t, filepath.Join(dir, "keys.hcl"), "backend \"http\" { address = \"http://127.0.0.1:1/\" }\n"+
		strings.Replace(onlyOld, `"`+canaryKey+`01"`, "var.key", 1))
	got := statecrypt(t, "", "", "wrap", "-config", noValue, "--", program, "-chdir="+dir, "apply", "-var", "key="+canaryKey)
	mistakes.check(t, "-var behind the program", got)
}

// The file of -config says where the state is, and variables add what it leaves
// out, but not where its secret goes.
//
// Promise: Only encrypted states
func TestWrapBackend(t *testing.T) {
	t.Parallel()
	mistakes := openMistakes(t, "backend of wrap")
	for name, c := range map[string]struct {
		block   string
		environ []string
		want    string // what the child gets; "" if it is not run
	}{
		"a block": {block: "address = \"http://127.0.0.1:1/\"\npassword = var.state", want: `"address":"https://127.0.0.1:`},
		"a lock": {block: `address = "http://127.0.0.1:1/"`, want: `"lock_address":"https:`,
			environ: []string{"STATECRYPT_HTTP_LOCK_ADDRESS=http://127.0.0.1:1/", "STATECRYPT_HTTP_UNLOCK_ADDRESS=http://127.0.0.1:1/"}},
		"a lock for good": {block: `address = "http://127.0.0.1:1/"`, environ: []string{"STATECRYPT_HTTP_LOCK_ADDRESS=http://127.0.0.1:1/"}},
		"retries":         {block: "address = \"http://127.0.0.1:1/\"\nretry_max = 7", want: `"retry_max":7`},
		"variables": {environ: []string{"STATECRYPT_HTTP_ADDRESS=http://127.0.0.1:1/", "STATECRYPT_HTTP_PASSWORD=" + canary},
			want: `"address":"https://127.0.0.1:`},
		"none":        {},
		"old names":   {environ: []string{"TF_HTTP_ADDRESS=http://127.0.0.1:1/"}},
		"no address":  {block: `address = "ftp://` + canary + `"`},
		"redirection": {block: "password = var.state", environ: []string{"STATECRYPT_HTTP_ADDRESS=http://127.0.0.1:1/"}},
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
			var out, said bytes.Buffer
			dir, program := printsEnvironment(t)
			keys := write(t, filepath.Join(dir, "keys.hcl"), text)
			code := run(t.Context(), []string{"wrap", "-config", keys, "--", program, "-chdir=" + dir, "plan"},
				strings.NewReader(""), &out, &said, environ)
			if !strings.Contains(out.String(), c.want) || (out.Len() > 0) != (c.want != "") || strings.Contains(out.String(), canary) {
				t.Errorf("the child gets %s", &out)
			}
			mistakes.check(t, name, called{code: code, stderr: said.String()})
		})
	}
}
