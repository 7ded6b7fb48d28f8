package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// many is a store with several states, by their names.
type manyStates struct {
	block string
	read  func(name string) string
	write func(name, text string)
	hold  func(name string)
}

const heldBy = `{"ID":"4711","Operation":"OperationTypeApply","Who":"ci@host","Created":"2026-11-27T00:00:00Z"}`

// storesOfMany are of each kind that lists what it has.
func storesOfMany() map[string]func(t *testing.T) manyStates {
	return map[string]func(t *testing.T) manyStates{
		"azurerm": func(t *testing.T) manyStates {
			t.Helper()
			s := azuretest.New("states")
			s.Writes = true
			return manyStates{
				block: fmt.Sprintf("backend \"azurerm\" {\nstorage_account_name = %q\ncontainer_name = \"states\"\nkey = \"${module}/unused\"\n"+
					"access_key = %q\nblob_endpoint = %q\n}\n", azuretest.Account, azuretest.Key, nettest.Serve(t, s)+"/"+azuretest.Account),
				read:  func(name string) string { return string(s.Get("states", name)) },
				write: func(name, text string) { s.Put("states", name, azuretest.Blob{Data: []byte(text)}) },
				hold: func(name string) {
					s.Change("states", name, true, func(b *azuretest.Blob) {
						b.Lease = "11111111-2222-4333-8444-555555555555"
						b.Metadata = map[string]string{"terraformlockid": base64.StdEncoding.EncodeToString([]byte(heldBy))}
					})
				},
			}
		},
		"file": func(t *testing.T) manyStates {
			t.Helper()
			dir := t.TempDir()
			return manyStates{
				block: fmt.Sprintf("backend \"file\" { path = %q }\n", filepath.ToSlash(dir)+"/${module}/unused"),
				read:  func(name string) string { return readFile(t, filepath.Join(dir, name)) },
				write: func(name, text string) {
					path := filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
						t.Fatal(err)
					}
					write(t, path, text)
				},
				hold: func(name string) { hold(t, filepath.Join(dir, name)) },
			}
		},
		"gcs": func(t *testing.T) manyStates {
			t.Helper()
			s := gcstest.New("states")
			return manyStates{
				block: fmt.Sprintf("backend \"gcs\" {\nbucket = \"states\"\nprefix = \"${module}/unused\"\naccess_token = %q\n"+
					"storage_custom_endpoint = %q\n}\n", gcstest.Token, s.Start(t)),
				read:  func(name string) string { return string(s.Get("states", name).Data) },
				write: func(name, text string) { s.Put("states", name, gcstest.Object{Data: []byte(text)}) },
				hold: func(name string) {
					s.Put("states", strings.TrimSuffix(name, ".tfstate")+".tflock", gcstest.Object{Data: []byte(heldBy)})
				},
			}
		},
		"git": func(t *testing.T) manyStates {
			t.Helper()
			repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
			files := map[string]string{}
			return manyStates{
				block: fmt.Sprintf("backend \"git\" {\nrepository = %q\nref = \"main\"\npath = \"${module}/unused\"\n}\n", repo.FileURL()),
				read:  func(name string) string { return repo.Git("cat-file", "blob", "main:"+name) },
				write: func(name, text string) {
					files[name] = text
					var all []gittest.File
					for name, text := range files {
						all = append(all, gittest.File{Path: name, Data: text})
					}
					repo.Commit("refs/heads/main", all...)
				},
				hold: func(name string) {
					repo.Commit("refs/heads/locks/"+name, gittest.File{Path: name + ".lock", Data: heldBy})
				},
			}
		},
		"s3": func(t *testing.T) manyStates {
			t.Helper()
			s := objecttest.New("states")
			s.Region, s.Keys = "eu-west-1", []aws.Credentials{{AccessKeyID: "AKIATEST", SecretAccessKey: canary}}
			s.Writable.Store(true)
			block := fmt.Sprintf(`backend "s3" {
  bucket = "states"
  key = "${module}/unused"
  region = "eu-west-1"
  access_key = "AKIATEST"
  secret_key = %q
  use_path_style = true
  endpoints = { s3 = %q }
}
`, canary, nettest.Serve(t, s))
			return manyStates{
				block: block,
				read:  func(name string) string { return string(s.Get("states", name)) },
				write: func(name, text string) { s.Put("states", name, []byte(text)) },
				hold:  func(name string) { s.Put("states", name+".tflock", []byte(heldBy)) },
			}
		},
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPrefix: many states are inspected without a key, and get another one, each under its lock. What is
// held is left, and said, and a second run does what is left.
//
// Promise: States in stores
func TestPrefix(t *testing.T) {
	old, fresh := must(t, onlyOld, plain, "encrypt"), must(t, onlyNew, plain, "encrypt")
	for kind, store := range storesOfMany() {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("AWS_CA_BUNDLE", "")
			s, dir := store(t), t.TempDir()
			odd := "net/env:/e.tfstate" // as the s3 backend calls those of workspaces
			if kind == "git" {
				odd = "net/e.tfstate"
			}
			end := ""
			if kind == "gcs" { // whose states all end so
				end = ".tfstate"
			}
			for name, text := range map[string]string{
				"net/a.tfstate": old, "net/b.tfstate": fresh, "net/c.tfstate": old, "net/d.tfstate": plain, "net/README" + end: "hello", "other": old,
				"net/empty" + end: "", odd: old,
			} {
				s.write(name, text)
			}
			s.hold("net/c.tfstate")
			root := ""
			if kind == "file" {
				root = filepath.ToSlash(strings.TrimSuffix(strings.Split(s.block, `"`)[3], "${module}/unused"))
			}
			write(t, filepath.Join(dir, "old.hcl"), onlyOld)
			write(t, filepath.Join(dir, "new.hcl"), s.block+onlyNew)
			write(t, filepath.Join(dir, "none.hcl"), s.block+strings.Replace(onlyNew, "passphrase", "passphrase = var.unknown #", 1))

			t.Chdir(dir) // which is no module
			got := statecrypt(t, "", "", "inspect", "-backend", "-prefix", root+"net/", "-config", filepath.Join(dir, "none.hcl"), "-json")
			found := map[string]inspection{}
			for line := range strings.Lines(got.stdout) {
				var one inspection
				if err := json.Unmarshal([]byte(line), &one); err != nil {
					t.Fatalf("%v\n%s", err, line)
				}
				found[strings.TrimPrefix(one.File, root)] = one
			}
			if got.code != 0 || len(found) != 5 || found["net/d.tfstate"].Kind != "state" || found["net/a.tfstate"].Kind != "encrypted" ||
				len(found["net/a.tfstate"].KeyProviders) != 1 || found["net/a.tfstate"].Lock != nil ||
				found["net/c.tfstate"].Lock == nil || (*found["net/c.tfstate"].Lock).Operation != "OperationTypeApply" ||
				!strings.Contains(got.stderr, "2 of 7") {
				t.Errorf("inspected: %+v", got)
			}

			got = statecrypt(t, "", "", "rotate", "-from", filepath.Join(dir, "old.hcl"), "-to", filepath.Join(dir, "new.hcl"), "-backend",
				"-prefix", root+"net/", "-json")
			results := map[string]string{}
			for line := range strings.Lines(got.stdout) {
				var one finding
				if err := json.Unmarshal([]byte(line), &one); err != nil {
					t.Fatalf("%v\n%s", err, line)
				}
				results[strings.TrimPrefix(one.File, root)] = one.Result
			}
			if want := map[string]string{"net/a.tfstate": "rotated", "net/b.tfstate": "skipped", "net/c.tfstate": "held",
				"net/d.tfstate": "failed", odd: "rotated"}; !maps.Equal(results, want) || got.code != exitFailure {
				t.Errorf("rotated: %v, %+v", results, got)
			}
			rotated := plainNext
			if kind == "file" {
				rotated = plain
			}
			if must(t, onlyNew, s.read("net/a.tfstate"), "decrypt") != rotated || s.read("net/c.tfstate") != old && kind != "git" ||
				must(t, onlyOld, s.read("other"), "decrypt") != plain {
				t.Error("another state was rotated, or one was not")
			}
		})
	}
	for name, args := range map[string][]string{
		"no backend": {"inspect", "-prefix", "net/"}, "files": {"inspect", "-backend", "-prefix", "net/", "x"},
	} {
		if got := statecrypt(t, "", "", args...); got.code != exitUsage {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
