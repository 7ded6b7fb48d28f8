package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/file"
)

// hold locks a state in a file, as another program would.
func hold(t *testing.T, path string) {
	t.Helper()
	values, err := unstable.NewEntry("backend.file", file.Kind().Table, nil).Decode(file.Kind().Table, nil)
	var s store.Store
	if err == nil {
		s, err = file.Kind().Open(store.Settings{Values: values, Limit: 1 << 20})
	}
	var state store.State
	if err == nil {
		state, err = s.State(path)
	}
	if err == nil {
		err = state.Lock(t.Context(), store.Lock{ID: "4711", Operation: "OperationTypeApply", Who: "ci@host", Created: "2026-11-27T00:00:00Z"})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
}

// TestFileBackend: the state in a file is checked, and gets another key, under its lock.
//
// Promise: States in stores
func TestFileBackend(t *testing.T) {
	t.Parallel()
	old := must(t, onlyOld, plain, "encrypt")
	mistakes := openMistakes(t, "file as backend")
	for name, c := range map[string]struct {
		args    string
		there   string // "" is none
		beside  string // what a run has left
		held    bool
		rotated bool
	}{
		"inspected":                {args: "inspect -config old.hcl", there: old},
		"inspected, locked":        {args: "inspect -config old.hcl", there: old, held: true},
		"inspected, JSON":          {args: "inspect -json -config old.hcl", there: old},
		"inspected, JSON, locked":  {args: "inspect -json -config old.hcl", there: old, held: true},
		"decrypted, another key":   {args: "decrypt -config new.hcl", there: old},
		"decrypted, none":          {args: "decrypt -config old.hcl"},
		"decrypted, an older one":  {args: "decrypt -minimum-serial 99 -config old.hcl", there: old},
		"decrypted, plans":         {args: "decrypt -plan -config old.hcl", there: old},
		"decrypted, and a file":    {args: "decrypt -config old.hcl state", there: old},
		"verified":                 {args: "verify -config old.hcl", there: old},
		"verified, JSON":           {args: "verify -json -config old.hcl", there: old},
		"verified, JSON, locked":   {args: "verify -json -config old.hcl", there: old, held: true},
		"verified, locked":         {args: "verify -config old.hcl", there: old, held: true},
		"verified, another key":    {args: "verify -config new.hcl", there: old},
		"verified, none":           {args: "verify -config old.hcl"},
		"verified, not finished":   {args: "verify -config old.hcl", there: "!" + old[1:], beside: "x"},
		"verified, an older one":   {args: "verify -minimum-serial 99 -config old.hcl", there: old},
		"verified, plans":          {args: "verify -plan -config old.hcl", there: old},
		"rotated":                  {args: "rotate -from old.hcl -to new.hcl", there: old, rotated: true},
		"rotated, locked":          {args: "rotate -from old.hcl -to new.hcl", there: old, held: true},
		"rotated, no such prefix":  {args: "rotate -from old.hcl -to new.hcl -prefix none", there: old},
		"rotated, another key":     {args: "rotate -from new.hcl -to third.hcl", there: old},
		"rotated, none":            {args: "rotate -from old.hcl -to new.hcl"},
		"rotated, in two modules":  {args: "rotate -from old.hcl -to modules.hcl", there: old},
		"rotated, a home of other": {args: "rotate -from old.hcl -to other.hcl", there: old},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			block := "backend \"file\" { path = \"net.tfstate\" }\n"
			path := filepath.Join(dir, "net.tfstate")
			for file, text := range map[string]string{
				"old.hcl": block + onlyOld, "new.hcl": block + onlyNew, "third.hcl": block + onlyNew,
				"modules.hcl": strings.Replace(block, "net", "${module}", 1) + onlyNew,
				"other.hcl":   strings.Replace(block, "net", "~other/net", 1) + onlyNew,
			} {
				write(t, filepath.Join(dir, file), text)
			}
			if c.there != "" {
				write(t, path, c.there)
			}
			if c.beside != "" {
				write(t, filepath.Join(dir, ".net.tfstate.journal"), c.beside)
			}
			if c.held {
				hold(t, path)
			}
			args := strings.Fields(c.args + " -backend")
			for i, word := range args {
				if isSettings(word) {
					args[i] = filepath.Join(dir, word)
				}
			}
			got := statecrypt(t, "", "", args...)
			mistakes.checkAll(t, name, got)
			there, _ := os.ReadFile(path)
			if !c.rotated {
				if string(there) != c.there {
					t.Errorf("there is %.100s", there)
				}
				return
			}
			backup, _ := os.ReadFile(path + ".backup")
			if must(t, onlyNew, string(there), "decrypt") != plain || must(t, onlyOld, string(backup), "decrypt") != plain {
				t.Errorf("there is %.100s, and in the backup %.100s", there, backup)
			}
		})
	}
}

// TestDecryptsBackend: decrypt writes the state in the backend to standard output or to a file, and says who has its
// lock.
func TestDecryptsBackend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "net.tfstate"), must(t, onlyOld, plain, "encrypt"))
	keys, out := write(t, filepath.Join(dir, "keys.hcl"), "backend \"file\" { path = \"net.tfstate\" }\n"+onlyOld), filepath.Join(dir, "out")
	if got := must(t, "", "", "decrypt", "-config", keys, "-backend"); got != plain {
		t.Errorf("got %s", got)
	}
	hold(t, path)
	mistakes := openMistakes(t, "decrypt -backend")
	mistakes.checkAll(t, "locked", statecrypt(t, "", "", "decrypt", "-config", keys, "-backend", "-o", out))
	if got := read(t, out); got != plain {
		t.Errorf("got %s", got)
	}
}

// TestEmptyVariables: a message about a setting names the variables without content.
func TestEmptyVariables(t *testing.T) {
	t.Parallel()
	mistakes := openMistakes(t, "empty variable")
	keys := write(t, "keys.hcl", `key_provider "pbkdf2" "main" {
  passphrase = var.passphrase
}
method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }
state { method = method.aes_gcm.main }
backend "http" { address = var.address }
`)
	for name, c := range map[string]struct {
		args    string
		environ []string
	}{
		"a passphrase":          {args: "encrypt", environ: []string{"TF_VAR_passphrase=", "TF_VAR_address=https://example.com/s"}},
		"a blank passphrase":    {args: "encrypt", environ: []string{"TF_VAR_passphrase= ", "TF_VAR_address=https://example.com/s"}},
		"that of a flag":        {args: "encrypt -var passphrase=", environ: []string{"TF_VAR_passphrase=" + canary, "TF_VAR_address=x"}},
		"not that of a flag":    {args: "encrypt -var passphrase=short", environ: []string{"TF_VAR_passphrase=", "TF_VAR_address=x"}},
		"an address":            {args: "inspect -backend", environ: []string{"TF_VAR_passphrase=" + canary, "TF_VAR_address="}},
		"an address, and a key": {args: "inspect -backend", environ: []string{"TF_VAR_passphrase=", "TF_VAR_address="}},
		"no variable":           {args: "encrypt", environ: []string{"TF_VAR_address=x"}},
	} {
		var out, problems bytes.Buffer
		code := run(t.Context(), append(strings.Fields(c.args), "-config", keys), strings.NewReader(plain), &out, &problems, c.environ)
		mistakes.check(t, name, called{code: code, stderr: problems.String()})
		if code != exitFailure || out.Len() > 0 {
			t.Errorf("%s: %d, %s", name, code, &out)
		}
	}
}

// TestConfigVariable: STATECRYPT_CONFIG names the settings, and is a variable as any: what only it
// brings runs no program.
//
// Promise: Only encrypted states
// Promise: Commands
func TestConfigVariable(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	const external = "key_provider \"external\" \"p\" {\n  command = [\"touch\", \"RAN\"]\n}\n" +
		"method \"aes_gcm\" \"m\" { keys = key_provider.external.p }\nstate { method = method.aes_gcm.m }\n"
	mistakes := openMistakes(t, "settings in a variable")
	for name, c := range map[string]struct {
		text    string
		flag    string // settings of -config
		environ string
		opens   bool
		runs    bool
	}{
		"opens": {text: onlyOld, opens: true},
		"with a value": {text: strings.Replace(onlyOld, `"`+canaryKey+`01"`, "var.key", 1), opens: true,
			environ: "TF_VAR_key=" + canaryKey + "01"},
		"another key":    {text: onlyNew},
		"below a flag":   {text: onlyNew, flag: onlyOld, opens: true},
		"a program":      {text: external},
		"that of a flag": {flag: external, runs: true},
		"with a backend": {text: "backend \"file\" {}\n" + onlyOld, opens: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := filepath.Join(t.TempDir(), "ran")
			fill := strings.NewReplacer("RAN", ran).Replace
			settings := write(t, "keys.hcl", fill(c.text))
			args := []string{"decrypt"}
			if c.flag != "" {
				args = append(args, "-config", write(t, "flag.hcl", fill(c.flag)))
			}
			var out, said bytes.Buffer
			environ := []string{"STATECRYPT_CONFIG=" + settings, "PATH=" + os.Getenv("PATH"), c.environ}
			code := run(t.Context(), args, strings.NewReader(sealed), &out, &said, environ)
			mistakes.check(t, name, called{code: code, stderr: said.String()})
			if c.opens != (out.String() == plain) {
				t.Errorf("%d: got %.100s", code, &out)
			}
			if _, err := os.Stat(ran); (err == nil) != c.runs {
				t.Errorf("the program has run, or not: %v", err)
			}
		})
	}
	var out, said bytes.Buffer
	code := run(t.Context(), []string{"decrypt"}, strings.NewReader(sealed), &out, &said, []string{"STATECRYPT_CONFIG="})
	mistakes.check(t, "empty", called{code: code, stderr: said.String()})
}

// TestOneModule: a file of settings is for one module, unless it says where its name belongs.
//
// Promise: States in stores
func TestOneModule(t *testing.T) {
	t.Parallel()
	mistakes := openMistakes(t, "module of wrap")
	for name, c := range map[string]struct {
		keys  string // where the file of settings is
		link  string // by which it is named, "" if it is not
		block string
		state string // where the state is looked for, "" if nothing runs
	}{
		"in the module":          {keys: "a/b/keys.hcl", block: `path = "x.tfstate"`, state: "a/b/x.tfstate"},
		"in it, no path":         {keys: "a/b/keys.hcl", state: "a/b/terraform.tfstate"},
		"above it, no path":      {keys: "keys.hcl", state: "a/b/terraform.tfstate"},
		"above it":               {keys: "keys.hcl", block: `path = "x.tfstate"`},
		"above it, with a name":  {keys: "keys.hcl", block: `path = "${module}.tfstate"`, state: "a/b.tfstate"},
		"beside it, with a name": {keys: "c/keys.hcl", block: `path = "${module}.tfstate"`},
		"beside it, no path":     {keys: "c/keys.hcl", state: "a/b/terraform.tfstate"},
		"in it, with a name":     {keys: "a/b/keys.hcl", block: `path = "st/${module}.tfstate"`},
		"a link in the module":   {keys: "c/keys.hcl", link: "a/b/keys.hcl", block: `path = "x.tfstate"`},
		"a link, with a name":    {keys: "keys.hcl", link: "a/b/keys.hcl", block: `path = "${module}.tfstate"`, state: "a/b.tfstate"},
		"a link, no path":        {keys: "keys.hcl", link: "c/keys.hcl", state: "a/b/terraform.tfstate"},
		"a part of a module":     {keys: "keys.hcl", block: `path = "${module.x}.tfstate"`},
		"a misspelt module":      {keys: "keys.hcl", block: `path = "${modul}.tfstate"`},
		"a path of Terraform":    {keys: "keys.hcl", block: `path = "${path.module}.tfstate"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, program := printsEnvironment(t)
			for _, folder := range []string{"a/b", "c"} {
				if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Rename(filepath.Join(dir, "main.tf"), filepath.Join(dir, "a", "b", "main.tf")); err != nil {
				t.Fatal(err)
			}
			if c.state != "" { // which nobody locks
				if err := os.Mkdir(filepath.Join(dir, c.state), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			keys := write(t, filepath.Join(dir, c.keys), "backend \"file\" {\n"+c.block+"\n}\n"+onlyOld)
			if c.link != "" {
				link := filepath.Join(dir, c.link)
				if err := os.Symlink(keys, link); err != nil {
					t.Skip(err)
				}
				keys = link
			}
			mistakes.check(t, name, statecrypt(t, "", "", "wrap", "-config", keys, "-encrypt-existing", "--", program,
				"-chdir="+filepath.Join(dir, "a", "b"), "init"))
		})
	}
}
