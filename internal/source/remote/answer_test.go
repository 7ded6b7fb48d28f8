package remote

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// answering serves what h says, by path, and everything else faithfully.
func answering(t *testing.T, h map[string]http.HandlerFunc) ask {
	t.Helper()
	s := server([]byte(`{"version":4}`))
	host, ca := tfetest.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own, ok := h[r.URL.Path]; ok {
			own(w, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	return ask{attrs: network(host), settings: source.Settings{Credentials: blocks(block(host, ca, readToken))}}
}

func saying(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}
}

const (
	discoveryPath = "/.well-known/terraform.json"
	workspacePath = "/api/v2/organizations/acme/workspaces/network"
	currentPath   = "/api/v2/workspaces/ws-0000000000000001/current-state-version"
	statePath     = "/api/state-versions/sv-0000000000000002/hosted_state"
)

// What is not an answer of the API is told in our own words.
func TestStrangeAnswers(t *testing.T) {
	version := func(attributes string) string {
		return `{"data":{"id":"sv-1","type":"state-versions","attributes":{` + attributes + `}}}`
	}
	says := sourcetest.OpenMistakes(t, "remote, answers", readToken)
	for name, r := range map[string]struct {
		path, text string
		code       int
	}{
		"no document at all":        {discoveryPath, "canary", 404},
		"no service":                {discoveryPath, `{"login.v1":{"canary":1}}`, 200},
		"a service of another kind": {discoveryPath, `{"tfe.v2":{"canary":1},"state.v2":["canary"]}`, 200},
		"a service with http":       {discoveryPath, `{"tfe.v2":"http://canary.test/"}`, 200},
		"a service with a password": {discoveryPath, `{"tfe.v2":"https://canary:pw@127.0.0.1/"}`, 200},
		"a service with a query":    {discoveryPath, `{"tfe.v2":"/api/v2/?canary=1"}`, 200},
		"a service that is no URL":  {discoveryPath, `{"tfe.v2":"https://canary:port/"}`, 200},
		"a list":                    {workspacePath, `["canary"]`, 200},
		"no data":                   {workspacePath, `{}`, 200},
		"an ID that is a path":      {workspacePath, `{"data":{"id":"../../canary"}}`, 200},
		"500":                       {workspacePath, "canary", 500},
		"418":                       {workspacePath, "canary", 418},
		"payment required":          {currentPath, "canary", 402},
		"403 for the state version": {currentPath, "canary", 403},
		"no version":                {currentPath, `{}`, 200},
		"of another workspace":      {currentPath, `{"data":{"id":"sv-1","relationships":{"workspace":{"data":{"id":"ws-canary"}}}}}`, 200},
		"no download URL":           {currentPath, version(`"status":"finalized"`), 200},
		"hold your own key": {currentPath, version(`"hosted-state-download-url":null,"encrypted-state-download-url":"https://canary"`),
			200},
		"a download URL with http":    {currentPath, version(`"hosted-state-download-url":"http://canary.test/"`), 200},
		"a download URL of a file":    {currentPath, version(`"hosted-state-download-url":"file:///canary"`), 200},
		"a download URL, broken":      {currentPath, version(`"hosted-state-download-url":"https://canary:x/"`), 200},
		"403 for the state":           {statePath, "canary", 403},
		"401 for the state":           {statePath, "canary", 401},
		"404 for the state":           {statePath, "canary", 404},
		"a size that is no number":    {currentPath, version(`"size":"canary"`), 200},
		"a negative size and no data": {currentPath, version(`"size":-7`), 200},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := answering(t, map[string]http.HandlerFunc{r.path: saying(r.code, r.text)}).fetch(t)
			says.Error(t, name, err)
			if _, ok := source.IsMissing(err); ok {
				t.Errorf("got %v: this does not show that there is no state", err)
			}
		})
	}
}

// Nothing compressed is asked for. What comes so anyway is not more than the
// limit, and nothing else is understood.
func TestEncoding(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 16<<20))
	_ = z.Close()
	says := sourcetest.OpenMistakes(t, "remote, encodings")
	for _, path := range []string{discoveryPath, workspacePath, statePath} {
		for _, encoding := range []string{"gzip", "br"} {
			var asked string
			_, err := answering(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, r *http.Request) {
				asked = r.Header.Get("Accept-Encoding")
				w.Header().Set("Content-Encoding", encoding)
				_, _ = w.Write(bomb.Bytes())
			}}).fetch(t)
			says.Error(t, encoding+" at "+path, err)
			if asked != "identity" {
				t.Errorf("asked for %q", asked)
			}
		}
	}
}

// A service that limits requests says when the next is welcome.
func TestWait(t *testing.T) {
	const shortest, longest = time.Second, 30 * time.Second
	for _, r := range []struct {
		code          int
		header, value string
		want          time.Duration
	}{
		{429, "X-RateLimit-Reset", "2.5", 2500 * time.Millisecond},
		{429, "X-RateLimit-Reset", "0.0", shortest},
		{429, "X-RateLimit-Reset", "1e300", longest},
		{429, "X-RateLimit-Reset", "Inf", longest},
		{429, "X-RateLimit-Reset", "NaN", shortest},
		{429, "X-RateLimit-Reset", "-5", shortest},
		{429, "X-RateLimit-Reset", "canary", shortest},
		{429, "Retry-After", "7", 7 * time.Second},
		{429, "Retry-After", "31536000", longest},
		{500, "X-RateLimit-Reset", "20", shortest},
	} {
		resp := &http.Response{StatusCode: r.code, Header: http.Header{}}
		resp.Header.Set(r.header, r.value)
		if got := wait(shortest, longest, 0, resp); got != r.want {
			t.Errorf("%d with %s of %s: got %s, want %s", r.code, r.header, r.value, got, r.want)
		}
	}
}
