package wrap_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// numbered is a state with a serial.
func numbered(serial int) string {
	return strings.Replace(state, `"serial":1`, fmt.Sprintf(`"serial":%d`, serial), 1)
}

// seenIn is the memory of a folder.
func seenIn(t *testing.T, dir string) map[string]struct {
	Lineage string
	Serial  int
} {
	t.Helper()
	var seen map[string]struct {
		Lineage string
		Serial  int
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, ".terraform", "statecrypt", "seen.json"))), &seen); err != nil {
		t.Fatal(err)
	}
	return seen
}

// TestSixAtOnce: runs with different settings in one folder remember their states, and forget none of
// the others.
//
// Promise: States in stores
func TestSixAtOnce(t *testing.T) {
	t.Parallel()
	const runs = 6
	o, dir, _ := inFile(t, "GET", "plan")
	path := func(n int) string { return filepath.Join(dir, fmt.Sprintf("%d.tfstate", n)) }
	for round := 1; round <= testkit.Rounds(100); round++ {
		var group sync.WaitGroup
		for n := range runs {
			write(t, path(n), string(seal(t, sealing, numbered(round))))
			one := o
			one.Where.Backend, one.Stdin = fileBlock(path(n)), strings.NewReader("")
			one.Stdout, one.Stderr = io.Discard, io.Discard
			group.Go(func() {
				if code, err := wrap.Run(t.Context(), one); code != 0 || err != nil {
					t.Errorf("%d, %v", code, err)
				}
			})
		}
		group.Wait()
		seen := seenIn(t, dir)
		for of, one := range seen {
			if one.Serial != round {
				t.Errorf("in round %d, of %s, the serial %d was seen", round, of, one.Serial)
			}
		}
		if len(seen) != runs {
			t.Fatalf("in round %d, this was seen: %v", round, seen)
		}
	}
}

// TestSlowerRun: a run that learns late that it has written a state does not forget that another one
// has gone on from that.
//
// Promise: States in stores
func TestSlowerRun(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.put(seal(t, sealing, numbered(1)))
	quick, dir, _ := scripted(t, s, "GET POST="+numbered(4), "apply", "-lock=false")
	slow := quick
	quick.Environ = withoutLocks(quick.Environ)
	slow.Environ = append(slices.Clone(quick.Environ), "WRAP_TEST_SCRIPT=GET POST="+numbered(2)+" POST="+numbered(3))
	slow.Stdin, slow.Stdout, slow.Stderr = strings.NewReader(""), io.Discard, io.Discard
	stored, answer := make(chan struct{}), make(chan struct{})
	var posts atomic.Int64 // wrap looks whether the first one has arrived
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		isSecond := r.Method == http.MethodPost && posts.Add(1) == 2
		if isSecond {
			body, _ := io.ReadAll(r.Body)
			s.put(body)
			close(stored)
			<-answer
			_, _ = w.Write(body) // or wrap looks again
		}
		return isSecond
	})
	ended := make(chan string)
	go func() {
		code, err := wrap.Run(t.Context(), slow)
		ended <- fmt.Sprint(code, err)
	}()
	<-stored
	code, err := wrap.Run(t.Context(), quick)
	close(answer)
	if first := <-ended; code != 0 || err != nil || first != "0 <nil>" {
		t.Fatalf("%d, %v; the slow one: %s", code, err, first)
	}
	for of, one := range seenIn(t, dir) {
		if one.Serial != 4 {
			t.Errorf("of %s, the serial %d was seen", of, one.Serial)
		}
	}
	s.put(seal(t, sealing, numbered(3)))
	quick.Environ = append(quick.Environ, "WRAP_TEST_SCRIPT=GET")
	if code, err, told := run(t, quick); code == 0 {
		t.Errorf("an old copy was accepted: %v\n%s", err, told)
	}
}

// TestForcedBack: a run that has read the newest state may replace it by one with a lower serial, as
// state push -force does, and that is the newest one then.
func TestForcedBack(t *testing.T) {
	t.Parallel()
	o, dir, out := inFile(t, "GET POST="+numbered(2), "state", "push", "-force", "-lock=false", "-")
	write(t, filepath.Join(dir, "terraform.tfstate"), string(seal(t, sealing, numbered(5))))
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	o.Environ = append(o.Environ, "WRAP_TEST_SCRIPT=GET")
	if code, err, told := run(t, o); code != 0 || err != nil {
		t.Errorf("then: %d, %v\n%s", code, err, told)
	}
}

// TestMemoryOfQueries: two states whose addresses differ in their queries are two.
//
// Promise: States in stores
func TestMemoryOfQueries(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	o, _, _ := scripted(t, s, "GET", "plan")
	of := func(env string) wrap.Options {
		one := o
		one.Environ = append(slices.Clone(o.Environ), "STATECRYPT_HTTP_ADDRESS="+s.url+"/s?env="+env)
		return one
	}
	for _, c := range []struct {
		env     string
		there   int // a serial, 0 for none
		refused bool
	}{
		{env: "prod", there: 5}, {env: "dev"}, {env: "dev", there: 1}, {env: "prod", there: 6}, {env: "prod", there: 5, refused: true},
		{env: "prod", refused: true}, {env: "dev", there: 1}, {env: "dev", refused: true},
	} {
		s.put(nil)
		if c.there > 0 {
			s.put(seal(t, sealing, numbered(c.there)))
		}
		if code, err, told := run(t, of(c.env)); code != 0 != c.refused || err != nil {
			t.Errorf("%+v: %d, %v\n%s", c, code, err, told)
		}
	}
}

// TestFormerMemory: what an earlier version has seen is known if its name is that of one state alone,
// and has the new name from then on.
func TestFormerMemory(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for name, c := range map[string]struct {
		name    string // in the memory
		address string
		file    bool
		known   bool
	}{
		"http":            {name: "http " + s.url + "/s", address: s.url + "/s", known: true},
		"http with query": {name: "http " + s.url + "/s", address: s.url + "/s?env=prod"},
		"another":         {name: "http " + s.url + "/other", address: s.url + "/s"},
		"file":            {name: "file DIR/terraform.tfstate", file: true, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			o, dir, _ := scripted(t, s, "GET", "plan")
			put := func(serial int) { s.put(seal(t, sealing, numbered(serial))) }
			o.Environ = append(o.Environ, "STATECRYPT_HTTP_ADDRESS="+c.address)
			if c.file {
				o, dir, _ = inFile(t, "GET", "plan")
				dir, _ = filepath.EvalSymlinks(dir)
				put = func(serial int) {
					write(t, filepath.Join(dir, "terraform.tfstate"), string(seal(t, sealing, numbered(serial))))
				}
			}
			former := strings.ReplaceAll(c.name, "DIR", dir)
			write(t, filepath.Join(dir, ".terraform", "statecrypt", "seen.json"), `{"`+former+`":{"lineage":"l","serial":5},"x":{"lineage":"l"}}`)
			put(4)
			if code, err, told := run(t, o); code != 0 != c.known || err != nil {
				t.Errorf("an old one: %d, %v\n%s", code, err, told)
			}
			put(6)
			for range 2 {
				if code, err, told := run(t, o); code != 0 || err != nil {
					t.Errorf("a newer one: %d, %v\n%s", code, err, told)
				}
			}
			seen := seenIn(t, dir)
			if _, there := seen[former]; there == c.known || len(seen) != 2 && c.known {
				t.Errorf("this was seen: %v", seen)
			}
			if _, there := seen["x"]; !there {
				t.Errorf("another state is forgotten: %v", seen)
			}
			if !c.known {
				return
			}
			seen[former] = struct {
				Lineage string
				Serial  int
			}{"l", 8} // by an earlier version, which has gone on
			text, err := json.Marshal(seen)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, ".terraform", "statecrypt", "seen.json"), string(text))
			put(7)
			if code, err, told := run(t, o); code == 0 {
				t.Errorf("an old one, by an earlier version: %v\n%s", err, told)
			}
			put(8)
			if code, err, told := run(t, o); code != 0 || err != nil {
				t.Errorf("the newest one: %d, %v\n%s", code, err, told)
			}
		})
	}
}

// TestFormerBase: what a file may replace that an earlier version has left, is known.
func TestFormerBase(t *testing.T) {
	s := newStore(t)
	o, dir := recovering(t, s)
	s.put(seal(t, sealing, state))
	leaves(t, dir, s, newer)
	path := filepath.Join(dir, ".terraform", "statecrypt", "base.json")
	var bases map[string][]string
	if err := json.Unmarshal([]byte(read(t, path)), &bases); err != nil || len(bases) != 1 {
		t.Fatalf("%v, %v", bases, err)
	}
	for entry, versions := range bases {
		digest := entry[strings.LastIndex(entry, " ")+1:]
		text, _ := json.Marshal(map[string][]string{"http " + s.url + "/s " + digest: versions})
		write(t, path, string(text))
	}
	if err, told := recovered(t, o, states.Recovery{}); err != nil {
		t.Errorf("%v\n%s", err, told)
	}
	if left := strings.TrimSpace(read(t, path)); left != "{}" {
		t.Errorf("this is left: %s", left)
	}
}
