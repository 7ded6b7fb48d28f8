package wrap_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// Moving in seals the state that there is, once, and no other.
func TestMoveIn(t *testing.T) {
	t.Parallel()
	record := func(backend string) map[string]string {
		return map[string]string{".terraform/terraform.tfstate": `{"version":3,"backend":` + backend + `}`}
	}
	for name, c := range map[string]struct {
		stored string
		files  map[string]string
		in     string // TF_WORKSPACE
		pins   wrap.Pins
		held   bool
		want   string // what is in the backend then, opened
		says   string
		err    string
	}{
		"in the backend": {stored: state, want: state, says: "the state in the backend is encrypted now"},
		"both": {stored: state, files: map[string]string{"terraform.tfstate": filled}, want: state,
			says: "encrypted now\nstatecrypt: warning: there is also a plaintext state in terraform.tfstate, which stays there"},
		"both, and the other is empty": {
			stored: state, files: map[string]string{"terraform.tfstate": other}, want: state, says: "encrypted now\nready",
		},
		"both, and the other elsewhere": {stored: state, files: record(`{"type":"s3","config":{}}`), want: state,
			says: "encrypted now\nstatecrypt: warning: this module has also had a state in the backend \"s3\""},
		"both, and a workspace": {stored: state, files: map[string]string{"terraform.tfstate.d/w/terraform.tfstate": filled}, want: state,
			says: "encrypted now\nstatecrypt: warning: there is a plaintext state of a workspace"},
		"sealed already": {stored: "sealed", want: state, says: "the state in the backend is encrypted already"},
		"sealed already, and one here": {stored: "sealed", files: map[string]string{"terraform.tfstate": filled}, want: state,
			says: "warning: there is also a plaintext state in terraform.tfstate, which stays there"},
		"in the module": {
			files: map[string]string{"terraform.tfstate": other}, want: other, says: "what is left in terraform.tfstate is not encrypted",
		},
		"another in the backend": {stored: state, pins: wrap.Pins{Lineage: "x"}, err: `its lineage is "l", and -lineage says "x"`},
		"another in the module": {
			files: map[string]string{"terraform.tfstate": other}, pins: wrap.Pins{Serial: new(int64(8))},
			err: "its serial is 7, and -minimum-serial",
		},
		"none":            {says: "there is no state yet"},
		"an empty one":    {files: map[string]string{"terraform.tfstate": ""}, says: "there is no state yet"},
		"no state":        {stored: "<html>" + canary, err: "what the backend has is not a state"},
		"locked":          {stored: state, held: true, err: "the state cannot be locked: the backend answered 423"},
		"no state, local": {files: map[string]string{"terraform.tfstate": canary}, err: "the state in terraform.tfstate was not encrypted"},
		"elsewhere in the module": {
			files: map[string]string{
				".terraform/terraform.tfstate": `{"version":3,"backend":{"type":"local","config":{"path":"x/y.tfstate"}}}`, "x/y.tfstate": other,
			}, want: other, says: "what is left in x/y.tfstate",
		},
		"a record of ours": {files: record(`{"type":"http","config":{"address":null}}`), says: "there is no state yet"},
		"a record that is not": {
			files: map[string]string{".terraform/terraform.tfstate": canary}, err: "the record of the backend cannot be read",
		},
		"a workspace":           {files: map[string]string{".terraform/environment": "w"}, err: "a workspace is selected"},
		"a workspace, selected": {files: map[string]string{"terraform.tfstate": other}, in: "w", err: "a workspace is selected"},
		"a workspace, unselected": {
			files: map[string]string{"terraform.tfstate": other, ".terraform/environment": "w"}, in: "default", want: other,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			switch c.stored {
			case "":
			case "sealed":
				s.put(seal(t, sealing, state))
			default:
				s.put([]byte(c.stored))
			}
			if c.held {
				s.hold([]byte(`{"ID":"1"}`))
			}
			o, dir, out := scripted(t, s, "ready GET", "init")
			o.EncryptExisting, o.Pins = true, c.pins
			o.Environ = append(o.Environ, "TF_WORKSPACE="+c.in)
			for path, text := range c.files {
				write(t, filepath.Join(dir, path), text)
			}
			before := s.stored()
			code, err := wrap.Run(t.Context(), o)
			if (code == 0) != (c.err == "") || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %d, %v; want %q\n%s", code, err, c.err, out)
			}
			if text := out.String(); !strings.Contains(text, c.says) || strings.Contains(text, canary) || err != nil &&
				strings.Contains(err.Error(), canary) {
				t.Errorf("it says %s, want %q", text, c.says)
			}
			if c.want == "" {
				if !bytes.Equal(s.stored(), before) {
					t.Errorf("this was stored: %s", s.stored())
				}
				return
			}
			opened, err := o.State.Decrypt(t.Context(), s.stored())
			if err != nil || !opened.Encrypted || string(opened.Data) != c.want {
				t.Errorf("this is stored: %.200s, %v", s.stored(), err)
			}
			if seen := s.requests(); count(seen, "LOCK") != 1 || count(seen, "UNLOCK") != 1 {
				t.Errorf("the backend was asked to %q", seen)
			}
		})
	}
}

const filled = `{"version":4,"serial":7,"lineage":"other","outputs":{},"resources":[{}]}`

const other = `{"version":4,"terraform_version":"1.11.4","serial":7,"lineage":"other","outputs":{},"resources":[]}`

// The state of another backend, or at another address, is read by a module that has
// nothing else.
func TestMoveInFromAnotherBackend(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct{ recorded, pulled string }{
		"s3":   {recorded: `{"bucket":"b","key":null}`, pulled: `{"bucket":"b"}`},
		"http": {recorded: `{"address":"x","password":null}`, pulled: `{"address":"x"}`},
	} {
		s := newStore(t)
		o, dir, out := scripted(t, s, "pulled GET", "init")
		o.EncryptExisting = true
		write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), `{"version":3,"backend":{"type":"`+kind+`","config":`+c.recorded+`}}`)
		if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
			t.Fatalf("%s: %d, %v\n%s", kind, code, err, out)
		}
		opened, err := o.State.Decrypt(t.Context(), s.stored())
		var got struct{ Lineage, Terraform string }
		if err != nil || json.Unmarshal(opened.Data, &got) != nil || got.Lineage != `{"terraform":{"backend":{"`+kind+`":`+c.pulled+`}}}` {
			t.Errorf("%s: the state was pulled with %+v, %v", kind, got, err)
		}
		if !strings.Contains(out.String(), `what is left in the backend "`+kind+`" is not encrypted`) {
			t.Errorf("%s: it says %s", kind, out)
		}
	}
}

// If the other backend cannot be read, that is no state that is missing.
func TestMoveInFromABackendThatFails(t *testing.T) {
	t.Parallel()
	o, dir, out := scripted(t, newStore(t), "exit=3", "init")
	o.EncryptExisting = true
	write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), `{"version":3,"backend":{"type":"s3","config":{"bucket":"b"}}}`)
	if _, err := wrap.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "init ended with 3") {
		t.Errorf("got %v\n%s", err, out)
	}
}

// Moving out says what it comes to, once it has succeeded.
func TestLeave(t *testing.T) {
	t.Parallel()
	for script, code := range map[string]int{"ready": 0, "exit=3": 3} {
		o, dir, out := scripted(t, newStore(t), script, "init", "-migrate-state")
		o.Leave = true
		write(t, filepath.Join(dir, "main.tf"), inside("backend \"local\" {}"))
		got, err := wrap.Run(t.Context(), o)
		says := strings.Contains(out.String(), "does not encrypt the state in its new place")
		asked := strings.Contains(out.String(), "nobody can answer whether to copy the state: add -force-copy")
		if got != code || err != nil || says != (code == 0) || asked == says {
			t.Errorf("%s: got %d, %v\n%s", script, got, err, out)
		}
	}
}

// A signal that comes before the child has begun ends the run, and the lock is
// given back.
func TestInterruptedBefore(t *testing.T) {
	needSignals(t)
	s := newStore(t)
	s.put([]byte(state))
	s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			signalSelf(syscall.SIGTERM)
			<-r.Context().Done()
		}
		return false
	})
	o, _, out := scripted(t, s, "ready", "init")
	o.EncryptExisting = true
	code, err := wrap.Run(t.Context(), o)
	if code != 1 || err == nil || out.String() != "" {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	if seen := s.requests(); count(seen, "LOCK") != 1 || count(seen, "UNLOCK") != 1 || count(seen, "POST") != 0 {
		t.Errorf("the backend was asked to %q", seen)
	}
}

// Only the state that is expected is read.
func TestPins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pins   wrap.Pins
		stored string // the state if it is empty
		absent bool
		says   string
	}{
		"none":            {},
		"this one":        {pins: wrap.Pins{Lineage: "l", Serial: new(int64(1))}},
		"another lineage": {pins: wrap.Pins{Lineage: "x"}, says: `its lineage is "l", and -lineage says "x": it is another state`},
		"an old serial":   {pins: wrap.Pins{Serial: new(int64(2))}, says: "its serial is 1, and -minimum-serial says 2: it is an old copy"},
		"no serial":       {pins: wrap.Pins{Serial: new(int64)}, stored: `{"version":4,"lineage":"l"}`, says: "it has no serial"},
		"absent":          {pins: wrap.Pins{Serial: new(int64)}, absent: true, says: "the state in the backend: there is none"},
		"absent, lineage": {pins: wrap.Pins{Lineage: "l"}, absent: true, says: "the state in the backend: there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			if !c.absent {
				s.put(seal(t, sealing, cmp.Or(c.stored, state)))
			}
			o, _, out := scripted(t, s, "GET", "plan")
			o.Pins = c.pins
			code, err := wrap.Run(t.Context(), o)
			if err != nil || (code == 0) != (c.says == "") || !strings.Contains(out.String(), c.says) {
				t.Errorf("%d, %v\n%s", code, err, out)
			}
		})
	}
}
