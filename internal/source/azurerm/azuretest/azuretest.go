// Package azuretest is an Azure Storage account for tests. It includes Microsoft's sign-in service, and the
// one resource manager request that looks up access keys.
//
// The server checks signatures, tokens and permissions. It serves blob reads; the other requests that a
// backend sends are refused unless they are allowed.
package azuretest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth/azureauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// These are the names and credentials that the services accept.
const (
	Account      = "acmestates"
	Key          = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	SAS          = "sv=2022-11-02&sr=c&sp=r&se=2099-01-01T00%3A00%3A00Z&sig=azuretest%2Bsignature%3D"
	Tenant       = azureauthtest.Tenant
	ClientID     = azureauthtest.ClientID
	Secret       = azureauthtest.Secret
	Token        = "azuretest-storage-token" // for Azure Storage
	ManagerToken = "azuretest-manager-token" // for the resource manager
	Subscription = "22222222-2222-3333-4444-555555555555"
	Group        = "states"

	// ReadAction is the permission that an identity needs to read a blob.
	ReadAction = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read"
	// KeysAction is the permission that is needed to look up access keys.
	KeysAction = "Microsoft.Storage/storageAccounts/listKeys/action"
)

// Server is the account and the other services; the host name selects one of them. Fields must be set before
// the first request.
type Server struct {
	nettest.Log[string] // the account's requests: "GET container/blob?query", without signatures

	Actions     []string                                          // the identity's permissions
	Writes      bool                                              // whether a backend may write, lock and list
	CustomerKey string                                            // the key that all blobs are encrypted with; may be empty
	Before      func(w http.ResponseWriter, r *http.Request) bool // called first, except for signing in; true if it has responded
	SignIn      func(form url.Values) bool                        // reports whether a token request is granted; nil checks Secret

	mu         sync.Mutex
	containers map[string]map[string]*Blob
	other      nettest.Log[string]
	counter    int
}

// Blob is one blob.
type Blob struct {
	Data     []byte
	Metadata map[string]string
	Lease    string            // ID of the lease; "" if there is none
	Version  string            // ID of the current version; "" if versions are not kept
	Versions map[string][]byte // older versions by ID
	etag     string
}

// New returns an account with one container.
func New(container string) *Server {
	return &Server{Actions: []string{ReadAction}, containers: map[string]map[string]*Blob{container: {}}}
}

// Put stores a blob.
func (s *Server) Put(container, name string, b Blob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(container, name, &b)
}

func (s *Server) put(container, name string, b *Blob) {
	s.counter++
	b.etag = fmt.Sprintf(`"0x8D%013X"`, s.counter)
	if b.Metadata == nil {
		b.Metadata = map[string]string{}
	}
	s.containers[container][name] = b
}

// Get returns the content of a blob, or nil if there is none.
func (s *Server) Get(container, name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.containers[container][name]; b != nil {
		return slices.Clone(b.Data)
	}
	return nil
}

// Other returns all other requests since the last call, such as "POST host/path".
func (s *Server) Other() []string { return s.other.Requests() }

// Client returns a client that reaches the server under any host name, with TLS. Requests without TLS fail.
func (s *Server) Client(tb testing.TB) *http.Client {
	tb.Helper()
	return nettest.Everywhere(tb, s)
}

// ServeHTTP selects the service by the host.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	_, storage := strings.CutPrefix(host, Account+".blob.")
	path := r.URL.EscapedPath()
	if rest, isPathStyle := strings.CutPrefix(path, "/"+Account+"/"); storage || isPathStyle {
		s.serveStorage(w, r, strings.TrimPrefix(rest, "/"))
		return
	}
	s.other.Note(r.Method + " " + r.Host + r.URL.Path)
	if strings.HasPrefix(host, "management.") {
		s.serveManager(w, r)
		return
	}
	azureauthtest.Serve(w, r, s.SignIn, tokenFor)
}

func tokenFor(scope string) string {
	switch {
	case strings.Contains(scope, "https://storage.azure.com"):
		return Token
	case strings.Contains(scope, "https://management."):
		return ManagerToken
	}
	return "a token for somebody else"
}

func (s *Server) serveManager(w http.ResponseWriter, r *http.Request) {
	if s.Before != nil && s.Before(w, r) {
		return
	}
	refuse := func(status int, code string) {
		nettest.Reply(w, status, map[string]any{"error": map[string]any{"code": code, "message": "canary"}})
	}
	switch {
	case r.URL.Path == "/metadata/endpoints":
		azureauthtest.Serve(w, r, s.SignIn, tokenFor)
	case r.Header.Get("Authorization") != "Bearer "+ManagerToken:
		refuse(401, "InvalidAuthenticationToken")
	case r.Method != http.MethodPost || !slices.Contains(s.Actions, KeysAction):
		refuse(403, "AuthorizationFailed")
	case r.URL.Path != "/subscriptions/"+Subscription+"/resourceGroups/"+Group+"/providers/Microsoft.Storage/storageAccounts/"+Account+
		"/listKeys" || r.URL.Query().Get("api-version") == "":
		refuse(404, "ResourceNotFound")
	default:
		nettest.Reply(w, 200, map[string]any{"keys": []any{
			map[string]any{"keyName": "key1", "value": Key, "permissions": "FULL"},
			map[string]any{"keyName": "key2", "value": "c2Vjb25k", "permissions": "FULL"},
		}})
	}
}

func (s *Server) serveStorage(w http.ResponseWriter, r *http.Request, path string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20)) // first, because a disconnect is only noticed after this
	container, escaped, _ := strings.Cut(path, "/")
	name, unescapeErr := url.PathUnescape(escaped)
	query := r.URL.Query()
	shown := url.Values{}
	for _, name := range []string{"comp", "restype", "prefix", "versionid"} {
		if query.Has(name) {
			shown[name] = query[name]
		}
	}
	s.Note(strings.TrimSuffix(r.Method+" "+container+"/"+name+"?"+shown.Encode(), "?"))
	w.Header().Set("x-ms-version", r.Header.Get("x-ms-version"))
	w.Header().Set("x-ms-request-id", "1")
	if s.Before != nil && s.Before(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil || unescapeErr != nil:
		Fail(w, 400, "InvalidUri")
	case !s.authorized(w, r):
	case s.containers[container] == nil:
		Fail(w, 404, "ContainerNotFound")
	case r.Method == http.MethodGet && name != "" && !query.Has("comp"):
		s.getBlob(w, r, container, name)
	case !s.Writes:
		Fail(w, 403, "AuthorizationPermissionMismatch")
	default:
		s.write(w, r, container, name, body)
	}
}

// authorized reports whether the request is authorized. If not, it sends an error response.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request) bool {
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	query := r.URL.Query()
	switch {
	case scheme == "SharedKey" && (credential != Account+":"+Sign(r) || stale(r.Header.Get("x-ms-date"))):
		Fail(w, 403, "AuthenticationFailed")
	case scheme == "SharedKey":
		return true
	case scheme == "Bearer" && (credential != Token || r.TLS == nil):
		w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="https://login.microsoftonline.com/`+Tenant+
			`/oauth2/authorize" resource_id="https://storage.azure.com"`)
		Fail(w, 401, "InvalidAuthenticationInfo")
	case scheme == "Bearer" && slices.Contains(s.Actions, ReadAction),
		scheme != "Bearer" && signed(query) && strings.Contains(query.Get("sp"), "r"):
		return true
	case scheme == "Bearer" || signed(query):
		Fail(w, 403, "AuthorizationPermissionMismatch")
	case query.Has("sig"):
		Fail(w, 403, "AuthenticationFailed")
	default:
		w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="https://evil.test"`) // azblob would panic on this
		Fail(w, 401, "NoAuthenticationInformation")
	}
	return false
}

// signed reports whether a query has the fields of SAS, with any permissions.
func signed(query url.Values) bool {
	want, err := url.ParseQuery(SAS)
	for name := range want {
		if err != nil || name != "sp" && query.Get(name) != want.Get(name) {
			return false
		}
	}
	return true
}

func stale(date string) bool {
	at, err := http.ParseTime(date)
	return err != nil || time.Since(at).Abs() > 15*time.Minute
}

// Sign returns the correct signature for a request.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
func Sign(r *http.Request) string {
	length := ""
	if r.ContentLength > 0 {
		length = fmt.Sprint(r.ContentLength)
	}
	lines := []string{r.Method, r.Header.Get("Content-Encoding"), r.Header.Get("Content-Language"), length}
	for _, name := range []string{"Content-Md5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match",
		"If-Unmodified-Since", "Range"} {
		lines = append(lines, r.Header.Get(name))
	}
	headers := map[string]string{}
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			headers[name] = strings.Join(values, ",")
		}
	}
	plain := func(s string) string { return strings.ReplaceAll(s, "-", "") } // hyphens are ignored when sorting
	for _, name := range slices.SortedFunc(maps.Keys(headers), func(a, b string) int { return cmp.Compare(plain(a), plain(b)) }) {
		lines = append(lines, name+":"+headers[name])
	}
	lines = append(lines, "/"+Account+r.URL.EscapedPath())
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		lines = append(lines, strings.ToLower(name)+":"+strings.Join(query[name], ","))
	}
	key, _ := base64.StdEncoding.DecodeString(Key)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(lines, "\n")))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (s *Server) getBlob(w http.ResponseWriter, r *http.Request, container, name string) {
	b := s.containers[container][name]
	if b == nil {
		Fail(w, 404, "BlobNotFound")
		return
	}
	data, version := b.Data, b.Version
	if wanted := r.URL.Query().Get("versionid"); wanted != "" && wanted != version {
		var ok bool
		if data, ok = b.Versions[wanted]; !ok {
			Fail(w, 404, "BlobNotFound")
			return
		}
		version = wanted
	}
	switch key := r.Header.Get("x-ms-encryption-key"); {
	case s.CustomerKey != "" && key == "":
		Fail(w, 409, "BlobUsesCustomerSpecifiedEncryption")
		return
	case key != s.CustomerKey:
		Fail(w, 409, "BlobCustomerSpecifiedEncryptionMismatch")
		return
	}
	describe(w, b)
	if version != "" {
		w.Header().Set("x-ms-version-id", version)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = w.Write(data) // an error means that the client has disconnected
}

func describe(w http.ResponseWriter, b *Blob) {
	h := w.Header()
	h.Set("ETag", b.etag)
	h.Set("Last-Modified", "Sat, 31 Jan 2026 12:00:00 GMT")
	h.Set("Content-Type", "application/json")
	h.Set("x-ms-blob-type", "BlockBlob")
	h.Set("x-ms-server-encrypted", "true")
	h.Set("x-ms-lease-state", "available")
	h.Set("x-ms-lease-status", "unlocked")
	if b.Lease != "" {
		h.Set("x-ms-lease-state", "leased")
		h.Set("x-ms-lease-status", "locked")
		h.Set("x-ms-lease-duration", "infinite")
	}
	for name, value := range b.Metadata {
		h["x-ms-meta-"+name] = []string{value}
	}
}

// write handles the backend requests that are not reads of blobs.
func (s *Server) write(w http.ResponseWriter, r *http.Request, container, name string, body []byte) {
	b := s.containers[container][name]
	query := r.URL.Query()
	action, lease := r.Header.Get("x-ms-lease-action"), r.Header.Get("x-ms-lease-id")
	switch comp := query.Get("comp"); {
	case name == "" && r.Method == http.MethodGet && comp == "list":
		s.list(w, container, query.Get("prefix"))
	case r.Method == http.MethodPut && name != "" && comp == "" && r.Header.Get("x-ms-blob-type") == "BlockBlob":
		if b != nil && b.Lease != "" && b.Lease != lease {
			Fail(w, 412, "LeaseIdMissing")
			return
		}
		next := &Blob{Data: body, Metadata: metadataOf(r)}
		if b != nil {
			next.Lease = b.Lease
		}
		s.put(container, name, next)
		describe(w, next)
		w.WriteHeader(http.StatusCreated)
	case b == nil:
		Fail(w, 404, "BlobNotFound")
	case r.Method == http.MethodHead:
		describe(w, b)
		w.Header().Set("Content-Length", fmt.Sprint(len(b.Data)))
	case r.Method == http.MethodPut && comp == "lease" && action == "acquire" && b.Lease == "":
		b.Lease = r.Header.Get("x-ms-proposed-lease-id")
		w.Header().Set("x-ms-lease-id", b.Lease)
		w.WriteHeader(http.StatusCreated)
	case b.Lease != "" && b.Lease != lease:
		Fail(w, 412, "LeaseIdMismatchWithBlobOperation")
	case r.Method == http.MethodPut && comp == "lease" && action == "release":
		b.Lease = ""
	case r.Method == http.MethodPut && comp == "metadata":
		b.Metadata = metadataOf(r)
	default:
		Fail(w, 400, "UnsupportedHttpVerb")
	}
}

func metadataOf(r *http.Request) map[string]string {
	out := map[string]string{}
	for name, values := range r.Header {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), "x-ms-meta-"); ok {
			out[rest] = values[0]
		}
	}
	return out
}

func (s *Server) list(w http.ResponseWriter, container, prefix string) {
	type item struct {
		Name       string
		Properties struct{}
	}
	var answer struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   struct{ Blob []item }
	}
	for _, name := range slices.Sorted(maps.Keys(s.containers[container])) {
		if strings.HasPrefix(name, prefix) {
			answer.Blobs.Blob = append(answer.Blobs.Blob, item{Name: name})
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(answer)
}

// Fail sends an error response as Azure Storage does. The text of this response must never be shown.
func Fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>canary: the service says too "+
		"much</Message></Error>", code)
}
