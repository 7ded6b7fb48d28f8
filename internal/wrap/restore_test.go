package wrap_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/overview"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	stores "github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// older is the state that tests restore; it has the serial 1. The state in the backend has the serial 5.
var older = strings.Replace(state, `"outputs":{}`, `"outputs":{"o":{"value":"`+canary+`","type":"string"}}`, 1)

// restorable is a state in a store, with an older version.
type restorable struct {
	wrap.Options

	dir     string
	version string                      // the ID or the file of the older version
	put     func(file string)           // writes as another program; "" deletes the state
	read    func() string               // returns the file in the backend, "" for none
	kept    func(t *testing.T) []string // returns all files that are still there, in the store and in the folder of the module
	hold    func()                      // takes the lock as another program; nil in other stores than http
}

// deleted is written in place of a state that is deleted.
const deleted = "deleted"

// copies matches the names of files that restore keeps.
var copies = regexp.MustCompile(`terraform\.tfstate\.[0-9a-f]{8}\.(replaced|restored)`)

// restorables are the stores of tests.
func restorables() map[string]func(t *testing.T) restorable {
	beside := func(dir string, also ...string) (kept []string) {
		for _, pattern := range append(also, "*.replaced", "*.restored") {
			names, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, name := range names {
				file, _ := os.ReadFile(name)
				kept = append(kept, string(file))
			}
		}
		return kept
	}
	return map[string]func(t *testing.T) restorable{
		"http": func(t *testing.T) restorable {
			s := newStore(t)
			o, dir, _ := scripted(t, s, "GET", "plan")
			s.put(seal(t, sealing, numbered(5)))
			version := filepath.Join(t.TempDir(), "older")
			write(t, version, string(seal(t, sealing, older)))
			return restorable{o, dir, version, func(file string) {
				if s.put([]byte(file)); file == deleted {
					s.put(nil)
				}
			}, func() string { return string(s.stored()) }, func(*testing.T) []string {
				return append(beside(dir), string(s.stored()), read(t, version))
			}, func() { s.hold([]byte(lock)) }}
		},
		"file": func(t *testing.T) restorable {
			o, dir, _ := inFile(t, "GET", "plan")
			path := filepath.Join(dir, "terraform.tfstate")
			write(t, path+".backup", string(seal(t, sealing, older)))
			write(t, path, string(seal(t, sealing, numbered(5))))
			return restorable{o, dir, "backup", func(file string) {
				if write(t, path, file); file == deleted {
					_ = os.Remove(path)
				}
			}, func() string {
				file, _ := os.ReadFile(path)
				return string(file)
			}, func(*testing.T) []string { return beside(dir, "terraform.tfstate", "terraform.tfstate.backup") }, nil}
		},
		"git": func(t *testing.T) restorable {
			repo := newRepository(t, string(seal(t, sealing, older)))
			version := repo.Git("rev-parse", "main")
			putInto(repo, string(seal(t, sealing, numbered(5))))
			o, dir, _ := inRepo(t, repo.FileURL(), "GET", "plan")
			return restorable{o, dir, version[:9], func(file string) {
				files := []gittest.File{{Path: "README", Data: "hello"}, {Path: statePath, Data: file}}
				if file == deleted {
					files = files[:1]
				}
				repo.Commit("refs/heads/main", files...)
			}, func() string {
				if repo.Git("ls-tree", "main", statePath) == "" {
					return ""
				}
				return repo.Git("cat-file", "blob", "main:"+statePath)
			}, func(t *testing.T) []string { return append(beside(dir), string(everything(t, repo))) }, nil}
		},
	}
}

// restoring is a restoration of a version or of a file.
func restoring(version string, ask func(question string) bool) states.Restoration {
	r := states.Restoration{ID: version, Ask: ask, Show: func(_, _ *overview.State, _ *encryption.Opened) error { return nil }}
	if filepath.IsAbs(version) {
		r.ID, r.File = "", version
	}
	return r
}

// restored restores the older version in the folder of the module, and returns what the user sees.
//
//nolint:staticcheck // as run
func (p restorable) restored(t *testing.T, replace bool, ask func(question string) bool) (err error, said string) {
	t.Helper()
	t.Chdir(p.dir)
	t.Setenv("HOME", t.TempDir())
	told := &lines{}
	o := p.Options
	o.Stderr, o.Command, o.Wishes.Accept = told, nil, replace
	r := restoring(p.version, ask)
	r.Replace = replace
	if ask != nil {
		r.Ask = func(question string) bool {
			_, _ = io.WriteString(told, question+"\n")
			return ask(question)
		}
	}
	r.Show = func(there, restored *overview.State, opened *encryption.Opened) error {
		if there == nil {
			_, err := restored.WriteText(told, overview.View{File: overview.File{Encrypted: opened.Encrypted, Method: opened.Method}})
			return err
		}
		d, err := overview.Compare(there, restored)
		if err == nil {
			err = d.WriteText(told, overview.DiffView{})
		}
		return err
	}
	err = wrap.Restore(t.Context(), o, r)
	if said = told.String(); err != nil {
		said += "error: " + wraptest.Shown(err) + "\n"
	}
	if strings.Contains(said, canary) {
		t.Errorf("a value is shown: %s", said)
	}
	said = strings.NewReplacer(p.version, "VERSION", p.dir, "/module").Replace(said)
	return err, copies.ReplaceAllString(said, "terraform.tfstate.DIGEST.$1")
}

func yes(string) bool { return true }

// check fails unless the older version is in the backend with this serial.
func (p restorable) check(t *testing.T, serial int, err error, said string) {
	t.Helper()
	opened, failed := p.Keys.State.Decrypt(t.Context(), []byte(p.read()))
	if err != nil || failed != nil || !opened.Encrypted {
		t.Fatalf("%v, %v\n%s", err, failed, said)
	}
	want := strings.Replace(older, `"serial":1`, strings.Split(numbered(serial), ",")[2], 1)
	if string(opened.Data) != want {
		t.Errorf("there is %s", opened.Data)
	}
}

// TestRestore: an older version becomes the state in the backend, whatever is there, and nothing that was there is
// lost.
//
// Promise: Runs under wrap
func TestRestore(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "restore")
	for store, open := range restorables() {
		for name, c := range map[string]struct {
			there   func(t *testing.T) string // nil for the state with serial 5
			regular bool                      // nothing needs replacing
			serial  int                       // of the restored state
			early   bool                      // the folder has seen nothing
			rare    bool                      // the store does not matter
		}{
			"the next state":       {regular: true, serial: 6},
			"a new clone":          {regular: true, serial: 6, early: true},
			"missing":              {there: func(*testing.T) string { return deleted }, serial: 6},
			"missing, a new clone": {there: func(*testing.T) string { return deleted }, serial: 2, early: true},
			"empty":                {there: func(*testing.T) string { return "" }, serial: 6},
			"spaces":               {rare: true, there: func(*testing.T) string { return " \n" }, serial: 6},
			"damaged":              {there: func(*testing.T) string { return "a note" }, serial: 6},
			"not written to its end": {there: func(t *testing.T) string {
				return "!" + string(seal(t, sealing, numbered(5)))[1:]
			}, rare: true, serial: 6},
			"cut off": {rare: true, there: func(t *testing.T) string {
				file := string(seal(t, sealing, numbered(5)))
				return file[:len(file)/2]
			}, serial: 6},
			"of a lost key": {there: func(t *testing.T) string {
				return string(seal(t, strings.ReplaceAll(sealing, "6f6f70", "6f6f71"), numbered(8)))
			}, serial: 9},
			"of a lost key, with a high serial": {rare: true, there: func(t *testing.T) string {
				return strings.Replace(string(seal(t, strings.ReplaceAll(sealing, "6f6f70", "6f6f71"), numbered(8))), `"serial":8`,
					`"serial":9223372036854775807`, 1)
			}, serial: 6},
			"of another lineage": {there: func(t *testing.T) string { return string(seal(t, sealing, other)) }, serial: 8},
			"an older state": {rare: true, there: func(t *testing.T) string {
				return string(seal(t, sealing, numbered(3)))
			}, regular: true, serial: 6},
		} {
			if store != "file" && (c.early || c.rare || testing.Short() && name != "missing") {
				continue
			}
			t.Run(store+" "+name, func(t *testing.T) {
				p := open(t)
				if !c.early {
					if code, err, told := run(t, p.Options); code != 0 || err != nil {
						t.Fatalf("%d, %v\n%s", code, err, told)
					}
				}
				if c.there != nil {
					p.put(c.there(t))
				}
				before, kept := p.read(), len(p.kept(t))
				stays := func(what string) { // locking makes an empty file of a missing one
					t.Helper()
					if p.read() != before || len(p.kept(t)) != kept && name != "missing" && name != "missing, a new clone" {
						t.Fatalf("%s: there is %.200s, and %q", what, p.read(), p.kept(t))
					}
				}
				golden := func(what, said string) {
					t.Helper()
					if store == "file" || name == "missing" || name == "the next state" {
						mistakes.Said(t, store+": "+name+what, said)
					}
				}
				if !c.regular {
					err, said := p.restored(t, false, yes)
					if golden(" (1) without -replace", said); err == nil {
						t.Fatalf("it is replaced without a flag\n%s", said)
					}
					stays("without -replace")
				}
				for _, ask := range []func(string) bool{nil, func(string) bool { return false }} {
					if err, said := p.restored(t, !c.regular, ask); err == nil {
						t.Fatalf("nobody has agreed\n%s", said)
					}
					stays("nobody has agreed")
				}
				err, said := p.restored(t, !c.regular, yes)
				golden(" (2)", said)
				p.check(t, c.serial, err, said)
				if !bytes.Contains([]byte(strings.Join(p.kept(t), "\n")), []byte(strings.TrimSpace(before))) {
					t.Errorf("what was replaced is lost\n%s", said)
				}
				written := p.read()
				if store != "file" || name == "missing" { // of a file, it may be the backup no longer
					if err, said = p.restored(t, false, yes); err != nil || p.read() != written || !strings.Contains(said, "nothing was written") {
						t.Errorf("again: %v\n%s", err, said)
					}
				}
				if code, err, told := run(t, p.Options); code != 0 || err != nil {
					t.Errorf("the next run: %d, %v\n%s", code, err, told)
				}
			})
		}
	}
}

// TestRestoreColleague: a state that someone writes while the user is asked is not overwritten.
//
// Promise: States in stores
func TestRestoreColleague(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "restore, and a colleague")
	for store, open := range restorables() {
		for _, replace := range []bool{false, true} {
			p := open(t)
			if replace {
				p.put("a note")
			}
			theirs := string(seal(t, sealing, numbered(9)))
			err, said := p.restored(t, replace, func(string) bool {
				p.put(theirs)
				return true
			})
			name := store
			if replace {
				name += ", -replace"
			}
			mistakes.Said(t, name, said)
			if err == nil || p.read() != theirs {
				t.Errorf("%s: %v, and there is %s", name, err, p.read())
			}
		}
	}
}

// TestRestoreInBucket: a bucket that lists older versions may no longer keep them, so the state that is replaced stays
// in the folder of the module as well.
//
// Promise: States in stores
func TestRestoreInBucket(t *testing.T) {
	b := newBucket(t)
	b.Keep(stateBucket)
	b.Put(stateBucket, stateKey, seal(t, sealing, older))
	replaced := seal(t, sealing, numbered(5))
	b.Put(stateBucket, stateKey, replaced)
	o, dir, _ := scripted(t, newStore(t), "GET", "plan")
	o.Environ, o.Where.Backend = withoutClouds(o.Environ), s3Block(b.block.With("use_lockfile", true))
	p := restorable{Options: o, dir: dir}
	p.read = func() string { return string(b.Get(stateBucket, stateKey)) }
	p.version = historyOf(t, p)[1].ID
	err, said := p.restored(t, false, yes)
	p.check(t, 6, err, said)
	if copies, _ := filepath.Glob(filepath.Join(dir, "*.replaced")); len(copies) != 1 || read(t, copies[0]) != string(replaced) {
		t.Errorf("these copies are there: %q", copies)
	}
}

// TestRestorePlaintext: a plaintext version that is not restored leaves no plaintext copy.
//
// Promise: Only encrypted states
func TestRestorePlaintext(t *testing.T) {
	o, dir, _ := inFile(t, "GET", "plan")
	path := filepath.Join(dir, "terraform.tfstate")
	write(t, path+".backup", older)
	write(t, path, string(seal(t, sealing, numbered(5))))
	o.Keys.State = wraptest.Target(t, migrating)
	p := restorable{Options: o, dir: dir, version: "backup"}
	err, said := p.restored(t, false, func(string) bool {
		write(t, path+".backup", string(seal(t, sealing, older))) // a colleague writes twice
		write(t, path, string(seal(t, sealing, numbered(9))))
		return true
	})
	names, _ := filepath.Glob(filepath.Join(dir, "*.restored"))
	if err == nil || len(names) != 1 || strings.Contains(read(t, names[0]), canary) || !strings.Contains(said, ".restored") {
		t.Errorf("%v, and these copies are there: %q\n%s", err, names, said)
	}
}

// TestRestoreInTurn: the state before can be restored as well, and then the other again.
func TestRestoreInTurn(t *testing.T) {
	for _, store := range []string{"file", "git"} {
		if store == "git" && testing.Short() {
			continue
		}
		p := restorables()[store](t)
		var before string // the commit of the state that is replaced
		for serial := 6; serial < 10; serial++ {
			if store == "git" {
				before = historyOf(t, p)[0].ID
			}
			err, said := p.restored(t, false, yes)
			want := numbered(serial)
			if serial%2 == 0 {
				want = strings.Replace(older, `"serial":1`, strings.Split(want, ",")[2], 1)
			}
			opened, failed := p.Keys.State.Decrypt(t.Context(), []byte(p.read()))
			if err != nil || failed != nil || string(opened.Data) != want {
				t.Fatalf("%s, serial %d: %v, %v, %s", store, serial, err, failed, said)
			}
			if store == "git" {
				p.version = before
			}
		}
	}
}

// historyOf lists the versions of a state in git.
func historyOf(t *testing.T, p restorable) []stores.Kept {
	t.Helper()
	s, err := states.Open(p.Where, p.Keys.State, p.Environ, func(string) {})
	must(t, err)
	defer s.Close()
	v, err := s.Versions()
	must(t, err)
	kept, _, err := v.Versions(t.Context(), 10)
	must(t, err)
	return kept
}

// TestRestoreLost: an answer to the write that is lost is no failure, and the state is written once.
func TestRestoreLost(t *testing.T) {
	s := newStore(t)
	o, dir, _ := scripted(t, s, "GET", "plan")
	s.put(seal(t, sealing, numbered(5)))
	version := filepath.Join(t.TempDir(), "older")
	write(t, version, string(seal(t, sealing, older)))
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.state = body
		s.history = append(s.history, body)
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	p := restorable{Options: o, dir: dir, version: version, read: func() string { return string(s.stored()) }}
	err, said := p.restored(t, false, yes)
	p.check(t, 6, err, said)
	if len(s.history) != 1 || s.held() != nil {
		t.Errorf("%d states were written, and the lock is %s", len(s.history), s.held())
	}
}

// TestRestoreRefused: what is no version is not restored.
//
// Promise: Only encrypted states
func TestRestoreRefused(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "restore refuses")
	with := func(kind, argument string) string { // settings that also open other files
		settings := strings.Replace(sealing, "state { method", "method \""+kind+"\" \"other\" { "+argument+" }\nstate {\n"+
			"fallback { method = method."+kind+".other }\nmethod", 1)
		return strings.TrimSuffix(strings.TrimSpace(settings), "}") + "\n}"
	}
	alsoPlain, aes := with("unencrypted", ""), conformance.Get("tbg_aes")
	ofTool := `{"version":4,"serial":1,"lineage":"77c933ea-942e-4167-fec5-842701aa94ae","outputs":{},"resources":[]}`
	for name, c := range map[string]struct {
		file, there string
		settings    string
		held        bool
		works       bool
	}{
		"plaintext":                {file: older},
		"plaintext, by name":       {file: older, settings: alsoPlain, works: true},
		"plaintext there":          {there: numbered(5)},
		"plaintext there, by name": {there: numbered(5), settings: alsoPlain, works: true},
		"the same in plaintext":    {there: older, settings: alsoPlain, works: true},
		"another key":              {file: string(seal(t, strings.ReplaceAll(sealing, "6f6f70", "6f6f71"), older))},
		"of another tool there": {file: string(seal(t, sealing, ofTool)), there: string(aes.State()), works: true,
			settings: with("terraform_backend_git", `passphrase = "`+aes.BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"]+`"`)},
		"a plan":                       {file: plan(t, "http", "")},
		"an empty file":                {file: " "},
		"no file":                      {},
		"something else":               {file: `{"a":"` + canary + `"}`},
		"no readable state":            {file: string(seal(t, sealing, `{"version":4,"serial":1,"lineage":"l","resources":["`+canary+`"]}`))},
		"the highest serial":           {file: string(seal(t, sealing, strings.Replace(older, `"serial":1`, `"serial":9223372036854775807`, 1)))},
		"no serial and no lineage":     {file: string(seal(t, sealing, `{"version":4,"outputs":{},"resources":[]}`))},
		"held by someone":              {file: string(seal(t, sealing, older)), held: true},
		"a version of the state":       {file: "VERSION"},
		"a state that is there":        {file: string(seal(t, sealing, numbered(5))), works: true},
		"the same, and a later serial": {file: string(seal(t, sealing, numbered(5))), there: string(seal(t, sealing, numbered(6))), works: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := restorables()["http"](t)
			if c.settings != "" {
				p.Keys.State = target(t, c.settings)
			}
			if c.there != "" {
				p.put(c.there)
			}
			switch c.file {
			case "VERSION":
				p.version = "4711"
			case "":
				if c.there == "" {
					must(t, os.Remove(p.version))
				}
			default:
				write(t, p.version, c.file)
			}
			if c.held {
				p.hold()
			}
			before := p.read()
			err, said := p.restored(t, false, yes)
			mistakes.Said(t, name, said)
			if (err == nil) != c.works || err != nil && p.read() != before {
				t.Errorf("%v, and there is %s", err, p.read())
			}
			if strings.Contains(p.read(), canary) {
				t.Errorf("there is plaintext: %s", p.read())
			}
		})
	}
}

// TestAccRestore: after a version is restored, the CLI sees the outputs of that version, plans what is missing since,
// and goes on from there.
func TestAccRestore(t *testing.T) {
	p := inModule(t, empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve", "-var=text="+secret+"-1")
	p.must(t, "apply", "-auto-approve", "-var=text="+secret+"-2")
	r := restorable{Options: p.with, dir: p.dir, version: "backup"}
	r.Keys.State, r.Environ = p.target, p.env
	if err, said := r.restored(t, false, yes); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret+"-1") {
		t.Errorf("the output is %s", out)
	}
	for text, want := range map[string]int{"-1": 0, "-2": 2} {
		if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode", "-var=text="+secret+text); code != want || err != nil {
			t.Errorf("a plan of %s: %d, %v\n%s", text, code, err, out)
		}
	}
	p.must(t, "apply", "-auto-approve", "-var=text="+secret+"-3")
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret+"-3") {
		t.Errorf("the output is %s", out)
	}
	p.checkFiles(t)
}
