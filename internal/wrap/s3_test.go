package wrap_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/s3"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// Where tests have a state in a bucket.
const (
	stateBucket = "acme-states"
	stateKey    = "net/prod.tfstate"
)

// bucket is a store that speaks S3, and what leads there.
type bucket struct {
	*objecttest.Server
	url   string
	table *objecttest.Table // of locks; nil without
	block objecttest.Attrs
}

// lockIn adds a table to the block.
func (b *bucket) lockIn(t *testing.T, name string) {
	t.Helper()
	b.table = &objecttest.Table{Name: name}
	b.block = b.block.With("dynamodb_table", name).With("endpoints", objecttest.Strings("s3", b.url, "dynamodb", b.table.Serve(t)))
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	b := &bucket{Server: objecttest.New(stateBucket)}
	b.Region, b.Keys = "eu-west-1", []aws.Credentials{{AccessKeyID: "AKIATEST", SecretAccessKey: password}}
	b.Writable.Store(true)
	b.url = nettest.Serve(t, b.Server)
	b.block = inStore(b.url)
	return b
}

// inStore are the arguments of the block.
func inStore(url string) objecttest.Attrs {
	return objecttest.Strings("bucket", stateBucket, "key", stateKey, "region", "eu-west-1", "access_key", "AKIATEST").
		With("secret_key", password).With("use_path_style", true).With("endpoints", objecttest.Strings("s3", url)).With("max_retries", 1)
}

func s3Block(b objecttest.Attrs) *unstable.Entry {
	return unstable.NewEntry("backend.s3", s3.Kind().Table, b)
}

// backend is the block of the module without wrap, with further arguments.
func (b *bucket) backend(more string) string {
	return `backend "s3" {
  bucket                      = "` + stateBucket + `"
  key                         = "` + stateKey + `"
  region                      = "eu-west-1"
  access_key                  = "AKIATEST"
  secret_key                  = "` + password + `"
  use_path_style              = true
  endpoints                   = { s3 = "` + b.url + `"` + b.dynamodb() + ` }
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  ` + more + `
}`
}

func (b *bucket) dynamodb() string {
	if b.table == nil {
		return ""
	}
	return `, dynamodb = "` + b.block["endpoints"].GetAttr("dynamodb").AsString() + `"`
}

// state is what is there, and whether it is locked.
func (b *bucket) state() (state, lock string) {
	return string(b.Get(stateBucket, stateKey)), string(b.Get(stateBucket, stateKey+".tflock"))
}

// recordOf is Terraform's record of an s3 backend.
func recordOf(arguments string) string {
	return `{"version":3,"backend":{"type":"s3","config":{"bucket":"` + stateBucket + `","key":"` + stateKey + `","endpoints":{"s3":"STORE"}` +
		arguments + `},"hash":1}}`
}

// TestInBucket: wrap keeps a state in a bucket as it does in a backend, and only a killed run leaves a
// lock. A state in plaintext is encrypted in place only under the lock of those who work without wrap.
//
// Promise: Only encrypted states
func TestInBucket(t *testing.T) {
	needSignals(t)
	const mine = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
	newer := strings.Replace(state, `"serial":1`, `"serial":2`, 1)
	sealed := string(seal(t, sealing, state))
	init := []string{"init"}
	const locked = "LOCK=" + mine + " GET "
	mistakes := wraptest.OpenMistakes(t, "in a bucket")
	for name, c := range map[string]struct {
		script string
		args   []string
		there  string // in the bucket
		record string // of the module's own backend
		with   map[string]any
		store  objecttest.Conditions
		held   bool
		moveIn bool

		workspace string // that is selected
		falls     bool   // plaintext is a fallback
		table     bool   // that is called locks has the lock
		variable  bool   // a variable names the endpoint
		code      int
		want      string // what is in the bucket, opened
		left      bool   // the lock is
	}{
		"the first":      {script: locked + "POST:1=" + state + " UNLOCK=" + mine, want: state},
		"the next":       {script: locked + "POST:1=" + newer + " UNLOCK=" + mine, there: sealed, want: newer},
		"without a lock": {script: "GET POST=" + newer, args: []string{"apply", "-lock=false"}, there: sealed, want: newer},
		"without, while held": {
			script: "GET POST=" + newer, args: []string{"apply", "-lock=false"}, there: sealed, held: true, code: 9, want: state, left: true,
		},
		"held":              {script: "LOCK=" + mine, there: sealed, held: true, code: 9, want: state, left: true},
		"apply, killed":     {script: locked + "die", there: sealed, code: 137, want: state, left: true},
		"plan, killed":      {script: locked + "die", args: []string{"plan"}, there: sealed, code: 137, want: state},
		"unlocked by force": {script: "UNLOCK", args: []string{"force-unlock", "4711"}, there: sealed, held: true, want: state},
		"another, by force": {
			script: "UNLOCK", args: []string{"force-unlock", "42"}, there: sealed, held: true, code: 9, want: state, left: true,
		},
		"a plaintext state": {script: "GET", there: filled, code: 9},
		"a store without conditions": {
			script: locked + "POST:1=" + newer, there: sealed, store: objecttest.Ignored, code: 1, want: state,
		},
		"unproven": {
			script: locked + "POST:1=" + newer + " UNLOCK=" + mine, there: sealed, store: objecttest.Ignored,
			with: map[string]any{"locks": "unproven"}, want: newer,
		},
		"a store without conditions, and no lock": { // which the child does not come to
			script: "GET POST=" + newer, args: []string{"apply", "-lock=false"}, there: sealed, store: objecttest.Ignored, code: 1, want: state,
		},
		"no If-Match": {
			script: locked + "POST:1=" + newer + " UNLOCK=" + mine, there: sealed, store: objecttest.UnknownMatch, want: newer,
		},

		"encrypted in place": {
			script: "GET", args: init, there: filled, record: recordOf(`,"use_lockfile":true`), moveIn: true, want: counted(filled),
		},
		"encrypted already": {script: "GET", args: init, there: sealed, moveIn: true, want: state},
		"encrypted, held": {
			script: "ready", args: init, there: filled, record: recordOf(`,"use_lockfile":true`), moveIn: true, held: true, code: 1, left: true,
		},
		"encrypted, without a record": {script: "ready", args: init, there: filled, moveIn: true, code: 1},
		"encrypted, as the block says": {
			script: "GET", args: init, there: filled, with: map[string]any{"use_lockfile": true}, moveIn: true, want: counted(filled),
		},
		"encrypted, others without a lock": {script: "ready", args: init, there: filled, record: recordOf(""), moveIn: true, code: 1},
		"encrypted, another lock": {
			script: "ready", args: init, there: filled, record: recordOf(`,"dynamodb_table":"locks"`), moveIn: true, code: 1,
		},
		"encrypted, no lock": {
			script: "ready", args: init, there: filled, record: recordOf(`,"use_lockfile":true`), with: map[string]any{"use_lockfile": false},
			moveIn: true, code: 1,
		},
		"encrypted, others at a variable": {
			script: "GET", args: init, there: filled, record: strings.Replace(recordOf(`,"use_lockfile":true`), `"s3":"STORE"`, `"s3":null`, 1),
			moveIn: true, variable: true, want: counted(filled),
		},
		"encrypted, others at a variable without a lock": {
			script: "ready", args: init, there: filled, record: strings.Replace(recordOf(""), `"s3":"STORE"`, "", 1),
			with: map[string]any{"use_lockfile": true}, moveIn: true, variable: true, code: 1,
		},
		"encrypted, others at another address without a lock": {
			script: "ready", args: init, there: filled, record: strings.Replace(recordOf(""), "STORE", "http://other.example", 1),
			with: map[string]any{"use_lockfile": true}, moveIn: true, code: 1,
		},
		"encrypted, others in capitals": {
			script: "GET", args: init, there: filled, record: strings.Replace(recordOf(`,"use_lockfile":true`), "STORE", "LOUD", 1),
			moveIn: true, want: counted(filled),
		},
		"encrypted already, others at another address": {
			script: "GET", args: init, there: sealed, record: strings.Replace(recordOf(`,"use_lockfile":true`), "STORE", "http://other.example", 1),
			moveIn: true, want: state,
		},
		"workspace": {
			script: "ready", args: init, there: filled, record: recordOf(`,"use_lockfile":true`), moveIn: true, workspace: "dev", code: 1,
		},
		"by a fallback": {
			script: locked + "POST:1=" + newer + " UNLOCK=" + mine, there: state, record: recordOf(`,"use_lockfile":true`), falls: true,
			want: newer,
		},
		"by a fallback, without a record": {script: locked + "POST:1=" + newer, there: state, falls: true, code: 9, left: true},
		"by a fallback, another lock": {
			script: locked + "POST:1=" + newer, there: state, record: recordOf(`,"dynamodb_table":"locks"`), falls: true, code: 9, left: true,
		},
		"by a fallback, without a lock": {
			script: "GET POST=" + newer, args: []string{"apply", "-lock=false"}, there: state, record: recordOf(`,"use_lockfile":true`), falls: true,
			code: 9,
		},
		"by a fallback, a damaged record": {
			script: locked + "POST:1=" + newer, there: state, record: "{", with: map[string]any{"use_lockfile": true}, falls: true,
			code: 9, left: true,
		},
		"by a fallback, read only": {script: "GET", args: []string{"plan"}, there: state, falls: true},
		"nothing there, another store by the record": {
			script: locked + "POST:1=" + state, record: strings.Replace(recordOf(`,"use_lockfile":true`), "STORE", "https://other.example", 1),
			code: 9, left: true,
		},
		"nothing there, AWS by the record": {
			script: locked + "POST:1=" + state, record: strings.Replace(recordOf(`,"use_lockfile":true`), `"s3":"STORE"`, "", 1), code: 9, left: true,
		},
		"encrypted, the table is elsewhere": {
			script: "ready", args: init, there: filled, moveIn: true, code: 1, table: true,
			record: strings.Replace(recordOf(`,"dynamodb_table":"locks"`), `"STORE"`, `"STORE","dynamodb":"https://me:`+canary+`@other.example"`, 1),
		},
		"nothing there, by the record": {
			script: locked + "POST:1=" + state + " UNLOCK=" + mine, record: recordOf(`,"use_lockfile":true`), want: state,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBucket(t)
			b.Conditions = c.store
			args := c.args
			if args == nil {
				args = []string{"apply"}
			}
			o, dir, out := scripted(t, newStore(t), c.script, args...)
			o.Environ = withoutClouds(o.Environ)
			if c.variable {
				o.Environ = append(o.Environ, "AWS_ENDPOINT_URL_S3="+b.url)
			}
			c.record = strings.ReplaceAll(c.record, "LOUD", strings.ToUpper(b.url)+"/")
			if c.table {
				b.lockIn(t, "locks")
			}
			block := b.block
			for name, value := range c.with {
				block = block.With(name, value)
			}
			o.Where.Backend, o.Wishes.EncryptExisting = s3Block(block), c.moveIn
			if c.falls {
				o.Keys.State = target(t, migrating)
			}
			if c.record != "" {
				write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), strings.ReplaceAll(c.record, "STORE", b.url))
			}
			if c.workspace != "" {
				write(t, filepath.Join(dir, ".terraform", "environment"), c.workspace)
			}
			if c.there != "" {
				b.Put(stateBucket, stateKey, []byte(c.there))
			}
			if c.held {
				b.Put(stateBucket, stateKey+".tflock", []byte(lock))
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, strings.ReplaceAll(told, b.url, "STORE"), code, err)
			if code != c.code || strings.Contains(fmt.Sprint(told, err), canary) {
				t.Errorf("got %d, %v, want %d\n%s\n%s", code, err, c.code, out, told)
			}
			there, left := b.state()
			if c.want != "" {
				opened, err := target(t, sealing).Decrypt(t.Context(), []byte(there))
				if err != nil || !isSameJSON(opened.Data, []byte(c.want)) {
					t.Errorf("the bucket has something else, or it does not open: %v", err)
				}
			} else if there != c.there {
				t.Errorf("the bucket has %.200s", there)
			}
			if (left != "") != c.left {
				t.Errorf("the lock is %q", left)
			}
		})
	}
}

// TestRotatePlaintextInBucket: rotate encrypts in place under the same rule, and looks again, too.
func TestRotatePlaintextInBucket(t *testing.T) {
	t.Parallel()
	sealed := seal(t, sealing, filled)
	for name, c := range map[string]struct {
		locks, meanwhile bool
		want             string
		fails            bool
	}{
		"nothing says how others lock": {want: filled, fails: true},
		"as the block says":            {locks: true, want: string(sealed)},
		"written meanwhile":            {locks: true, meanwhile: true, want: filled, fails: true},
	} {
		b := newBucket(t)
		b.Put(stateBucket, stateKey, []byte(filled))
		b.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if c.meanwhile && r.Method == http.MethodDelete { // the lock is about to be given back
				b.Put(stateBucket, stateKey, []byte(filled))
			}
			return false
		}
		block := b.block
		if c.locks {
			block = block.With("use_lockfile", true)
		}
		o := wrap.Options{
			Where: states.Where{Backend: s3Block(block)}, Keys: states.Keys{State: target(t, sealing)},
			Environ: withoutClouds(os.Environ()), Stderr: io.Discard,
		}
		err := rotate(t.Context(), o, func([]byte) ([]byte, error) { return sealed, nil })
		if there, lock := b.state(); (err != nil) != c.fails || there != c.want || lock != "" {
			t.Errorf("%s: %v, lock %q, %.100s", name, err, lock, there)
		}
	}
}

// withoutClouds is an environment without what describes other stores, and the machine's own.
func withoutClouds(environ []string) []string {
	return slices.DeleteFunc(environ, func(pair string) bool {
		return strings.HasPrefix(pair, "STATECRYPT_HTTP_") || strings.HasPrefix(pair, "AWS_")
	})
}

// TestWrittenMeanwhile: someone without the lock, who has read the plaintext before, writes it again
// while init works.
//
// Promise: States in stores
func TestWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	o, _, out := scripted(t, newStore(t), "GET", "init")
	o.Environ = withoutClouds(o.Environ)
	b.Put(stateBucket, stateKey, []byte(filled))
	o.Where.Backend, o.Wishes.EncryptExisting = s3Block(b.block.With("use_lockfile", true)), true
	var once bool
	b.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && !once { // the lock is about to be given back
			once = true
			b.Put(stateBucket, stateKey, []byte(filled))
		}
		return false
	}
	code, err, _ := run(t, o)
	wraptest.OpenMistakes(t, "plaintext written meanwhile").Ended(t, "s3", out.String(), code, err)
}

// TestFilesOfTheProgram: what counts are the files that the program reads, whatever it is called.
//
// Promise: Only encrypted states
func TestFilesOfTheProgram(t *testing.T) {
	t.Parallel()
	const native = `backend "s3" {}`
	mistakes := wraptest.OpenMistakes(t, "files of the program")
	for name, c := range map[string]struct {
		says  string
		files map[string]string
		code  int
	}{
		"Terraform, both":           {says: "Terraform v1.11.4", files: map[string]string{"backend.tf": empty, "backend.tofu": native}},
		"Terraform, the other way":  {says: "Terraform v1.11.4", files: map[string]string{"backend.tf": native, "backend.tofu": empty}, code: 1},
		"OpenTofu, both":            {says: "OpenTofu v1.12.6", files: map[string]string{"backend.tf": empty, "backend.tofu": native}, code: 1},
		"OpenTofu, the other way":   {says: "OpenTofu v1.8.0", files: map[string]string{"backend.tf": native, "backend.tofu": empty}},
		"OpenTofu, not beside":      {says: "OpenTofu v1.12.6", files: map[string]string{"main.tf": native, "backend.tofu": empty}, code: 1},
		"OpenTofu, JSON":            {says: "OpenTofu v1.12.6", files: map[string]string{"b.tf.json": `{}`, "b.tofu": empty, "b.tf": native}},
		"OpenTofu, of old":          {says: "OpenTofu v1.7.3", files: map[string]string{"backend.tf": empty, "backend.tofu": native}},
		"a program of another kind": {says: "hello", files: map[string]string{"backend.tf": empty, "backend.tofu": native}, code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "GET", "plan")
			o.Environ = append(o.Environ, "WRAP_TEST_VERSION="+c.says)
			must(t, os.Remove(filepath.Join(dir, "main.tf")))
			for name, text := range c.files {
				if !strings.HasPrefix(text, "{") {
					text = inside(text)
				}
				write(t, filepath.Join(dir, name), text)
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if code != c.code {
				t.Errorf("got %d, %v\n%s", code, err, out)
			}
		})
	}
}

// TestBlockIsNotShown: of the block of another backend, nothing but its kind is in the error.
//
// Promise: Only encrypted states
func TestBlockIsNotShown(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"main.tf":      inside("backend \"s3\" {\n  bucket = \"b\"\n  token = \"" + canary + "\"\n}"),
		"main.tf.json": `{"terraform":{"backend":{"s3":{"bucket":"b","secret_key":"` + canary + `"}}}}`,
	} {
		o, dir, _ := scripted(t, newStore(t), "GET", "plan")
		must(t, os.Remove(filepath.Join(dir, "main.tf")))
		write(t, filepath.Join(dir, name), text)
		code, err, told := run(t, o)
		if code == 0 || err == nil || !strings.Contains(err.Error(), `"backend s3"`) || strings.Contains(err.Error()+told, canary) {
			t.Errorf("%s: got %d, %v\n%s", name, code, err, told)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
