// Package gcpkmstest implements a fake Google Cloud KMS for tests. It speaks the real protocol, JSON over
// HTTPS, with fixed keys.
//
// See https://cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys.
package gcpkmstest

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Host is the host name of Cloud KMS.
const Host = "cloudkms.googleapis.com"

// Token is the access token that the service accepts by default.
const Token = "gcpkmstest-access-token"

// Service is a fake Cloud KMS. Unless AllowEncrypt is set, it rejects all calls except Decrypt. It is safe
// for concurrent use, but its fields must be set before.
type Service struct {
	Keys         map[string][]byte // AES keys by resource name
	AllowEncrypt bool
	Before       func(ctx context.Context, call, key string) *Failure // may make a call fail; may be nil
	After        func(*DecryptResponse)                               // may modify the response; may be nil
	AfterEncrypt func(*EncryptResponse)                               // may modify the response; may be nil
	Accepts      func(token string) bool                              // checks a token; nil to accept only Token

	calls nettest.Log[string]
}

// Failure is an error response with a status such as NOT_FOUND.
type Failure struct{ Status, Message string }

// statuses maps error statuses to HTTP status codes; see
// https://cloud.google.com/apis/design/errors#handling_errors.
var statuses = map[string]int{
	"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "NOT_FOUND": 404,
	"RESOURCE_EXHAUSTED": 429, "CANCELLED": 499, "INTERNAL": 500, "UNKNOWN": 500, "UNIMPLEMENTED": 501, "UNAVAILABLE": 503,
	"DEADLINE_EXCEEDED": 504,
}

func (f *Failure) Error() string { return f.Status + ": " + f.Message }

// ServeHTTP sends the error response.
func (f *Failure) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	code := statuses[f.Status]
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	nettest.Reply(w, code, map[string]any{"error": map[string]any{"code": code, "message": f.Message, "status": f.Status}})
}

// request is the body of an Encrypt or Decrypt request. Missing fields are nil.
type request struct {
	Plaintext                         []byte `json:"plaintext"`
	PlaintextCrc32c                   *int64 `json:"plaintextCrc32c,string"`
	Ciphertext                        []byte `json:"ciphertext"`
	CiphertextCrc32c                  *int64 `json:"ciphertextCrc32c,string"`
	AdditionalAuthenticatedData       []byte `json:"additionalAuthenticatedData"`
	AdditionalAuthenticatedDataCrc32c *int64 `json:"additionalAuthenticatedDataCrc32c,string"`
}

// DecryptResponse is the response to Decrypt. As in the real service, empty fields are not sent.
type DecryptResponse struct {
	Plaintext       []byte `json:"plaintext,omitempty"`
	PlaintextCrc32c *int64 `json:"plaintextCrc32c,omitempty,string"`
	UsedPrimary     bool   `json:"usedPrimary,omitempty"`
	ProtectionLevel string `json:"protectionLevel,omitempty"`
}

// EncryptResponse is the response to Encrypt. As in the real service, empty fields are not sent.
type EncryptResponse struct {
	Name                                      string `json:"name,omitempty"`
	Ciphertext                                []byte `json:"ciphertext,omitempty"`
	CiphertextCrc32c                          *int64 `json:"ciphertextCrc32c,omitempty,string"`
	VerifiedPlaintextCrc32c                   bool   `json:"verifiedPlaintextCrc32c,omitempty"`
	VerifiedAdditionalAuthenticatedDataCrc32c bool   `json:"verifiedAdditionalAuthenticatedDataCrc32c,omitempty"`
	ProtectionLevel                           string `json:"protectionLevel,omitempty"`
}

// Calls returns the names of all calls so far, including rejected ones.
func (s *Service) Calls() []string { return s.calls.All() }

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, failure := s.answer(r)
	if failure != nil {
		failure.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	nettest.Reply(w, http.StatusOK, answer)
}

func (s *Service) answer(r *http.Request) (answer any, failure *Failure) {
	path := r.URL.EscapedPath()
	end := max(0, strings.LastIndex(path, ":"))
	call := map[string]string{":encrypt": "Encrypt", ":decrypt": "Decrypt"}[path[end:]]
	name, err := url.PathUnescape(strings.TrimPrefix(path[:end], "/v1/"))
	if r.Method != http.MethodPost || call == "" || strings.Count(path, "/") != 9 || err != nil || r.URL.RawQuery != "" {
		s.calls.Note(r.Method + " " + r.URL.String())
		return nil, &Failure{"NOT_FOUND", "Method not found."}
	}
	s.calls.Note(call)
	body, _ := io.ReadAll(r.Body) // otherwise the server would not notice that the client has disconnected
	accepts := s.Accepts
	if accepts == nil {
		accepts = func(token string) bool { return token == Token }
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || !accepts(token) {
		return nil, &Failure{"UNAUTHENTICATED", "Request had invalid authentication credentials."}
	}
	if call == "Encrypt" && !s.AllowEncrypt {
		return nil, &Failure{"PERMISSION_DENIED", "Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied."}
	}
	if s.Before != nil {
		if failure := s.Before(r.Context(), call, name); failure != nil {
			return nil, failure
		}
	}
	var q request
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&q); err != nil || r.Header.Get("Content-Type") != "application/json" {
		return nil, &Failure{"INVALID_ARGUMENT", "Invalid JSON payload received."}
	}
	key, ok := s.Keys[name]
	if !ok {
		return nil, &Failure{"NOT_FOUND", "CryptoKey " + name + " not found."}
	}
	for field, sent := range map[string]struct {
		data []byte
		sum  *int64
	}{
		"plaintext": {q.Plaintext, q.PlaintextCrc32c}, "ciphertext": {q.Ciphertext, q.CiphertextCrc32c},
		"additional_authenticated_data": {q.AdditionalAuthenticatedData, q.AdditionalAuthenticatedDataCrc32c},
	} {
		if sent.sum != nil && *sent.sum != *checksum(sent.data) {
			return nil, &Failure{"INVALID_ARGUMENT",
				"The checksum in field " + field + "_crc32c did not match the data in field " + field + "."}
		}
	}
	box := nettest.Box{Mark: "FAKEGCP1", Key: key}
	if call == "Encrypt" {
		return s.encrypt(box, name, q), nil
	}
	return s.decrypt(box, name, q)
}

// decrypt opens a ciphertext from encrypt.
func (s *Service) decrypt(box nettest.Box, name string, q request) (any, *Failure) {
	plain, ok := box.Open(q.Ciphertext, bind(name, q.AdditionalAuthenticatedData))
	if !ok {
		return nil, &Failure{"INVALID_ARGUMENT", "Decryption failed: verify that 'name' refers to the correct CryptoKey."}
	}
	response := &DecryptResponse{Plaintext: plain, PlaintextCrc32c: checksum(plain), UsedPrimary: true, ProtectionLevel: "SOFTWARE"}
	if s.After != nil {
		s.After(response)
	}
	return response, nil
}

// encrypt seals the plaintext with AES-GCM. The ciphertext begins with a mark and the nonce.
func (s *Service) encrypt(box nettest.Box, name string, q request) any {
	sealed := box.Seal(q.Plaintext, bind(name, q.AdditionalAuthenticatedData))
	response := &EncryptResponse{
		Name: name + "/cryptoKeyVersions/1", Ciphertext: sealed, CiphertextCrc32c: checksum(sealed),
		VerifiedPlaintextCrc32c:                   q.PlaintextCrc32c != nil,
		VerifiedAdditionalAuthenticatedDataCrc32c: q.AdditionalAuthenticatedDataCrc32c != nil,
		ProtectionLevel:                           "SOFTWARE",
	}
	if s.AfterEncrypt != nil {
		s.AfterEncrypt(response)
	}
	return response
}

// bind returns the data that a ciphertext is bound to: the key name and the caller's data. Without data, it
// is the name alone, as in the stored test vectors.
func bind(name string, additional []byte) []byte {
	if len(additional) == 0 {
		return []byte(name)
	}
	return append([]byte(name+"\x00"), additional...)
}

func checksum(data []byte) *int64 {
	sum := int64(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return &sum
}

// Start serves until the test ends. The returned transport reaches the service under any host name.
func (s *Service) Start(tb testing.TB) http.RoundTripper {
	tb.Helper()
	return nettest.Everywhere(tb, s).Transport
}
