package httpstore

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/net/webdav"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// TestWebDAV: what a server of files calls done, and has not done, is no write.
func TestWebDAV(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&webdav.Handler{FileSystem: webdav.NewMemFS(), LockSystem: webdav.NewMemLS()})
	t.Cleanup(server.Close)
	testWebDAV(t, server.URL, http.StatusConflict)
}

// TestRealWebDAV: the same goes for servers that people have.
func TestRealWebDAV(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) string{
		"apache": servertest.StartApache, "lighttpd": servertest.StartLighttpd, "rclone": servertest.StartRclone,
		"nginx": servertest.StartNginx,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, noFolder := start(t), http.StatusConflict
			if name == "nginx" { // it answers 500
				noFolder = http.StatusInternalServerError
			}
			testWebDAV(t, url, noFolder)
			s := by(t, url, map[string]cty.Value{"address": cty.StringVal(url + "/locked-true"), "update_method": cty.StringVal("PUT")})
			_, version, err := s.Read(t.Context())
			if err == nil {
				_, err = s.Write(t.Context(), storetest.State(2), version)
			}
			if answer, _ := errors.AsType[*store.AnswerError](err); (answer != nil && answer.Status == http.StatusLocked) != (name == "nginx") {
				t.Errorf("a write after a lock and a release: %v", err)
			}
		})
	}
}

func testWebDAV(t *testing.T, url string, noFolder int) {
	t.Helper()
	const advice = `update_method = "PUT"`
	open := func(t *testing.T, name, method string) store.State {
		t.Helper()
		text, address := cty.StringVal, url+"/"+name
		return carefully(by(t, address, map[string]cty.Value{"address": text(address), "update_method": text(method)}))
	}
	first := func(t *testing.T, name string) store.Version {
		t.Helper()
		next, err := open(t, name, "PUT").Write(t.Context(), storetest.State(1), "")
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	holds := func(t *testing.T, name string, want []byte) {
		t.Helper()
		got, _, err := open(t, name, "PUT").Read(t.Context())
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("there is %.50q, %v; want %.50q", got, err, want)
		}
	}
	refused := func(t *testing.T, err error, want string) {
		t.Helper()
		_, isHeld := errors.AsType[*store.HeldError](err)
		if err == nil || isHeld || errors.Is(err, store.ErrChanged) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
	t.Run("POST", func(t *testing.T) {
		read := first(t, "post")
		s := open(t, "post", "POST")
		for range 2 {
			_, err := s.Write(t.Context(), storetest.State(2), read)
			refused(t, err, advice)
		}
		holds(t, "post", storetest.State(1))
	})
	t.Run("POST to none", func(t *testing.T) {
		_, err := open(t, "none", "POST").Write(t.Context(), storetest.State(1), "")
		refused(t, err, advice)
		holds(t, "none", nil)
	})
	t.Run("PUT", func(t *testing.T) {
		s, read := open(t, "put", "PUT"), first(t, "put")
		for serial := range 3 {
			var err error
			if read, err = s.Write(t.Context(), storetest.State(2+serial), read); err != nil {
				t.Fatal(err)
			}
		}
		holds(t, "put", storetest.State(4))
		if err := s.Remove(t.Context(), read); err != nil {
			t.Error(err)
		}
		holds(t, "put", nil)
	})
	t.Run("PUT without a folder", func(t *testing.T) {
		_, err := open(t, "no/folder", "PUT").Write(t.Context(), storetest.State(1), "")
		refused(t, err, web.Status(noFolder))
	})
	for name, there := range map[string]bool{"LOCK": false, "LOCK of a file": true} {
		t.Run(name, func(t *testing.T) {
			text, file := cty.StringVal, fmt.Sprint("locked-", there)
			if there {
				first(t, file)
			}
			address := url + "/" + file
			s := by(t, address, map[string]cty.Value{"address": text(address), "lock_address": text(address), "unlock_address": text(address)})
			for request, err := range map[string]error{
				"a lock": s.Lock(t.Context(), storetest.Lock("1")), "a release": s.Unlock(t.Context(), "1"),
			} {
				if err == nil || !strings.Contains(err.Error(), withoutLocks) {
					t.Errorf("%s: an answer of another protocol is taken for one of this, or the remedy is missing: %v", request, err)
				}
			}
		})
	}
}
