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

// TestAccRequests: a run that changes nothing asks for no more than Terraform does by itself.
func TestAccRequests(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	for _, c := range []struct{ text, want string }{
		{secret, "LOCK GET UNLOCK"},
		{secret + "2", "LOCK GET GET POST GET UNLOCK"},
	} {
		s.requests() // of before
		p.must(t, "apply", "-auto-approve", "-var=text="+c.text)
		var methods []string
		for _, request := range s.requests() {
			method, _, _ := strings.Cut(request, " ")
			methods = append(methods, method)
		}
		if got := strings.Join(methods, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}
