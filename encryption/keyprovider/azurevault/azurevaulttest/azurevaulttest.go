// Package azurevaulttest is an Azure Key Vault for tests, with Microsoft's sign
// in: the REST calls over TLS, the challenge included.
package azurevaulttest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// What the services know.
const (
	Tenant   = "11111111-2222-3333-4444-555555555555"
	ClientID = "66666666-7777-8888-9999-000000000000"
	Secret   = "azurevaulttest-client-secret"
	Token    = "azurevaulttest-access-token"
	Version  = "0123456789abcdef0123456789abcdef" // of each key
)

// Service answers for every host. Without AllowEncrypt, it refuses every call
// to a vault but decrypt. It is safe for concurrent use; set the fields before.
type Service struct {
	RSA          map[string]*rsa.PrivateKey // :: name of a key → key
	AES          map[string][]byte          // :: name of a key → key
	AllowEncrypt bool
	Before       func(w http.ResponseWriter, r *http.Request) bool // runs before a call to the vault is served; true when it has answered
	SignIn       func(form map[string][]string) bool               // which requests for a token are granted; by Secret when nil

	mu    sync.Mutex
	calls []string
	other []string
}

// Calls returns the operations that were asked of a vault, refused ones
// included: "decrypt keyname/version".
func (s *Service) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// Other returns every other request: "GET https://host/path?query".
func (s *Service) Other() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.other...)
}

// ServeHTTP serves vaults and sign in, told apart by the host.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.Host, ".vault.azure.net") {
		s.serveVault(w, r)
		return
	}
	s.mu.Lock()
	s.other = append(s.other, r.Method+" "+r.Host+r.URL.RequestURI())
	s.mu.Unlock()
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/discovery/instance"):
		reply(w, 200, map[string]any{
			"tenant_discovery_endpoint": "https://" + r.Host + "/" + Tenant + "/v2.0/.well-known/openid-configuration",
			"metadata":                  []any{map[string]any{"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []string{r.Host}}},
		})
	case strings.HasSuffix(path, "/openid-configuration"):
		base := "https://" + r.Host + "/" + Tenant
		reply(w, 200, map[string]any{"token_endpoint": base + "/oauth2/v2.0/token", "authorization_endpoint": base + "/authorize", "issuer": base + "/v2.0"})
	case strings.HasSuffix(path, "/oauth2/v2.0/token"):
		s.serveToken(w, r)
	case strings.HasSuffix(path, "/identity/oauth2/token") && r.Header.Get("Metadata") == "true":
		reply(w, 200, map[string]any{"access_token": Token, "expires_in": "3600", "expires_on": "4102444800", "resource": "https://vault.azure.net", "token_type": "Bearer"})
	case path == "/metadata/endpoints":
		reply(w, 200, map[string]any{"authentication": map[string]any{"loginEndpoint": "https://login.private.test/"}})
	case path == "/oidc" && r.Header.Get("Authorization") == "Bearer request-token":
		reply(w, 200, map[string]any{"value": "oidc-token"})
	default:
		reply(w, 404, map[string]any{"error": "canary"})
	}
}

func (s *Service) serveToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		reply(w, 400, nil)
		return
	}
	granted := r.PostForm.Get("client_secret") == Secret
	if s.SignIn != nil {
		granted = s.SignIn(r.PostForm)
	}
	if !granted {
		reply(w, 401, map[string]any{"error": "invalid_client", "error_description": "canary: it repeats " + r.PostForm.Encode()})
		return
	}
	reply(w, 200, map[string]any{"access_token": Token, "expires_in": 3600, "token_type": "Bearer"})
}

func (s *Service) serveVault(w http.ResponseWriter, r *http.Request) {
	// Read first: only then does the server notice that a client has gone.
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if r.Header.Get("Authorization") == "" {
		w.Header().Set("WWW-Authenticate", `Bearer authorization="https://login.microsoftonline.com/`+Tenant+`", resource="https://vault.azure.net"`)
		fail(w, 401, "Unauthorized", "")
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // keys, name, version, operation
	if len(parts) == 3 {
		parts = []string{parts[0], parts[1], "", parts[2]} // the current version
	}
	operation := parts[len(parts)-1]
	s.mu.Lock()
	s.calls = append(s.calls, operation+" "+strings.Join(parts[1:len(parts)-1], "/"))
	s.mu.Unlock()
	switch {
	case s.Before != nil && s.Before(w, r):
		return
	case r.Header.Get("Authorization") != "Bearer "+Token:
		fail(w, 401, "Unauthorized", "")
		return
	case r.Method != http.MethodPost || len(parts) != 4 || operation != "decrypt" && (operation != "encrypt" || !s.AllowEncrypt):
		fail(w, 403, "Forbidden", "ForbiddenByPolicy")
		return
	}
	var q request
	if err != nil || json.Unmarshal(body, &q) != nil {
		fail(w, 400, "BadParameter", "")
		return
	}
	name, version := parts[1], parts[2]
	answer, status := s.operate(operation == "encrypt", name, version, q)
	switch status {
	case 200:
		answer.KID = "https://" + r.Host + "/keys/" + name + "/" + Version
		reply(w, 200, answer)
	case 404:
		fail(w, 404, "KeyNotFound", "")
	default:
		fail(w, status, "BadParameter", "")
	}
}

// request and its answer have their bytes in base64url without padding.
type request struct {
	Algorithm string `json:"alg,omitempty"`
	KID       string `json:"kid,omitempty"`
	Value     string `json:"value"`
	IV        string `json:"iv,omitempty"`
	Tag       string `json:"tag,omitempty"`
	AAD       string `json:"aad,omitempty"`
}

func (s *Service) operate(encrypt bool, name, version string, q request) (request, int) {
	private, asymmetric := s.RSA[name]
	key, symmetric := s.AES[name]
	switch {
	case !asymmetric && !symmetric, version != "" && version != Version:
		return request{}, 404
	case asymmetric && q.Algorithm == "RSA-OAEP-256":
		var out []byte
		var err error
		if encrypt {
			out, err = rsa.EncryptOAEP(sha256.New(), rand.Reader, &private.PublicKey, decode(q.Value), nil)
		} else {
			out, err = rsa.DecryptOAEP(sha256.New(), nil, private, decode(q.Value), nil)
		}
		if err != nil {
			return request{}, 400
		}
		return request{Value: encode(out)}, 200
	case symmetric && q.Algorithm == fmt.Sprintf("A%dGCM", len(key)*8):
		return seal(key, encrypt, q)
	}
	return request{}, 400
}

func seal(key []byte, encrypt bool, q request) (request, int) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return request{}, 500
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return request{}, 500
	}
	if encrypt {
		iv := make([]byte, aead.NonceSize())
		if _, err := rand.Read(iv); err != nil {
			return request{}, 500
		}
		sealed := aead.Seal(nil, iv, decode(q.Value), []byte("the vault's own")) //nolint:gosec // G407: the IV is random
		n := len(sealed) - aead.Overhead()
		return request{Value: encode(sealed[:n]), IV: encode(iv), Tag: encode(sealed[n:]), AAD: encode([]byte("the vault's own"))}, 200
	}
	iv := decode(q.IV)
	if len(iv) != aead.NonceSize() {
		return request{}, 400
	}
	plain, err := aead.Open(nil, iv, append(decode(q.Value), decode(q.Tag)...), decode(q.AAD))
	if err != nil {
		return request{}, 400
	}
	return request{Value: encode(plain)}, 200
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(s string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}

// fail answers as a vault does. What it says must never be shown.
func fail(w http.ResponseWriter, status int, code, inner string) {
	e := map[string]any{"code": code, "message": "canary: the service says too much"}
	if inner != "" {
		e["innererror"] = map[string]any{"code": inner}
	}
	reply(w, status, map[string]any{"error": e})
}

// Fail answers with an error of a vault, for Before.
func Fail(w http.ResponseWriter, status int, code, inner string) { fail(w, status, code, inner) }

func reply(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content) // the client has gone
}

// Start serves until the test ends. The client that it returns reaches the
// service under every host name.
func (s *Service) Start(tb testing.TB) *http.Client {
	tb.Helper()
	server := httptest.NewTLSServer(s)
	plain := httptest.NewServer(s) // for the machine's own identity service
	tb.Cleanup(server.Close)
	tb.Cleanup(plain.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	to := func(address string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	}
	tlsDialer := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}}).
			DialContext(ctx, network, server.Listener.Addr().String())
	}
	transport := &http.Transport{DialContext: to(plain.Listener.Addr().String()), DialTLSContext: tlsDialer}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
