// Package azurevaulttest implements a fake Azure Key Vault and Microsoft sign-in service for tests. It serves
// the REST calls over TLS, including the authentication challenge.
package azurevaulttest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth/azureauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Values that the services accept.
const (
	Tenant   = azureauthtest.Tenant
	ClientID = azureauthtest.ClientID
	Secret   = azureauthtest.Secret
	Token    = "azurevaulttest-access-token"
	Version  = "0123456789abcdef0123456789abcdef" // the version of each key
)

// Service handles requests for all hosts. Unless AllowEncrypt is set, it rejects all vault operations except
// decrypt. It is safe for concurrent use, but its fields must be set before.
type Service struct {
	RSA          map[string]*rsa.PrivateKey // RSA keys by name
	AES          map[string][]byte          // AES keys by name
	AllowEncrypt bool
	Before       func(w http.ResponseWriter, r *http.Request) bool // may respond to a vault call itself
	SignIn       func(form url.Values) bool                        // reports whether to grant a token; nil to check Secret

	calls, other nettest.Log[string]
}

// Calls returns the vault operations so far, including rejected ones, in the form "decrypt keyname/version".
func (s *Service) Calls() []string { return s.calls.All() }

// Other returns all other requests, in the form "GET host/path?query".
func (s *Service) Other() []string { return s.other.All() }

// ServeHTTP serves the vaults and the sign-in service, depending on the host.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.Host, ".vault.azure.net") {
		s.serveVault(w, r)
		return
	}
	s.other.Note(r.Method + " " + r.Host + r.URL.RequestURI())
	azureauthtest.Serve(w, r, s.SignIn, func(string) string { return Token })
}

func (s *Service) serveVault(w http.ResponseWriter, r *http.Request) {
	// The server notices that a client has disconnected only after the body is read.
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if r.Header.Get("Authorization") == "" {
		w.Header().Set("WWW-Authenticate", `Bearer authorization="https://login.microsoftonline.com/`+Tenant+
			`", resource="https://vault.azure.net"`)
		Fail(w, 401, "Unauthorized", "")
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // keys, name, version, operation
	if len(parts) == 3 {
		parts = []string{parts[0], parts[1], "", parts[2]} // an empty version is the current version
	}
	operation := parts[len(parts)-1]
	s.calls.Note(operation + " " + strings.Join(parts[1:len(parts)-1], "/"))
	var q request
	switch {
	case s.Before != nil && s.Before(w, r):
		return
	case r.Header.Get("Authorization") != "Bearer "+Token:
		Fail(w, 401, "Unauthorized", "")
		return
	case r.Method != http.MethodPost || len(parts) != 4 || operation != "decrypt" && (operation != "encrypt" || !s.AllowEncrypt):
		Fail(w, 403, "Forbidden", "ForbiddenByPolicy")
		return
	case err != nil || json.Unmarshal(body, &q) != nil:
		Fail(w, 400, "BadParameter", "")
		return
	}
	name, version := parts[1], parts[2]
	answer, status := s.operate(operation == "encrypt", name, version, q)
	switch status {
	case 200:
		answer.KID = "https://" + r.Host + "/keys/" + name + "/" + Version
		nettest.Reply(w, 200, answer)
	case 404:
		Fail(w, 404, "KeyNotFound", "")
	default:
		Fail(w, status, "BadParameter", "")
	}
}

// request is the body of a request or response, with binary data in unpadded base64url.
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
		out, err := rsa.DecryptOAEP(sha256.New(), nil, private, decode(q.Value), nil)
		if encrypt {
			out, err = rsa.EncryptOAEP(sha256.New(), rand.Reader, &private.PublicKey, decode(q.Value), nil)
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
	const nonce, overhead = 12, 16
	box := nettest.Box{Key: key}
	if encrypt {
		sealed := box.Seal(decode(q.Value), []byte("the vault's own"))
		n := len(sealed) - overhead
		return request{
			Value: encode(sealed[nonce:n]), IV: encode(sealed[:nonce]), Tag: encode(sealed[n:]), AAD: encode([]byte("the vault's own")),
		}, 200
	}
	plain, ok := box.Open(slices.Concat(decode(q.IV), decode(q.Value), decode(q.Tag)), decode(q.AAD))
	if !ok || len(decode(q.IV)) != nonce {
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

// Fail sends an error response like a vault's. Its message must never be shown.
func Fail(w http.ResponseWriter, status int, code, inner string) {
	e := map[string]any{"code": code, "message": "canary: the service says too much"}
	if inner != "" {
		e["innererror"] = map[string]any{"code": inner}
	}
	nettest.Reply(w, status, map[string]any{"error": e})
}

// Start serves until the test ends. The returned client reaches the service under any host name.
func (s *Service) Start(tb testing.TB) *http.Client {
	tb.Helper()
	return nettest.Everywhere(tb, s)
}
