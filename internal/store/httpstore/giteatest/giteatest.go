// Package giteatest imitates the Terraform state registry of Gitea 1.26 for tests. It keeps one file for each serial,
// and checks the content of each state.
package giteatest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is the registry.
type Server struct {
	URL string

	mu     sync.Mutex
	states map[string]*state // by name in lower case
}

// state is one state in the registry.
type state struct {
	files  map[uint64][]byte // by serial
	newest uint64            // the serial written last, which may not be the highest
	lock   lock
}

// lock is a lock in Gitea's format, which Terraform and OpenTofu use too.
type lock struct {
	ID, Operation, Info, Who, Version string
	Created                           time.Time
	Path                              string
}

// Start starts a server, which is closed at the end of the test.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{states: map[string]*state{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Address returns the address of the named state.
func (s *Server) Address(name string) string {
	return s.URL + "/api/packages/ci/terraform/state/" + name
}

// Block returns an http backend block for the named state.
func (s *Server) Block(name string) string {
	return fmt.Sprintf("backend \"http\" {\naddress = %[1]q\nlock_address = \"%[1]s/lock\"\nunlock_address = \"%[1]s/lock\"\n"+
		"lock_method = \"POST\"\nunlock_method = \"DELETE\"\n}\n", s.Address(name))
}

// Stored returns the newest file of the named state, or nil if there is none.
func (s *Server) Stored(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(name).stored()
}

func (s *Server) at(name string) *state {
	name = strings.ToLower(name)
	if s.states[name] == nil {
		s.states[name] = &state{files: map[uint64][]byte{}}
	}
	return s.states[name]
}

func (s *state) stored() []byte { return s.files[s.newest] }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	name, isState := strings.CutPrefix(r.URL.Path, "/api/packages/ci/terraform/state/")
	name, isLock := strings.CutSuffix(name, "/lock")
	switch at := s.at(name); {
	case !isState || strings.Contains(name, "/"):
		http.Error(w, "", http.StatusNotFound)
	case isLock:
		at.serveLock(w, r.Method, body)
	case r.Method == http.MethodGet && at.stored() == nil:
		http.Error(w, "", http.StatusNotFound)
	case r.Method == http.MethodGet:
		_, _ = w.Write(at.stored())
	case r.Method == http.MethodPost && at.lock.ID != "" && at.lock.ID != r.URL.Query().Get("ID"):
		at.tellLock(w)
	case r.Method == http.MethodPost:
		at.upload(w, body)
	case r.Method == http.MethodDelete && at.lock.ID != "":
		http.Error(w, "terraform state is locked", http.StatusLocked)
	case r.Method == http.MethodDelete:
		delete(s.states, strings.ToLower(name))
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *state) upload(w http.ResponseWriter, body []byte) {
	var label struct {
		Serial  uint64
		Lineage string
	}
	err := json.Unmarshal(body, &label)
	switch _, known := s.files[label.Serial]; {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case label.Serial == 0:
		http.Error(w, "state serial is missing", http.StatusBadRequest)
	case label.Lineage == "":
		http.Error(w, "state lineage is missing", http.StatusBadRequest)
	case known:
		http.Error(w, "package file already exists", http.StatusConflict)
	default:
		s.files[label.Serial], s.newest = body, label.Serial
		w.WriteHeader(http.StatusCreated)
	}
}

func (s *state) serveLock(w http.ResponseWriter, method string, body []byte) {
	var given lock
	err := json.Unmarshal(body, &given)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case given.ID == "":
		http.Error(w, "terraform lock is missing an ID", http.StatusBadRequest)
	case method == http.MethodPost && s.lock.ID != "": // even if it has the same ID
		s.tellLock(w)
	case method == http.MethodPost:
		s.lock = given
	case method == http.MethodDelete && s.lock.ID != "" && s.lock.ID != given.ID:
		http.Error(w, "lock ID mismatch", http.StatusLocked)
	case method == http.MethodDelete:
		s.lock = lock{}
	}
}

func (s *state) tellLock(w http.ResponseWriter) {
	text, _ := json.Marshal(s.lock)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusLocked)
	_, _ = w.Write(text)
}
