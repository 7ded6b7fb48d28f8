package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// linked is a command in a module of someone else, and what is there before.
type linked struct {
	args  string
	files map[string]string // below the folder of all modules
	state string            // where a link is a feature, "" if the state is in no file
	named []string          // on the command line, where it is one, too
}

// TestLinks: whatever a command opens or writes in a module, in the home directory and beside a state, a
// link in its place leads nowhere: what is elsewhere stays as it is, and nothing new appears there. Which
// files these are, the kernel says.
//
// Promise: Links in modules
func TestLinks(t *testing.T) {
	program := built(t)
	child := filepath.Join(filepath.Dir(program), "terraform")
	if err := os.Rename(program, child); err != nil {
		t.Fatal(err)
	}
	old := must(t, onlyOld, plain, "encrypt")
	next := must(t, onlyOld, strings.Replace(plain, `"serial":7`, `"serial":8`, 1), "encrypt")
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			_, _ = io.WriteString(w, old)
		case http.MethodPost:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer refusing.Close()
	address := fmt.Sprintf("address = %q\n  lock_address = %[1]q\n  unlock_address = %[1]q\n  retry_max = 0", refusing.URL+"/s")
	journal := fmt.Sprintf(`{"replaces":%q,"state":%q}`+"\n%s", store.Digest([]byte("x")), store.Digest([]byte(next)), next)
	const wrap = "wrap -config keys.hcl -- terraform "
	const inModule, beside = "m/terraform.tfstate", "states/net.tfstate"
	settings := func(kind, arguments string) string {
		return "backend \"" + kind + "\" {\n  " + arguments + "\n}\n" + onlyOld
	}
	inFile, elsewhere, web := settings("file", ""), settings("file", `path = "../states/net.tfstate"`), settings("http", address)
	for name, c := range testkit.Some(map[string]linked{
		"apply": {args: wrap + "apply", state: inModule, files: map[string]string{
			"keys.hcl": inFile, inModule: old, inModule + ".backup": old, "m/.terraform.tfstate.lock.info": `{"ID":"9"}`}},
		"apply beside":         {args: wrap + "apply", state: beside, files: map[string]string{"keys.hcl": elsewhere, beside: old}},
		"apply, refused":       {args: wrap + "apply", files: map[string]string{"keys.hcl": web}},
		"apply, saved at home": {args: wrap + "apply", files: map[string]string{"keys.hcl": web, "m/stuck": ""}},
		"apply, not finished": {args: wrap + "apply", state: inModule, files: map[string]string{
			"keys.hcl": inFile, inModule: "!" + old[1:], "m/.terraform.tfstate.journal": journal}},
		"apply, someone else": {args: wrap + "apply", state: inModule, files: map[string]string{
			"keys.hcl": inFile, inModule: old, "m/.terraform.tfstate.journal": journal}},
		"plan": {args: wrap + "plan", state: inModule, files: map[string]string{"keys.hcl": inFile, inModule: old}},
		"encrypt existing": {args: strings.Replace(wrap, "--", "-encrypt-existing --", 1) + "init", state: inModule, files: map[string]string{
			"keys.hcl": inFile, inModule: plain, "m/.terraform/terraform.tfstate": `{"version":3,"backend":{"type":"local","config":{}}}`}},
		"leave": {args: strings.Replace(wrap, "--", "-leave --", 1) + "init -migrate-state", state: inModule, files: map[string]string{
			"keys.hcl": inFile, inModule: old, "m/main.tf": `terraform {
  backend "local" {
    path = "out.tfstate"
  }
}`}},
		"recover": {args: "recover -force -config keys.hcl", state: inModule, files: map[string]string{
			"keys.hcl": inFile, inModule: old, "m/errored.tfstate": next, "m/.terraform/statecrypt/seen.json": "{}",
			"m/.terraform/statecrypt/base.json": "{}"}},
		"restore": {args: "restore -yes -config keys.hcl backup", state: inModule, files: map[string]string{
			"keys.hcl": inFile, inModule: must(t, onlyOld, strings.Replace(plainNext, "c4n4ry", "other", 1), "encrypt"), inModule + ".backup": old}},
		"restore a file": {args: "restore -yes -replace -config keys.hcl x.tfstate", state: inModule, files: map[string]string{
			"keys.hcl": inFile, inModule: "a note", "m/x.tfstate": old, "m/.terraform/statecrypt/seen.json": "{}"}},
		"rotate": {args: "rotate -backend -from keys.hcl -to new.hcl", state: inModule, files: map[string]string{
			"keys.hcl": inFile, "new.hcl": strings.Replace(inFile, onlyOld, onlyNew, 1), inModule: old}},
		"rotate a file": {args: "rotate -from keys.hcl -to new.hcl x.tfstate", named: []string{"m/x.tfstate"}, files: map[string]string{
			"keys.hcl": onlyOld, "new.hcl": onlyNew, "m/x.tfstate": old}},
		"verify":        {args: "verify -backend -config keys.hcl", state: inModule, files: map[string]string{"keys.hcl": inFile, inModule: old}},
		"verify a file": {args: "verify -config keys.hcl x.tfstate", files: map[string]string{"keys.hcl": onlyOld, "m/x.tfstate": old}},
		"encrypt": {args: "encrypt -config keys.hcl -o y.tfstate x.tfstate", named: []string{"m/y.tfstate"}, files: map[string]string{
			"keys.hcl": onlyOld, "m/x.tfstate": plain, "m/y.tfstate": old}},
	}) {
		t.Run(name, func(t *testing.T) {
			l := newLinks(t, c, child)
			names := l.watched(t)
			if t.Logf("these are opened: %q", names); len(names) < 4 {
				t.Fatal("this test shows nothing")
			}
			for _, name := range names {
				if name == c.state || slices.Contains(append(c.named, "home", "m", "m/.terraform", "states"), name) {
					continue // a link there is the user's
				}
				for _, out := range []string{l.out, filepath.Join(l.root, "m", ".terraform", "statecrypt", "elsewhere")} {
					if out == l.out || strings.HasPrefix(name, "m/.terraform/statecrypt/") {
						l.plant(t, name, out, true)
						l.plant(t, name, out, false)
					}
				}
			}
		})
	}
}

// links are the folders of a case: one of modules, whose name is always the same, and one elsewhere.
type links struct {
	linked
	root, out string
	child     string
	folders   []string // which the command makes
}

func newLinks(t *testing.T, c linked, child string) *links {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &links{linked: c, root: filepath.Join(root, "root"), out: filepath.Join(t.TempDir(), "elsewhere"), child: child}
}

// prepare makes the folders anew.
func (l *links) prepare(t *testing.T) {
	t.Helper()
	t.Chdir(filepath.Dir(l.root))
	if err := os.RemoveAll(l.root); err != nil {
		t.Fatal(err)
	}
	files := maps.Clone(l.files)
	if files["m/main.tf"] == "" {
		files["m/main.tf"] = "terraform {\n  backend \"http\" {}\n}\n"
	}
	for _, name := range []string{"keys.hcl", "new.hcl"} {
		if files[name] != "" {
			files["m/"+name] = files[name]
			delete(files, name)
		}
	}
	for name, text := range files {
		path := filepath.Join(l.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	for _, folder := range append([]string{"home", "states"}, l.folders...) {
		if err := os.MkdirAll(filepath.Join(l.root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// output takes what wrap and its child say at the same time.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run runs the command in the module.
func (l *links) run(t *testing.T) (code int, said string) {
	t.Helper()
	t.Chdir(filepath.Join(l.root, "m"))
	t.Setenv("HOME", filepath.Join(l.root, "home"))
	args := strings.Fields(l.args)
	for i, word := range args {
		if word == "terraform" {
			args[i] = l.child
		}
	}
	out := &output{}
	code = run(t.Context(), args, strings.NewReader(""), out, out, []string{"PATH=" + os.Getenv("PATH")})
	return code, out.String()
}

// watched are the names that the command opens or makes, below the root: those of both of two runs, which
// no name with something random in it is.
func (l *links) watched(t *testing.T) []string {
	t.Helper()
	l.prepare(t)
	code, said := l.run(t)
	t.Logf("%d, %s", code, said)
	_ = filepath.WalkDir(l.root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && path != l.root && e.Name() != "errored.tfstate" {
			below, _ := filepath.Rel(l.root, path)
			l.folders = append(l.folders, below)
		}
		return err
	})
	once, again := l.events(t), l.events(t)
	maps.DeleteFunc(once, func(name string, _ bool) bool { return !again[name] })
	return slices.Sorted(maps.Keys(once))
}

func (l *links) events(t *testing.T) map[string]bool {
	t.Helper()
	l.prepare(t)
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	watches := map[int32]string{}
	err = filepath.WalkDir(l.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		watch, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_MODIFY|unix.IN_DELETE)
		below, _ := filepath.Rel(l.root, path)
		watches[int32(watch)] = below //nolint:gosec // a few
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	l.run(t)
	names, buffer := map[string]bool{}, make([]byte, 1<<20)
	for {
		n, err := unix.Read(fd, buffer)
		if err != nil || n <= 0 {
			break
		}
		for at := 0; at < n; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&buffer[at])) //nolint:gosec // as the kernel has it
			if event.Mask&unix.IN_Q_OVERFLOW != 0 {
				t.Fatal("there were too many events")
			}
			begin := at + unix.SizeofInotifyEvent
			at = begin + int(event.Len)
			if name := string(bytes.TrimRight(buffer[begin:at], "\x00")); name != "" && name[0] != '#' { // of a file without a name
				names[filepath.Join(watches[event.Wd], name)] = true
			}
		}
	}
	return names
}

// plant has a link in the place of a name, and runs the command. The link leads to a file, or to a folder
// if there is one of the name, or to nothing.
func (l *links) plant(t *testing.T, name, out string, leads bool) {
	t.Helper()
	const canary = "someone's own"
	l.prepare(t)
	path, to, own := filepath.Join(l.root, name), filepath.Join(out, "x"), filepath.Join(t.TempDir(), "own")
	if info, err := os.Lstat(path); err == nil && info.IsDir() && leads { // with all that the command has in there
		l.run(t)
		if err := os.Rename(path, own); err != nil {
			t.Fatal(err)
		}
		_ = filepath.WalkDir(own, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				write(t, path, canary)
			}
			return err
		})
		l.prepare(t)
	} else {
		write(t, own, canary)
	}
	err := os.RemoveAll(path)
	for _, folder := range []string{out, filepath.Dir(path)} {
		err = errors.Join(err, os.MkdirAll(folder, 0o700))
	}
	if leads {
		err = errors.Join(err, os.RemoveAll(to), os.Rename(own, to))
	}
	if err = errors.Join(err, os.Symlink(to, path)); err != nil {
		t.Fatal(err)
	}
	before := tree(t, out)
	code, said := l.run(t)
	after := tree(t, out)
	if !maps.Equal(before, after) {
		t.Errorf("by a link at %s, there was elsewhere %v, and is %v: %d\n%s", name, before, after, code, said)
	}
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
}

// tree is what is below a folder.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		found[path] = e.Type().String()
		if err == nil && e.Type().IsRegular() {
			found[path] = read(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
