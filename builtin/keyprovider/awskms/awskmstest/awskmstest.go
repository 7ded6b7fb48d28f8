// Package awskmstest implements a fake AWS KMS for tests. Its in-process server speaks the AWS JSON 1.1
// protocol and records all requests. Unless a test allows more operations, it rejects everything except
// Decrypt with AccessDeniedException.
package awskmstest

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// State is the error code for all requests that use a key, or Enabled.
type State string

// The states of a key. Denied is not a KMS state: it stands for a key policy that denies everyone.
const (
	Enabled         State = ""
	Disabled        State = "DisabledException"
	PendingDeletion State = "KMSInvalidStateException"
	Denied          State = "AccessDeniedException"
)

// Key is a KMS key. Requests must use its ID or one of its other names exactly as written here.
type Key struct {
	ID      string
	Names   []string // other names, such as aliases and ARNs
	Master  []byte   // 32 bytes of key material
	State   State
	Context map[string]string // the encryption context that the key's policy requires
}

// Request is a request that the server received.
type Request struct {
	Operation string // such as "Decrypt"
	KeyID     string
	Context   map[string]string
	AccessKey string // the access key that signed the request
	Region    string // the region that the request was signed for
	Token     string // the session token
}

// Server is a fake AWS KMS.
type Server struct {
	nettest.Log[Request]

	URL string

	mu      sync.Mutex
	keys    []Key
	allowed []string
	faults  []func(http.ResponseWriter)
}

// New starts a server that runs until the test ends.
func New(tb testing.TB, keys ...Key) *Server {
	tb.Helper()
	s := &Server{keys: keys, allowed: []string{"Decrypt"}}
	s.URL = nettest.Serve(tb, s)
	return s
}

// Allow permits more operations than Decrypt.
func (s *Server) Allow(operations ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = append(s.allowed, operations...)
}

// Fail makes the next request fail. Each call adds one failing request.
func (s *Server) Fail(status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, func(w http.ResponseWriter) { answer(w, status, code, nil) })
}

// body is the body of any request. The names are those in
// https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html.
type body struct {
	KeyID   string            `json:"KeyId"`
	Spec    string            `json:"KeySpec"`
	Blob    []byte            `json:"CiphertextBlob"`
	Context map[string]string `json:"EncryptionContext"`
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in body
	operation, isKMS := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "TrentService.")
	if r.Method != http.MethodPost || !isKMS || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" ||
		json.NewDecoder(r.Body).Decode(&in) != nil {
		answer(w, 404, "UnknownOperationException", nil)
		return
	}
	accessKey, region, signed := signature(r, "kms")

	s.Note(Request{
		Operation: operation, KeyID: in.KeyID, Context: in.Context,
		AccessKey: accessKey, Region: region, Token: r.Header.Get("X-Amz-Security-Token"),
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !signed:
		answer(w, 400, "MissingAuthenticationTokenException", nil)
	case len(s.faults) > 0:
		s.faults[0](w)
		s.faults = s.faults[1:]
	case !slices.Contains(s.allowed, operation):
		answer(w, 400, "AccessDeniedException", nil)
	default:
		code, out := s.do(operation, in)
		answer(w, map[bool]int{true: 200, false: 400}[code == ""], code, out)
	}
}

func (s *Server) do(operation string, in body) (code string, out any) {
	key, code := s.find(in.KeyID, in.Context)
	if code != "" {
		return code, nil
	}
	switch operation {
	case "GenerateDataKey":
		size, ok := map[string]int{"AES_256": 32, "AES_128": 16}[in.Spec]
		if !ok {
			return "ValidationException", nil
		}
		plain := make([]byte, size)
		_, _ = rand.Read(plain) // never fails
		return "", map[string]any{"CiphertextBlob": key.box().Seal(plain, key.bound(in.Context)), "Plaintext": plain, "KeyId": key.ID}
	case "Decrypt":
		if plain, ok := key.box().Open(in.Blob, key.bound(in.Context)); ok {
			return "", map[string]any{"Plaintext": plain, "KeyId": key.ID, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}
		}
		for _, other := range s.keys {
			if _, ok := other.box().Open(in.Blob, other.bound(in.Context)); ok {
				return "IncorrectKeyException", nil
			}
		}
		return "InvalidCiphertextException", nil
	}
	return "UnknownOperationException", nil
}

func (s *Server) find(name string, context map[string]string) (Key, string) {
	for _, key := range s.keys {
		if key.ID != name && !slices.Contains(key.Names, name) {
			continue
		}
		if key.State != Enabled {
			return key, string(key.State)
		}
		for k, v := range key.Context {
			if context[k] != v {
				return key, "AccessDeniedException"
			}
		}
		return key, ""
	}
	return Key{}, "NotFoundException"
}

// box encrypts in the same way as the fake KMS that the real OpenTofu used to write the test files.
func (k Key) box() nettest.Box { return nettest.Box{Mark: "FAKEKMS1", Key: k.Master} }

// bound returns the data that a ciphertext is bound to: the key ID and the encryption context, if there is
// one. JSON encoding sorts the pairs of the context.
func (k Key) bound(context map[string]string) []byte {
	if len(context) == 0 {
		return []byte(k.ID)
	}
	pairs, _ := json.Marshal(context) // never fails for strings
	return append([]byte(k.ID+"\n"), pairs...)
}

// Leak is part of every error message from the fake servers. An error that contains it has repeated a
// server's message.
const Leak = "canary-from-the-server"

func answer(w http.ResponseWriter, status int, code string, out any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if code != "" {
		w.Header().Set("X-Amzn-ErrorType", code)
		out = map[string]string{"__type": "com.amazonaws.kms#" + code, "message": Leak}
	}
	nettest.Reply(w, status, out)
}

// signature returns the access key and the region of a signed request. It does not verify the signature.
func signature(r *http.Request, service string) (accessKey, region string, ok bool) {
	scope, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=")
	scope, _, _ = strings.Cut(scope, ",")
	part := strings.Split(scope, "/") // access key, date, region, service, "aws4_request"
	if !ok || len(part) != 5 || part[3] != service {
		return "", "", false
	}
	return part[0], part[2], true
}
