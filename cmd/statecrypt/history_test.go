package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// written is the time at which a file was written.
var written = regexp.MustCompile(`20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d`)

// versionsOf replaces what differs between runs in a list of versions.
func versionsOf(got called, commits ...string) called {
	tidy := func(text string) string {
		for _, length := range []int{40, 12, 7, 6} { // some are abbreviated
			for i, commit := range commits {
				text = strings.ReplaceAll(text, commit[:length], fmt.Sprintf("COMMIT-%d", i+1))
			}
		}
		return written.ReplaceAllString(text, "2026-11-27 17:00:00")
	}
	return called{got.code, tidy(got.stdout), tidy(got.stderr)}
}

// inFolder writes the files of a module, and the settings with a backend block for net.tfstate, and returns the folder.
func inFolder(t *testing.T, settings string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "keys.hcl"), "backend \"file\" { path = \"net.tfstate\" }\n"+settings)
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// TestHistory has each way to list the versions of a file, and each refusal.
func TestHistory(t *testing.T) {
	t.Parallel()
	old, other := must(t, onlyOld, plain, "encrypt"), must(t, onlyNew, plainNext, "encrypt")
	mistakes := openMistakes(t, "history")
	for name, c := range map[string]struct{ args, settings, current, backup string }{
		"of one key":               {settings: onlyOld, current: must(t, onlyOld, plainNext, "encrypt"), backup: old},
		"JSON":                     {args: "-json", settings: onlyOld, current: must(t, onlyOld, plainNext, "encrypt"), backup: old},
		"of two keys":              {settings: onlyOld, current: other, backup: old},
		"opened":                   {args: "-open", settings: newAndOld, current: other, backup: old},
		"opened, JSON":             {args: "-open -json", settings: newAndOld, current: other, backup: old},
		"opened, another key":      {args: "-open", settings: onlyNew, current: other, backup: old},
		"opened, the same, JSON":   {args: "-open -json", settings: onlyNew, current: other, backup: old},
		"opened, plaintext":        {args: "-open", settings: migrationAndOld, current: other, backup: plain},
		"opened, plaintext, not":   {args: "-open", settings: onlyNew, current: other, backup: plain},
		"opened, a changed serial": {args: "-open", settings: onlyOld, current: strings.Replace(old, `"serial":7`, `"serial":9`, 1), backup: old},
		"plaintext":                {settings: onlyOld, current: plainNext, backup: plain},
		"plaintext, JSON":          {args: "-json", settings: onlyOld, current: plainNext, backup: plain},
		"damaged":                  {settings: onlyOld, current: old[:len(old)/2], backup: "c4n4ry"},
		"only the backup":          {settings: onlyOld, backup: old},
		"one":                      {args: "-n 1", settings: onlyOld, current: other, backup: old},
		"no key is needed":         {settings: `key_provider "external" "x" { command = ["/none"] }` + "\n", current: other},
		"none":                     {settings: onlyOld},
		"none, JSON":               {args: "-json", settings: onlyOld},
		"no number":                {args: "-n x", settings: onlyOld},
		"no versions":              {args: "-n 0", settings: onlyOld},
		"too many":                 {args: "-n 1001", settings: onlyOld},
		"a file":                   {args: "net.tfstate", settings: onlyOld},
		"opened, no settings":      {args: "-open"},
		"other terms":              {settings: onlyOld, current: strings.Replace(old, `"lineage":"`, `"lineage":"\u001b[31m::error::`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for name, text := range map[string]string{"net.tfstate": c.current, "net.tfstate.backup": c.backup} {
				if text != "" {
					files[name] = text
				}
			}
			dir := inFolder(t, c.settings, files)
			args := append([]string{"history", "-config", filepath.Join(dir, "keys.hcl")}, strings.Fields(c.args)...)
			got := statecrypt(t, "", "", args...)
			mistakes.checkAll(t, name, versionsOf(got))
			if strings.Contains(got.stdout, canary) || strings.Contains(got.stdout, "\x1b") {
				t.Errorf("got %+v", got)
			}
			for name, text := range files {
				if read(t, filepath.Join(dir, name)) != text {
					t.Errorf("%s has changed", name)
				}
			}
		})
	}
	s := newHTTPStore(t, old)
	got := statecrypt(t, "", "", "history", "-config", write(t, "keys.hcl", onlyOld+s.block()))
	if mistakes.checkAll(t, "http", got); got.code == 0 || len(s.seen) > 0 {
		t.Errorf("got %+v after %q", got, s.seen)
	}
}

// gitVersions is a state in a branch, with versions in all formats, the oldest first.
func gitVersions(t *testing.T) (block string, commits []string, settings string) {
	t.Helper()
	aes, sops := conformance.Get("tbg_aes"), conformance.Get("tbg_sops_age")
	settings = oldText + newText + plainText + "method \"terraform_backend_git\" \"aes\" { passphrase = " +
		quoted(aes.BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"]) + " }\nmethod \"sops\" \"age\" {\n  age_identities = [<<KEY\n" +
		sops.Secret("age_identity.txt") + "\nKEY\n]\n}\n" + `state {
  method = method.aes_gcm.new
  fallback {
    method = method.aes_gcm.old
    fallback {
      method = method.terraform_backend_git.aes
      fallback {
        method = method.sops.age
        fallback { method = method.unencrypted.p }
      }
    }
  }
}
`
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	const deleted = ""
	format := func(n int) string {
		return fmt.Sprintf(`{"version":%d,"serial":%d,"lineage":"l","modules":[{"path":["root"],"outputs":{},"resources":{}}]}`, n, n)
	}
	for i, text := range []string{
		format(1), format(2), format(3), plain, string(aes.State()), string(sops.State()), must(t, onlyOld, plain, "encrypt"), deleted,
		must(t, onlyOld, plainNext, "encrypt"), must(t, onlyNew, plainNext, "encrypt"),
	} {
		files := []gittest.File{{Path: "README", Data: "hello"}, {Path: "net.tfstate", Data: text}}
		if text == deleted {
			files = files[:1]
		}
		commits = append(commits, repo.Commit("refs/heads/main", files...))
		repo.Commit("refs/heads/main", append(files, gittest.File{Path: "other", Data: fmt.Sprint(i)})...) // is no version
	}
	block = fmt.Sprintf("backend \"git\" {\n  repository = %q\n  ref = \"main\"\n  path = \"net.tfstate\"\n}\n", repo.FileURL())
	return block, commits, settings
}

// TestHistoryInGit: versions in all formats are listed and opened, and compared by their commits.
func TestHistoryInGit(t *testing.T) {
	t.Parallel()
	block, commits, settings := gitVersions(t)
	keys := write(t, "keys.hcl", block+settings)
	mistakes := openMistakes(t, "history in git")
	latest := len(commits) - 1
	for name, args := range map[string]string{
		"all":                          "history",
		"JSON":                         "history -json -n 4",
		"opened":                       "history -open",
		"three":                        "history -n 3",
		"changes since a version":      "diff -backend " + commits[6],
		"between two versions":         "diff -backend " + commits[3][:7] + " " + commits[6],
		"of formats":                   "diff -backend -json " + commits[2] + " " + commits[3],
		"of sops":                      "diff -backend -exit-code " + commits[4] + " " + commits[5],
		"a deleted version":            "diff -backend " + commits[7],
		"a deleted version, short":     "diff -backend " + commits[7][:7],
		"an unknown version":           "diff -backend 0123456789",
		"too short":                    "diff -backend " + commits[0][:6],
		"no file":                      "diff -backend ./" + commits[0],
		"of a commit without a change": "diff -backend -exit-code " + commits[latest][:12] + " " + commits[latest],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := append(strings.Fields(args), "-config", keys)
			got := statecrypt(t, "", "", words...)
			mistakes.checkAll(t, name, versionsOf(got, commits...))
			if strings.Contains(got.stdout, canary) {
				t.Errorf("got %+v", got)
			}
		})
	}
	var got history
	if err := json.Unmarshal([]byte(must(t, "", "", "history", "-open", "-json", "-config", keys)), &got); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, v := range got.Versions {
		ids = append(ids, v.Version)
		if v.Status != "deleted" && (v.Opens == nil || !*v.Opens || v.Method == "") {
			t.Errorf("%+v does not open", v)
		}
	}
	slices.Reverse(ids)
	if !slices.Equal(ids, commits) || got.More || got.Plaintext != 4 {
		t.Errorf("the versions are %+v, and the commits %q", got, commits)
	}
}

// TestRestoreCommand has each way to restore a version by the command, and each refusal.
//
// Promise: Files of the command
func TestRestoreCommand(t *testing.T) {
	old := must(t, onlyOld, plain, "encrypt")
	next := must(t, onlyNew, strings.Replace(plainNext, `"n":{"value":12345678901234567890.1230`, `"n":{"value":2`, 1), "encrypt")
	mistakes := openMistakes(t, "restore")
	for name, c := range map[string]struct {
		args, settings string
		current        string
		serial         string // of the state in the end; "" if nothing is written
	}{
		"a version":                 {args: "-yes backup", serial: `"serial":9`},
		"a file":                    {args: "-yes older", serial: `"serial":9`},
		"a path":                    {args: "-yes ./older", serial: `"serial":9`},
		"nobody is asked":           {args: "backup"},
		"the current version":       {args: "-yes current"},
		"no such version":           {args: "-yes 4711"},
		"no such file":              {args: "-yes ./none/x"},
		"a version with a slash":    {args: "-yes .net/4711"},
		"the file of the state":     {args: "-yes net.tfstate"},
		"standard input":            {args: "-yes -"},
		"nothing":                   {args: "-yes"},
		"two versions":              {args: "-yes current backup"},
		"a flag of recover":         {args: "-force backup"},
		"another key":               {args: "-yes backup", settings: onlyNew},
		"none there":                {args: "-yes backup", current: "-"},
		"none there, -replace":      {args: "-yes -replace backup", current: "-", serial: `"serial":8`},
		"damaged, -replace":         {args: "-yes -replace backup", current: "a note", serial: `"serial":8`},
		"damaged, nobody is asked":  {args: "-replace backup", current: "a note"},
		"plaintext, not in setting": {args: "-yes plaintext"},
	} {
		t.Run(name, func(t *testing.T) {
			current := cmp.Or(c.current, next)
			files := map[string]string{"net.tfstate.backup": old, "older": old, "plaintext": plain, "net.tfstate": current}
			if current == "-" {
				delete(files, "net.tfstate")
			}
			t.Chdir(inFolder(t, cmp.Or(c.settings, newAndOld), files))
			args := append([]string{"restore"}, strings.Fields(c.args)...)
			got := statecrypt(t, "", "", append(args, "-config", "keys.hcl")...)
			got.stderr = regexp.MustCompile(`tfstate\.[0-9a-f]{8}\.`).ReplaceAllString(got.stderr, "tfstate.DIGEST.")
			mistakes.checkAll(t, name, got)
			if c.serial == "" {
				if there, _ := os.ReadFile("net.tfstate"); current != "-" && string(there) != current {
					t.Errorf("there is %s", there)
				}
				return
			}
			if there := must(t, newAndOld, read(t, "net.tfstate"), "decrypt"); there != strings.Replace(plain, `"serial":7`, c.serial, 1) {
				t.Errorf("there is %s", there)
			}
			if must(t, onlyNew, read(t, "net.tfstate"), "verify", "-") == "" {
				t.Error("it has another key")
			}
		})
	}
}

// TestWorkspaceOfBackend: TF_WORKSPACE chooses keys, but never another state. It is refused by recover alone, because
// the leftover may be the state of that workspace.
func TestWorkspaceOfBackend(t *testing.T) {
	next := strings.Replace(plainNext, `"n":{"value":12345678901234567890.1230`, `"n":{"value":2`, 1)
	files := map[string]string{"net.tfstate": must(t, onlyNew, next, "encrypt"), "net.tfstate.backup": must(t, onlyOld, plain, "encrypt")}
	t.Chdir(inFolder(t, newAndOld, files))
	for _, args := range []string{
		"history", "show -backend", "diff -backend backup", "restore -yes backup", "verify -backend", "recover",
	} {
		var said strings.Builder
		words := append(strings.Fields(args), "-config", "keys.hcl")
		code, refused := run(t.Context(), words, strings.NewReader(""), &said, &said, []string{"TF_WORKSPACE=prod"}), args == "recover"
		if (code != 0) != refused || strings.Contains(said.String(), "TF_WORKSPACE") != refused {
			t.Errorf("%s: %d\n%s", args, code, said.String())
		}
	}
}

// TestIsFile has arguments that name versions, and those that name files that do not exist.
func TestIsFile(t *testing.T) {
	t.Parallel()
	isWindows := runtime.GOOS == "windows"
	for arg, want := range map[string]bool{
		"-": true, "./none": true, "../none/x": true, "/none/x": true, "history_test.go": true, `C:\none`: isWindows, `.\none`: isWindows,
		"": false, "none": false, ".none": false, "..none/x": false, "net/4711": false, "2026-11-27T17:00:00Z": false,
	} {
		if isFile(arg) != want {
			t.Errorf("%q: want %t", arg, want)
		}
	}
}

// TestDiffVersions: an argument is a file if there is one, and else a version.
func TestDiffVersions(t *testing.T) {
	old := must(t, onlyOld, plain, "encrypt")
	next := must(t, onlyNew, strings.Replace(plainNext, `"n":{"value":12345678901234567890.1230`, `"n":{"value":2`, 1), "encrypt")
	mistakes := openMistakes(t, "diff of versions")
	for name, args := range map[string]string{
		"a version":               "backup",
		"two versions":            "backup current",
		"a version, and a file":   "backup file",
		"a file, and a version":   "file backup",
		"a file with that name":   "current",
		"the same, as a version":  "./current backup",
		"JSON":                    "-json backup current",
		"no such version":         "none",
		"a version with a slash":  "net/4711",
		"no such second version":  "backup none",
		"three":                   "backup current file",
		"none":                    "",
		"the same version, twice": "backup backup",
	} {
		t.Run(name, func(t *testing.T) {
			dir := inFolder(t, newAndOld, map[string]string{"net.tfstate": next, "net.tfstate.backup": old, "file": next})
			if strings.HasPrefix(args, "current") || strings.HasPrefix(args, "./current") {
				write(t, filepath.Join(dir, "current"), old)
			}
			t.Chdir(dir)
			got := statecrypt(t, "", "", append([]string{"diff", "-config", "keys.hcl", "-backend"}, strings.Fields(args)...)...)
			mistakes.checkAll(t, name, got)
		})
	}
	dir := t.TempDir()
	t.Chdir(dir)
	s := newHTTPStore(t, next)
	got := statecrypt(t, "", "", "diff", "-config", write(t, filepath.Join(dir, "keys.hcl"), newAndOld+s.block()), "-backend", "4711")
	mistakes.checkAll(t, "http", got)
}

// TestHistoryHidesSecrets: of states full of secrets, neither the list of versions nor the question of restore shows
// one.
func TestHistoryHidesSecrets(t *testing.T) {
	opened := 0
	for n := range 40 {
		plain, older := secretState(n), secretState(n+10)
		file := write(t, "file", plain)
		dir := inFolder(t, newAndOld, map[string]string{
			"net.tfstate": must(t, onlyNew, plain, "encrypt"), "net.tfstate.backup": must(t, onlyOld, older, "encrypt"),
		})
		if n%4 == 3 { // versions in plaintext
			write(t, filepath.Join(dir, "net.tfstate"), plain)
			write(t, filepath.Join(dir, "net.tfstate.backup"), older)
			write(t, filepath.Join(dir, "keys.hcl"), "backend \"file\" { path = \"net.tfstate\" }\n"+migration)
		}
		t.Chdir(dir)
		for _, args := range []string{
			"history", "history -json", "history -open", "history -open -json", "restore backup", "restore -yes backup", "restore -yes backup",
			"restore " + file, "diff -backend backup", "diff -backend current backup -json",
		} {
			got := statecrypt(t, "", "", append(strings.Fields(args), "-config", "keys.hcl")...)
			if strings.Contains(got.stdout+got.stderr, canary) {
				t.Errorf("state %d, %s: %d\n%s%s", n, args, got.code, got.stdout, got.stderr)
			}
			if strings.HasPrefix(args, "restore -yes") && got.code == 0 {
				opened++
			}
		}
	}
	if opened < 40 {
		t.Errorf("%d states were restored", opened)
	}
}
