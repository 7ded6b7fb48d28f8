package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// TestOutputStreams: -o never makes a file of a name that means a stream, and never
// takes away a file that somebody has open.
func TestOutputStreams(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("there is no bash, or another /dev")
	}
	bin := filepath.Dir(built(t))
	sealed := must(t, onlyOld, plain, "encrypt")
	for name, c := range map[string]struct {
		script    string
		code      int
		log, want string // what the log and standard error say
	}{
		"a dash":                  {script: "decrypt -o - sealed", log: "before\n" + plain + "after\n"},
		"/dev/stdout":             {script: "decrypt -o /dev/stdout sealed", log: "before\n" + plain + "after\n"},
		"/proc/self/fd/1":         {script: "decrypt -o /proc/self/fd/1 sealed", log: "before\n" + plain + "after\n"},
		"the log by its name":     {script: "decrypt -o log sealed", log: "before\n" + plain + "after\n"},
		"a link to /dev/stdout":   {script: "decrypt -o link sealed", log: "before\n" + plain + "after\n"},
		"another descriptor":      {script: "decrypt -o /dev/fd/3 sealed 3>>other", code: 1, log: "before\nafter\n", want: "a process has open"},
		"a pipe":                  {script: "decrypt -o >(cat) sealed", code: 1, log: "before\nafter\n", want: "cannot be written"},
		"a device":                {script: "decrypt -o /dev/full sealed", code: 1, log: "before\nafter\n", want: "it is not a regular file"},
		"a variable that is none": {script: `decrypt -o "$OUT" sealed`, code: 2, log: "before\nafter\n", want: "-o requires the name of a file"},
		"nothing":                 {script: "decrypt sealed", log: "before\n" + plain + "after\n"},
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
			problems := read(t, in("errors"))
			if code := cmd.ProcessState.ExitCode(); code != c.code || read(t, in("log")) != c.log || !strings.Contains(problems, c.want) {
				t.Errorf("got %d, %s\n%s", code, read(t, in("log")), problems)
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

// A file above the limit is refused by a message that advises nothing that the command
// does not have.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	name := write(t, "large", "")
	if err := os.Truncate(name, 3<<30); err != nil {
		t.Skip(err)
	}
	got := statecrypt(t, onlyOld, "", "decrypt", name)
	if got.code != exitFailure || !strings.Contains(got.stderr, "larger than 2147483647 bytes\n") {
		t.Errorf("got %+v", got)
	}
}

// TestNoteOwnState: Terraform cannot go on with its own state once it is encrypted.
func TestNoteOwnState(t *testing.T) {
	t.Parallel()
	for name, noted := range map[string]bool{"terraform.tfstate": true, "network.tfstate": false} {
		state := write(t, filepath.Join(t.TempDir(), name), plain)
		got := statecrypt(t, onlyOld, "", "encrypt", "-o", state, state)
		if got.code != 0 || strings.Contains(got.stderr, "Terraform itself cannot read") != noted {
			t.Errorf("%s: %+v", name, got)
		}
		another := write(t, filepath.Join(t.TempDir(), name), strings.Replace(plain, "l-1", "l-2", 1))
		got = statecrypt(t, onlyOld, plain, "encrypt", "-o", another)
		if got.code == 0 || strings.Contains(got.stderr, "Terraform itself cannot read") {
			t.Errorf("%s, not written: %+v", name, got)
		}
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
	for name, c := range map[string]struct {
		settings, args, there, want string
	}{
		"a key":                {onlyOld, "encrypt", read(t, key), "neither a state nor a plan; name another file; to replace it, delete"},
		"settings":             {onlyOld, "encrypt", onlyOld, "neither a state nor a plan"},
		"what is cut off":      {onlyOld, "encrypt", sealed[:200], "neither a state nor a plan"},
		"another state":        {onlyOld, "encrypt", must(t, onlyNew, another, "encrypt"), `another state, of the lineage "another-`},
		"another plain one":    {onlyOld, "encrypt", another, "another state"},
		"a plain one, outputs": {"", "outputs", another, "another state"},
		"a newer one":          {onlyOld, "encrypt", newer, "a newer version of this state: its serial is 8, and this would be 7"},
		"a newer one, sealed":  {onlyOld, "encrypt", must(t, onlyNew, newer, "encrypt"), "a newer version of this state"},
		"an older one":         {onlyOld, "encrypt", strings.Replace(plain, `"serial":7`, `"serial":6`, 1), ""},
		"a plan":               {onlyOld, "encrypt", emptyPlan(t), "it is a plan, and this would be a state"},
		"a sealed plan":        {onlyOld, "encrypt", must(t, onlyOld, emptyPlan(t), "encrypt", "-plan"), "it is a plan, and this"},
		"a sealed identity":    {onlyOld, "encrypt", "age-encryption.org/v1\n-> scrypt", "does not tell which state it holds, if any"},
		"its own":              {onlyOld, "encrypt", sealed, ""},
		"its plaintext":        {onlyOld, "encrypt", plain, ""},
		"outputs":              {"", "outputs -sensitive", must(t, "", strings.ReplaceAll(plain, "true", "false"), "outputs"), ""},
		"resources":            {"", "outputs", plain, "it is this state with its resources, which would be lost"},
		"resources, older":     {"", "outputs", strings.Replace(plain, `"serial":7`, `"serial":6`, 1), "which would be lost"},
		"resources, sealed":    {"", "outputs", sealed, "which would be lost; name another file"},
		"nothing":              {onlyOld, "encrypt", "", ""},
		"of a vague format":    {kubeform, "encrypt", must(t, kubeform, plain, "encrypt"), ""},
		"a key, by that one":   {kubeform, "encrypt", read(t, key), "neither a state nor a plan"},
	} {
		output := write(t, filepath.Join(t.TempDir(), "there"), c.there)
		got := statecrypt(t, c.settings, plain, append(strings.Fields(c.args), "-o", output)...)
		left := read(t, output) == c.there
		if refused := c.want != ""; (got.code != 0) != refused || left != refused || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: %d, %s", name, got.code, got.stderr)
		}
	}
	state := write(t, filepath.Join(t.TempDir(), "state"), plain)
	got := statecrypt(t, onlyOld, emptyPlan(t), "encrypt", "-plan", "-o", state)
	if got.code == 0 || !strings.Contains(got.stderr, "it is a state, and this would be a plan") || read(t, state) != plain {
		t.Errorf("%+v", got)
	}
	// Outputs never take the place of what they are read from, resources or not.
	bare := must(t, "", strings.ReplaceAll(plain, "true", "false"), "outputs", "-sensitive")
	for _, input := range []string{plain, strings.Replace(bare, `"sensitive": false`, `"sensitive": true`, 1)} {
		state = write(t, filepath.Join(t.TempDir(), "state"), input)
		got = statecrypt(t, "", "", "outputs", "-o", state, state)
		if got.code == 0 || !strings.Contains(got.stderr, "it is the file that is read") || read(t, state) != input {
			t.Errorf("%+v", got)
		}
	}
	// What readers get does not take the place of the state itself, under any key.
	const stranger = `key_provider "static" "other" { key = "000102030405060708090a0b0c0d0e0f" }
method "aes_gcm" "m" { keys = key_provider.static.other }
state { method = method.aes_gcm.m }`
	outputs := must(t, "", strings.ReplaceAll(plain, "true", "false"), "outputs")
	for name, c := range map[string]struct {
		settings, there, input string
		refused                bool
	}{
		"the state, another key":     {onlyNew, sealed, outputs, true},
		"the state, the same key":    {onlyOld, sealed, outputs, true},
		"the state, in plaintext":    {onlyNew, plain, outputs, true},
		"outputs, the same key":      {onlyNew, must(t, onlyNew, outputs, "encrypt"), outputs, false},
		"outputs, another key":       {stranger, must(t, onlyNew, outputs, "encrypt"), outputs, true},
		"outputs, a key of others":   {strings.Replace(onlyOld, "0011", "1111", 1), must(t, onlyOld, outputs, "encrypt"), outputs, false},
		"all was destroyed meantime": {onlyNew, sealed, strings.Replace(outputs, `"serial":7`, `"serial":8`, 1), false},
	} {
		place := write(t, filepath.Join(t.TempDir(), "there"), c.there)
		if got := statecrypt(t, c.settings, c.input, "encrypt", "-o", place); c.refused != (got.code != 0) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
