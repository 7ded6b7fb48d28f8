package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// TestOutputStreams: -o never makes a file of a name that means a stream, and never
// takes away a file that someone has open.
//
// Promise: Files of the command
func TestOutputStreams(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("there is no bash, or another /dev")
	}
	bin := filepath.Dir(built(t))
	sealed := must(t, onlyOld, plain, "encrypt")
	mistakes := openMistakes(t, "stream")
	const both, neither = "before\n" + plain + "after\n", "before\nafter\n"
	for name, c := range map[string]struct{ script, log string }{
		"a dash":                  {"decrypt -o - sealed", both},
		"/dev/stdout":             {"decrypt -o /dev/stdout sealed", both},
		"/proc/self/fd/1":         {"decrypt -o /proc/self/fd/1 sealed", both},
		"the log by its name":     {"decrypt -o log sealed", both},
		"a link to /dev/stdout":   {"decrypt -o link sealed", both},
		"another descriptor":      {"decrypt -o /dev/fd/3 sealed 3>>other", neither},
		"a pipe":                  {"decrypt -o >(cat) sealed", neither},
		"a device":                {"decrypt -o /dev/full sealed", neither},
		"a variable that is none": {`decrypt -o "$OUT" sealed`, neither},
		"nothing":                 {"decrypt sealed", both},
		"completion to a device":  {"completion bash >/dev/full", neither},
		"version to a device":     {"version >/dev/full", neither},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			write(t, in("sealed"), sealed)
			write(t, in("other"), "other\n")
			if err := os.Symlink("/dev/stdout", in("link")); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), bash, "-c",
				"exec >> log 2>> errors; echo before; statecrypt "+c.script+"; code=$?; echo after; exit $code")
			cmd.Dir = dir
			cmd.Env = append(world.World{}.Environ().Pairs(), "PATH="+bin+":"+os.Getenv("PATH"), "TF_ENCRYPTION="+onlyOld)
			_ = cmd.Run()
			mistakes.check(t, name, called{code: cmd.ProcessState.ExitCode(), stderr: read(t, in("errors"))})
			if log := read(t, in("log")); log != c.log {
				t.Errorf("got %s", log)
			}
			if read(t, in("other")) != "other\n" {
				t.Error("a file that was open was changed")
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 5 {
				t.Errorf("these were left: %v, %v", left, err)
			}
		})
	}
}

// TestHardLinks: what is left under another name is said.
//
// Promise: Files of the command
func TestHardLinks(t *testing.T) {
	t.Parallel()
	mistakes := openMistakes(t, "hard links")
	r := newRotating(t)
	sealed := must(t, onlyOld, plain, "encrypt")
	for name, c := range map[string]struct {
		content string
		call    func(file string) called
	}{
		"encrypt": {plain, func(file string) called { return statecrypt(t, onlyOld, "", "encrypt", "-o", file, file) }},
		"decrypt": {sealed, func(file string) called { return statecrypt(t, onlyOld, "", "decrypt", "-o", file, file) }},
		"rotate":  {sealed, func(file string) called { return r.rotate(t, file) }},
	} {
		file := r.file(t, name, c.content)
		if err := os.Link(file, file+"-2"); err != nil {
			t.Skip("there are no hard links here")
		}
		got := c.call(file)
		mistakes.check(t, name, got)
		if got.code != 0 || read(t, file) == c.content || read(t, file+"-2") != c.content {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNoteOwnState: Terraform cannot go on with its own state once it is encrypted.
func TestNoteOwnState(t *testing.T) {
	t.Parallel()
	mistakes := openMistakes(t, "its own state")
	for _, name := range []string{"terraform.tfstate", "network.tfstate"} {
		state := write(t, filepath.Join(t.TempDir(), name), plain)
		mistakes.check(t, name, statecrypt(t, onlyOld, "", "encrypt", "-o", state, state))
		another := write(t, filepath.Join(t.TempDir(), name), strings.Replace(plain, "l-1", "l-2", 1))
		mistakes.check(t, name+", not written", statecrypt(t, onlyOld, plain, "encrypt", "-o", another))
	}
}

// TestReplaced: -o puts what it writes in the place of older versions of it alone, not of
// settings, keys and other states.
func TestReplaced(t *testing.T) {
	t.Parallel()
	key, _ := identity(t, "x25519.key")
	sealed := must(t, onlyOld, plain, "encrypt")
	another := strings.Replace(plain, `"lineage":"`, `"lineage":"another-`, 1)
	newer := strings.Replace(plain, `"serial":7`, `"serial":8`, 1)
	const kubeform = `method "kubeform" "k" { key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" }
state { method = method.kubeform.k }`
	mistakes := openMistakes(t, "in the place of")
	for name, c := range map[string]struct{ settings, args, there string }{
		"a key":                {onlyOld, "encrypt", read(t, key)},
		"settings":             {onlyOld, "encrypt", onlyOld},
		"what is cut off":      {onlyOld, "encrypt", sealed[:200]},
		"another state":        {onlyOld, "encrypt", must(t, onlyNew, another, "encrypt")},
		"another plain one":    {onlyOld, "encrypt", another},
		"a plain one, outputs": {"", "outputs", another},
		"a newer one":          {onlyOld, "encrypt", newer},
		"a newer one, sealed":  {onlyOld, "encrypt", must(t, onlyNew, newer, "encrypt")},
		"an older one":         {onlyOld, "encrypt", strings.Replace(plain, `"serial":7`, `"serial":6`, 1)},
		"a plan":               {onlyOld, "encrypt", emptyPlan(t)},
		"a sealed plan":        {onlyOld, "encrypt", must(t, onlyOld, emptyPlan(t), "encrypt", "-plan")},
		"a sealed identity":    {onlyOld, "encrypt", "age-encryption.org/v1\n-> scrypt"},
		"its own":              {onlyOld, "encrypt", sealed},
		"its plaintext":        {onlyOld, "encrypt", plain},
		"outputs":              {"", "outputs -sensitive", must(t, "", strings.ReplaceAll(plain, "true", "false"), "outputs")},
		"resources":            {"", "outputs", plain},
		"resources, older":     {"", "outputs", strings.Replace(plain, `"serial":7`, `"serial":6`, 1)},
		"resources, sealed":    {"", "outputs", sealed},
		"nothing":              {onlyOld, "encrypt", ""},
		"of a vague format":    {kubeform, "encrypt", must(t, kubeform, plain, "encrypt")},
		"a key, by that one":   {kubeform, "encrypt", read(t, key)},
	} {
		output := write(t, filepath.Join(t.TempDir(), "there"), c.there)
		got := statecrypt(t, c.settings, plain, append(strings.Fields(c.args), "-o", output)...)
		mistakes.check(t, name, got)
		if left := read(t, output) == c.there; left == (got.code == 0) {
			t.Errorf("%s: %d, and there is still the same: %v", name, got.code, left)
		}
	}
	state := write(t, filepath.Join(t.TempDir(), "state"), plain)
	got := statecrypt(t, onlyOld, emptyPlan(t), "encrypt", "-plan", "-o", state)
	mistakes.check(t, "a state, by a plan", got)
	if read(t, state) != plain {
		t.Errorf("%+v", got)
	}
	// Outputs never take the place of what they are read from, resources or not.
	bare := must(t, "", strings.ReplaceAll(plain, "true", "false"), "outputs", "-sensitive")
	bare = strings.Replace(bare, `"sensitive": false`, `"sensitive": true`, 1)
	for name, input := range map[string]string{"its input": plain, "its input, outputs": bare} {
		state = write(t, filepath.Join(t.TempDir(), "state"), input)
		got = statecrypt(t, "", "", "outputs", "-o", state, state)
		mistakes.check(t, name, got)
		if read(t, state) != input {
			t.Errorf("%+v", got)
		}
	}
	// What readers get does not take the place of the state itself, under any key.
	const stranger = `key_provider "static" "other" { key = "000102030405060708090a0b0c0d0e0f" }
method "aes_gcm" "m" { keys = key_provider.static.other }
state { method = method.aes_gcm.m }`
	outputs := must(t, "", strings.ReplaceAll(plain, "true", "false"), "outputs")
	for name, c := range map[string]struct{ settings, there, input string }{
		"the state, another key":     {onlyNew, sealed, outputs},
		"the state, the same key":    {onlyOld, sealed, outputs},
		"the state, in plaintext":    {onlyNew, plain, outputs},
		"outputs, the same key":      {onlyNew, must(t, onlyNew, outputs, "encrypt"), outputs},
		"outputs, another key":       {stranger, must(t, onlyNew, outputs, "encrypt"), outputs},
		"outputs, a key of others":   {strings.Replace(onlyOld, "0011", "1111", 1), must(t, onlyOld, outputs, "encrypt"), outputs},
		"all was destroyed meantime": {onlyNew, sealed, strings.Replace(outputs, `"serial":7`, `"serial":8`, 1)},
	} {
		place := write(t, filepath.Join(t.TempDir(), "there"), c.there)
		mistakes.check(t, name, statecrypt(t, c.settings, c.input, "encrypt", "-o", place))
	}
}

// wrap refuses a plan in plaintext, and would refuse it once it is encrypted, too.
func TestAdviceOnPlaintextPlans(t *testing.T) {
	t.Parallel()
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(onlyOld, "test.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = enc.Plan().Decrypt(t.Context(), []byte(emptyPlan(t)))
	for name, advised := range map[string]bool{"wrap": false, "verify": true} {
		c := call{}
		c.Name = name
		if text := c.audience().Text(err); strings.Contains(text, "encrypt -plan") != advised {
			t.Errorf("%s: got %s", name, text)
		}
	}
}

// TestWorkspaceOfTheEnvironment: TF_WORKSPACE chooses the key of a module that makes one for
// each workspace.
func TestWorkspaceOfTheEnvironment(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.tf"), `terraform {
  encryption {
    key_provider "pbkdf2" "k" { passphrase = "a passphrase of the workspace ${terraform.workspace}" }
    method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
    state { method = method.aes_gcm.m }
  }
}
`)
	call := func(workspace, stdin, command string) (code int, out string) {
		var stdout, stderr strings.Builder
		environ := []string{"TF_WORKSPACE=" + workspace}
		code = run(t.Context(), []string{command, "-config", dir}, strings.NewReader(stdin), &stdout, &stderr, environ)
		return code, stdout.String()
	}
	_, sealed := call("prod", plain, "encrypt")
	if code, opened := call("prod", sealed, "decrypt"); code != 0 || opened != plain {
		t.Errorf("in the same workspace: %d, %s", code, opened)
	}
	if code, opened := call("", sealed, "decrypt"); code == 0 {
		t.Errorf("in another workspace: %s", opened)
	}
}
