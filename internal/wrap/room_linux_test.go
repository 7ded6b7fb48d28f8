package wrap_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// inNamespace runs the test once more, as a process that may mount file systems, and returns true there.
func inNamespace(t *testing.T) bool {
	t.Helper()
	const variable = "WRAP_TEST_NAMESPACE"
	if os.Getenv(variable) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", //nolint:gosec // this program
		fmt.Sprintf("-test.short=%v", testing.Short()))
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	_, hasFailed := errors.AsType[*exec.ExitError](err)
	switch {
	case hasFailed:
		t.Errorf("%s", out)
	case err != nil:
		t.Skipf("there are no namespaces of users here: %v", err)
	case bytes.Contains(out, []byte("--- SKIP: "+t.Name()+" ")):
		t.Skipf("%s", out)
	}
	return false
}

// disk of a size.
type disk struct{ dir string }

func newDisk(t *testing.T) disk {
	t.Helper()
	d := disk{t.TempDir()}
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.dir, unix.MNT_DETACH) })
	return d
}

// leave has so many bytes free.
func (d disk) leave(t *testing.T, free int) {
	t.Helper()
	var now unix.Statfs_t
	err := unix.Statfs(d.dir, &now)
	if err == nil {
		used := int64(now.Blocks-now.Bfree) * now.Bsize //nolint:gosec // a few
		err = unix.Mount("tmpfs", d.dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", used+int64(free)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// little is a run whose backend refuses the state that it makes.
type little struct {
	wrap.Options
	there func(module string) string // what the backend has
	mend  func()                     // has the backend take it
}

// TestLittleRoom: a state that neither the backend nor a disk with little room takes is not left in
// plaintext while there is room elsewhere, and recover writes it. Without any room, the error has it,
// encrypted, or says that it is plaintext.
//
// Promise: Runs under wrap
func TestLittleRoom(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	const size = 1 << 20
	old := string(seal(t, sealing, state))
	args := []string{"apply", "-lock=false"}
	kinds := map[string]func(t *testing.T, script string) little{
		"http": func(t *testing.T, script string) little {
			s := newStore(t)
			s.put([]byte(old))
			s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					w.WriteHeader(http.StatusForbidden)
				}
				return r.Method == http.MethodPost
			})
			o, _, _ := scripted(t, s, script, args...)
			return little{o, func(string) string { return string(s.stored()) }, func() { s.intercept(nil) }}
		},
		"file": func(t *testing.T, script string) little { // on the same disk
			o, dir, _ := inFile(t, script, args...)
			write(t, filepath.Join(dir, "terraform.tfstate"), old)
			return little{o, func(module string) string { return read(t, filepath.Join(module, "terraform.tfstate")) }, func() {}}
		},
		"git": func(t *testing.T, script string) little {
			repo := newRepository(t, old)
			hook := filepath.Join(repo.Dir, "hooks", "update")
			write(t, hook, "#!/bin/sh\n[ \"$1\" != refs/heads/main ]\n")
			if err := os.Chmod(hook, 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			o, _, _ := inRepo(t, repo.FileURL(), script, args...)
			there := func(string) string {
				cmd := exec.CommandContext(t.Context(), "git", "show", "main:"+statePath)
				cmd.Dir = repo.Dir
				text, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			return little{o, there, func() { _ = os.Remove(hook) }}
		},
		"s3": func(t *testing.T, script string) little {
			b := newBucket(t)
			b.Put(stateBucket, stateKey, []byte(old))
			b.Allows = func(action, resource string) bool {
				return action != "s3:PutObject" || !strings.HasSuffix(resource, "/"+stateKey)
			}
			o, _, _ := scripted(t, newStore(t), script, args...)
			o.Environ, o.Where.Backend = withoutClouds(o.Environ), s3Block(b.block)
			return little{o, func(string) string { return string(b.Get(stateBucket, stateKey)) }, func() { b.Allows = nil }}
		},
		"gcs": func(t *testing.T, script string) little {
			s := gcstest.New(stateBucket)
			s.Put(stateBucket, gcsState, gcstest.Object{Data: []byte(old)})
			refuse := func(w http.ResponseWriter, r *http.Request) bool {
				refused := r.URL.Query().Get("name") == gcsState
				if refused {
					w.WriteHeader(http.StatusForbidden)
				}
				return refused
			}
			address, mend := refusing(t, s, refuse)
			o, _, _ := scripted(t, newStore(t), script, args...)
			o.Environ, o.Where.Backend = withoutGoogle(o.Environ), gcsBlock(address+"/storage/v1/")
			return little{o, func(string) string { return string(s.Get(stateBucket, gcsState).Data) }, mend}
		},
		"azurerm": func(t *testing.T, script string) little {
			a := newAccount(t)
			a.Put("tfstate", blobOf, azuretest.Blob{Data: []byte(old)})
			refuse := func(w http.ResponseWriter, r *http.Request) bool {
				refused := r.Method == http.MethodPut && !r.URL.Query().Has("comp") && strings.HasSuffix(r.URL.Path, "/"+blobOf)
				if refused {
					azuretest.Fail(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
				}
				return refused
			}
			address, mend := refusing(t, a.Server, refuse)
			o, _, _ := scripted(t, newStore(t), script, args...)
			o.Environ, o.Where.Backend = withoutAzure(o.Environ), azureBlock(address+"/"+azuretest.Account)
			return little{o, func(string) string { return string(a.Get("tfstate", blobOf)) }, mend}
		},
	}
	const steps = 10
	for kind, begin := range testkit.Some(kinds) {
		for elsewhere, has := range map[string]struct{ home, temporary bool }{
			"room at home": {home: true, temporary: true}, "a temporary folder": {temporary: true}, "no room": {},
		} {
			if elsewhere != "room at home" && kind != "http" && kind != "file" {
				continue // which adds nothing, and git works in the temporary folder
			}
			for step := range steps + 1 {
				if kind != "http" && kind != "file" && testkit.Rounds(10) < 10 && step%2 == 0 && step < steps {
					continue // many processes
				}
				free := size/2 + step*size*5/2/(steps-1) // 0.5 to 3 times the state
				script := fmt.Sprintf("GET apply=%d", size)
				if step == steps { // someone takes the room that there was
					free, script = 3*size, script+",fill"
				}
				t.Run(fmt.Sprintf("%s, %s, step %d", kind, elsewhere, step), func(t *testing.T) {
					l := begin(t, script)
					testRoom(t, l, free, size, has.home, has.temporary)
				})
			}
		}
	}
}

// refusing serves what h does, but for requests that refuse answers, until mend is called.
func refusing(t *testing.T, h http.Handler, refuse func(http.ResponseWriter, *http.Request) bool) (address string, mend func()) {
	t.Helper()
	var mended atomic.Bool
	address = nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mended.Load() || !refuse(w, r) {
			h.ServeHTTP(w, r)
		}
	}))
	return address, func() { mended.Store(true) }
}

func testRoom(t *testing.T, l little, free, size int, hasHome, hasTemporary bool) {
	t.Helper()
	d, home, temporary := newDisk(t), t.TempDir(), t.TempDir()
	t.Setenv("HOME", filepath.Join(home, map[bool]string{true: "", false: "none"}[hasHome]))
	t.Setenv("TMPDIR", filepath.Join(temporary, map[bool]string{true: "", false: "none"}[hasTemporary]))
	written, _ := strings.CutPrefix(l.Command[1], "-chdir=")
	module := filepath.Join(d.dir, "module")
	if err := os.CopyFS(module, os.DirFS(written)); err != nil {
		t.Fatal(err)
	}
	out := &lines{}
	l.Command[1], l.Stdout = "-chdir="+module, out
	d.leave(t, free)
	code, err, told := run(t, l.Options)
	said := fmt.Sprintf("%s%v", told, err)
	opens := func(text string) bool {
		opened, err := target(t, sealing).Decrypt(t.Context(), []byte(text))
		return err == nil && opened.Encrypted && string(opened.Data) == large(size)
	}
	isWritten := opens(l.there(module))
	if isWritten != (code == 0 && err == nil) {
		t.Errorf("%d, %v, and the state is written: %v", code, err, isWritten)
	}
	plain, sealed := "", ""
	for _, folder := range []string{d.dir, home, temporary} {
		_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			switch text := read(t, path); {
			case strings.Contains(text, canary):
				plain = path
			case e.Name() != "terraform.tfstate" && opens(text):
				sealed = path
			}
			return nil
		})
	}
	if strings.Contains(out.String()+said, canary) || plain != "" && (hasTemporary || !strings.Contains(said, "plaintext")) {
		t.Errorf("plaintext is in %q, or here: %d\n%s\n%.2000s", plain, code, said, out)
	}
	if isWritten || plain != "" {
		return
	}
	if sealed == "" {
		text := slices.MaxFunc(strings.Fields(said), func(a, b string) int { return len(a) - len(b) })
		if decoded, err := base64.StdEncoding.DecodeString(text); hasTemporary || err != nil || !opens(string(decoded)) {
			t.Errorf("it is lost: %d, %.2000s", code, said)
		}
		return
	}
	d.leave(t, 16*size)
	l.mend()
	t.Chdir(module)
	l.Command = nil
	r := states.Recovery{}
	if !strings.HasPrefix(sealed, home) && !strings.HasPrefix(sealed, module) {
		r.File = sealed
	}
	if err, told := recovered(t, l.Options, r); err != nil || !opens(l.there(module)) {
		t.Errorf("%s is not recovered: %v\n%s", sealed, err, told)
	}
}

// TestAccLittleRoom is about a real CLI.
func TestAccLittleRoom(t *testing.T) {
	cliUnderTest(t)
	if !inNamespace(t) {
		return
	}
	const size, steps = 3 << 18, 10 // bytes of a state, in which the text is three times
	for step := range steps {
		s := newStore(t)
		p := newProject(t, s.environ(), empty)
		d, home := newDisk(t), t.TempDir()
		p.dir = d.dir
		text := filepath.Join(p.dir, "text")
		write(t, filepath.Join(p.dir, "main.tf"), strings.Replace(module(empty), "= var.text", `= "${var.text}${file("text")}"`, 1))
		write(t, text, "")
		p.must(t, "init")
		p.must(t, "apply", "-auto-approve")
		write(t, text, strings.Repeat("x", size/3))
		t.Setenv("HOME", home)
		s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusForbidden)
			}
			return r.Method == http.MethodPost
		})
		d.leave(t, size/2+step*size*5/2/(steps-1)) // 0.5 to 3 times the state
		code, err, out := p.wrapped(t, "apply", "-auto-approve")
		if code == 0 || strings.Contains(out, `"lineage"`) {
			t.Errorf("step %d: %d, %v\n%.3000s", step, code, err, out)
		}
		sealed := 0
		for _, folder := range []string{d.dir, home} {
			_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() {
					return err
				}
				content := []byte(read(t, path))
				if bytes.Contains(content, []byte(`"`+secret)) && path != filepath.Join(d.dir, "main.tf") {
					t.Errorf("step %d: the state is in plaintext in %s", step, path)
				}
				if opened, err := p.target.Decrypt(t.Context(), content); err == nil && len(opened.Data) > size {
					sealed++
				}
				return nil
			})
		}
		if sealed != 1 {
			t.Errorf("step %d: there are %d encrypted states: %v\n%.3000s", step, sealed, err, out)
		}
	}
}
