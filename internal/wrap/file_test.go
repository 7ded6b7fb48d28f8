package wrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	stores "github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// fileBlock is a backend block that keeps the state in a file, "" in that of the module.
func fileBlock(path string) *unstable.Entry {
	settings := map[string]cty.Value{}
	if path != "" {
		settings["path"] = cty.StringVal(path)
	}
	return unstable.NewEntry("backend.file", file.Kind().Table, settings)
}

// inFile is a scripted run whose state is in a file of the module.
func inFile(t *testing.T, script string, args ...string) (o wrap.Options, dir string, out *lines) {
	t.Helper()
	o, dir, out = scripted(t, newStore(t), script, args...)
	o.Environ = slices.DeleteFunc(o.Environ, func(pair string) bool { return strings.HasPrefix(pair, "STATECRYPT_HTTP_") })
	o.Where.Backend = fileBlock("")
	return o, dir, out
}

// holdFile locks a state in a file, as another program would.
func holdFile(t *testing.T, path string) {
	t.Helper()
	state := otherFile(t, path)
	other, _ := stores.ParseLock([]byte(lock))
	if err := state.Lock(t.Context(), other); err != nil {
		t.Fatal(err)
	}
}

// otherFile is a state in a file as another program sees it.
func otherFile(t *testing.T, path string) stores.State {
	t.Helper()
	values, err := fileBlock(path).Decode(file.Kind().Table, nil)
	var s stores.Store
	if err == nil {
		s, err = file.Kind().Open(stores.Settings{Values: values, Limit: 1 << 20})
	}
	var state stores.State
	if err == nil {
		state, err = s.State(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return state
}

// TestInFile: wrap keeps a state in a file as it does in a backend, and whatever becomes of a
// run, nothing beside it is plaintext, and no lock stays.
//
// Promise: Only encrypted states
func TestInFile(t *testing.T) {
	needSignals(t)
	const mine = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
	locked := func(script string) string { return "LOCK=" + mine + " GET " + script + " UNLOCK=" + mine }
	newer := strings.Replace(state, `"serial":1`, `"serial":2`, 1)
	sealed := string(seal(t, sealing, state))
	lockless := []string{"apply", "-lock=false"}
	between := map[string]string{"other": sealed} // of another run
	info := map[string]string{".terraform.tfstate.lock.info": lock}
	mistakes := wraptest.OpenMistakes(t, "in a file")
	for name, c := range testkit.Some(map[string]struct {
		script   string
		args     []string
		there    string // in the file
		files    map[string]string
		settings string
		held     bool
		moveIn   bool
		code     int
		want     string // what is in the file, opened
	}{
		"the first":      {script: locked("POST:1=" + state), want: state},
		"the next":       {script: locked("POST:1=" + newer), there: sealed, want: newer},
		"twice":          {script: locked("POST:1=" + state + " POST:1=" + newer), there: sealed, want: newer},
		"without a lock": {script: "GET POST=" + newer, args: lockless, there: sealed, want: newer},
		"without, another ran": {
			script: "GET move=other,terraform.tfstate GET POST=" + newer, args: lockless, files: between, code: 9, want: state,
		},
		"without, while held":   {script: "GET POST=" + newer, args: lockless, there: sealed, held: true, code: 9, want: state},
		"another lineage":       {script: locked("POST:1=" + other), there: sealed, code: 9, want: state},
		"held":                  {script: "LOCK=" + mine, there: sealed, held: true, code: 9, want: state},
		"read while held":       {script: "GET", args: []string{"output"}, there: sealed, held: true, want: state},
		"apply, killed":         {script: "LOCK=" + mine + " GET die", there: sealed, code: 137, want: state},
		"plan, killed":          {script: "LOCK=" + mine + " GET die", args: []string{"plan"}, there: sealed, code: 137, want: state},
		"a killed run":          {script: locked(""), args: []string{"plan"}, there: sealed, files: info, want: state},
		"unlocked by force":     {script: "UNLOCK", args: []string{"force-unlock", "4711"}, there: sealed, files: info, want: state},
		"another, by force":     {script: "UNLOCK", args: []string{"force-unlock", "42"}, there: sealed, files: info, code: 9, want: state},
		"none, by force":        {script: "UNLOCK", args: []string{"force-unlock", "4711"}, there: sealed, code: 9, want: state},
		"held, by force":        {script: "UNLOCK", args: []string{"force-unlock", "4711"}, there: sealed, held: true, code: 9, want: state},
		"a plaintext state":     {script: "GET", there: filled, code: 9},
		"plaintext, allowed":    {script: locked("POST:1=" + newer), there: state, settings: migrating, want: newer},
		"encrypted in place":    {script: "GET", args: []string{"init"}, there: filled, moveIn: true, want: filled},
		"encrypted already":     {script: "GET", args: []string{"init"}, there: sealed, moveIn: true, want: state},
		"encrypted, while held": {script: "ready", args: []string{"init"}, there: filled, moveIn: true, held: true, code: 1},
		"encrypted, and backups": {script: "GET", args: []string{"init"}, there: filled, moveIn: true, want: filled, files: map[string]string{
			"terraform.tfstate.backup": filled, "terraform.tfstate.1700000000.backup": filled}},
		"written around":  {script: locked("leave=terraform.tfstate"), there: sealed, code: 1},
		"its backup, too": {script: locked("leave=terraform.tfstate.backup"), there: sealed, code: 1},
		"a directory":     {script: "GET", files: map[string]string{"terraform.tfstate/x": ""}, code: 9},
	}) {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if args == nil {
				args = []string{"apply"}
			}
			o, dir, out := inFile(t, c.script, args...)
			o.Wishes.EncryptExisting = c.moveIn
			if c.settings != "" {
				o.Keys.State = target(t, c.settings)
			}
			path := filepath.Join(dir, "terraform.tfstate")
			if c.there != "" {
				write(t, path, c.there)
			}
			for name, text := range c.files {
				write(t, filepath.Join(dir, name), text)
			}
			if c.held {
				holdFile(t, path)
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if code != c.code {
				t.Errorf("got %d, %v, want %d\n%s", code, err, c.code, out)
			}
			if c.want != "" {
				opened, err := target(t, sealing).Decrypt(t.Context(), []byte(read(t, path)))
				if err != nil || string(opened.Data) != c.want {
					t.Errorf("the file holds something else, or does not open: %v", err)
				}
			}
			checkBeside(t, dir, c.held, c.want != "")
		})
	}
}

// checkBeside looks for what no run leaves beside a state in a file.
func checkBeside(t *testing.T, dir string, held, sealed bool) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, ".terraform.tfstate.journal")); err == nil {
		t.Error("there is a journal")
	}
	text, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate.backup"))
	if info, _ := encryption.Inspect(text); err == nil && sealed && info.Kind != encryption.KindEncrypted {
		t.Errorf("the backup is %.50s", text)
	}
}

// TestMemory: what an earlier run has seen refuses an older state, another one, and none, until the
// user has looked. In git, branches go back, and do not lose a state.
//
// Promise: States in stores
func TestMemory(t *testing.T) {
	t.Parallel()
	at := func(serial, lineage string) string {
		return `{"version":4,"serial":` + serial + `,"lineage":"` + lineage + `","outputs":{},"resources":[]}`
	}
	mistakes := wraptest.OpenMistakes(t, "memory")
	for name, c := range testkit.Some(map[string]struct {
		seen, there string // "" is none
		accept      bool
		elsewhere   bool // it is at another address
		git         bool
		damaged     bool // what was seen
		refused     bool
	}{
		"the same":           {seen: at("5", "l"), there: at("5", "l")},
		"a newer one":        {seen: at("5", "l"), there: at("6", "l")},
		"an older one":       {seen: at("5", "l"), there: at("4", "l"), refused: true},
		"an older one, seen": {seen: at("5", "l"), there: at("4", "l"), accept: true},
		"another":            {seen: at("5", "l"), there: at("5", "x"), refused: true},
		"another, seen":      {seen: at("5", "l"), there: at("5", "x"), accept: true},
		"none":               {seen: at("5", "l"), refused: true},
		"none, seen":         {seen: at("5", "l"), accept: true},
		"the first":          {there: at("5", "l")},
		"no serial":          {seen: at("5", "l"), there: `{"version":4,"lineage":"l"}`, refused: true},
		"at another address": {seen: at("5", "l"), there: at("4", "l"), elsewhere: true},
		"damaged":            {seen: at("5", "l"), there: at("4", "l"), damaged: true, refused: true},
		"damaged, seen":      {seen: at("5", "l"), there: at("4", "l"), damaged: true, accept: true},
		"in git":             {seen: at("5", "l"), there: at("4", "l"), git: true},
		"in git, another":    {seen: at("5", "l"), there: at("5", "x"), git: true},
		"in git, none":       {seen: at("5", "l"), git: true, refused: true},
		"in git, empty":      {seen: at("5", "l"), there: "empty", git: true, refused: true},
		"in git, none, seen": {seen: at("5", "l"), git: true, accept: true},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, _ := inFile(t, "GET", "plan")
			path := filepath.Join(dir, "terraform.tfstate")
			put := func(text string) {
				_ = os.Remove(path)
				switch text {
				case "":
				case "empty":
					write(t, path, "")
				default:
					write(t, path, string(seal(t, sealing, text)))
				}
			}
			put(c.seen)
			if c.git {
				inGit(t, dir, "terraform.tfstate")
			}
			if code, err, told := run(t, o); code != 0 || err != nil {
				t.Fatalf("before: %d, %v\n%s", code, err, told)
			}
			put(c.there)
			if c.elsewhere {
				path = filepath.Join(dir, "other.tfstate")
				put(c.there)
				o.Where.Backend = fileBlock(path)
			}
			if c.damaged {
				write(t, filepath.Join(dir, ".terraform", "statecrypt", "seen.json"), map[bool]string{false: "{", true: "null"}[c.accept])
			}
			o.Wishes.Accept = c.accept
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if code == 0 == c.refused || err != nil {
				t.Errorf("%d, %v\n%s", code, err, told)
			}
			o.Wishes.Accept = false
			if code, err, told = run(t, o); code == 0 == c.refused || err != nil {
				t.Errorf("then: %d, %v\n%s", code, err, told)
			}
		})
	}
}

// inGit has git track a file.
func inGit(t *testing.T, dir, name string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", name}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
}

// TestMemoryOfWrites: what this run has written is seen as well.
//
// Promise: States in stores
func TestMemoryOfWrites(t *testing.T) {
	t.Parallel()
	newer := strings.Replace(state, `"serial":1`, `"serial":2`, 1)
	o, dir, out := inFile(t, "GET POST="+newer, "apply", "-lock=false")
	path := filepath.Join(dir, "terraform.tfstate")
	old := seal(t, sealing, state)
	write(t, path, string(old))
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	write(t, path, string(old))
	o.Environ = append(o.Environ, "WRAP_TEST_SCRIPT=GET")
	if code, err := wrap.Run(t.Context(), o); code == 0 || err != nil {
		t.Errorf("an old copy was put back: %d, %v\n%s", code, err, out)
	}
}
