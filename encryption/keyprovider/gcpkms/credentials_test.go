package gcpkms_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms/gcpkmstest"
)

// google answers for every https host that this test binary asks. Only these
// tests use it; Cloud KMS itself is a server of its own.
var google = &tokens{}

// tokens is Google's token services: users and impersonation.
type tokens struct {
	mu       sync.Mutex
	requests []string // "host path authorization body"
	hang     bool
}

func (g *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	g.requests = append(g.requests, strings.Join([]string{r.Host, r.URL.Path, r.Header.Get("Authorization"), string(body)}, " "))
	hang := g.hang
	g.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Host == "oauth2.googleapis.com" && r.URL.Path == "/token" && strings.Contains(string(body), "refresh_token=good"):
		fmt.Fprintf(w, `{"access_token":"user-token","expires_in":3600,"token_type":"Bearer"}`)
	case r.Host == "sts.googleapis.com" && strings.Contains(string(body), "subject_token=program-token"):
		fmt.Fprintf(w, `{"access_token":"user-token","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","expires_in":3600,"token_type":"Bearer"}`)
	case r.Host == "iamcredentials.googleapis.com" && strings.Contains(r.URL.Path, "/target@"):
		fmt.Fprintf(w, `{"accessToken":%q,"expireTime":%q}`, gcpkmstest.Token, time.Now().Add(time.Hour).Format(time.RFC3339))
	default:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"error":"canary","error_description":"canary"}`)
	}
}

// take returns the requests so far and forgets them.
func (g *tokens) take() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.requests
	g.requests = nil
	return out
}

// TestMain leads every https connection of the SDK's token clients, which are
// made from the default transport, to google.
func TestMain(m *testing.M) {
	server := httptest.NewTLSServer(google)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := http.DefaultTransport.(*http.Transport)
	transport.Proxy = nil
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	code := m.Run()
	server.Close()
	os.Exit(code)
}

const user = `{"type":"authorized_user","client_id":"c","client_secret":"canary-secret","refresh_token":"good"}`

// These share google, and hence run one after the other.
func TestCredentials(t *testing.T) {
	s := service()
	_, stored := newKey(t, build(t, s.Start(t), working()))
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(path, []byte(user), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Dir(path))
	users := service()
	users.Token = "user-token"
	options := users.Start(t)
	bare := working().with("access_token", nil)
	for name, a := range map[string]attrs{
		"contents": bare.with("credentials", user),
		"path":     bare.with("credentials", path),
		"home":     bare.with("credentials", "~/credentials.json"),
	} {
		if _, err := build(t, options, a).Key(t.Context(), nil, stored); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	if _, err := build(t, options, bare).Key(t.Context(), nil, stored); err != nil {
		t.Errorf("application default credentials: %v", err)
	}
	if got := google.take(); len(got) != 4 {
		t.Errorf("token requests: %q", got)
	}

	// The access token goes before the credentials.
	if _, err := build(t, s.Start(t), working().with("credentials", user)).Key(t.Context(), nil, stored); err != nil {
		t.Error(err)
	}
	if got := google.take(); len(got) != 0 {
		t.Errorf("token requests: %q", got)
	}

	revoked := strings.Replace(user, "good", "canary-refresh", 1)
	_, err := build(t, options, bare.with("credentials", revoked)).Key(t.Context(), nil, stored)
	if err == nil || errors.Is(err, encryption.ErrNoKey) || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "403") {
		t.Errorf("revoked: %v", err)
	}
	google.take()
}

func TestImpersonation(t *testing.T) {
	s := service()
	options := s.Start(t)
	_, stored := newKey(t, build(t, options, working()))
	acting := working().with("access_token", "base-token", "impersonate_service_account", "target@p.iam.gserviceaccount.com")
	acting["impersonate_service_account_delegates"] = list("middle@p.iam.gserviceaccount.com")
	if _, err := build(t, options, acting).Key(t.Context(), nil, stored); err != nil {
		t.Fatal(err)
	}
	got := google.take()
	if len(got) != 1 {
		t.Fatalf("requests: %q", got)
	}
	for _, want := range []string{
		"iamcredentials.googleapis.com /v1/projects/-/serviceAccounts/target@p.iam.gserviceaccount.com:generateAccessToken",
		"Bearer base-token", "projects/-/serviceAccounts/middle@p.iam.gserviceaccount.com", "https://www.googleapis.com/auth/cloudkms",
	} {
		if !strings.Contains(got[0], want) {
			t.Errorf("%q lacks %q", got[0], want)
		}
	}
	_, err := build(t, options, acting.with("impersonate_service_account", "denied@p.iam.gserviceaccount.com")).Key(t.Context(), nil, stored)
	if err == nil || errors.Is(err, encryption.ErrNoKey) || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "serviceAccountTokenCreator") {
		t.Errorf("denied: %v", err)
	}
	google.take()
}

func TestCancelledToken(t *testing.T) {
	google.mu.Lock()
	google.hang = true
	google.mu.Unlock()
	defer func() {
		google.mu.Lock()
		google.hang = false
		google.mu.Unlock()
		google.take()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := build(t, nil, working().with("access_token", nil, "credentials", user)).Key(ctx, nil, json.RawMessage(`{"ciphertext":"AAAA"}`))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

// A service account signs its own token: no token service is asked.
func TestServiceAccount(t *testing.T) {
	s := service()
	options := s.Start(t)
	_, stored := newKey(t, build(t, options, working()))
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "1", "client_email": "me@p.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": "https://oauth2.googleapis.com/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	// The service here knows only its constant token, so it shows what came.
	var sent string
	other := service()
	other.Token = "none"
	other.Unauthenticated = func(ctx context.Context) error {
		sent = strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), " ")
		return status.Error(codes.PermissionDenied, "seen")
	}
	_, err = build(t, other.Start(t), working().with("access_token", nil, "credentials", string(document))).Key(t.Context(), nil, stored)
	if !errors.Is(err, encryption.ErrNoKey) || !strings.HasPrefix(sent, "Bearer ey") || strings.Count(sent, ".") != 2 {
		t.Errorf("sent %.30q, %v", sent, err)
	}
	if got := google.take(); len(got) != 0 {
		t.Errorf("token requests: %q", got)
	}
}
