// Package azuretest provides an Azure Storage account for tests. It includes Microsoft's sign-in service, and the one
// resource manager request that looks up access keys.
//
// The server checks signatures, tokens and permissions. It always serves blob reads. It refuses a backend's other
// requests unless the test allows them.
package azuretest

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // Azure Storage sends it
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth/azureauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
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
	// These are the permissions that an identity needs to write and lease a blob, to read its index tags, and to write
	// them.
	WriteAction = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write"
	TagsAction  = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/tags/read"
	TagAction   = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/tags/write"
	// KeysAction is the permission that an identity needs to look up access keys.
	KeysAction = "Microsoft.Storage/storageAccounts/listKeys/action"
)

// Server serves the account and the other services. The host name of a request selects one of them. Set the fields
// before the first request.
type Server struct {
	nettest.Log[string] // the account's requests, such as "GET container/blob?query", without signatures

	Actions     []string                                          // the identity's permissions
	Writes      bool                                              // whether a backend may write, lock and list
	CustomerKey string                                            // the key that encrypts the blobs
	Weak        bool                                              // whether ETags are weak, as after a proxy
	Versioning  bool                                              // whether the account keeps versions
	SoftDelete  bool                                              // whether the account soft-deletes blobs
	WholeOnly   bool                                              // whether reads ignore ranges
	Ignores     map[Condition]bool                                // conditions to ignore, as some emulators do
	Before      func(w http.ResponseWriter, r *http.Request) bool // called before the account or the manager; true if it has responded
	SignIn      func(form url.Values) bool                        // reports whether to grant a token; nil means checking Secret

	mu         sync.Mutex
	containers map[string]map[string]*Blob
	frozen     map[string]bool // containers with an immutability policy
	other      nettest.Log[string]
	counter    int
}

// Condition is a kind of request condition.
type Condition string

// These are the conditions that a server can ignore.
const (
	IfNoneMatch Condition = "If-None-Match"
	IfMatch     Condition = "If-Match"
	Leases      Condition = "leases"  // several clients can have a lease at once
	Releases    Condition = "release" // the lease ID, and If-Match, when a lock is released
)

// Blob is one blob.
type Blob struct {
	Data      []byte
	Metadata  map[string]string
	Lease     string            // ID of the lease; "" if there is none
	Broken    string            // ID of a lease that was broken
	Version   string            // ID of the current version; "" if none are kept
	Versions  map[string][]byte // older versions, by ID
	Snapshots [][]byte
	Tags      string // encoded like a URL query
	Tier      string // access tier set on the blob
	Scope     string // the encryption scope
	Deleted   bool   // whether the blob is soft-deleted
	Hold      bool   // whether there is a legal hold
	etag      string

	now  content   // the current content, as it was stored
	past []content // older versions and snapshots, the oldest first
}

// content is a version or a snapshot of a blob.
type content struct {
	id                string // the time of the version or the snapshot; "" for a blob without versions
	snapshot, deleted bool
	data              []byte
	etag              string
	modified          time.Time
}

const idFormat = "2006-01-02T15:04:05.0000000Z"

// tick returns the next time of the account's clock.
func (s *Server) tick() time.Time {
	s.counter++
	return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC).Add(time.Duration(s.counter) * 700_000_100)
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
	old := s.containers[container][name]
	at := s.tick()
	if old != nil {
		b.past = old.past
		switch {
		case old.Deleted:
		case s.Versioning:
			b.past = append(b.past, old.now)
		case s.SoftDelete && old != b: // metadata was not changed, but the blob was replaced
			was := old.now
			was.id, was.snapshot, was.deleted = at.Format(idFormat), true, true
			b.past = append(b.past, was)
		}
	}
	b.etag = fmt.Sprintf(`"0x8D%013X"`, s.counter)
	b.now = content{data: b.Data, etag: b.etag, modified: at}
	if s.Versioning {
		b.Version = at.Format(idFormat)
		b.now.id = b.Version
	}
	if b.Metadata == nil {
		b.Metadata = map[string]string{}
	}
	s.containers[container][name] = b
}

// Delete deletes a blob, as another program might.
func (s *Server) Delete(container, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.containers[container][name]
	b.Deleted = true
	switch {
	case s.Versioning:
		b.past = append(b.past, b.now)
	case s.SoftDelete: // with its snapshots
		for i := range b.past {
			b.past[i].deleted = true
		}
	default:
		delete(s.containers[container], name)
	}
}

// Forget deletes a version or a snapshot of a blob. If the account soft-deletes, it can be undeleted.
func (s *Server) Forget(container, name, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.containers[container][name]
	for i, c := range slices.Backward(b.past) {
		if c.id == id && s.SoftDelete {
			b.past[i].deleted = true
		} else if c.id == id {
			b.past = slices.Delete(b.past, i, i+1)
		}
	}
}

// Create creates a container.
func (s *Server) Create(container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers[container] = map[string]*Blob{}
}

// Freeze gives a container an immutability policy.
func (s *Server) Freeze(container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = map[string]bool{container: true}
}

// Change changes a blob as another user might. If rewrites is true, the blob gets a new ETag.
func (s *Server) Change(container, name string, rewrites bool, change func(b *Blob)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.containers[container][name]
	if change(b); rewrites {
		s.put(container, name, b)
	}
}

// Look returns a copy of a blob, or an empty blob if there is none.
func (s *Server) Look(container, name string) (b Blob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.containers[container][name]; there != nil {
		b = *there
		b.Metadata = maps.Clone(b.Metadata)
	}
	return b
}

// Get returns the content of a blob, or nil if there is no blob.
func (s *Server) Get(container, name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.containers[container][name]; b != nil {
		return slices.Clone(b.Data)
	}
	return nil
}

// Other returns all requests to the other services since the last call, such as "POST host/path".
func (s *Server) Other() []string { return s.other.Requests() }

// Client returns a client that reaches the server under any host name, with TLS. Requests without TLS fail.
func (s *Server) Client(tb testing.TB) *http.Client {
	tb.Helper()
	return nettest.Everywhere(tb, s)
}

// ServeHTTP handles a request. The host name selects the service.
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
	return "a token for someone else"
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
	for _, name := range []string{"comp", "restype", "include", "prefix", "snapshot", "versionid", "marker"} {
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
	case !s.authorized(w, r, need(r, s.containers[container][name] == nil)),
		r.Header.Get("x-ms-tags") != "" && !s.authorized(w, r, right{"t", TagAction}):
	case s.containers[container] == nil:
		Fail(w, 404, "ContainerNotFound")
	case r.Method == http.MethodGet && name != "" && !query.Has("comp"):
		s.getBlob(w, r, container, name)
	case name == "" && r.Method == http.MethodHead:
		w.Header().Set("x-ms-has-immutability-policy", fmt.Sprint(s.frozen[container]))
		w.Header().Set("x-ms-has-legal-hold", "false")
		w.Header().Set("ETag", `"0x8D0"`)
	case !s.Writes:
		Fail(w, 403, "AuthorizationPermissionMismatch")
	default:
		s.write(w, r, container, name, body)
	}
}

// right is the permission that a request requires: an action for an identity, or one of several letters for a shared
// access signature.
type right struct{ letters, action string }

func need(r *http.Request, isNew bool) right {
	query := r.URL.Query()
	switch {
	case query.Get("comp") == "list":
		return right{"l", ReadAction}
	case query.Get("comp") == "tags" && r.Method == http.MethodGet:
		return right{"t", TagsAction}
	case query.Get("restype") == "container":
		return right{"", ReadAction} // no container signature allows this
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return right{"r", ReadAction}
	case r.Method == http.MethodPut && isNew:
		return right{"cw", WriteAction}
	}
	return right{"w", WriteAction}
}

// authorized reports whether a request has the permission that it needs. If not, it sends an error response.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request, needs right) bool {
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
	case scheme == "Bearer" && slices.Contains(s.Actions, needs.action),
		scheme != "Bearer" && signed(query) && strings.ContainsAny(query.Get("sp"), needs.letters):
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

// Sign returns the correct signature for a request to Account.
func Sign(r *http.Request) string { return SignFor(Account, r) }

// SignFor returns the correct signature for a request to an account whose key is Key.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
func SignFor(account string, r *http.Request) string {
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
	lines = append(lines, "/"+account+r.URL.EscapedPath())
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
	query := r.URL.Query()
	c, found := content{}, false
	if b != nil {
		c, found = b.find(query)
	}
	switch {
	case !found:
		Fail(w, 404, "BlobNotFound")
		return
	case r.Header.Get("If-Match") != "" && r.Header.Get("If-Match") != c.etag && !s.Ignores[IfMatch]:
		Fail(w, 412, "ConditionNotMet")
		return
	case !s.opens(w, r):
		return
	}
	s.describe(w, b)
	w.Header().Set("ETag", c.etag)
	if s.Weak {
		w.Header().Set("ETag", "W/"+c.etag)
	}
	if c.id != "" && !c.snapshot {
		w.Header().Set("x-ms-version-id", c.id)
	}
	first, _, ranged := strings.Cut(strings.TrimPrefix(r.Header.Get("x-ms-range"), "bytes="), "-")
	from, err := strconv.Atoi(first)
	switch {
	case !ranged || s.WholeOnly:
		w.Header().Set("Content-Length", fmt.Sprint(len(c.data)))
		_, _ = w.Write(c.data) // an error means that the client has disconnected
	case err != nil || from >= len(c.data):
		Fail(w, 416, "InvalidRange")
	default:
		r.Header.Set("Range", r.Header.Get("x-ms-range"))
		for _, name := range []string{"If-Match", "If-None-Match"} { // they have been checked
			r.Header.Del(name)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(c.data))
	}
}

// find returns the content that a request asks for.
func (b *Blob) find(query url.Values) (c content, found bool) {
	version, snapshot := query.Get("versionid"), query.Get("snapshot")
	old, given := b.Versions[version]
	switch {
	case version != "" && given:
		return content{id: version, data: old, etag: b.etag}, true
	case (version == "" || version == b.Version) && snapshot == "":
		return content{id: b.Version, data: b.Data, etag: b.etag}, !b.Deleted
	}
	for _, c := range b.past {
		if !c.deleted && c.id == version+snapshot && c.snapshot == (snapshot != "") {
			return c, true
		}
	}
	return content{}, false
}

// opens reports whether the request has the customer-provided key, if one is required. If not, it sends an error
// response.
func (s *Server) opens(w http.ResponseWriter, r *http.Request) bool {
	switch key := r.Header.Get("x-ms-encryption-key"); {
	case s.CustomerKey != "" && key == "":
		Fail(w, 409, "BlobUsesCustomerSpecifiedEncryption")
	case key != s.CustomerKey:
		Fail(w, 409, "BlobCustomerSpecifiedEncryptionMismatch")
	default:
		return true
	}
	return false
}

func (s *Server) describe(w http.ResponseWriter, b *Blob) {
	h := w.Header()
	h.Set("ETag", b.etag)
	if s.Weak {
		h.Set("ETag", "W/"+b.etag)
	}
	h.Set("Last-Modified", "Sat, 31 Jan 2026 12:00:00 GMT")
	h.Set("Content-Type", "application/json")
	h.Set("x-ms-blob-type", "BlockBlob")
	h.Set("x-ms-server-encrypted", "true")
	h.Set("x-ms-lease-state", "available")
	h.Set("x-ms-lease-status", "unlocked")
	switch {
	case b.Lease != "":
		h.Set("x-ms-lease-state", "leased")
		h.Set("x-ms-lease-status", "locked")
		h.Set("x-ms-lease-duration", "infinite")
	case b.Broken != "":
		h.Set("x-ms-lease-state", "broken")
	}
	h.Set("x-ms-access-tier", cmp.Or(b.Tier, "Hot"))
	h.Set("x-ms-access-tier-inferred", fmt.Sprint(b.Tier == ""))
	if tags, _ := url.ParseQuery(b.Tags); len(tags) > 0 {
		h.Set("x-ms-tag-count", fmt.Sprint(len(tags)))
	}
	if b.Hold {
		h.Set("x-ms-legal-hold", "true")
	}
	for name, value := range b.Metadata {
		h["x-ms-meta-"+name] = []string{value}
	}
}

// write handles a backend's requests other than blob reads.
func (s *Server) write(w http.ResponseWriter, r *http.Request, container, name string, body []byte) {
	b := s.containers[container][name]
	if b != nil && b.Deleted {
		b = nil
	}
	query := r.URL.Query()
	comp, isPut := query.Get("comp"), r.Method == http.MethodPut && name != ""
	puts := isPut && comp == "" && r.Header.Get("x-ms-blob-type") == "BlockBlob"
	switch {
	case name == "" && r.Method == http.MethodGet && comp == "list":
		s.list(w, r, container, query.Get("prefix"))
	case !s.meets(w, r, b, puts):
	case b == nil && !puts:
		Fail(w, 404, "BlobNotFound")
	case isPut && comp == "lease":
		s.lease(w, r, b)
	case !s.holds(w, r, b):
	case r.Method == http.MethodGet && comp == "tags":
		s.tags(w, b)
	case !s.opens(w, r):
	case r.Method == http.MethodHead:
		s.describe(w, b)
		w.Header().Set("Content-Length", fmt.Sprint(len(b.Data)))
	case b != nil && (b.Hold || s.frozen[container]) && comp != "snapshot":
		Fail(w, 409, "BlobImmutableDueToPolicy")
	case puts:
		next := &Blob{Data: body, Metadata: metadataOf(r), Tags: r.Header.Get("x-ms-tags"), Tier: r.Header.Get("x-ms-access-tier"),
			Scope: r.Header.Get("x-ms-encryption-scope")}
		if b != nil {
			next.Lease, next.Snapshots = b.Lease, b.Snapshots
		}
		s.put(container, name, next)
		s.describe(w, next)
		w.WriteHeader(http.StatusCreated)
	case isPut && comp == "snapshot":
		b.Snapshots = append(b.Snapshots, b.Data)
		taken := b.now
		taken.id, taken.snapshot = s.tick().Format(idFormat), true
		b.past = append(b.past, taken)
		s.describe(w, b)
		w.Header().Set("x-ms-snapshot", taken.id)
		w.WriteHeader(http.StatusCreated)
	case isPut && comp == "metadata" && r.Header.Get("x-ms-encryption-scope") != b.Scope:
		Fail(w, 409, "BlobDoesNotUseEncryptionScope")
	case isPut && comp == "metadata":
		b.Metadata = metadataOf(r)
		s.put(container, name, b)
		s.describe(w, b)
	default:
		Fail(w, 400, "UnsupportedHttpVerb")
	}
}

// meets reports whether the request's ETag conditions are met. If not, it sends an error response. These conditions
// are checked before the lease.
func (s *Server) meets(w http.ResponseWriter, r *http.Request, b *Blob, puts bool) bool {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	releases := s.Ignores[Releases] && (r.Header.Get("x-ms-lease-action") == "release" || len(metadataOf(r)) == 0 &&
		r.URL.Query().Get("comp") == "metadata")
	switch {
	case match != "" && (b == nil || match != "*" && match != b.etag) && !s.Ignores[IfMatch] && !releases:
		Fail(w, 412, "ConditionNotMet")
	case none == "*" && b != nil && puts && !s.Ignores[IfNoneMatch]:
		Fail(w, 409, "BlobAlreadyExists")
	case none != "" && b != nil && (none == "*" || none == b.etag) && !s.Ignores[IfNoneMatch]:
		Fail(w, 412, "ConditionNotMet")
	default:
		return true
	}
	return false
}

// holds reports whether the request names the blob's lease. If not, it sends an error response. A read may omit the
// lease.
func (s *Server) holds(w http.ResponseWriter, r *http.Request, b *Blob) bool {
	lease := r.Header.Get("x-ms-lease-id")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	releases := s.Ignores[Releases] && len(metadataOf(r)) == 0 && r.URL.Query().Get("comp") == "metadata"
	switch {
	case b == nil && lease == "", s.Ignores[Leases], releases:
		return true
	case b == nil:
		Fail(w, 404, "BlobNotFound")
	case lease == "" && (b.Lease == "" || reads || r.URL.Query().Get("comp") == "snapshot"):
		return true
	case lease == "":
		Fail(w, 412, "LeaseIdMissing")
	case b.Lease == lease:
		return true
	case b.Lease != "":
		Fail(w, 412, "LeaseIdMismatchWithBlobOperation")
	case b.Broken == lease:
		Fail(w, 412, "LeaseLost")
	default:
		Fail(w, 412, "LeaseNotPresentWithBlobOperation")
	}
	return false
}

var uuid = lazyregexp.New(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// lease changes the lease of a blob. The ETag does not change.
// https://learn.microsoft.com/rest/api/storageservices/lease-blob
func (s *Server) lease(w http.ResponseWriter, r *http.Request, b *Blob) {
	proposed, lease := r.Header.Get("x-ms-proposed-lease-id"), r.Header.Get("x-ms-lease-id")
	switch action := r.Header.Get("x-ms-lease-action"); {
	case action == "acquire" && (!uuid.MatchString(proposed) || r.Header.Get("x-ms-lease-duration") != "-1"):
		Fail(w, 400, "InvalidHeaderValue")
	case action == "acquire" && b.Lease != "" && b.Lease != proposed && !s.Ignores[Leases]:
		Fail(w, 409, "LeaseAlreadyPresent")
	case action == "acquire":
		b.Lease, b.Broken = proposed, ""
		s.describe(w, b)
		w.Header().Set("x-ms-lease-id", proposed)
		w.WriteHeader(http.StatusCreated)
	case action == "release" && (lease == "" || lease != b.Lease && lease != b.Broken) && !s.Ignores[Releases]:
		Fail(w, 409, "LeaseIdMismatchWithLeaseOperation")
	case action == "release":
		b.Lease, b.Broken = "", ""
		s.describe(w, b)
	case action == "break" && b.Lease == "" && b.Broken == "":
		Fail(w, 409, "LeaseNotPresentWithLeaseOperation")
	case action == "break":
		b.Lease, b.Broken = "", cmp.Or(b.Lease, b.Broken)
		s.describe(w, b)
		w.Header().Set("x-ms-lease-time", "0")
		w.WriteHeader(http.StatusAccepted)
	default:
		Fail(w, 400, "InvalidHeaderValue")
	}
}

func (s *Server) tags(w http.ResponseWriter, b *Blob) {
	type tag struct{ Key, Value string }
	var answer struct {
		XMLName xml.Name `xml:"Tags"`
		TagSet  struct{ Tag []tag }
	}
	tags, _ := url.ParseQuery(b.Tags)
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		answer.TagSet.Tag = append(answer.TagSet.Tag, tag{name, tags.Get(name)})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(answer)
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

// list serves a list of blobs, and of versions, snapshots and deleted ones if the request includes them, the oldest of
// each blob first. If the request limits the page size, each page has two entries, so that there are several pages.
// https://learn.microsoft.com/rest/api/storageservices/list-blobs
func (s *Server) list(w http.ResponseWriter, r *http.Request, container, prefix string) {
	type properties struct {
		Created  string `xml:"Creation-Time"`
		Modified string `xml:"Last-Modified"`
		Etag     string
		Size     int    `xml:"Content-Length"`
		Type     string `xml:"Content-Type"`
		MD5      string `xml:"Content-MD5"`
		BlobType string
	}
	type item struct {
		Name             string
		Deleted          bool   `xml:",omitempty"`
		Snapshot         string `xml:",omitempty"`
		VersionID        string `xml:"VersionId,omitempty"`
		IsCurrentVersion bool   `xml:",omitempty"`
		Properties       properties
	}
	var answer struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   struct{ Blob []item }

		NextMarker string
	}
	query := r.URL.Query()
	include := strings.Split(query.Get("include"), ",")
	shows := func(what string) bool { return slices.Contains(include, what) }
	for _, name := range slices.Sorted(maps.Keys(s.containers[container])) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		b := s.containers[container][name]
		now := b.now
		now.data, now.etag, now.deleted = b.Data, b.etag, b.Deleted
		for i, c := range append(slices.Clone(b.past), now) {
			isNow := i == len(b.past)
			switch {
			case c.deleted && !shows("deleted"), c.snapshot && !shows("snapshots"), !c.snapshot && !isNow && !shows("versions"),
				isNow && c.deleted && s.Versioning: // its version is in the past
				continue
			}
			sum := md5.Sum(c.data) //nolint:gosec // Azure Storage sends it
			e := item{Name: name, Deleted: c.deleted, Properties: properties{Created: c.modified.Format(http.TimeFormat),
				Modified: c.modified.Format(http.TimeFormat), Etag: strings.Trim(c.etag, `"`), Size: len(c.data), Type: "application/json",
				MD5: base64.StdEncoding.EncodeToString(sum[:]), BlobType: "BlockBlob"}}
			if c.snapshot {
				e.Snapshot = c.id
			} else if shows("versions") {
				e.VersionID, e.IsCurrentVersion = c.id, isNow && c.id != ""
			}
			answer.Blobs.Blob = append(answer.Blobs.Blob, e)
		}
	}
	from, _ := strconv.Atoi(query.Get("marker")) // the first page has no marker
	answer.Blobs.Blob = answer.Blobs.Blob[min(from, len(answer.Blobs.Blob)):]
	if len(answer.Blobs.Blob) > 2 && query.Has("maxresults") {
		answer.Blobs.Blob, answer.NextMarker = answer.Blobs.Blob[:2], strconv.Itoa(from+2)
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
