package wrap_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// Moving in seals the state that there is, once, and no other.
//
// Promise: Only encrypted states
func TestMoveIn(t *testing.T) {
	t.Parallel()
	record := func(backend string) map[string]string {
		return map[string]string{".terraform/terraform.tfstate": `{"version":3,"backend":` + backend + `}`}
	}
	mistakes := wraptest.OpenMistakes(t, "moving in")
	for name, c := range testkit.Some(map[string]struct {
		stored string
		files  map[string]string
		in     string // TF_WORKSPACE
		pins   states.Pins
		held   bool
		want   string // what is in the backend then, opened
	}{
		"in the backend":                {stored: state, want: state},
		"both":                          {stored: state, files: map[string]string{"terraform.tfstate": filled}, want: state},
		"both, and the other is empty":  {stored: state, files: map[string]string{"terraform.tfstate": other}, want: state},
		"both, and the other elsewhere": {stored: state, files: record(`{"type":"s3","config":{}}`), want: state},
		"both, and a workspace": {
			stored: state, files: map[string]string{"terraform.tfstate.d/w/terraform.tfstate": filled}, want: state,
		},
		"sealed already":               {stored: "sealed", want: state},
		"sealed already, and one here": {stored: "sealed", files: map[string]string{"terraform.tfstate": filled}, want: state},
		"in the module":                {files: map[string]string{"terraform.tfstate": other}, want: other},
		"another in the backend":       {stored: state, pins: states.Pins{Lineage: "x"}},
		"another in the module":        {files: map[string]string{"terraform.tfstate": other}, pins: states.Pins{Serial: new(int64(8))}},
		"none":                         {},
		"an empty one":                 {files: map[string]string{"terraform.tfstate": ""}},
		"no state":                     {stored: "<html>" + canary},
		"locked":                       {stored: state, held: true},
		"sealed, in the module":        {files: map[string]string{"terraform.tfstate": string(seal(t, sealing, state))}},
		"no state, local":              {files: map[string]string{"terraform.tfstate": canary}},
		"elsewhere in the module": {files: map[string]string{
			".terraform/terraform.tfstate": `{"version":3,"backend":{"type":"local","config":{"path":"x/y.tfstate"}}}`, "x/y.tfstate": other,
		},
			want: other},
		"a record of ours":                        {files: record(`{"type":"http","config":{}}`)},
		"an address of variables, which are gone": {files: record(`{"type":"http","config":{"address":null}}`)},
		"a record that is not":                    {files: map[string]string{".terraform/terraform.tfstate": canary}},
		"a workspace":                             {files: map[string]string{".terraform/environment": "w"}},
		"a workspace, selected":                   {files: map[string]string{"terraform.tfstate": other}, in: "w"},
		"a workspace, unselected": {
			files: map[string]string{"terraform.tfstate": other, ".terraform/environment": "w"}, in: "default", want: other,
		},
	}) {
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
			o, dir, _ := scripted(t, s, "ready GET", "init")
			o.Wishes.EncryptExisting, o.Wishes.Pins = true, c.pins
			o.Environ = append(o.Environ, "TF_WORKSPACE="+c.in)
			for path, text := range c.files {
				write(t, filepath.Join(dir, path), text)
			}
			before := s.stored()
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if c.want == "" {
				if !bytes.Equal(s.stored(), before) {
					t.Errorf("this was stored: %s", s.stored())
				}
				return
			}
			if c.stored != "" && c.stored != "sealed" { // what is there already is counted on
				c.want = counted(c.want)
			}
			opened, err := o.Keys.State.Decrypt(t.Context(), s.stored())
			if err != nil || !opened.Encrypted || string(opened.Data) != c.want {
				t.Errorf("this is stored: %.200s, %v", s.stored(), err)
			}
			if seen := s.requests(); count(seen, "LOCK") != 1 || count(seen, "UNLOCK") != 1 {
				t.Errorf("the backend was asked to %q", seen)
			}
		})
	}
}

// counted is a state with the next serial.
func counted(state string) string {
	return regexp.MustCompile(`"serial": *\d+`).ReplaceAllStringFunc(state, func(serial string) string {
		digits := strings.TrimLeft(serial, `"serial: `)
		last, _ := strconv.Atoi(digits)
		return strings.TrimSuffix(serial, digits) + strconv.Itoa(last+1)
	})
}

const filled = `{"version":4,"serial":7,"lineage":"other","outputs":{},"resources":[{}]}`

const other = `{"version":4,"terraform_version":"1.11.4","serial":7,"lineage":"other","outputs":{},"resources":[]}`

// The state of another backend, or at another address, is read by a module that has
// nothing else.
//
// Promise: Only encrypted states
func TestMoveInFromAnotherBackend(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "moving in from")
	for kind, c := range map[string]struct{ recorded, pulled string }{
		"s3":   {recorded: `{"bucket":"b","key":null}`, pulled: `{"bucket":"b"}`},
		"http": {recorded: `{"address":"x","password":null}`, pulled: `{"address":"x"}`},
	} {
		s := newStore(t)
		o, dir, _ := scripted(t, s, "pulled GET", "init")
		o.Wishes.EncryptExisting = true
		write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), `{"version":3,"backend":{"type":"`+kind+`","config":`+c.recorded+`}}`)
		code, err, told := run(t, o)
		mistakes.Ended(t, kind, told, code, err)
		opened, err := o.Keys.State.Decrypt(t.Context(), s.stored())
		var got struct{ Lineage, Terraform string }
		if err != nil || json.Unmarshal(opened.Data, &got) != nil || got.Lineage != `{"terraform":{"backend":{"`+kind+`":`+c.pulled+`}}}` {
			t.Errorf("%s: the state was pulled with %+v, %v", kind, got, err)
		}
	}
}

// TestMoveInFromVariables: a former backend that variables describe is read with them, and
// the password goes to that backend alone.
func TestMoveInFromVariables(t *testing.T) {
	t.Parallel()
	const password = "former-" + canary
	former := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, given, _ := r.BasicAuth(); given != password || r.URL.Path != "/former" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, filled)
	}))
	t.Cleanup(former.Close)
	for name, config := range map[string]string{
		"all": `{"address":null,"password":null}`, "the password": `{"address":"` + former.URL + `/former"}`,
	} {
		s := newStore(t)
		o, dir, out := scripted(t, s, "former GET", "init")
		o.Wishes.EncryptExisting = true
		o.Environ = append(o.Environ, "TF_HTTP_USERNAME=u", "TF_HTTP_PASSWORD="+password)
		if name == "all" {
			o.Environ = append(o.Environ, "TF_HTTP_ADDRESS="+former.URL+"/former")
		}
		write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), `{"version":3,"backend":{"type":"http","config":`+config+`}}`)
		code, err := wrap.Run(t.Context(), o)
		if code != 0 || err != nil || strings.Contains(out.String(), canary) {
			t.Errorf("%s: %d, %v\n%s", name, code, err, out)
		}
		opened, err := o.Keys.State.Decrypt(t.Context(), s.stored())
		if err != nil || string(opened.Data) != filled {
			t.Errorf("%s: this is stored: %s, %v", name, s.stored(), err)
		}
	}
}

// If the other backend cannot be read, that is no state that is missing.
func TestMoveInFromABackendThatFails(t *testing.T) {
	t.Parallel()
	o, dir, _ := scripted(t, newStore(t), "exit=3", "init")
	o.Wishes.EncryptExisting = true
	write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), `{"version":3,"backend":{"type":"s3","config":{"bucket":"b"}}}`)
	code, err, told := run(t, o)
	wraptest.OpenMistakes(t, "moving in, and it fails").Ended(t, "s3", told, code, err)
}

// Moving out says what it comes to, once it has succeeded.
func TestLeave(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "leaving")
	for _, script := range []string{"ready", "exit=3"} {
		o, dir, _ := scripted(t, newStore(t), script, "init", "-migrate-state")
		o.Wishes.Leave = true
		write(t, filepath.Join(dir, "main.tf"), inside("backend \"local\" {}"))
		code, err, told := run(t, o)
		mistakes.Ended(t, script, told, code, err)
	}
	for name, block := range map[string]string{
		"to the same file": `path = "./terraform.tfstate"`, "to the file of the module": ``, "to another file": `path = "x"`,
	} {
		o, dir, _ := inFile(t, "ready", "init", "-migrate-state")
		o.Wishes.Leave = true
		write(t, filepath.Join(dir, "main.tf"), inside("backend \"local\" {\n"+block+"\n}"))
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
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
	o.Wishes.EncryptExisting = true
	code, err := wrap.Run(t.Context(), o)
	if code != 1 || err == nil || out.String() != "" {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	if seen := s.requests(); count(seen, "LOCK") != 1 || count(seen, "UNLOCK") != 1 || count(seen, "POST") != 0 {
		t.Errorf("the backend was asked to %q", seen)
	}
}

// Only the state that is expected is read.
//
// Promise: Only encrypted states
func TestPins(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "pins")
	for name, c := range testkit.Some(map[string]struct {
		pins   states.Pins
		stored string // the state if it is empty
		absent bool
	}{
		"none":               {},
		"this one":           {pins: states.Pins{Lineage: "l", Serial: new(int64(1))}},
		"another lineage":    {pins: states.Pins{Lineage: "x"}},
		"in quotation marks": {pins: states.Pins{Lineage: `"l"`}},
		"an old serial":      {pins: states.Pins{Serial: new(int64(2))}},
		"no serial":          {pins: states.Pins{Serial: new(int64)}, stored: `{"version":4,"lineage":"l"}`},
		"absent":             {pins: states.Pins{Serial: new(int64)}, absent: true},
		"absent, lineage":    {pins: states.Pins{Lineage: "l"}, absent: true},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			if !c.absent {
				s.put(seal(t, sealing, cmp.Or(c.stored, state)))
			}
			o, _, _ := scripted(t, s, "GET", "plan")
			o.Wishes.Pins = c.pins
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
		})
	}
}
