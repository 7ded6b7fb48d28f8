// Package kubetest is a Kubernetes API server for tests of clients that read or write a few objects. It uses
// TLS.
package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Server is an API server. It serves GET requests for single objects and for the kinds of an API. Other
// requests are refused unless it is Writable.
type Server struct {
	*httptest.Server
	nettest.Log[string] // the requests, such as "GET /api/v1/…"

	Token    string                                            // the accepted bearer token; "" accepts every request
	Allows   func(method, path string) bool                    // reports whether a request is allowed, otherwise 403; nil allows all
	Accepts  func(*http.Request) bool                          // replaces the check of Token
	Answer   func(w http.ResponseWriter, r *http.Request) bool // returns true if it has sent a response
	Writable bool                                              // whether POST, PUT, DELETE and lists are served as well

	mu      sync.Mutex
	objects map[string]map[string]any // by path
	opaque  map[string]opaque         // objects that are not JSON, by path
	kinds   map[string][]any          // API resources by "/apis/GROUP/VERSION"
	version int
}

// opaque is an object that is returned exactly as it was received. Typed clients send protobuf.
type opaque struct {
	contentType string
	body        []byte
}

// New starts a server, which stops at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{Token: "test-token", objects: map[string]map[string]any{}, opaque: map[string]opaque{}, kinds: map[string][]any{}}
	s.Server = nettest.Start(t, s)
	return s
}

// CA returns the server's certificate in PEM format.
func (s *Server) CA() string { return nettest.PEM(s.Certificate()) }

// AddKind adds a kind to the server, as a custom resource definition does.
func (s *Server) AddKind(group, version, resource, kind string, namespaced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	api := "/apis/" + group + "/" + version
	s.kinds[api] = append(s.kinds[api],
		map[string]any{"name": resource + "/status", "singularName": "", "namespaced": namespaced, "kind": kind,
			"verbs": []string{"get", "patch", "update"}},
		map[string]any{"name": resource, "singularName": strings.ToLower(kind), "namespaced": namespaced, "kind": kind,
			"verbs": []string{"get", "list", "watch"}})
}

// Put stores a JSON object below a path such as /api/v1/namespaces/demo/secrets.
func (s *Server) Put(t testing.TB, collection string, object []byte) {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(object, &o); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(collection, o)
}

// PutSecret stores a secret.
func (s *Server) PutSecret(namespace, name string, data map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store("/api/v1/namespaces/"+namespace+"/secrets", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": map[string]any{"namespace": namespace, "name": name}, "data": data,
	})
}

// Change calls how, which may change the fields of a server in use.
func (s *Server) Change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
}

// Names returns the paths of all objects below a path.
func (s *Server) Names(below string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for path := range s.objects {
		if strings.HasPrefix(path, below) {
			out = append(out, path)
		}
	}
	return out
}

func (s *Server) store(collection string, o map[string]any) map[string]any {
	s.version++
	meta, _ := o["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.Itoa(s.version)
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version)
	}
	s.objects[fmt.Sprint(collection, "/", meta["name"])] = o
	return o
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Note(r.Method + " " + r.URL.RequestURI())
	accepted := s.Token == "" || r.Header.Get("Authorization") == "Bearer "+s.Token
	if s.Accepts != nil {
		accepted = s.Accepts(r)
	}
	switch {
	case s.Answer != nil && s.answered(w, r):
	case !accepted:
		refuse(w, 401, "Unauthorized", "Unauthorized", nil)
	case s.Allows != nil && !s.Allows(r.Method, r.URL.Path):
		name, details := details(r.URL.Path)
		refuse(w, 403, "Forbidden", fmt.Sprintf("%q is forbidden: User \"test\" cannot do that", name), details)
	case r.Method == http.MethodGet && s.kinds[r.URL.Path] != nil:
		nettest.Reply(w, 200, map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": strings.TrimPrefix(r.URL.Path, "/apis/"),
			"resources": s.kinds[r.URL.Path],
		})
	case !s.served(r.URL.Path):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(404)
		fmt.Fprintln(w, "404 page not found")
	case r.Method == http.MethodGet && s.objects[r.URL.Path] != nil:
		nettest.Reply(w, 200, s.objects[r.URL.Path])
	case s.Writable:
		s.write(w, r)
	case r.Method == http.MethodGet && !isCollection(r.URL.Path):
		notFound(w, r.URL.Path)
	default:
		refuse(w, 405, "MethodNotAllowed", "only single objects can be read", nil)
	}
}

// answered calls s.Answer without holding the lock, because the call may take a long time.
func (s *Server) answered(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.Answer(w, r)
}

// write handles the requests of a client that stores a few objects.
func (s *Server) write(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/leases") {
		s.lock(w, r)
		return
	}
	var o map[string]any
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			refuse(w, 400, "BadRequest", err.Error(), nil)
			return
		}
		o["apiVersion"], o["kind"] = "v1", "Secret" // the dynamic client leaves them out
	}
	parent := r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')]
	switch {
	case r.Method == http.MethodPost && isCollection(r.URL.Path):
		nettest.Reply(w, 201, s.store(r.URL.Path, o))
	case r.Method == http.MethodPut && s.objects[r.URL.Path] != nil:
		nettest.Reply(w, 200, s.store(parent, o))
	case r.Method == http.MethodGet && isCollection(r.URL.Path):
		s.list(w, r)
	default:
		notFound(w, r.URL.Path)
	}
}

// lock handles requests for the one lease that a test's state needs.
func (s *Server) lock(w http.ResponseWriter, r *http.Request) {
	lease, there := s.opaque[r.URL.Path]
	status := http.StatusOK
	switch r.Method {
	case http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		lease = opaque{contentType: r.Header.Get("Content-Type"), body: body}
		for _, name := range leaseName.FindAllString(string(body), -1) {
			s.opaque[r.URL.Path+"/"+name] = lease
		}
		status = http.StatusCreated
	case http.MethodPut:
		lease.body, _ = io.ReadAll(r.Body)
		s.opaque[r.URL.Path] = lease
	case http.MethodGet:
		if !there {
			notFound(w, r.URL.Path)
			return
		}
	default:
		refuse(w, 405, "MethodNotAllowed", "a lease is made, read and changed", nil)
		return
	}
	w.Header().Set("Content-Type", lease.contentType)
	w.WriteHeader(status)
	_, _ = w.Write(lease.body)
}

var leaseName = regexp.MustCompile(`lock-tfstate-[a-z0-9-]+`)

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	items := []any{}
	for path, o := range s.objects {
		if strings.HasPrefix(path, r.URL.Path+"/") && selected(o, r.URL.Query().Get("labelSelector")) {
			items = append(items, o)
		}
	}
	nettest.Reply(w, 200, map[string]any{"kind": "List", "apiVersion": "v1",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items})
}

func selected(o map[string]any, selector string) bool {
	meta, _ := o["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	for term := range strings.SplitSeq(selector, ",") {
		name, value, ok := strings.Cut(term, "=")
		if ok && labels[name] != value {
			return false
		}
	}
	return true
}

// served reports whether the server serves this path at all.
func (s *Server) served(path string) bool {
	if strings.HasPrefix(path, "/api/v1/") || s.Writable && strings.HasPrefix(path, "/apis/coordination.k8s.io/v1/") {
		return true
	}
	for api, kinds := range s.kinds {
		for _, k := range kinds {
			name, _ := k.(map[string]any)["name"].(string)
			if strings.HasPrefix(path, api+"/") && strings.Contains(path+"/", "/"+name+"/") {
				return true
			}
		}
	}
	return false
}

// split splits a path. The path consists of /api/v1 or /apis/GROUP/VERSION, then perhaps a namespace, then
// the plural name of a kind, and a name.
func split(path string) (group, resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" && len(parts) > 1 {
		group, parts = parts[1], parts[1:]
	}
	parts = parts[min(2, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	parts = append(parts, "", "")
	return group, parts[0], parts[1]
}

func isCollection(path string) bool {
	_, _, name := split(path)
	return name == ""
}

func details(path string) (string, map[string]any) {
	group, resource, name := split(path)
	d := map[string]any{"name": name, "kind": resource}
	if group != "" {
		d["group"] = group
		resource += "." + group
	}
	return resource + " " + strconv.Quote(name), d
}

func notFound(w http.ResponseWriter, path string) {
	name, d := details(path)
	refuse(w, 404, "NotFound", name+" not found", d)
}

func refuse(w http.ResponseWriter, code int, reason, message string, details map[string]any) {
	s := map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "message": message,
		"reason": reason, "code": code}
	if details != nil {
		s["details"] = details
	}
	nettest.Reply(w, code, s)
}
