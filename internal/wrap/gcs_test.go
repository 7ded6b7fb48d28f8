package wrap_test

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// gcsBlock returns the block of a state in the bucket of tests.
func gcsBlock(endpoint string) *unstable.Entry {
	return unstable.NewEntry("backend.gcs", gcs.Kind().Table, map[string]cty.Value{
		"bucket": cty.StringVal(stateBucket), "prefix": cty.StringVal("net"), "access_token": cty.StringVal(gcstest.Token),
		"storage_custom_endpoint": cty.StringVal(endpoint),
	})
}

// withoutGoogle returns an environment without the settings of Google's clients.
func withoutGoogle(environ []string) []string {
	return slices.DeleteFunc(withoutClouds(environ), func(pair string) bool { return strings.HasPrefix(pair, "GOOGLE_") })
}

// TestInCloudStorage tests that wrap keeps a state in Cloud Storage as it does in a backend, that only a killed run
// leaves a lock, which everybody knows by its generation, and that a state in plaintext is encrypted in place under the
// lock of those who work without wrap.
//
// Promise: Only encrypted states
func TestInCloudStorage(t *testing.T) {
	needSignals(t)
	const (
		mine   = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
		locked = "LOCK=" + mine + " GET "
		object = "net/default.tfstate"
		record = `{"version":3,"backend":{"type":"gcs","config":{"bucket":"` + stateBucket + `","prefix":"net",` +
			`"storage_custom_endpoint":"STORE/storage/v1/"}}}`
	)
	newer := strings.Replace(state, `"serial":1`, `"serial":2`, 1)
	sealed := string(seal(t, sealing, state))
	mistakes := wraptest.OpenMistakes(t, "in Cloud Storage")
	for name, c := range map[string]struct {
		script  string
		args    []string
		there   string // in the bucket
		record  string // of the module's own backend
		ignores gcstest.Condition
		kept    bool // by a default hold
		held    bool
		moveIn  bool
		code    int
		want    string // what is in the bucket, opened
		left    bool   // the lock is
	}{
		"the first":         {script: locked + "POST:1=" + state + " UNLOCK=" + mine, want: state},
		"the next":          {script: locked + "POST:1=" + newer + " UNLOCK=" + mine, there: sealed, want: newer},
		"held":              {script: "LOCK=" + mine, there: sealed, held: true, code: 9, want: state, left: true},
		"apply, killed":     {script: locked + "die", there: sealed, code: 137, want: state, left: true},
		"plan, killed":      {script: locked + "die", args: []string{"plan"}, there: sealed, code: 137, want: state},
		"unlocked by force": {script: "UNLOCK", args: []string{"force-unlock", "GENERATION"}, there: sealed, held: true, want: state},
		"the ID of its run": {script: "UNLOCK", args: []string{"force-unlock", "4711"}, there: sealed, held: true, want: state},
		"another, by force": {
			script: "UNLOCK", args: []string{"force-unlock", "42"}, there: sealed, held: true, code: 9, want: state, left: true,
		},
		"a plaintext state":      {script: "GET", there: filled, code: 9},
		"locks never end":        {script: locked + "POST:1=" + newer, there: sealed, kept: true, code: 1, want: state},
		"conditions are ignored": {script: locked + "POST:1=" + newer, there: sealed, ignores: gcstest.OnReplace, code: 1, want: state},
		"encrypted in place":     {script: "GET", args: []string{"init"}, there: filled, record: record, moveIn: true, want: counted(filled)},
		"encrypted, held": {
			script: "ready", args: []string{"init"}, there: filled, record: record, moveIn: true, held: true, code: 1, left: true,
		},
		"encrypted, without a record": {script: "GET", args: []string{"init"}, there: filled, moveIn: true, want: counted(filled)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gcstest.New(stateBucket)
			s.Ignores, s.DefaultHold = c.ignores, c.kept
			args := c.args
			if args == nil {
				args = []string{"apply"}
			}
			if c.held {
				generation := s.Put(stateBucket, "net/default.tflock", gcstest.Object{Data: []byte(lock)})
				args = strings.Split(strings.ReplaceAll(strings.Join(args, " "), "GENERATION", generation), " ")
			}
			if c.there != "" {
				s.Put(stateBucket, object, gcstest.Object{Data: []byte(c.there)})
			}
			o, dir, out := scripted(t, newStore(t), c.script, args...)
			endpoint := s.Start(t)
			o.Environ = withoutGoogle(o.Environ)
			o.Where.Backend, o.Wishes.EncryptExisting = gcsBlock(endpoint), c.moveIn
			if c.record != "" {
				c.record = strings.ReplaceAll(c.record, "STORE/storage/v1/", endpoint)
				write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), c.record)
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, strings.ReplaceAll(told, strings.TrimSuffix(endpoint, "/storage/v1/"), "STORE"), code, err)
			if code != c.code || strings.Contains(fmt.Sprint(told, err), gcstest.Token) {
				t.Errorf("got %d, %v, want %d\n%s\n%s", code, err, c.code, out, told)
			}
			there := ""
			if o := s.Get(stateBucket, object); o != nil {
				there = string(o.Data)
			}
			if c.want == "" {
				if there != c.there {
					t.Errorf("the bucket has %.200s", there)
				}
			} else if opened, err := target(t, sealing).Decrypt(t.Context(), []byte(there)); err != nil || !isSameJSON(opened.Data, []byte(c.want)) {
				t.Errorf("the bucket has something else, or it does not open: %v", err)
			}
			left := s.Get(stateBucket, "net/default.tflock")
			if (left != nil) != c.left {
				t.Errorf("the lock is %v", left)
			}
			if left != nil && !c.held && !strings.Contains(told+fmt.Sprint(err), fmt.Sprint(left.Generation)) {
				t.Errorf("the lock %d is not named: %s, %v", left.Generation, told, err)
			}
		})
	}
}

// TestEnvironmentInCloudStorage tests that variables which are for the backend alone are not for the child, unless it
// reads the former state with them.
//
// Promise: Only encrypted states
func TestEnvironmentInCloudStorage(t *testing.T) {
	t.Parallel()
	s := gcstest.New(stateBucket)
	endpoint := s.Start(t)
	only := []string{
		"GOOGLE_BACKEND_CREDENTIALS=" + canary, "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT=" + canary,
		"GOOGLE_BACKEND_UNIVERSE_DOMAIN=googleapis.com", "GOOGLE_ENCRYPTION_KEY=" + strings.Repeat("A", 43) + "=",
	}
	o, _, out := scripted(t, newStore(t), "environ", "plan")
	o.Where.Backend, o.Stderr = gcsBlock(endpoint), io.Discard
	o.Environ = append(withoutGoogle(o.Environ), append(only, "GOOGLE_CREDENTIALS=kept", "GOOGLE_OAUTH_ACCESS_TOKEN=kept")...)
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	for _, pair := range only {
		if strings.Contains(out.String(), pair) {
			t.Errorf("the child has %s", pair)
		}
	}
	if text := out.String(); strings.Count(text, "=kept") != 2 {
		t.Errorf("the child has this:\n%s", text)
	}

	o, dir, _ := scripted(t, newStore(t), "pulled GET", "init")
	o.Where.Backend, o.Wishes.EncryptExisting, o.Stderr = gcsBlock(endpoint), true, io.Discard
	o.Environ = append(withoutGoogle(o.Environ), "GOOGLE_BACKEND_CREDENTIALS=of-the-former")
	write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), `{"version":3,"backend":{"type":"gcs","config":{"bucket":"former"}}}`)
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	opened, err := o.Keys.State.Decrypt(t.Context(), s.Get(stateBucket, "net/default.tfstate").Data)
	if err != nil || !strings.Contains(string(opened.Data), "of-the-former") {
		t.Errorf("the former state was read without the variable: %v", err)
	}
}
