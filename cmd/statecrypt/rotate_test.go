package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
)

// rotating is a folder with settings and files.
type rotating struct {
	dir, from, to string
}

func newRotating(t *testing.T) rotating {
	t.Helper()
	dir := t.TempDir()
	return rotating{dir, write(t, filepath.Join(dir, "old.hcl"), onlyOld), write(t, filepath.Join(dir, "new.hcl"), onlyNew)}
}

func (r rotating) file(t *testing.T, name, text string) string {
	t.Helper()
	return write(t, filepath.Join(r.dir, name), text)
}

func (r rotating) rotate(t *testing.T, args ...string) called {
	t.Helper()
	return statecrypt(t, "", "", append([]string{"rotate", "-from", r.from, "-to", r.to}, args...)...)
}

const otherKey = `
key_provider "static" "other" { key = "` + canaryKey + `03" }
method "aes_gcm" "other" { keys = key_provider.static.other }
state { method = method.aes_gcm.other }
`

// TestRotate: each file is rotated, skipped or left alone, whatever becomes of the
// others, and a second run does what is left.
//
// Promise: Files of the command
func TestRotate(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	old := must(t, onlyOld, plain, "encrypt")
	files := []string{
		r.file(t, "a", old),
		r.file(t, "b", must(t, onlyNew, plain, "encrypt")),
		r.file(t, "c", must(t, otherKey, plain, "encrypt")),
		r.file(t, "d", plain),
		r.file(t, "e", "no state"),
		filepath.Join(r.dir, "missing"),
		r.file(t, "f", strings.Replace(old, `"serial":7`, `"serial":8`, 1)),
		r.file(t, "g", must(t, onlyOld, strings.Replace(plain, `"serial":7`, `"serial":9`, 1), "encrypt")),
	}
	before := map[string]string{}
	for _, name := range files {
		text, _ := os.ReadFile(name)
		before[name] = string(text)
	}
	if err := os.Chmod(files[0], 0o640); err != nil {
		t.Fatal(err)
	}
	mistakes := openMistakes(t, "rotate")
	for _, run := range []string{"first", "second"} {
		mistakes.checkAll(t, run, r.rotate(t, files...))
		for _, i := range []int{1, 2, 3, 4, 6} {
			if read(t, files[i]) != before[files[i]] {
				t.Errorf("%s was changed", files[i])
			}
		}
		if got := must(t, onlyNew, read(t, files[0]), "decrypt"); got != plain {
			t.Errorf("got %s", got)
		}
		if got := must(t, onlyNew, read(t, files[7]), "decrypt"); !strings.Contains(got, `"serial":9`) {
			t.Errorf("got %s", got)
		}
	}
	if info, err := os.Stat(files[0]); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o640 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(r.dir); err != nil || len(left) != len(files)-1+2 {
		t.Errorf("these were left: %v, %v", left, err)
	}
}

func TestRotateJSON(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	old, current, wrong := r.file(t, "old", must(t, onlyOld, plain, "encrypt")), r.file(t, "new", must(t, onlyNew, plain, "encrypt")),
		r.file(t, "other", "##c4n4ry")
	got := r.rotate(t, "-json", wrong, old, current)
	var rows []finding
	for decoder := json.NewDecoder(strings.NewReader(got.stdout)); decoder.More(); {
		var f finding
		if err := decoder.Decode(&f); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, f)
	}
	if len(rows) != 3 || rows[0].Result != "failed" || rows[0].File != wrong || rows[0].Error == "" ||
		rows[0].Method != "" || rows[1].Result != "rotated" || *rows[1].Serial != 7 || rows[1].Lineage != "l-1" ||
		rows[2].Result != "skipped" || rows[2].Method != "method.aes_gcm.new" || strings.Count(got.stdout, "\n") != 3 {
		t.Errorf("got %s", got.stdout)
	}
}

func TestRotateRefuses(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	sealed := must(t, onlyOld, plain, "encrypt")
	file, toPlaintext := r.file(t, "a", sealed), r.file(t, "plain.hcl", plainText+"state { method = method.unencrypted.p }")
	mistakes := openMistakes(t, "rotate refuses")
	for name, c := range map[string]struct {
		args     []string
		settings string
	}{
		"no -to":              {args: []string{"-from", r.from, file}},
		"no -from":            {args: []string{"-to", r.to, file}},
		"no file":             {args: []string{"-from", r.from, "-to", r.to}},
		"TF_ENCRYPTION":       {args: []string{"-from", r.from, "-to", r.to, file}, settings: onlyNew},
		"a stream":            {args: []string{"-from", r.from, "-to", r.to, "-"}},
		"to plaintext":        {args: []string{"-from", r.from, "-to", toPlaintext, file}},
		"no state block":      {args: []string{"-from", r.file(t, "none.hcl", oldText), "-to", r.to, file}},
		"plans":               {args: []string{"-plan", "-from", r.from, "-to", r.to, file}},
		"again, broken -from": {args: []string{"-again", "-from", r.file(t, "broken.hcl", onlyOld+"}"), "-to", r.to, file}},
		"again, broken -to":   {args: []string{"-again", "-from", r.from, "-to", r.file(t, "broken.hcl", onlyOld+"}"), file}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := statecrypt(t, c.settings, "", append([]string{"rotate"}, c.args...)...)
			if got.code == 0 || got.stdout != "" || read(t, file) != sealed {
				t.Errorf("got %+v", got)
			}
			mistakes.check(t, name, got)
		})
	}
	got := statecrypt(t, "", "", "rotate", "-from", r.file(t, "other.hcl", otherKey), "-to", r.file(t, "both.hcl", newAndOld), file)
	mistakes.check(t, "a fallback of -to", got)
}

// A file that only a fallback of the new settings opens is rotated, one in plaintext
// is encrypted, and a link stays a link.
func TestRotateFrom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, file string }{
		"a fallback of the new":  {from: onlyOld, to: newAndOld, file: must(t, onlyOld, plain, "encrypt")},
		"a fallback of the old":  {from: newAndOld, to: otherKey, file: must(t, onlyOld, plain, "encrypt")},
		"plaintext":              {from: plainText + "state { method = method.unencrypted.p }", to: onlyNew, file: plain},
		"plaintext, by fallback": {from: plainText + "state { method = method.unencrypted.p }", to: migration, file: plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			write(t, in("from"), c.from)
			write(t, in("to"), c.to)
			write(t, in("state"), c.file)
			if err := os.Symlink("state", in("link")); err != nil {
				t.Skip(err)
			}
			if got := statecrypt(t, "", "", "rotate", "-from", in("from"), "-to", in("to"), in("link")); got.code != 0 ||
				!strings.Contains(got.stdout, "rotated") {
				t.Fatalf("got %+v", got)
			}
			if got := must(t, "", "", "verify", "-config", in("to"), in("state")); !strings.Contains(got, ": ok, ") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestManyFiles: the lines are in the order of the arguments, whichever file is
// finished first.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor works on one file at a time")
	}
	var stdout bytes.Buffer
	first, second := write(t, "first", ""), write(t, "second", "")
	c := &call{command: command{Name: "verify"}, args: []string{first, second}, stdout: &stdout}
	finished := make(chan struct{})
	err := c.all(t.Context(), func(_ context.Context, name string) (finding, error) {
		if name == second {
			close(finished)
		}
		<-finished
		return finding{Result: resultOK, Method: "m"}, nil
	})
	if want := first + ": ok, m\n" + second + ": ok, m\n"; err != nil || stdout.String() != want {
		t.Errorf("got %v, %s", err, stdout.String())
	}
}

// A pipe that brings nothing does not keep the program after a signal.
func TestManyFilesEnd(t *testing.T) {
	t.Parallel()
	silent, keep := io.Pipe()
	defer keep.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	var stdout, stderr bytes.Buffer
	code := run(ended, []string{"verify", "-"}, silent, &stdout, &stderr, []string{"TF_ENCRYPTION=" + onlyOld})
	openMistakes(t, "interrupted at once").checkAll(t, "verify", called{code, stdout.String(), stderr.String()})
}

// cancelling is a writer that cancels a context when it gets a text.
type cancelling struct {
	text   strings.Builder
	at     string
	cancel func()
}

func (c *cancelling) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.at) {
		c.cancel()
	}
	return c.text.Write(p)
}

// TestInterrupted: an interrupted command says once how far it came, and names no file that it did not work on. With
// -json, each file has its line.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	mistakes := openMistakes(t, "interrupted")
	for name, args := range map[string][]string{
		"rotate": {"rotate", "-from", "old.hcl", "-to", "new.hcl"}, "rotate, JSON": {"rotate", "-from", "old.hcl", "-to", "new.hcl", "-json"},
		"verify of many": {"verify", "-config", "old.hcl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i, arg := range args {
				if isSettings(arg) {
					args[i] = write(t, filepath.Join(dir, arg), map[string]string{"old.hcl": onlyOld, "new.hcl": onlyNew}[arg])
				}
			}
			args := slices.Clone(args)
			for _, file := range []string{"a", "b", "c", "d", "e", "f"} {
				args = append(args, write(t, filepath.Join(dir, file), must(t, onlyOld, plain, "encrypt")))
			}
			if err := os.Remove(filepath.Join(dir, "b")); err != nil {
				t.Fatal(err)
			}
			if err := exec.CommandContext(t.Context(), "mkfifo", filepath.Join(dir, "b")).Run(); err != nil { // which brings nothing
				t.Skip(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			out := &cancelling{at: "a", cancel: cancel}
			var problems bytes.Buffer
			code := run(ctx, args, strings.NewReader(""), out, &problems, nil)
			mistakes.checkAll(t, name, called{code, out.text.String(), problems.String()})
		})
	}
}

// TestProgressIsTold: long work says how far it is.
func TestProgressIsTold(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	c := &call{command: command{Name: "rotate"}, stderr: &said}
	w := &work{files: 150, began: time.Unix(0, 0)}
	_, w.traffic = web.WithTraffic(t.Context())
	w.done.Add(37)
	beats, ended := make(chan time.Time), make(chan struct{})
	stopped := c.follow(w, beats, ended)
	beats <- time.Unix(10, 0)
	w.done.Add(1)
	beats <- time.Unix(80, 0)
	close(ended)
	<-stopped
	if want := "note: 37 of 150, after 10s\nnote: 38 of 150, after 1m20s\n"; said.String() != want {
		t.Errorf("got %q, want %q", &said, want)
	}
}

// TestRoom: a file that is larger than the limit of all files at once is worked on alone, and small ones are not.
// States in a store are read at the same time, but such a large one is worked on alone, too.
func TestRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sized := func(name string, size int64) string {
		path := write(t, filepath.Join(dir, name), "")
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := &call{args: []string{sized("a", 2*maxAtOnce), sized("b", 2*maxAtOnce), filepath.Join(dir, "of unknown size")}}
	var atWork atomic.Int64
	alone := func() {
		for range 1000 {
			if n := atWork.Add(1); n != 1 {
				t.Errorf("%d are worked on", n)
			}
			runtime.Gosched()
			atWork.Add(-1)
		}
	}
	for range c.inOrder(func(string) finding { alone(); return finding{} }) {
	}
	stored := &call{args: make([]string, maxRequests), flags: map[string][]string{"backend": {"true"}}}
	var read sync.WaitGroup
	read.Add(maxRequests)
	for range stored.inOrder(func(string) finding {
		read.Done()
		read.Wait() // all of them are read at the same time
		defer stored.reserve(t.Context(), 2*maxAtOnce)()
		alone()
		return finding{}
	}) {
	}
	if runtime.GOMAXPROCS(0) < 2 {
		return
	}
	c.args = []string{sized("c", 1), sized("d", 1)}
	both := make(chan struct{})
	for range c.inOrder(func(name string) finding {
		if name == c.args[0] {
			<-both
		} else {
			close(both)
		}
		return finding{}
	}) {
	}
}

// TestRotateAgain: a file that the new settings open is encrypted for the recipients that
// they have now, and for nobody else.
func TestRotateAgain(t *testing.T) {
	t.Parallel()
	ours, us := identity(t, "x25519.key")
	theirs, them := identity(t, "ssh_ed25519")
	list := func(texts []string) string { text, _ := json.Marshal(texts); return string(text) }
	team := func(identity string, recipients ...string) string {
		settings := fmt.Sprintf("key_provider \"age\" \"team\" {\n  recipients = %s\n  identity_files = [%q]\n}\n"+
			"method \"aes_gcm\" \"team\" { keys = key_provider.age.team }\nstate { method = method.aes_gcm.team }\n",
			list(recipients), identity)
		return write(t, filepath.Join(t.TempDir(), "team.hcl"), settings)
	}
	both, one := team(ours, us, them), team(ours, us)
	file := write(t, filepath.Join(t.TempDir(), "state"), plain)
	must(t, read(t, both), "", "encrypt", "-o", file, file)
	opens := func() bool { return statecrypt(t, read(t, team(theirs, them)), "", "decrypt", file).code == 0 }
	mistakes := openMistakes(t, "rotate -again")
	for _, step := range []struct {
		name   string
		args   []string
		theirs bool
	}{
		{"without it", []string{"-from", both, "-to", one}, true},
		{"from itself", []string{"-again", "-to", one}, false},
		{"from others", []string{"-again", "-from", one, "-to", both}, true},
		{"from itself, with another key", []string{"-again", "-to", write(t, "other.hcl", otherKey)}, true},
	} {
		got := statecrypt(t, "", "", slices.Concat([]string{"rotate"}, step.args, []string{file})...)
		mistakes.checkAll(t, step.name, got)
		if opens() != step.theirs {
			t.Errorf("%q: %+v, opens for them: %v", step.args, got, opens())
		}
		if got := must(t, read(t, both), "", "decrypt", file); got != plain {
			t.Errorf("%q: %s", step.args, got)
		}
	}
}

// TestRotateRenamed tests new settings with the same passphrase, in a key provider of another name: the file gets that
// name, because OpenTofu finds the key by it.
func TestRotateRenamed(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	from := r.file(t, "from.hcl", worded(oldWords))
	to := r.file(t, "to.hcl", strings.NewReplacer(`"pbkdf2" "p"`, `"pbkdf2" "q"`, "pbkdf2.p", "pbkdf2.q").Replace(worded(oldWords)))
	name := r.file(t, "a", must(t, worded(oldWords), plain, "encrypt"))
	mistakes := openMistakes(t, "rotate, renamed")
	for _, run := range []string{"first", "second"} {
		mistakes.checkAll(t, run, statecrypt(t, "", "", "rotate", "-from", from, "-to", to, name))
		if sealed := read(t, name); !strings.Contains(sealed, `"key_provider.pbkdf2.q"`) || strings.Contains(sealed, "pbkdf2.p") {
			t.Errorf("%s: got %.300s", run, sealed)
		}
	}
}
