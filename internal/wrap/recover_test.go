package wrap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// recovering is a run in the folder of a module, of which the home directory has nothing.
func recovering(t *testing.T, s *store) (o wrap.Options, dir string) {
	t.Helper()
	o, dir, _ = scripted(t, s, "")
	o.Command = nil
	t.Chdir(dir)
	t.Setenv("HOME", t.TempDir())
	return o, dir
}

// recovered runs it, and returns what wrap says.
func recovered(t *testing.T, o wrap.Options, r states.Recovery) (err error, said string) { //nolint:staticcheck // as run
	t.Helper()
	told := &lines{}
	o.Stderr = told
	err = wrap.Recover(t.Context(), o, r)
	return err, told.String()
}

// newer is what comes after state.
var newer = strings.Replace(state, `"serial":1`, `"serial":2`, 1)

// TestRecover: a state that was left is written in place of the one that its run has begun with, and in
// place of no other, under the lock.
func TestRecover(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "recover")
	ninth := strings.Replace(state, `"serial":1`, `"serial":9`, 1)
	force := states.Recovery{Force: true}
	for name, c := range testkit.Some(map[string]struct {
		left   string // "sealed" is newer
		named  bool   // and not where wrap looks
		stored string // when the run began; "" for none
		since  string // was written by someone else; "" for nothing
		looked bool   // at that, in this folder
		goneOn bool   // from that, in this folder, after the file was moved away
		fresh  bool   // the run was not here
		held   string
		r      states.Recovery
		yes    bool
		asked  bool
		want   string // what is in the backend then; "" if it stays
	}{
		"plaintext":                 {left: newer, stored: state, want: newer},
		"sealed":                    {left: "sealed", stored: state, want: newer},
		"named":                     {left: newer, named: true, stored: state, want: newer},
		"none there yet":            {left: newer, want: newer},
		"none there yet, not here":  {left: newer, fresh: true, want: newer},
		"there already":             {left: "sealed", stored: state, since: newer, want: newer},
		"nothing left":              {stored: state},
		"an empty one":              {stored: state, left: " "},
		"something else":            {left: "something " + canary, stored: state},
		"of another key":            {left: "other", stored: state},
		"of another state":          {left: other, stored: state},
		"of another state, forced":  {left: other, stored: state, r: force},
		"as old":                    {left: strings.Replace(newer, "[]", "[{}]", 1), stored: state, since: newer, r: force},
		"older":                     {left: state, stored: state, since: newer, r: force},
		"no serial":                 {left: `{"version":4,"lineage":"l","outputs":{},"resources":[]}`, stored: state, r: force},
		"someone has gone on":       {left: ninth, stored: state, since: newer},
		"someone has, and was seen": {left: ninth, stored: state, since: newer, looked: true},
		"someone has, and applied":  {left: ninth, named: true, stored: state, since: newer, goneOn: true},
		"someone has, forced":       {left: ninth, stored: state, since: newer, r: force, want: ninth},
		"another key meanwhile":     {left: ninth, stored: state, since: state},
		"not here":                  {left: newer, stored: state, fresh: true},
		"not here, but seen":        {left: newer, stored: state, fresh: true, looked: true},
		"not here, forced":          {left: newer, stored: state, fresh: true, r: force, want: newer},
		"not here, held, forced": {left: newer, stored: state, fresh: true, held: lock,
			r: states.Recovery{Force: true, Unlock: "4711"}, want: newer},
		"not here, held":            {left: newer, stored: state, fresh: true, held: lock, r: states.Recovery{Unlock: "4711"}},
		"gone":                      {left: newer, stored: state, since: "none"},
		"held":                      {left: newer, stored: state, held: lock},
		"held, no":                  {left: newer, stored: state, held: lock, asked: true},
		"held, yes":                 {left: newer, stored: state, held: lock, asked: true, yes: true, want: newer},
		"held, by this one":         {left: newer, stored: state, held: lock, r: states.Recovery{Unlock: "4711"}, want: newer},
		"held, by another one":      {left: newer, stored: state, held: lock, r: states.Recovery{Unlock: "1"}},
		"held, and moved on":        {left: ninth, stored: state, since: newer, held: lock, r: states.Recovery{Unlock: "4711"}},
		"held, by nobody":           {left: newer, stored: state, held: `{}`, asked: true, yes: true},
		"held, with an odd ID":      {left: newer, stored: state, held: `{"ID":"-x $(touch y)","Who":"a"}`},
		"not held, and unlocked":    {left: newer, stored: state, r: states.Recovery{Unlock: "4711"}, want: newer},
		"in the backend, plaintext": {left: newer, stored: state, since: "plaintext"},
	}) {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			o, dir := recovering(t, s)
			if c.stored != "" {
				s.put(seal(t, sealing, c.stored))
			}
			path := filepath.Join(dir, "errored.tfstate")
			if !c.fresh && !strings.Contains(c.left, " ") && c.left != "" && c.left != "other" {
				leaves(t, dir, s, strings.Replace(c.left, "sealed", newer, 1))
			}
			switch c.since {
			case "":
			case "none":
				s.put(nil)
			case "plaintext":
				s.put([]byte(state))
			default:
				s.put(seal(t, sealing, c.since))
			}
			if c.looked {
				runs(t, dir, s, "GET", "plan")
			}
			if c.held != "" {
				s.hold([]byte(c.held))
			}
			if _, err := os.Stat(path); err != nil && c.left != "" {
				left := c.left
				if left == "other" {
					left = string(seal(t, strings.ReplaceAll(sealing, "6f6f70", "6f6f71"), newer))
				}
				write(t, path, left)
			}
			if c.named {
				c.r.File = filepath.Join(t.TempDir(), "kept")
				if err := os.Rename(path, c.r.File); err != nil {
					t.Fatal(err)
				}
				path = c.r.File
			}
			if c.goneOn {
				runs(t, dir, s, "GET", "apply")
			}
			if c.asked {
				c.r.Ask = func(question string) bool {
					mistakes.Said(t, name+", asked", question)
					return c.yes
				}
			}
			before, held := s.stored(), s.held()
			err, told := recovered(t, o, c.r)
			mistakes.Failed(t, name, told, err)
			_, missing := os.Stat(path)
			if c.want == "" {
				if err == nil || !bytes.Equal(s.stored(), before) || (missing != nil) != (c.left == "") {
					t.Errorf("got %v, and this is stored: %s; the file: %v", err, s.stored(), missing)
				}
				if !bytes.Equal(s.held(), held) {
					t.Errorf("the lock is %s", s.held())
				}
				c.r.Ask = nil
				if again, _ := recovered(t, o, c.r); again == nil {
					t.Error("a second try has success")
				}
				return
			}
			opened, failed := o.Keys.State.Decrypt(t.Context(), s.stored())
			if err != nil || failed != nil || !opened.Encrypted || string(opened.Data) != c.want {
				t.Errorf("%v, %v, this is stored: %s", err, failed, s.stored())
			}
			if s.held() != nil || (missing == nil) != c.named {
				t.Errorf("the lock is %s, the file %v", s.held(), missing)
			}
		})
	}
}

// leaves has a run in the folder go on from the state that there is, and leave one.
func leaves(t *testing.T, dir string, s *store, text string) {
	t.Helper()
	runs(t, dir, s, "GET leave=errored.tfstate,"+text, "apply")
}

func runs(t *testing.T, dir string, s *store, script, command string) {
	t.Helper()
	o, _, _ := scripted(t, s, script, command)
	o.Command[1] = "-chdir=" + dir
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatal(code, err)
	}
}

// TestRecoverAgain: after any failure, the file is there, and another try has success.
func TestRecoverAgain(t *testing.T) {
	for _, method := range []string{"GET", "POST", "LOCK", "UNLOCK"} {
		s := newStore(t)
		o, dir := recovering(t, s)
		s.put(seal(t, sealing, state))
		leaves(t, dir, s, newer)
		s.hold([]byte(lock))
		path := filepath.Join(dir, "errored.tfstate")
		s.refuse(method)
		err, told := recovered(t, o, states.Recovery{Unlock: "4711"})
		if _, missing := os.Stat(path); err == nil || missing != nil {
			t.Errorf("%s: %v, %v\n%s", method, err, missing, told)
		}
		s.intercept(nil)
		r := states.Recovery{Unlock: "4711"}
		if held := s.held(); held != nil {
			r.Unlock = id(held) // of the first try, if it could not give it back
		}
		err, told = recovered(t, o, r)
		opened, failed := o.Keys.State.Decrypt(t.Context(), s.stored())
		if err != nil || failed != nil || string(opened.Data) != newer || s.held() != nil {
			t.Errorf("%s, again: %v, %v\n%s", method, err, failed, told)
		}
	}
}

// TestRecoverWhileAsked: whoever breaks the lock while the question stands has gone on.
func TestRecoverWhileAsked(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "recover while someone goes on")
	for name, leaves := range map[string][]byte{"no lock": nil, "the lock": []byte(lock)} { // as the backend has it then
		s := newStore(t)
		o, dir := recovering(t, s)
		s.put(seal(t, sealing, state))
		s.hold([]byte(lock))
		write(t, filepath.Join(dir, "errored.tfstate"), strings.Replace(state, `"serial":1`, `"serial":9`, 1))
		var now []byte
		err, told := recovered(t, o, states.Recovery{Ask: func(string) bool {
			now = seal(t, sealing, newer)
			s.put(now)
			s.hold(leaves)
			return true
		}})
		mistakes.Failed(t, name, told, err)
		if err == nil || !bytes.Equal(s.stored(), now) {
			t.Errorf("%s: %v, and this is stored: %s", name, err, s.stored())
		}
	}
}

// TestRecoverElsewhere: what a run was entitled to replace in one place, it was not in another, for
// which the folder has settings, too.
func TestRecoverElsewhere(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "recover in another place")
	s, another := newStore(t), newStore(t) // neither has a state
	_, dir := recovering(t, s)
	leaves(t, dir, s, newer)
	o, _, _ := scripted(t, another, "")
	o.Command = nil
	err, told := recovered(t, o, states.Recovery{})
	if mistakes.Failed(t, "none there", told, err); err == nil || another.stored() != nil {
		t.Errorf("%v, and this is stored: %s", err, another.stored())
	}
}

// TestRecoverIsRobbed: if someone else has the lock once all is done, it is theirs.
func TestRecoverIsRobbed(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "recover without its lock")
	s := newStore(t)
	o, dir := recovering(t, s)
	s.put(seal(t, sealing, state))
	leaves(t, dir, s, newer)
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "UNLOCK" {
			return false
		}
		s.hold([]byte(lock))
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, lock)
		return true
	})
	err, told := recovered(t, o, states.Recovery{Ask: func(string) bool { t.Error("it asks for the lock of someone else"); return true }})
	mistakes.Failed(t, "in the end", told, err)
	opened, failed := o.Keys.State.Decrypt(t.Context(), s.stored())
	_, there := os.Stat(filepath.Join(dir, "errored.tfstate"))
	if err == nil || there == nil || failed != nil || string(opened.Data) != newer || string(s.held()) != lock {
		t.Errorf("%v, %v, %v, the lock is %s", err, failed, there, s.held())
	}
}

// TestRecoverInterrupted: what is under way is finished, and no lock stays.
func TestRecoverInterrupted(t *testing.T) {
	for method, written := range map[string]bool{"LOCK": false, "GET": false, "POST": true, "UNLOCK": true} {
		s := newStore(t)
		o, dir := recovering(t, s)
		s.put(seal(t, sealing, state))
		leaves(t, dir, s, newer)
		path := filepath.Join(dir, "errored.tfstate")
		ctx, interrupt := context.WithCancel(t.Context())
		s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == method {
				interrupt()
			}
			return false
		})
		err := wrap.Recover(ctx, o, states.Recovery{})
		opened, failed := o.Keys.State.Decrypt(t.Context(), s.stored())
		if _, missing := os.Stat(path); (err == nil) != written || (missing != nil) != written || failed != nil ||
			(string(opened.Data) == newer) != written || s.held() != nil {
			t.Errorf("%s: %v, %v, the lock is %s", method, err, missing, s.held())
		}
	}
}

// TestRecoverAfterAnAnswerThatWasWrong: what the run has written itself, in spite of an error, is nobody
// else's.
func TestRecoverAfterAnAnswerThatWasWrong(t *testing.T) {
	s := newStore(t)
	o, dir := recovering(t, s)
	s.put(seal(t, sealing, state))
	run, _, _ := scripted(t, s, "GET leave=errored.tfstate,"+strings.Replace(state, `"serial":1`, `"serial":3`, 1)+" POST="+newer, "apply")
	run.Command[1] = "-chdir=" + dir
	var down bool
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			down = true
			body, _ := io.ReadAll(r.Body)
			s.put(body)
		}
		if down {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return down
	})
	_, _ = wrap.Run(t.Context(), run) // which fails
	s.intercept(nil)
	err, told := recovered(t, o, states.Recovery{})
	opened, failed := o.Keys.State.Decrypt(t.Context(), s.stored())
	if err != nil || failed != nil || !strings.Contains(string(opened.Data), `"serial":3`) {
		t.Errorf("%v, %v\n%s", err, failed, told)
	}
}

// TestRecoverNotTheStateItself: the state in the backend is no file that was left, whatever it is called.
func TestRecoverNotTheStateItself(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "recover the state itself")
	for _, name := range []string{"terraform.tfstate", "errored.tfstate"} {
		o, dir, _ := inFile(t, "")
		o.Command, o.Where.Backend = nil, fileBlock(name)
		t.Chdir(dir)
		t.Setenv("HOME", t.TempDir())
		path := filepath.Join(dir, name)
		write(t, path, string(seal(t, sealing, state)))
		for _, r := range []states.Recovery{{Force: true}, {Force: true, File: name}} {
			err, told := recovered(t, o, r)
			mistakes.Failed(t, strings.TrimSpace(name+" "+r.File), told, err)
			if _, missing := os.Stat(path); err == nil || missing != nil {
				t.Errorf("%s: %v, %v", name, err, missing)
			}
		}
	}
}

// TestRecoverTwo: if there are two, the user says which is the newest.
func TestRecoverTwo(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "recover one of two")
	s := newStore(t)
	o, dir := recovering(t, s)
	s.put(seal(t, sealing, state))
	leaves(t, dir, s, newer)
	kept := filepath.Join(os.Getenv("HOME"), "errored-"+filepath.Base(own(dir))+".tfstate")
	write(t, kept, string(seal(t, sealing, newer)))
	err, _ := recovered(t, o, states.Recovery{})
	if err == nil || !strings.Contains(err.Error(), "statecrypt inspect") {
		t.Error(err)
	}
	err, told := recovered(t, o, states.Recovery{File: "errored.tfstate"})
	if mistakes.Failed(t, "named", told, err); err != nil {
		t.Error(err)
	}
}

// TestRecoverFromHome: what wrap has kept itself is found.
func TestRecoverFromHome(t *testing.T) {
	s := newStore(t)
	o, dir := recovering(t, s)
	s.put(seal(t, sealing, state))
	s.refuse("POST")
	run, _, _ := scripted(t, s, "GET mkdir=errored.tfstate POST="+newer+" rmdir=errored.tfstate", "apply")
	run.Command[1] = "-chdir=" + dir
	if _, err := wrap.Run(t.Context(), run); err == nil {
		t.Error("nobody says that the state was not written")
	}
	s.intercept(nil)
	path := filepath.Join(os.Getenv("HOME"), "errored-"+filepath.Base(own(dir))+".tfstate")
	err, told := recovered(t, o, states.Recovery{})
	opened, failed := o.Keys.State.Decrypt(t.Context(), s.stored())
	if _, there := os.Stat(path); err != nil || failed != nil || string(opened.Data) != newer || there == nil {
		t.Errorf("%v, %v\n%s", err, failed, told)
	}
}

// TestRecoverBesideAProcess: a lock that ends with its process is nobody's to give back.
func TestRecoverBesideAProcess(t *testing.T) {
	o, dir, _ := inFile(t, "")
	o.Command = nil
	mistakes := wraptest.OpenMistakes(t, "recover beside others")
	t.Chdir(dir)
	t.Setenv("HOME", t.TempDir())
	path := filepath.Join(dir, "terraform.tfstate")
	write(t, path, string(seal(t, sealing, state)))
	write(t, filepath.Join(dir, "errored.tfstate"), newer)
	holdFile(t, path)
	before := read(t, path)
	err, told := recovered(t, o, states.Recovery{Unlock: "4711", Ask: func(string) bool { return true }})
	if mistakes.Failed(t, "beside a process", told, err); err == nil || read(t, path) != before {
		t.Errorf("got %v, and %s", err, read(t, path))
	}
}

// TestAccRecover: an apply whose state and lock the repository refuses, and the command that it names.
func TestAccRecover(t *testing.T) {
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	p := newProject(t, nil, empty)
	p.with.Where.Backend = gitBlock(repo.FileURL())
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	repo.Git("config", "receive.denyDeletes", "true")
	hook := filepath.Join(repo.Dir, "hooks", "update")
	write(t, hook, "#!/bin/sh\ntest \"$1\" != refs/heads/main\n")
	if err := os.Chmod(hook, 0o700); err != nil { //nolint:gosec // git runs it
		t.Fatal(err)
	}
	code, err, out := p.wrapped(t, "apply", "-auto-approve", "-var=text=newer")
	if code == 0 || !strings.Contains(out, "statecrypt recover -config FILE") {
		t.Fatalf("got %d, %v\n%s", code, err, out)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	repo.Git("config", "receive.denyDeletes", "false")
	t.Chdir(p.dir)
	o := p.with
	o.Keys.State, o.Environ = p.target, p.env
	err, told := recovered(t, o, states.Recovery{Ask: func(string) bool { return true }})
	if err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode", "-var=text=newer"); code != 0 || err != nil {
		t.Errorf("afterwards: %d, %v\n%s", code, err, out)
	}
	p.checkClean(t)
}

// TestRecoverWithoutALineage: a state that no backend has ever had gets a lineage and a serial, as a CLI gives
// them to it. In place of a state that has no lineage either, it stays as it is.
func TestRecoverWithoutALineage(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "recover without a lineage")
	first := strings.NewReplacer(`"serial":1`, `"serial":0`, `"lineage":"l"`, `"lineage":""`).Replace(state)
	second := strings.Replace(first, `"serial":0`, `"serial":2`, 1)
	lineages := map[string]bool{} // one of two equal states must not tell anything of the state
	for name, c := range map[string]struct {
		there, left string
		again       bool // what was written was not read back
		named       bool
	}{
		"for the first time":  {left: first, named: true},
		"after a failure":     {left: first, again: true, named: true},
		"no members":          {left: `{"version":4,"outputs":{},"resources":[]}`, named: true},
		"in place of another": {there: first, left: second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			o, dir := recovering(t, s)
			if c.there != "" {
				s.put(seal(t, sealing, c.there))
			}
			leaves(t, dir, s, c.left)
			left := read(t, filepath.Join(dir, "errored.tfstate"))
			err, told := recovered(t, o, states.Recovery{})
			if c.again {
				write(t, filepath.Join(dir, "errored.tfstate"), left)
				err, told = recovered(t, o, states.Recovery{})
			}
			mistakes.Failed(t, name, told, err)
			opened, failed := o.Keys.State.Decrypt(t.Context(), s.stored())
			if err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			var label struct {
				Version, Serial int
				Lineage         string
				Resources       []string
			}
			if err := json.Unmarshal(opened.Data, &label); err != nil || label.Version != 4 || label.Resources == nil {
				t.Errorf("%v, %s", err, opened.Data)
			}
			if c.named != (len(label.Lineage) == 36 && label.Serial == 1) || !c.named && string(opened.Data) != c.left {
				t.Errorf("it is %s", opened.Data)
			}
			if c.named && lineages[label.Lineage] {
				t.Errorf("another state has the lineage %s", label.Lineage)
			}
			lineages[label.Lineage] = true
		})
	}
}

// TestNoLineage: that a state has no lineage is said when it is read or written, once.
func TestNoLineage(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "no lineage")
	none := strings.Replace(state, `"lineage":"l"`, `"lineage":""`, 1)
	for name, c := range map[string]struct{ there, script, command string }{
		"read":             {there: none, script: "GET GET", command: "plan"},
		"written":          {script: "GET POST=" + none, command: "apply"},
		"read and written": {there: none, script: "GET POST=" + none, command: "apply"},
		"given one":        {there: none, script: "GET POST=" + state + " GET", command: "apply"},
	} {
		s := newStore(t)
		if c.there != "" {
			s.put(seal(t, sealing, c.there))
		}
		o, _, _ := scripted(t, s, c.script, c.command)
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		if err != nil || strings.Count(told, "UUID") != 1 {
			t.Errorf("%s: %v, %s", name, err, told)
		}
	}
}
