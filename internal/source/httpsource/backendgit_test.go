package httpsource

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

const (
	gitRepository = "https://git.example.com/acme/states.git"
	gitState      = `{"version":4,"serial":1,"lineage":"l","outputs":{},"resources":[]}`
)

// backendGit answers like terraform-backend-git: one place for everything,
// named by the query; a state that was never written has no content; whatever
// goes wrong in git or with a key is its own fault, of which only its log says
// more.
func backendGit(t *testing.T, start func(*testing.T, http.HandlerFunc) *recorder, username, password string) *recorder {
	refuse := func(w http.ResponseWriter, code int) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(map[int]string{
			400: "400 - Bad Request", 401: "401 - Unauthorized", 500: "500 - Internal Server Error",
		}[code]))
	}
	return start(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			t.Errorf("the state was not only read: %s", req.Method)
		}
		if u, p, _ := req.BasicAuth(); username+password != "" && (u != username || p != password) {
			w.Header().Set("WWW-Authenticate", "Basic realm=terraform-backend-git")
			refuse(w, 401)
			return
		}
		q := req.URL.Query()
		ref := q.Get("ref")
		if ref == "" {
			ref = "master"
		}
		switch {
		case q.Get("type") != "git", q.Get("repository") == "":
			refuse(w, 400)
		case q.Get("repository") != gitRepository, ref != "master" && ref != "states", q.Get("state") == "", q.Get("state") == "no-key.json":
			refuse(w, 500)
		case q.Get("state") != "my/state.json":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(gitState))
		}
	})
}

func gitQuery(pairs ...string) string {
	q := url.Values{"type": {"git"}, "repository": {gitRepository}, "state": {"my/state.json"}}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return "/?" + q.Encode()
}

func TestTerraformBackendGit(t *testing.T) {
	golden := sourcetest.OpenMistakes(t, "http, terraform-backend-git")
	for name, tt := range map[string]struct {
		query   string
		fails   bool
		missing bool
		tries   int
	}{
		"encoded":          {query: gitQuery("ref", "states"), tries: 1},
		"as people write":  {query: "/?type=git&repository=" + gitRepository + "&ref=states&state=my/state.json", tries: 1},
		"no ref":           {query: gitQuery(), tries: 1},
		"a sub-path":       {query: "/any/path" + gitQuery(), tries: 1},
		"amend":            {query: gitQuery("amend", "true"), tries: 1},
		"never written":    {query: gitQuery("state", "other.json"), fails: true, missing: true, tries: 1},
		"no such branch":   {query: gitQuery("ref", "none"), fails: true, tries: 3},
		"other repository": {query: gitQuery("repository", "git@git.example.com:acme/none.git"), fails: true, tries: 3},
		"no key":           {query: gitQuery("state", "no-key.json"), fails: true, tries: 3},
		"no state":         {query: gitQuery("state", ""), fails: true, tries: 3},
		"no type":          {query: gitQuery("type", ""), fails: true, tries: 1},
		"no repository":    {query: gitQuery("repository", ""), fails: true, tries: 1},
		"ssh URL with user": {query: gitQuery("repository", "ssh://git@git.example.com:22/acme/none.git"), fails: true,
			tries: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := backendGit(t, serve, "", "")
			r := at(s.URL + tt.query)
			if !tt.fails {
				r.want(t, gitState)
			} else if err := r.says(t, golden, name); tt.missing {
				missing(t, err)
			}
			s.wantRequests(t, tt.tries)
			sent, err := url.QueryUnescape(s.seen()[0].URL.RawQuery)
			want, err2 := url.QueryUnescape(strings.SplitN(tt.query, "?", 2)[1])
			if err != nil || err2 != nil || sent != want {
				t.Errorf("asked for %q, want %q", sent, want)
			}
		})
	}
}

func TestTerraformBackendGitWithPasswordAndTLS(t *testing.T) {
	golden := sourcetest.OpenMistakes(t, "http, terraform-backend-git of others")
	for name, start := range map[string]func(*testing.T, http.HandlerFunc) *recorder{"http": serve, "https": serveTLS} {
		t.Run(name, func(t *testing.T) {
			s := backendGit(t, start, "ci", "password-"+canary)
			own := attrs{"username": cty.StringVal("ci"), "password": cty.StringVal("password-" + canary)}
			trust := attrs{}
			if name == "https" {
				trust["client_ca_certificate_pem"] = s.ca()
				at(s.URL+gitQuery(), block(s.URL, own)).wantError(t, netfail.UnknownAuthority)
				s.wantRequests(t, 0)
			}
			at(s.URL+gitQuery(), block(s.URL, own, trust)).want(t, gitState)
			err := at(s.URL+gitQuery("state", "other.json"), block(s.URL, own, trust)).wantError(t, "204")
			if !missing(t, err).CredentialsSent {
				t.Error("credentials were sent")
			}

			// The variables of the http backend, for the server that they name.
			r := at(s.URL+gitQuery(), block(s.URL, trust))
			r.env = map[string]string{"TF_HTTP_ADDRESS": s.URL + "/", "TF_HTTP_USERNAME": "ci", "TF_HTTP_PASSWORD": "password-" + canary}
			r.want(t, gitState)
			r.env["TF_HTTP_PASSWORD"] = "wrong-" + canary
			r.says(t, golden, name+", a wrong password")
			at(s.URL+gitQuery(), block(s.URL, trust)).says(t, golden, name+", no password")
			s.wantRequests(t, 5)
		})
	}
}

// The settings of the server are not those of a client.
func TestServerVariablesOfTerraformBackendGit(t *testing.T) {
	s := backendGit(t, serve, "", "")
	r := at(s.URL + gitQuery())
	r.env = map[string]string{
		"TF_BACKEND_GIT_ADDRESS": strings.TrimPrefix(s.URL, "http://"), "TF_BACKEND_GIT_HTTP_USERNAME": "u",
		"TF_BACKEND_GIT_HTTP_PASSWORD": canary,
	}
	r.want(t, gitState)
	s.wantNoSecret(t)
}

// What a data source says is stored in the state of whoever reads.
func TestSecretsInEmbeddedURLs(t *testing.T) {
	golden := sourcetest.OpenMistakes(t, "http, secrets in a query")
	for value, refused := range map[string]bool{
		gitRepository:                                       false,
		"ssh://git@git.example.com/acme/x.git":              false,
		"git@git.example.com:acme/x.git":                    false,
		"git.example.com:acme/x.git":                        false,
		"/srv/git/x@1.git":                                  false,
		"https://git.example.com/a@b":                       false,
		"https://git.example.com/x?depth=1":                 false,
		"12:30@noon":                                        false,
		"https://u:" + canary + "@git.example.com/x":        true,
		"https://" + canary + "@git.example.com/x":          true,
		"HTTPS://" + canary + "@git.example.com/x":          true,
		" https://" + canary + "@git.example.com/x":         true,
		"https:\\\\" + canary + "@git.example.com/x":        true,
		"https://:" + canary + "@git.example.com":           true,
		"https://u:%zz" + canary + "@git.example.com":       true,
		"ssh://git:" + canary + "@git.example.com/x":        true,
		"git:" + canary + "@git.example.com:acme/x":         true,
		"https://git.example.com/x?private_token=" + canary: true,
	} {
		s := backendGit(t, serve, "", "")
		r := at(s.URL + gitQuery("repository", value))
		if refused {
			r.says(t, golden, strconv.Quote(value))
			s.wantRequests(t, 0)
			continue
		}
		if _, err := r.open(); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	at(s.URL+"/?type=git;token="+canary).says(t, golden, "a semicolon")
	at(s.URL+"/?type=git&x=%zz"+canary).says(t, golden, "a percent sign")
	at(s.URL+"/?a="+url.QueryEscape(gitRepository)+"&"+url.QueryEscape("b\x1b")+"=https://"+canary+"@x").says(t, golden, "another parameter")
}
