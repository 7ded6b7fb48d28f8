// Package consultest is a Consul server for tests of clients that read or write a few keys. Its requests and
// responses have the form that Consul's client library, which Terraform's backend uses, sends and expects.
package consultest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// MaxValue is the maximum size of a value or a transaction, in bytes.
const MaxValue = 512 << 10

// Server is a Consul server with a key-value store, sessions and transactions.
type Server struct {
	nettest.Log[string] // the requests, such as "GET /v1/kv/…"

	URL      string                                            // "" if the test serves the handler itself
	Tokens   map[string]Policy                                 // by token; nil means no access control, and "" is the anonymous token
	Auth     string                                            // user:password for basic authentication by a proxy in front of Consul
	Writable bool                                              // if false, only GET requests for one key are served
	Answer   func(w http.ResponseWriter, r *http.Request) bool // returns true if it has sent a response

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	index    uint64
	entries  map[string]*Entry
	sessions map[string]session   // by ID
	delays   map[string]time.Time // the time from which each key may be locked again
	mux      *http.ServeMux
}

// Policy reports whether a token may access a key. verb is "read" or "write".
type Policy func(verb, key string) bool

// Everything is the policy of a management token.
func Everything(string, string) bool { return true }

// Entry is a key with its value. The fields are in the order of Consul's JSON.
type Entry struct {
	LockIndex   uint64
	Key         string
	Flags       uint64
	Value       []byte
	Session     string `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

// session is a session. The fields are in the order of Consul's JSON.
type session struct {
	ID, Name, Node           string
	LockDelay                time.Duration
	Behavior, TTL            string
	NodeChecks               []string
	ServiceChecks            []string
	CreateIndex, ModifyIndex uint64
}

// NewHandler returns a server that the caller must serve.
func NewHandler() *Server {
	s := &Server{
		index: 10, changed: make(chan struct{}), entries: map[string]*Entry{}, sessions: map[string]session{}, delays: map[string]time.Time{},
		mux: http.NewServeMux(),
	}
	// Like Consul's mux, this one redirects paths with empty or dot segments.
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "Invalid URL path: not a recognized HTTP API endpoint\n")
	})
	s.mux.HandleFunc("/v1/kv/", s.kv)
	s.mux.HandleFunc("/v1/txn", s.writes(s.txn))
	s.mux.HandleFunc("/v1/session/create", s.writes(s.createSession))
	s.mux.HandleFunc("/v1/session/renew/", s.writes(s.renewSession))
	s.mux.HandleFunc("/v1/session/destroy/", s.writes(s.destroySession))
	return s
}

// New starts a server, which stops at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := NewHandler()
	s.URL = nettest.Serve(t, s)
	return s
}

// Put stores a value.
func (s *Server) Put(key string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&Entry{Key: key, Value: value})
}

// Remove removes a key.
func (s *Server) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch()
	delete(s.entries, key)
}

// Entry returns the entry of a key, or nil if there is none.
func (s *Server) Entry(key string) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil {
		c := *e
		return &c
	}
	return nil
}

// Change calls how, which may change the fields of a server in use.
func (s *Server) Change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Note(r.Method + " " + r.RequestURI)
	s.mu.Lock()
	answer, auth, tokens := s.Answer, s.Auth, s.Tokens
	s.mu.Unlock()
	user, password, _ := r.BasicAuth()
	query := r.URL.Query()
	switch {
	case answer != nil && answer(w, r):
	case auth != "" && user+":"+password != auth:
		w.Header().Set("WWW-Authenticate", "Basic")
		fail(w, http.StatusUnauthorized, "Unauthorized")
	case tokens != nil && tokens[token(r)] == nil:
		fail(w, http.StatusForbidden, "ACL not found")
	case query.Has("ns"):
		fail(w, http.StatusBadRequest, `Invalid query parameter: "ns" - Namespaces are a Consul Enterprise feature`)
	case query.Has("partition"):
		fail(w, http.StatusBadRequest, `Invalid query parameter: "partition" - Partitions are a Consul Enterprise feature`)
	case query.Get("dc") != "" && query.Get("dc") != "dc1":
		fail(w, http.StatusInternalServerError, "No path to datacenter")
	default:
		s.mux.ServeHTTP(w, r)
	}
}

func token(r *http.Request) string { return r.Header.Get("X-Consul-Token") }

func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) //nolint:gosec // plain text, as Consul sends it
}

// writes wraps a handler for write requests. They must be PUT requests, and the server must be Writable.
func (s *Server) writes(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case !s.Writable:
			fail(w, http.StatusForbidden, "Permission denied")
		case r.Method != http.MethodPut:
			fail(w, http.StatusMethodNotAllowed, "method "+r.Method+" not allowed")
		default:
			serve(w, r)
		}
	}
}

// allowed reports whether the request may access the key. If not, it sends an error response.
func (s *Server) allowed(w http.ResponseWriter, r *http.Request, verb, key string) bool {
	if s.Tokens == nil || s.Tokens[token(r)](verb, key) {
		return true
	}
	fail(w, http.StatusForbidden, denied(r, verb, key))
	return false
}

// denied returns Consul's message for a refused request.
func denied(r *http.Request, verb, key string) string {
	who, more := "token with AccessorID '00000000-0000-0000-0000-000000000002'", ""
	if token(r) == "" {
		who, more = "anonymous token", ". The anonymous token is used implicitly when a request does not specify a token."
	}
	return fmt.Sprintf("Permission denied: %s lacks permission 'key:%s' on %q%s", who, verb, key, more)
}

func (s *Server) kv(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/v1/kv/")
	query := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.Writable && (r.Method != http.MethodGet || len(query) > 0 && !query.Has("dc")):
		fail(w, http.StatusForbidden, "Permission denied")
	case r.Method == http.MethodGet && (query.Has("keys") || query.Has("recurse")):
		s.list(w, r, key)
	case key == "":
		fail(w, http.StatusBadRequest, "Missing key name")
	case r.Method == http.MethodGet:
		s.read(w, r, key)
	case r.Method == http.MethodPut:
		s.put(w, r, key)
	case r.Method == http.MethodDelete:
		s.delete(w, r, key)
	default:
		fail(w, http.StatusMethodNotAllowed, "method "+r.Method+" not allowed")
	}
}

// meta writes the headers for a query response.
func (s *Server) meta(w http.ResponseWriter, index uint64) {
	w.Header().Set("X-Consul-Index", strconv.FormatUint(index, 10))
	w.Header().Set("X-Consul-LastContact", "0")
	w.Header().Set("X-Consul-KnownLeader", "true")
	w.Header().Set("X-Consul-Default-ACL-Policy", "allow")
}

func (s *Server) read(w http.ResponseWriter, r *http.Request, key string) {
	query := r.URL.Query()
	if query.Has("stale") && query.Has("consistent") {
		fail(w, http.StatusBadRequest, "Cannot specify ?stale with ?consistent, conflicting semantics.")
		return
	}
	if !s.allowed(w, r, "read", key) {
		return
	}
	if query.Get("index") != "" && !s.block(w, r, key) {
		return
	}
	e := s.entries[key]
	if e == nil {
		s.meta(w, s.index)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.meta(w, e.ModifyIndex)
	if query.Has("raw") {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(e.Value)
		return
	}
	nettest.Reply(w, http.StatusOK, []*Entry{e})
}

// block waits until the key has changed, or for as long as the client asked. It returns false if it has sent
// an error response.
func (s *Server) block(w http.ResponseWriter, r *http.Request, key string) bool {
	after, err := strconv.ParseUint(r.URL.Query().Get("index"), 10, 64)
	if err != nil {
		fail(w, http.StatusBadRequest, "Invalid index")
		return false
	}
	limit := 5 * time.Minute
	if text := r.URL.Query().Get("wait"); text != "" {
		if limit, err = time.ParseDuration(text); err != nil {
			fail(w, http.StatusBadRequest, "Invalid wait time")
			return false
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	for e := s.entries[key]; e != nil && e.ModifyIndex <= after && ctx.Err() == nil; e = s.entries[key] {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	return true
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, prefix string) {
	query := r.URL.Query()
	entries, keys := []*Entry{}, []string{}
	for _, key := range slices.Sorted(maps.Keys(s.entries)) {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok || s.Tokens != nil && !s.Tokens[token(r)]("read", key) {
			continue
		}
		entries = append(entries, s.entries[key])
		if separator := query.Get("separator"); separator != "" {
			if i := strings.Index(rest, separator); i >= 0 {
				key = prefix + rest[:i+len(separator)]
			}
		}
		keys = append(keys, key)
	}
	s.meta(w, s.index)
	switch {
	case len(keys) == 0 && prefix != "":
		w.WriteHeader(http.StatusNotFound)
	case query.Has("keys"):
		nettest.Reply(w, http.StatusOK, slices.Compact(keys))
	default:
		nettest.Reply(w, http.StatusOK, entries)
	}
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, key string) {
	query := r.URL.Query()
	if !s.allowed(w, r, "write", key) {
		return
	}
	value, err := io.ReadAll(io.LimitReader(r.Body, MaxValue+1))
	switch {
	case err != nil:
		fail(w, http.StatusInternalServerError, err.Error())
		return
	case len(value) > MaxValue:
		fail(w, http.StatusRequestEntityTooLarge, tooLarge(r, "kv_max_value_size"))
		return
	}
	flags, _ := strconv.ParseUint(query.Get("flags"), 10, 64)
	e := &Entry{Key: key, Value: value, Flags: flags}
	done := true
	holder := ""
	if old := s.entries[key]; old != nil {
		holder = old.Session
	}
	id := query.Get("acquire")
	switch _, known := s.sessions[id]; {
	case query.Has("cas"):
		done = s.isAt(key, query.Get("cas"))
	case query.Has("acquire") && !known:
		fail(w, http.StatusInternalServerError, fmt.Sprintf("raft apply failed: invalid session %q", id))
		return
	case query.Has("acquire"):
		done = time.Now().After(s.delays[key]) && (holder == "" || holder == id)
	case query.Has("release"):
		done = holder != "" && holder == query.Get("release")
	}
	if done {
		s.set(e)
		switch {
		case query.Has("acquire") && holder == "":
			e.Session, e.LockIndex = id, e.LockIndex+1
		case query.Has("release"):
			e.Session = ""
		}
	}
	nettest.Reply(w, http.StatusOK, done)
}

func tooLarge(r *http.Request, setting string) string {
	return fmt.Sprintf("Request body(%d bytes) too large, max size: %d bytes. See "+
		"https://developer.hashicorp.com/docs/agent/config/config-files#%s.", r.ContentLength, MaxValue, setting)
}

func (s *Server) isAt(key, index string) bool {
	want, err := strconv.ParseUint(index, 10, 64)
	old := s.entries[key]
	return err == nil && (old == nil && want == 0 || old != nil && old.ModifyIndex == want)
}

// set stores an entry as a new version of its key. The caller of this method, and of all methods below, must
// hold mu.
func (s *Server) set(e *Entry) {
	s.touch()
	e.CreateIndex, e.ModifyIndex = s.index, s.index
	if old := s.entries[e.Key]; old != nil {
		e.CreateIndex, e.LockIndex, e.Session = old.CreateIndex, old.LockIndex, old.Session
	}
	if len(e.Value) == 0 {
		e.Value = nil // null in JSON
	}
	s.entries[e.Key] = e
}

func (s *Server) touch() {
	s.index++
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, key string) {
	query := r.URL.Query()
	if !s.allowed(w, r, "write", key) {
		return
	}
	switch {
	case query.Has("recurse"):
		s.touch()
		maps.DeleteFunc(s.entries, func(k string, _ *Entry) bool { return strings.HasPrefix(k, key) })
	case query.Has("cas") && !s.isAt(key, query.Get("cas")):
		nettest.Reply(w, http.StatusOK, false)
		return
	default:
		s.touch()
		delete(s.entries, key)
	}
	nettest.Reply(w, http.StatusOK, true)
}

func (s *Server) createSession(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Name, Behavior, TTL, LockDelay string }
	err := json.NewDecoder(r.Body).Decode(&asked)
	delay, delayErr := time.ParseDuration(asked.LockDelay)
	if err := cmp.Or(err, delayErr); err != nil {
		fail(w, http.StatusBadRequest, "Request decode failed: "+err.Error())
		return
	}
	s.touch()
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	id := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	s.sessions[id] = session{
		ID: id, Name: asked.Name, Node: "consultest", Behavior: "release", TTL: asked.TTL, LockDelay: delay, NodeChecks: []string{"serfHealth"},
		CreateIndex: s.index, ModifyIndex: s.index,
	}
	nettest.Reply(w, http.StatusOK, map[string]string{"ID": id})
}

func (s *Server) renewSession(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/v1/session/renew/")
	found, ok := s.sessions[id]
	if !ok {
		fail(w, http.StatusNotFound, fmt.Sprintf("Session id '%s' not found", id))
		return
	}
	nettest.Reply(w, http.StatusOK, []session{found})
}

func (s *Server) destroySession(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/v1/session/destroy/")
	for key, e := range s.entries {
		if e.Session == id {
			free := *e
			s.set(&free)
			free.Session = ""
			s.delays[key] = time.Now().Add(s.sessions[id].LockDelay)
		}
	}
	delete(s.sessions, id)
	nettest.Reply(w, http.StatusOK, true)
}

// txn handles a transaction of one operation. The backend sends no others.
func (s *Server) txn(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, MaxValue+1))
	if err != nil || len(text) > MaxValue {
		fail(w, http.StatusRequestEntityTooLarge, tooLarge(r, "txn_max_req_len"))
		return
	}
	var ops []struct {
		KV *struct {
			Verb, Key    string
			Value        []byte
			Flags, Index uint64
		}
	}
	if err := json.Unmarshal(text, &ops); err != nil || len(ops) != 1 || ops[0].KV == nil {
		fail(w, http.StatusBadRequest, fmt.Sprintf("Failed to parse body: %v", err))
		return
	}
	type failure struct {
		OpIndex int
		What    string
	}
	type outcome struct {
		Results []struct{ KV *Entry }
		Errors  []failure
	}
	op := ops[0].KV
	refuse := func(what string) {
		nettest.Reply(w, http.StatusConflict, outcome{Errors: []failure{{What: what}}})
	}
	switch {
	case s.Tokens != nil && !s.Tokens[token(r)]("write", op.Key):
		refuse(denied(r, "write", op.Key))
	case op.Verb == "cas" && !s.isAt(op.Key, strconv.FormatUint(op.Index, 10)):
		refuse(fmt.Sprintf("failed to set key %q, index is stale", op.Key))
	case op.Verb != "cas" && op.Verb != "set":
		fail(w, http.StatusBadRequest, "unknown verb "+op.Verb)
	default:
		e := &Entry{Key: op.Key, Value: op.Value, Flags: op.Flags}
		s.set(e)
		shown := *e
		shown.Value = nil // omitted to save space, as in Consul
		nettest.Reply(w, http.StatusOK, outcome{Results: []struct{ KV *Entry }{{&shown}}})
	}
}
