// Package openbaotest is the transit engine of OpenBao and Vault as far as a
// reader needs it: one decrypt call, logins, and nothing else. Every other
// call is refused and counted.
//
// The wire: https://openbao.org/api-docs/secret/transit/#decrypt-data
package openbaotest

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Server is a running fake.
type Server struct {
	URL string

	// Set before the first request.
	Token     string   // "" lets every token in
	Namespace string   // that of the transit engine and the logins
	Mount     string   // of the transit engine; "" is "transit"
	Keys      []string // "" is any name
	MakesKeys bool     // datakey/plaintext is allowed as well
	Unbound   bool     // data keys ignore associated data, as those of Vault do

	// Logins are the auth methods: path of the login → what must be in its
	// body. A right one gives Token.
	Logins map[string]map[string]string
	Lease  int // seconds of a login

	// Fault, if not nil, may answer in place of the server.
	Fault func(http.ResponseWriter, *http.Request) bool

	box      nettest.Box
	requests nettest.Log[string]
}

// New starts a server that ends with the test. Master is the key of the
// transit engine.
func New(t testing.TB, master []byte) *Server {
	t.Helper()
	s := &Server{box: nettest.Box{Key: master}}
	s.URL = nettest.Serve(t, s)
	return s
}

// Requests returns what was asked for so far: "decrypt", "login", and the
// method and path of everything else.
func (s *Server) Requests() []string { return s.requests.All() }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	mount := cmp.Or(s.Mount, "transit")
	where, name := path.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/v1/"))
	login, isLogin := s.Logins[where+name]
	what := r.Method + " " + r.URL.Path
	switch {
	case r.Method != http.MethodPut && r.Method != http.MethodPost:
	case where == mount+"/decrypt/":
		what = "decrypt"
	case where == mount+"/datakey/plaintext/" && s.MakesKeys:
		what = "datakey"
	case isLogin:
		what = "login"
	}
	s.requests.Note(what)
	// Only once the body is read does the server see that a client has left.
	var body map[string]any
	damaged := json.NewDecoder(r.Body).Decode(&body)
	_, _ = io.Copy(io.Discard, r.Body)
	switch {
	case s.Fault != nil && s.Fault(w, r):
	case r.Header.Get("X-Vault-Request") != "true":
		fail(w, 412, "required 'X-Vault-Request' header not set")
	case r.Header.Get("X-Vault-Namespace") != s.Namespace:
		fail(w, 404, "no handler for route")
	case damaged != nil:
		fail(w, 400, "failed to parse JSON input")
	case what == "login":
		s.login(w, login, body)
	case s.Token != "" && r.Header.Get("X-Vault-Token") != s.Token:
		fail(w, 403, "permission denied")
	case len(s.Keys) > 0 && !slices.Contains(s.Keys, name):
		fail(w, 400, "encryption key not found")
	case what == "decrypt":
		s.decrypt(w, name, body)
	case what == "datakey":
		s.dataKey(w, name, body)
	default:
		fail(w, 403, "1 error occurred:\n\t* permission denied\n\n")
	}
}

func (s *Server) login(w http.ResponseWriter, want map[string]string, body map[string]any) {
	for name, value := range want {
		if body[name] != value {
			fail(w, 400, "invalid role or secret ID")
			return
		}
	}
	nettest.Reply(w, 200, map[string]any{"auth": map[string]any{"client_token": s.Token, "lease_duration": s.Lease}})
}

func (s *Server) decrypt(w http.ResponseWriter, name string, body map[string]any) {
	text, _ := body["ciphertext"].(string)
	encoded, prefixed := strings.CutPrefix(text, "vault:v1:")
	sealed, err := base64.StdEncoding.DecodeString(encoded)
	plain, ok := s.box.Open(sealed, aad(name, body))
	if !prefixed || err != nil || !ok {
		fail(w, 400, "cipher: message authentication failed")
		return
	}
	nettest.Reply(w, 200, map[string]any{"data": map[string]any{"plaintext": base64.StdEncoding.EncodeToString(plain)}})
}

func (s *Server) dataKey(w http.ResponseWriter, name string, body map[string]any) {
	bits, _ := body["bits"].(float64)
	key := make([]byte, int(bits)/8)
	_, _ = rand.Read(key)
	if s.Unbound {
		delete(body, "associated_data")
	}
	sealed := s.box.Seal(key, aad(name, body))
	nettest.Reply(w, 200, map[string]any{"data": map[string]any{
		"plaintext":   base64.StdEncoding.EncodeToString(key),
		"ciphertext":  "vault:v1:" + base64.StdEncoding.EncodeToString(sealed),
		"key_version": 1,
	}})
}

// aad binds a ciphertext to the key's name and the associated data.
func aad(name string, body map[string]any) []byte {
	data, _ := body["associated_data"].(string)
	return []byte(name + data)
}

func fail(w http.ResponseWriter, status int, text string) {
	nettest.Reply(w, status, map[string]any{"errors": []string{text}})
}
