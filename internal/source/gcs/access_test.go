package gcs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth/googleauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

// google answers for every https host that the clients of tokens ask. The
// tests that use it run one after the other.
var google = &googleauthtest.Tokens{Workload: "workload-token", Account: "reader", Token: gcstest.Token}

// TestMain keeps the settings of whoever runs the tests out of them, and leads
// the connections of the token clients, which are made from the default
// transport, to google.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		for _, pair := range os.Environ() {
			name, _, _ := strings.Cut(pair, "=")
			if strings.HasPrefix(name, "GOOGLE_") || strings.HasPrefix(name, "GCE_") || strings.HasPrefix(name, "CLOUDSDK_") {
				_ = os.Unsetenv(name)
			}
		}
		home, err := os.MkdirTemp("", "gcs")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(home)
		for _, name := range []string{"HOME", "USERPROFILE", "APPDATA"} {
			_ = os.Setenv(name, home)
		}
		defer google.Lead()()
		return m.Run()
	}())
}

const user = `{"type":"authorized_user","client_id":"c","client_secret":"canary-secret","refresh_token":"good","quota_project_id":"quota-of-file"}`

// served is a service that takes the tokens of google, and shows the last
// header.
func served(t *testing.T) (endpoint string, last func() http.Header) {
	t.Helper()
	s := gcstest.New("states")
	s.Accepts = func(token string) bool { return token == gcstest.Token || token == "user-token" }
	s.Put("states", object, gcstest.Object{Data: []byte(stateJSON)})
	var mu sync.Mutex
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		header = r.Header.Clone()
		mu.Unlock()
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/storage/v1/", func() http.Header {
		mu.Lock()
		defer mu.Unlock()
		return header
	}
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Who reads, and what the environment has a say in.
func TestWhoReads(t *testing.T) {
	endpoint, last := served(t)
	path := file(t, "user.json", user)
	subject := file(t, "token", "workload-token")
	workload, err := json.Marshal(map[string]any{
		"type": "external_account", "audience": "//iam.googleapis.com/a", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
		"token_url": "https://sts.googleapis.com/v1/token", "credential_source": map[string]any{"file": subject},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := attrs{"storage_custom_endpoint": text(endpoint)}
	const own, theirs = "Bearer " + gcstest.Token, "Bearer user-token"
	for name, c := range map[string]struct {
		env    environment
		blocks []attrs
		name   string
		token  string
		asked  int // token requests
		quota  string
	}{
		"token":            {nil, []attrs{and(at, "access_token", gcstest.Token)}, "", own, 0, ""},
		"token goes first": {nil, []attrs{and(at, "access_token", gcstest.Token, "credentials", user)}, "", own, 0, ""},
		"JSON":             {nil, []attrs{and(at, "credentials", user)}, "", theirs, 1, "quota-of-file"},
		"path":             {nil, []attrs{and(at, "credentials", path)}, "", theirs, 1, "quota-of-file"},
		"workload":         {nil, []attrs{and(at, "credentials", string(workload))}, "", theirs, 1, ""},
		"quota of the environment": {environment{"GOOGLE_CLOUD_QUOTA_PROJECT": "quota-of-env"}, []attrs{and(at, "credentials", user)}, "",
			theirs, 1, "quota-of-env"},
		"environment": {environment{"GOOGLE_OAUTH_ACCESS_TOKEN": gcstest.Token, "GOOGLE_STORAGE_CUSTOM_ENDPOINT": endpoint},
			nil, "", own, 0, ""},
		"GOOGLE_CREDENTIALS": {environment{"GOOGLE_CREDENTIALS": user}, []attrs{at}, "", theirs, 1, "quota-of-file"},
		"of the backend first": {environment{"GOOGLE_BACKEND_CREDENTIALS": user, "GOOGLE_CREDENTIALS": "canary",
			"GOOGLE_APPLICATION_CREDENTIALS": "canary"}, []attrs{at}, "", theirs, 1, "quota-of-file"},
		"default credentials": {environment{"GOOGLE_APPLICATION_CREDENTIALS": path}, []attrs{at}, "", theirs, 1, "quota-of-file"},
		"impersonation": {nil, []attrs{and(at, "access_token", "base", "impersonate_service_account",
			"reader@p.iam.gserviceaccount.com")}, "", own, 1, ""},
		"impersonation of environment": {environment{"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "reader@p.iam.gserviceaccount.com"},
			[]attrs{and(at, "access_token", "base")}, "", own, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			google.Requests()
			s := settingsOf(c.blocks...)
			if c.env != nil {
				s = with(c.env, c.blocks...)
			}
			a := place()
			if c.name != "" {
				a = place("credentials_name", c.name)
			}
			src := open(t, s, a)
			sourcetest.Fetch(t, src)
			sourcetest.Fetch(t, src) // with the same token
			if got := last(); got.Get("Authorization") != c.token || got.Get("X-Goog-User-Project") != c.quota {
				t.Errorf("sent %q, %q", got.Get("Authorization"), got.Get("X-Goog-User-Project"))
			}
			if got := google.Requests(); len(got) != c.asked {
				t.Errorf("token requests: %q", got)
			}
			if want := fmt.Sprintf("%q", c.name); c.name != "" && !strings.Contains(src.String(), want) {
				t.Errorf("got %s", src)
			}
		})
	}
}

func TestNobodyReads(t *testing.T) {
	endpoint, _ := served(t)
	at := attrs{"storage_custom_endpoint": text(endpoint)}
	says := sourcetest.OpenMistakes(t, "gcs, credentials")
	for name, c := range map[string]struct {
		settings source.Settings
		name     string
	}{
		"every block has a name": {with(environment{"GOOGLE_OAUTH_ACCESS_TOKEN": "canary"}, and(at, "name", "a")), ""},
		"no such name":           {settingsOf(and(at, "name", "a")), "b"},
		"file for no named one":  {with(environment{"GOOGLE_APPLICATION_CREDENTIALS": "canary"}, and(at, "name", "a")), "a"},
		"revoked":                {settingsOf(and(at, "credentials", strings.Replace(user, "good", "canary", 1))), ""},
		"denied to act": {settingsOf(and(at, "access_token", "canary", "impersonate_service_account",
			"other@p.iam.gserviceaccount.com")), ""},
		"neither JSON nor path": {settingsOf(and(at, "credentials", "/canary")), ""},
		"another cloud": {settingsOf(and(at, "credentials",
			strings.Replace(user, `"type"`, `"universe_domain":"canary.example","type"`, 1))), ""},
		"program": {settingsOf(and(at, "credentials", `{"type":"external_account","credential_source":{"executable":{"command":"canary"}}}`)),
			""},
		"old token": {settingsOf(and(at, "access_token", "canary")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := place()
			if c.name != "" {
				a = place("credentials_name", c.name)
			}
			src, err := quick(c.settings).open(request(t, a))
			if err == nil {
				_, err = src.Fetch(t.Context())
			}
			says.Error(t, name, err)
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(e.Error(), "canary") {
					t.Errorf("got %v", e)
				}
			}
			if _, missing := source.IsMissing(err); missing {
				t.Errorf("got %v", err)
			}
		})
	}
	google.Requests()
}

// The token is for reading alone, also that of another account; to become that
// account takes more.
func TestScopes(t *testing.T) {
	endpoint, _ := served(t)
	a := and(attrs{"storage_custom_endpoint": text(endpoint),
		"impersonate_service_account_delegates": list("middle@p.iam.gserviceaccount.com")},
		"access_token", "base", "impersonate_service_account", "reader@p.iam.gserviceaccount.com")
	google.Requests()
	sourcetest.Fetch(t, open(t, settingsOf(a), place()))
	got := google.Requests()
	if len(got) != 1 || !strings.Contains(got[0], "Bearer base") ||
		!strings.Contains(got[0], `"projects/-/serviceAccounts/middle@p.iam.gserviceaccount.com"`) ||
		!strings.Contains(got[0], `"`+readScope+`"`) || strings.Contains(got[0], allScope) {
		t.Errorf("token requests: %q", got)
	}

	// A service account signs its own token: no token service is asked.
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	account := cloudtest.NewServiceAccount(t)
	_, _ = open(t, settingsOf(attrs{"credentials": text(account.JSON), "storage_custom_endpoint": text(server.URL)}),
		place()).Fetch(t.Context())
	parts := strings.Split(strings.TrimPrefix(sent, "Bearer "), ".")
	if len(parts) != 3 {
		t.Fatalf("sent %.30q", sent)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !strings.Contains(string(claims), readScope) || strings.Contains(string(claims), allScope) {
		t.Errorf("claims: %s, %v", claims, err)
	}
	if got := google.Requests(); len(got) != 0 {
		t.Errorf("token requests: %q", got)
	}
}

// With the environment switched off, nothing of it steers a read.
func TestEnvironmentIsSwitchedOff(t *testing.T) {
	endpoint, last := served(t)
	trap := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the trap was asked for %s", r.URL) }))
	t.Cleanup(trap.Close)
	for _, attr := range credentials().Attrs {
		for _, name := range attr.Env {
			t.Setenv(name, "canary")
		}
	}
	for name, value := range map[string]string{
		"HTTPS_PROXY": trap.URL, "https_proxy": trap.URL, "HTTP_PROXY": trap.URL, "http_proxy": trap.URL,
		"GOOGLE_CLOUD_QUOTA_PROJECT": "canary", "GOOGLE_CLOUD_UNIVERSE_DOMAIN": "canary.invalid", "STORAGE_EMULATOR_HOST": trap.URL,
		"GOOGLE_SDK_GO_LOGGING_LEVEL": "debug", "GOOGLE_API_USE_CLIENT_CERTIFICATE": "true", "GOOGLE_API_CERTIFICATE_CONFIG": "/canary",
	} {
		t.Setenv(name, value)
	}
	for name, a := range map[string]attrs{
		"token": block(endpoint),
		"user":  and(attrs{"storage_custom_endpoint": text(endpoint)}, "credentials", user),
	} {
		sourcetest.Fetch(t, open(t, settingsOf(a), place()))
		if text := fmt.Sprint(last()); strings.Contains(text, "canary") {
			t.Errorf("%s: sent %s", name, text)
		}
	}
	_, err := open(t, settingsOf(attrs{"storage_custom_endpoint": text(endpoint)}), place()).Fetch(t.Context())
	sourcetest.OpenMistakes(t, "gcs, no environment").Error(t, "no credentials", err)
	google.Requests()
}

// What gcloud keeps in the user's home is no environment.
func TestDefaultCredentials(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the folder is another one")
	}
	endpoint, last := served(t)
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "gcloud")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "application_default_credentials.json"), []byte(user), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for name, s := range map[string]source.Settings{
		"off": settingsOf(attrs{"storage_custom_endpoint": text(endpoint)}),
		"on":  with(environment{}, attrs{"storage_custom_endpoint": text(endpoint)}),
	} {
		sourcetest.Fetch(t, open(t, s, place()))
		if got := last().Get("Authorization"); got != "Bearer user-token" {
			t.Errorf("%s: sent %q", name, got)
		}
	}
	google.Requests()
}

// The user's proxy is heeded, and gets no credentials of its own.
func TestProxy(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host + " " + r.Header.Get("Authorization")
		w.WriteHeader(http.StatusProxyAuthRequired)
		fmt.Fprint(w, "canary")
	}))
	defer proxy.Close()
	s := with(environment{"HTTPS_PROXY": proxy.URL}, attrs{"access_token": text(gcstest.Token)})
	_, err := open(t, s, place()).Fetch(t.Context())
	sourcetest.OpenMistakes(t, "gcs, proxies").Error(t, "407", err)
	if got := <-asked; got != "CONNECT storage.googleapis.com:443 " {
		t.Errorf("the proxy got %q", got)
	}
}

// The sources of a run share a token; one that gives up harms no other.
func TestSharedToken(t *testing.T) {
	endpoint, _ := served(t)
	a := and(attrs{"storage_custom_endpoint": text(endpoint)}, "credentials", user)
	google.Requests()
	openIn := quick(settingsOf(a)).open
	var wg sync.WaitGroup
	for range 8 {
		src, err := openIn(request(t, place()))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := src.Fetch(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := google.Requests(); len(got) != 1 {
		t.Errorf("token requests: %q", got)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	google.Hang(cancel)
	defer google.Hang(nil)
	begin := time.Now()
	if _, err := open(t, settingsOf(a), place()).Fetch(ctx); !errors.Is(err, context.Canceled) || time.Since(begin) > 20*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
	google.Requests()
}
