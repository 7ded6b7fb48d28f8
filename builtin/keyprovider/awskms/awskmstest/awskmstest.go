// Package awskmstest is AWS KMS for tests: a server in the process that speaks
// the protocol AWS JSON 1.1. It allows Decrypt and refuses everything else
// with AccessDeniedException, unless a test allows more, and writes down what
// it was asked.
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

// State is what a key is fit for: the code of the error that everyone gets.
type State string

// The states of a key. Denied is no state of KMS: its policy refuses everyone.
const (
	Enabled         State = ""
	Disabled        State = "DisabledException"
	PendingDeletion State = "KMSInvalidStateException"
	Denied          State = "AccessDeniedException"
)

// Key is a KMS key. Requests name it by its ID or one of its other names, just
// as they are written here.
type Key struct {
	ID      string
	Names   []string // other names: alias, ARN
	Master  []byte   // 32 bytes
	State   State
	Context map[string]string // pairs that its policy asks for
}

// Request is one request that arrived.
type Request struct {
	Operation string // "Decrypt"
	KeyID     string
	Context   map[string]string
	AccessKey string // who signed it
	Region    string // what it was signed for
	Token     string // session token
}

// Server is a fake of AWS KMS.
type Server struct {
	nettest.Log[Request]

	URL string

	mu      sync.Mutex
	keys    []Key
	allowed []string
	faults  []func(http.ResponseWriter)
}

// New starts a server, which ends with the test.
func New(tb testing.TB, keys ...Key) *Server {
	tb.Helper()
	s := &Server{keys: keys, allowed: []string{"Decrypt"}}
	s.URL = nettest.Serve(tb, s)
	return s
}

// Allow lets credentials do more than Decrypt.
func (s *Server) Allow(operations ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = append(s.allowed, operations...)
}

// Fail has the next requests fail, as many times as it is called.
func (s *Server) Fail(status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, func(w http.ResponseWriter) { answer(w, status, code, nil) })
}

// body is a request of any operation, with the names of
// https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html
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

// box seals as the fake did that files of real OpenTofu were written with.
func (k Key) box() nettest.Box { return nettest.Box{Mark: "FAKEKMS1", Key: k.Master} }

// bound is what a ciphertext is bound to: the key, and the encryption context
// if there is one. JSON sorts its pairs.
func (k Key) bound(context map[string]string) []byte {
	if len(context) == 0 {
		return []byte(k.ID)
	}
	pairs, _ := json.Marshal(context) // of strings: never fails
	return append([]byte(k.ID+"\n"), pairs...)
}

// Leak stands in every error that the fakes answer. An error that shows it
// shows what a server answered.
const Leak = "canary-from-the-server"

func answer(w http.ResponseWriter, status int, code string, out any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if code != "" {
		w.Header().Set("X-Amzn-ErrorType", code)
		out = map[string]string{"__type": "com.amazonaws.kms#" + code, "message": Leak}
	}
	nettest.Reply(w, status, out)
}

// signature reads who signed a request and for which region. That the
// signature is right is not checked.
func signature(r *http.Request, service string) (accessKey, region string, ok bool) {
	scope, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=")
	scope, _, _ = strings.Cut(scope, ",")
	part := strings.Split(scope, "/") // access key, date, region, service, "aws4_request"
	if !ok || len(part) != 5 || part[3] != service {
		return "", "", false
	}
	return part[0], part[2], true
}
