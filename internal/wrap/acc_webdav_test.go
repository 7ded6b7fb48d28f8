package wrap_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/webdav"
)

// TestAccWebDAV: a server of files answers POST with the file that it has, and stores nothing. That is
// an error, and with the right method the state gets there.
func TestAccWebDAV(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&webdav.Handler{FileSystem: webdav.NewMemFS(), LockSystem: webdav.NewMemLS()})
	t.Cleanup(server.Close)
	post := []string{"STATECRYPT_HTTP_ADDRESS=" + server.URL + "/net.tfstate"}
	put := append(slices.Clone(post), "STATECRYPT_HTTP_UPDATE_METHOD=PUT")
	p := newProject(t, post, empty)
	p.must(t, "init")
	applied := func(store []string, text string) (code int, out string) {
		p.store = store
		code, _, out = p.wrapped(t, "apply", "-auto-approve", "-var=text="+secret+text)
		return code, out
	}
	refused := func(code int, out string) {
		t.Helper()
		left := filepath.Join(p.dir, "errored.tfstate")
		if code == 0 || !strings.Contains(out, `update_method = "PUT"`) || strings.Contains(read(t, left), secret) {
			t.Fatalf("by POST: %d\n%s", code, out)
		}
		if err := os.Remove(left); err != nil { // which lets the next run begin
			t.Fatal(err)
		}
	}
	refused(applied(post, "1"))
	if code, out := applied(put, "2"); code != 0 {
		t.Fatalf("by PUT: %d\n%s", code, out)
	}
	refused(applied(post, "3"))
	p.store = put
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret+"2") {
		t.Errorf("the state that was there is lost: %s", out)
	}
}

// TestAccRequests checks that a run asks for no more than the CLI does by itself, but for a look at the state before
// a write, and one after it.
func TestAccRequests(t *testing.T) {
	t.Parallel()
	there, alone := newStore(t), newStore(t)
	p, bare := newProject(t, there.environ(), empty), newProject(t, nil, empty)
	for _, c := range []struct {
		text   string
		writes int
	}{{text: secret, writes: 1}, {text: secret}, {text: secret + "2", writes: 1}} {
		apply := []string{"apply", "-auto-approve", "-var=text=" + c.text}
		for _, args := range [][]string{{"init"}, apply} {
			_, _ = there.requests(), alone.requests()
			p.must(t, args...)
			if code, out := bare.bare(t, bare.cli, alone.terraform(), args...); code != 0 {
				t.Fatalf("%q: %d\n%s", args, code, out)
			}
		}
		seen := alone.requests()
		got, want := methods(there.requests()), strings.Replace(methods(seen), "POST", "GET POST GET", 1)
		if got != want || count(seen, "POST") != c.writes {
			t.Errorf("%s: %s, want %s", c.text, got, want)
		}
	}
}

// methods are the first words of requests.
func methods(requests []string) string {
	var all []string
	for _, request := range requests {
		method, _, _ := strings.Cut(request, " ")
		all = append(all, method)
	}
	return strings.Join(all, " ")
}
