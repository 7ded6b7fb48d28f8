// Package openbaotest implements a fake OpenBao and Vault transit engine for tests, as far as reads need it:
// decrypt and logins. It rejects and records all other calls, unless MakesKeys is set.
//
// The protocol is documented in https://openbao.org/api-docs/secret/transit/#decrypt-data.
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

// Server is a running fake server.
type Server struct {
	URL string

	// The following fields must be set before the first request.
	Token     string   // the valid token; empty to accept any token
	Namespace string   // the namespace of the transit engine and the logins
	Mount     string   // the mount path of the transit engine; empty for "transit"
	Keys      []string // the names of existing keys; empty to accept any name
	MakesKeys bool     // whether datakey/plaintext is allowed as well
	Unbound   bool     // whether data keys ignore associated data, as in Vault

	// Logins maps the path of each login to the parameters that it requires. A successful login returns
	// Token.
	Logins map[string]map[string]string
	Lease  int // the validity of a login, in seconds

	// Fault, if not nil, may send the response and return true.
	Fault func(http.ResponseWriter, *http.Request) bool

	box      nettest.Box
	requests nettest.Log[string]
}

// New starts a server that runs until the test ends. Master is the transit engine's key.
func New(t testing.TB, master []byte) *Server {
	t.Helper()
	s := &Server{box: nettest.Box{Key: master}}
	s.URL = nettest.Serve(t, s)
	return s
}

// Requests returns the requests so far: "decrypt", "datakey", "login", or the method and path of any other
// request.
func (s *Server) Requests() []string { return s.requests.All() }

// ServeHTTP handles a request.
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
	// The server notices that a client has disconnected only after the body is read.
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

// aad returns the data that binds a ciphertext to the key's name and the associated data.
func aad(name string, body map[string]any) []byte {
	data, _ := body["associated_data"].(string)
	return []byte(name + data)
}

func fail(w http.ResponseWriter, status int, text string) {
	nettest.Reply(w, status, map[string]any{"errors": []string{text}})
}
