package wrap_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestRecoverDamaged: a file in the backend that is no state is replaced by force, once a copy is in the
// folder of the module; nothing else is that does not open.
//
// Promise: Runs under wrap
func TestRecoverDamaged(t *testing.T) {
	sealed := string(seal(t, sealing, state))
	damaged := map[string]string{
		"a note":         "a note\n" + sealed[len("a note\n"):],
		"a token":        "+" + sealed[1:],
		"a second token": "{+" + sealed[2:],
		"cut off":        sealed[:len(sealed)/2],
		"something more": sealed + "\na note\n",
		"another text":   canary,
		"another JSON":   `{"a":"` + canary + `"}`,
		"no object":      "[]",
		"spaces":         " \n",
	}
	others := map[string]string{
		"another key":           string(seal(t, strings.ReplaceAll(sealing, "6f6f70", "6f6f71"), state)),
		"plaintext":             filled,
		"plaintext, and a note": filled + "a note\n",
		"a plan":                plan(t, "http", ""),
		"changed inside":        strings.Replace(sealed, `"serial":1`, `"serial":0`, 1),
		"a later format":        strings.Replace(sealed, `"encryption_version":"v0"`, `"encryption_version":"v1"`, 1),
	}
	mistakes := wraptest.OpenMistakes(t, "recover in place of a damaged file")
	type place struct {
		wrap.Options

		dir  string
		put  func(file string)
		read func() string
	}
	for store, in := range map[string]func(t *testing.T) place{
		"http": func(t *testing.T) place {
			t.Helper()
			s := newStore(t)
			o, dir, _ := scripted(t, s, "")
			return place{o, dir, func(file string) { s.put([]byte(file)) }, func() string { return string(s.stored()) }}
		},
		"file": func(t *testing.T) place {
			t.Helper()
			o, dir, _ := inFile(t, "")
			path := filepath.Join(dir, "terraform.tfstate")
			write(t, path+".backup", sealed)
			return place{o, dir, func(file string) { write(t, path, file) }, func() string { return read(t, path) }}
		},
		"git": func(t *testing.T) place {
			t.Helper()
			repo := newRepository(t, sealed)
			o, dir, _ := inRepo(t, repo.FileURL(), "")
			return place{o, dir, func(file string) { putInto(repo, file) }, func() string {
				return repo.Git("cat-file", "blob", "main:"+statePath)
			}}
		},
		"s3": func(t *testing.T) place {
			t.Helper()
			b := newBucket(t)
			o, dir, _ := scripted(t, newStore(t), "")
			o.Where.Backend, o.Environ = s3Block(b.block), withoutClouds(o.Environ)
			return place{o, dir, func(file string) { b.Put(stateBucket, stateKey, []byte(file)) }, func() string {
				return string(b.Get(stateBucket, stateKey))
			}}
		},
	} {
		for name, file := range damaged {
			if store != "file" && name != "a second token" {
				continue
			}
			t.Run(store+" "+name, func(t *testing.T) {
				p := in(t)
				leftIn(t, p.dir)
				p.put(file)
				before := p.read()
				p.Command = nil
				err, told := recovered(t, p.Options, states.Recovery{})
				if mistakes.Failed(t, store+": "+name, told, err); err == nil || p.read() != before || len(replaced(t, p.dir)) > 0 {
					t.Errorf("without force: %v, and there is %s", err, p.read())
				}
				err, told = recovered(t, p.Options, states.Recovery{Force: true})
				kept := replaced(t, p.dir)
				if len(kept) != 1 || read(t, kept[0]) != file || !strings.Contains(told, filepath.Base(kept[0])) {
					t.Fatalf("these are kept: %q, %v\n%s", kept, err, told)
				}
				mistakes.Failed(t, store+": "+name+", forced", strings.ReplaceAll(told, filepath.Base(kept[0]), "FILE"), err)
				opened, failed := p.Keys.State.Decrypt(t.Context(), []byte(p.read()))
				if err != nil || failed != nil || string(opened.Data) != newer {
					t.Errorf("%v, %v, and there is %s", err, failed, p.read())
				}
				if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("others may read it: %v, %v", info.Mode(), err)
				}
				if store == "file" && read(t, filepath.Join(p.dir, "terraform.tfstate.backup")) != sealed {
					t.Error("the backup is another one")
				}
			})
		}
		for name, file := range others {
			if store != "file" {
				continue
			}
			t.Run(store+" "+name, func(t *testing.T) {
				p := in(t)
				leftIn(t, p.dir)
				p.put(file)
				p.Command = nil
				err, told := recovered(t, p.Options, states.Recovery{Force: true})
				if mistakes.Failed(t, "not by force: "+name, told, err); err == nil || p.read() != file || len(replaced(t, p.dir)) > 0 {
					t.Errorf("%v, and there is %s", err, p.read())
				}
			})
		}
	}
}

// TestRecoverDamagedAgain: the copy of a try that has failed is no obstacle, and another file of its name
// stays, and nothing is written through a link.
func TestRecoverDamagedAgain(t *testing.T) {
	s := newStore(t)
	o, dir := recovering(t, s)
	write(t, filepath.Join(dir, "errored.tfstate"), newer)
	s.put([]byte(canary))
	s.refuse("POST")
	force := states.Recovery{Force: true}
	if err, told := recovered(t, o, force); err == nil || len(replaced(t, dir)) != 1 {
		t.Fatalf("%v\n%s", err, told)
	}
	s.intercept(nil)
	kept := replaced(t, dir)[0]
	for _, other := range []string{"another file", ""} {
		write(t, kept, other)
		if err, told := recovered(t, o, force); err == nil || read(t, kept) != other || string(s.stored()) != canary {
			t.Fatalf("%v\n%s", err, told)
		}
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Symlink(elsewhere, kept); err != nil {
		t.Skip(err)
	}
	if err, told := recovered(t, o, force); err == nil || string(s.stored()) != canary {
		t.Fatalf("%v\n%s", err, told)
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("it was written through a link")
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	write(t, kept, canary)
	if err, told := recovered(t, o, force); err != nil || !bytes.Contains(s.stored(), []byte("encrypted_data")) {
		t.Errorf("%v\n%s", err, told)
	}
}

// TestAccRecoverDamaged: a provisioner that writes to the file of the state costs neither the state of the
// run nor the note.
func TestAccRecoverDamaged(t *testing.T) {
	p := inModule(t, empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	write(t, filepath.Join(p.dir, "more.tf"), `resource "terraform_data" "more" {
  provisioner "local-exec" { command = "echo a note > terraform.tfstate" }
}`)
	code, err, out := p.wrapped(t, "apply", "-auto-approve")
	if code == 0 || !strings.Contains(out, "statecrypt recover -config FILE") {
		t.Fatalf("got %d, %v\n%s", code, err, out)
	}
	t.Chdir(p.dir)
	o := p.with
	o.Keys.State, o.Environ = p.target, p.env
	if err, told := recovered(t, o, states.Recovery{Force: true}); err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	if kept := replaced(t, p.dir); len(kept) != 1 || read(t, kept[0]) != "a note\n" {
		t.Errorf("these are kept: %q", kept)
	}
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("afterwards: %d, %v\n%s", code, err, out)
	}
	p.checkFiles(t)
}

// leftIn has a state that could not be written in the folder of the module.
func leftIn(t *testing.T, dir string) {
	t.Helper()
	t.Chdir(dir)
	t.Setenv("HOME", t.TempDir())
	write(t, filepath.Join(dir, "errored.tfstate"), newer)
}

// replaced are the files that were kept.
func replaced(t *testing.T, dir string) []string {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(dir, "*.replaced"))
	if err != nil {
		t.Fatal(err)
	}
	return kept
}
