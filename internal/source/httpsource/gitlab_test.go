package httpsource

import (
	"net/http"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// gitlab answers like the state API of GitLab: it takes a token in a header of
// its own, or as the password of anyone; a wrong token is unauthorized; a
// project that one may not see is not there; and a state that was never
// written has no content, or is not there.
func gitlab(t *testing.T) *recorder {
	state := strings.NewReplacer("/api/v4/projects/42/terraform/state/", "", "/api/v4/projects/acme%2Finfra/terraform/state/", "")
	return serve(t, func(w http.ResponseWriter, req *http.Request) {
		token := req.Header.Get("PRIVATE-TOKEN") + req.Header.Get("JOB-TOKEN")
		if _, password, ok := req.BasicAuth(); ok && token == "" {
			token = password
		}
		name := state.Replace(req.URL.EscapedPath())
		isState := name != req.URL.EscapedPath()
		switch {
		case token != "" && token != "reader-"+canary && token != "stranger-"+canary:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"message":"401 Unauthorized"}`))
		case token != "reader-"+canary || !isState:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"message":"404 Project Not Found"}`))
		case name == "unwritten":
			w.WriteHeader(http.StatusNoContent)
		case name != "prod":
			w.WriteHeader(http.StatusNotFound)
		default:
			ok(w, req)
		}
	})
}

func TestGitLab(t *testing.T) {
	basic := func(token string) attrs {
		return attrs{"username": cty.StringVal("anyone"), "password": cty.StringVal(token + "-" + canary)}
	}
	header := func(name, token string) attrs {
		return attrs{"headers": cty.MapVal(attrs{name: cty.StringVal(token + "-" + canary)})}
	}
	golden := sourcetest.OpenMistakes(t, "http, GitLab")
	for name, tt := range map[string]struct {
		state  string
		secret attrs
		fails  bool
		sent   bool // for a missing state
	}{
		"token as password":  {"prod", basic("reader"), false, false},
		"PRIVATE-TOKEN":      {"prod", header("PRIVATE-TOKEN", "reader"), false, false},
		"JOB-TOKEN":          {"prod", header("JOB-TOKEN", "reader"), false, false},
		"bad token":          {"prod", header("PRIVATE-TOKEN", "bad"), true, false},
		"no access":          {"prod", header("PRIVATE-TOKEN", "stranger"), true, true},
		"no token":           {"prod", nil, true, false},
		"no such state":      {"test", basic("reader"), true, true},
		"never written":      {"unwritten", basic("reader"), true, true},
		"a secret elsewhere": {"prod", attrs{"url": cty.StringVal("https://gitlab.example.com/")}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := gitlab(t)
			r := at(s.URL+"/api/v4/projects/42/terraform/state/"+tt.state, block(s.URL+"/api/v4/", tt.secret))
			if !tt.fails {
				r.want(t, "state")
				at(s.URL+"/api/v4/projects/acme%2Finfra/terraform/state/"+tt.state, block(s.URL+"/api/v4/", tt.secret)).want(t, "state")
				return
			}
			err := r.says(t, golden, name)
			if name != "bad token" && missing(t, err).CredentialsSent != tt.sent {
				t.Errorf("credentials sent: want %t", tt.sent)
			}
			s.wantRequests(t, 1)
		})
	}
}

// TestGitLabProject tests a block for a project by its path: the error has the url to set.
func TestGitLabProject(t *testing.T) {
	s := gitlab(t)
	const project = "/api/v4/projects/acme%2Finfra/"
	golden := sourcetest.OpenMistakes(t, "http, GitLab's projects")
	at(s.URL+project+"terraform/state/prod", block(s.URL+project, nil)).says(t, golden, "by path")
	at(s.URL+project+"terraform/state/prod", block("https://b\u00fccher.example"+project, nil)).says(t, golden, "by path, another mistake")
	s.wantRequests(t, 0)
}
