// Package tfetest is a small Terraform Enterprise server for tests. It has the parts of the API that the
// remote and cloud backends use to keep states.
//
// Workspaces do not run anything: their execution mode is local.
//
// The documents have the form that is described in
// https://developer.hashicorp.com/terraform/cloud-docs/api-docs. The client library is
// https://github.com/hashicorp/go-tfe.
package tfetest

import (
	"cmp"
	"crypto/md5" //nolint:gosec // the API's checksum
	"encoding/base64"
	"encoding/hex"
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

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Access is the access level of a token.
type Access int

// These are the permissions on workspaces. Each level includes the previous ones.
const (
	None    Access = iota // a valid token that cannot see anything
	Outputs               // "Read outputs only"
	Read                  // "Read"
	Write
)

// Server is one installation with one organization. Exported fields must be set before the first request, or
// with [Server.Change].
type Server struct {
	nettest.Log[string] // the requests, such as "GET /api/v2/…"

	Tokens map[string]Access

	Discovery any    // content of /.well-known/terraform.json
	Archive   string // origin of the object storage; "" means the origin of the request
	Direct    bool   // whether download URLs are signed archive URLs, as before 2023; otherwise they redirect to these
	PageSize  int    // number of outputs per page; 0 means no pages
	Terse     bool   // whether workspace documents omit permissions and the current state

	mu         sync.Mutex
	next       int
	workspaces []*Workspace
	objects    map[string][]byte // content by key of the signed URL
}

// Workspace is a workspace with its state versions. The current version is the last.
type Workspace struct {
	ID, Name, TerraformVersion string
	LockedBy                   string // ID of a user; "" if unlocked
	Tags                       []string
	Versions                   []*Version
}

// Version is a state version.
type Version struct {
	ID       string
	Serial   int64
	State    []byte // nil while the version is pending
	Status   string
	Outputs  []Output
	Sent     map[string]any // the attributes in the client's create request
	JSON     []byte         // the state in Terraform's public format, if the client sent it
	MoreSize int64          // difference between the announced size and the real one
}

// Output is one output of a state version.
type Output struct {
	ID, Name      string
	Sensitive     bool
	Type          string
	Value, Detail json.RawMessage
}

// New returns an installation with the organization acme and a token with write access.
func New() *Server {
	return &Server{
		Tokens: map[string]Access{Token: Write},
		Discovery: map[string]any{"modules.v1": "/api/registry/v1/modules/", "state.v2": "/api/v2/", "tfe.v2": "/api/v2/",
			"tfe.v2.1": "/api/v2/", "tfe.v2.2": "/api/v2/"},
		objects: map[string][]byte{},
	}
}

const organization = "acme"

// Token is the access token of a new installation. It may write.
const Token = "tok.atlasv1.wwwwwwwwwwwwwwwwwwww" //nolint:gosec // for tests

// Start serves h with TLS until the test ends. It returns the host with its port, and the certificate in PEM
// format.
func Start(tb testing.TB, h http.Handler) (host, ca string) {
	tb.Helper()
	s := nettest.Start(tb, h)
	return s.Listener.Addr().String(), nettest.PEM(s.Certificate())
}

// Change calls f, which may change the server, while no request is being served.
func (s *Server) Change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Workspace returns the workspace called name. It creates the workspace if it does not exist.
func (s *Server) Workspace(name string) *Workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.find(name); w != nil {
		return w
	}
	return s.create(name, "")
}

// Put makes state the current state of the workspace called name. The service can only read the outputs of
// plaintext states.
func (s *Server) Put(name string, state []byte) *Version {
	w := s.Workspace(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &Version{ID: s.id("sv"), State: state, Status: "finalized"}
	v.Outputs = s.outputsOf(state, nil)
	w.Versions = append(w.Versions, v)
	return v
}

// SetOutputs sets the outputs of the current version of w.
func (s *Server) SetOutputs(w *Workspace, outputs ...Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range outputs {
		outputs[i].ID = s.id("wsout")
	}
	w.current().Outputs = outputs
}

func (w *Workspace) current() *Version {
	for _, v := range slices.Backward(w.Versions) {
		if v.Status == "finalized" {
			return v
		}
	}
	return nil
}

// outputsOf returns the outputs of a state. If the client sent a list of outputs, it returns these instead,
// so that the service also knows the outputs of encrypted states.
func (s *Server) outputsOf(state, said []byte) []Output {
	type output struct {
		Value, Type json.RawMessage
		Sensitive   bool
	}
	var file struct{ Outputs map[string]output }
	_ = json.Unmarshal(state, &file) // the outputs of an encrypted state are unknown
	var outputs map[string]output
	if json.Unmarshal(said, &outputs) == nil && len(outputs) > 0 {
		file.Outputs = outputs
	}
	var out []Output
	for _, name := range slices.Sorted(maps.Keys(file.Outputs)) {
		o := file.Outputs[name]
		out = append(out, s.output(name, o.Sensitive, o.Value, o.Type))
	}
	return out
}

func (s *Server) output(name string, sensitive bool, value, detail json.RawMessage) Output {
	kind := "string"
	switch {
	case len(detail) > 0 && detail[0] == '[':
		kind = "array"
	case string(detail) == `"number"` || string(detail) == `"bool"`:
		kind = strings.Trim(string(detail), `"`)
	}
	return Output{ID: s.id("wsout"), Name: name, Sensitive: sensitive, Type: kind, Value: value, Detail: detail}
}

func (s *Server) id(kind string) string {
	s.next++
	return fmt.Sprintf("%s-%016d", kind, s.next)
}

func (s *Server) find(nameOrID string) *Workspace {
	if i := slices.IndexFunc(s.workspaces, func(w *Workspace) bool { return w.Name == nameOrID || w.ID == nameOrID }); i >= 0 {
		return s.workspaces[i]
	}
	return nil
}

func (s *Server) create(name, version string) *Workspace {
	w := &Workspace{ID: s.id("ws"), Name: name, TerraformVersion: version}
	s.workspaces = append(s.workspaces, w)
	return w
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 64<<20)) // if the body is cut off, it is not valid JSON
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Note(r.Method + " " + r.URL.RequestURI())
	x := &exchange{Server: s, w: w, r: r, body: body}
	path, isAPI := strings.CutPrefix(r.URL.Path, "/api/")
	switch {
	case r.URL.Path == "/.well-known/terraform.json":
		nettest.Reply(w, http.StatusOK, s.Discovery)
		return
	case strings.HasPrefix(r.URL.Path, "/v1/object/"):
		x.object()
		return
	case !isAPI:
		http.NotFound(w, r)
		return
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	access, known := s.Tokens[token]
	if !known {
		x.refuse(http.StatusUnauthorized, "unauthorized")
		return
	}
	x.access = access
	w.Header().Set("TFP-API-Version", "2.6")
	w.Header().Set("TFP-AppName", "Terraform Enterprise")
	w.Header().Set("X-TFE-Version", "v202505-1")
	x.serve(strings.Split(strings.Trim(strings.TrimPrefix(path, "v2"), "/"), "/"))
}

// exchange is one request.
type exchange struct {
	*Server
	w      http.ResponseWriter
	r      *http.Request
	body   []byte
	access Access
}

// serve handles an API request. path does not include the API prefix.
func (x *exchange) serve(path []string) {
	at := func(i int) string {
		if i < len(path) {
			return path[i]
		}
		return ""
	}
	read := x.r.Method == http.MethodGet
	write := x.access >= Write
	switch {
	case at(0) == "ping":
		x.w.WriteHeader(http.StatusNoContent)
	case at(0) == "organizations" && (at(1) != organization || x.access == None):
		x.notFound()
	case at(0) == "organizations" && at(2) == "entitlement-set":
		x.send(200, resource("entitlement-sets", "org-1", map[string]any{"operations": false, "state-storage": true}, nil))
	case at(0) == "organizations" && len(path) == 2:
		x.send(200, resource("organizations", organization, map[string]any{"name": organization}, nil))
	case at(0) == "organizations" && at(2) == "workspaces" && len(path) == 3 && read:
		x.listWorkspaces()
	case at(0) == "organizations" && at(2) == "workspaces" && len(path) == 3 && write:
		x.createWorkspace()
	case at(0) == "organizations" && at(2) == "workspaces":
		x.workspace(x.find(at(3)), "")
	case at(0) == "workspaces":
		x.workspace(x.find(at(1)), strings.Join(path[2:], "/"))
	case at(0) == "state-versions" && read:
		x.stateVersion(at(1), at(2))
	case at(0) == "state-version-outputs" && read:
		x.stateVersionOutput(at(1))
	default:
		x.notFound()
	}
}

func (x *exchange) notFound() { x.refuse(http.StatusNotFound, "not found") }

func (x *exchange) refuse(code int, title string) {
	x.send(code, map[string]any{"errors": []any{map[string]any{"status": strconv.Itoa(code), "title": title,
		"detail": "canary: what the server says"}}})
}

func (x *exchange) send(code int, document any) {
	x.w.Header().Set("Content-Type", "application/vnd.api+json; charset=utf-8")
	nettest.Reply(x.w, code, document)
}

// resource returns a document with one resource.
func resource(kind, id string, attributes, relationships map[string]any) map[string]any {
	return map[string]any{"data": map[string]any{"type": kind, "id": id, "attributes": attributes, "relationships": relationships}}
}

func reference(kind, id string) map[string]any {
	if id == "" {
		return map[string]any{"data": nil}
	}
	return map[string]any{"data": map[string]any{"type": kind, "id": id}}
}

// attributes returns the attributes of the resource in the request.
func (x *exchange) attributes() map[string]any {
	var document struct {
		Data struct{ Attributes map[string]any }
	}
	_ = json.Unmarshal(x.body, &document) // missing values are noticed later
	return document.Data.Attributes
}

func (x *exchange) document(w *Workspace) map[string]any {
	permissions := map[string]any{"can-read-state-versions": x.access >= Read, "can-read-state-outputs": x.access >= Outputs}
	for _, action := range []string{
		"create-state-versions", "lock", "unlock", "force-unlock", "update", "queue-run", "destroy", "force-delete",
	} {
		permissions["can-"+action] = x.access >= Write
	}
	attributes := map[string]any{
		"name": w.Name, "locked": w.LockedBy != "", "operations": false, "execution-mode": "local", "auto-apply": false,
		"terraform-version": cmp.Or(w.TerraformVersion, "latest"), "tag-names": w.Tags, "permissions": permissions,
		"created-at": "2026-11-21T12:00:00.000Z", "updated-at": "2026-11-21T12:00:00.000Z",
	}
	relationships := map[string]any{"organization": reference("organizations", organization), "locked-by": reference("users", w.LockedBy),
		"current-state-version": reference("", "")}
	if v := w.current(); v != nil {
		relationships["current-state-version"] = reference("state-versions", v.ID)
	}
	if x.Terse {
		delete(attributes, "permissions")
		clear(relationships)
	}
	return resource("workspaces", w.ID, attributes, relationships)
}

func (x *exchange) listWorkspaces() {
	search, tags := x.r.URL.Query().Get("search[name]"), x.r.URL.Query().Get("search[tags]")
	list := []any{}
	for _, w := range x.workspaces {
		if strings.Contains(w.Name, search) && (tags == "" || slices.Contains(w.Tags, tags)) {
			list = append(list, x.document(w)["data"])
		}
	}
	x.send(200, map[string]any{"data": list, "meta": pagination(1, 1, len(list))})
}

func pagination(page, pages, total int) map[string]any {
	p := map[string]any{"current-page": page, "total-pages": pages, "total-count": total, "prev-page": nil, "next-page": nil}
	if page < pages {
		p["next-page"] = page + 1
	}
	return map[string]any{"pagination": p}
}

func (x *exchange) createWorkspace() {
	a := x.attributes()
	name, _ := a["name"].(string)
	version, _ := a["terraform-version"].(string)
	if name == "" || x.find(name) != nil {
		x.refuse(http.StatusUnprocessableEntity, "invalid attribute")
		return
	}
	w := x.create(name, version)
	var document struct {
		Data struct {
			Relationships struct{ Tags struct{ Data []tag } }
		}
	}
	_ = json.Unmarshal(x.body, &document) // tags are optional
	w.add(document.Data.Relationships.Tags.Data)
	x.send(201, x.document(w))
}

type tag struct{ Attributes struct{ Name string } }

func (w *Workspace) add(tags []tag) {
	for _, t := range tags {
		w.Tags = append(w.Tags, t.Attributes.Name)
	}
}

func (x *exchange) workspace(w *Workspace, rest string) {
	if w == nil || x.access == None {
		x.notFound()
		return
	}
	get, write := x.r.Method == http.MethodGet, x.access >= Write
	switch v := w.current(); {
	case get && rest == "":
		x.send(200, x.document(w))
	case get && rest == "current-state-version" && x.access >= Read && v != nil:
		x.send(200, x.version(w, v))
	case get && rest == "current-state-version-outputs" && x.access >= Outputs && v != nil:
		x.listOutputs(v)
	case !write || get && rest != "tag-bindings":
		x.notFound()
	case rest == "tag-bindings":
		x.send(200, map[string]any{"data": []any{}})
	case x.r.Method == http.MethodPatch:
		if version, ok := x.attributes()["terraform-version"].(string); ok {
			w.TerraformVersion = version
		}
		x.send(200, x.document(w))
	case rest == "relationships/tags":
		var document struct{ Data []tag }
		_ = json.Unmarshal(x.body, &document) // tags are optional
		w.add(document.Data)
		x.w.WriteHeader(http.StatusNoContent)
	case x.r.Method == http.MethodDelete, rest == "actions/safe-delete":
		x.workspaces = slices.DeleteFunc(x.workspaces, func(o *Workspace) bool { return o == w })
		x.w.WriteHeader(http.StatusNoContent)
	case rest == "actions/lock" && w.LockedBy != "":
		x.refuse(http.StatusConflict, "conflict")
	case rest == "actions/lock":
		w.LockedBy = "user-0000000000000001"
		x.send(200, x.document(w))
	case rest == "actions/unlock", rest == "actions/force-unlock":
		w.LockedBy = ""
		x.send(200, x.document(w))
	case rest == "state-versions":
		x.createVersion(w)
	default:
		x.notFound()
	}
}

func (x *exchange) origin() string { return cmp.Or(x.Archive, "https://"+x.r.Host) }

func (x *exchange) version(w *Workspace, v *Version) map[string]any {
	attributes := map[string]any{
		"created-at": "2026-11-21T12:00:00.000Z", "serial": v.Serial, "status": v.Status, "size": int64(len(v.State)) + v.MoreSize,
		"resources-processed": true, "state-version": 4,
		"hosted-state-upload-url": nil, "hosted-json-state-upload-url": nil,
	}
	switch {
	case v.Status == "pending":
		attributes["hosted-state-upload-url"] = x.origin() + "/v1/object/" + v.ID
		attributes["hosted-json-state-upload-url"] = x.origin() + "/v1/object/" + v.ID + "-json"
	case v.State != nil && x.Direct:
		attributes["hosted-state-download-url"] = x.signed(v)
	case v.State != nil:
		attributes["hosted-state-download-url"] = "https://" + x.r.Host + "/api/state-versions/" + v.ID + "/hosted_state"
	}
	outputs := []any{}
	for _, o := range v.Outputs {
		outputs = append(outputs, map[string]any{"type": "state-version-outputs", "id": o.ID})
	}
	return resource("state-versions", v.ID, attributes, map[string]any{"workspace": reference("workspaces", w.ID),
		"outputs": map[string]any{"data": outputs}})
}

// signed returns a URL that needs no credentials: anyone who knows the URL can read the state.
func (x *exchange) signed(v *Version) string {
	key := "signed-" + v.ID
	x.objects[key] = v.State
	return x.origin() + "/v1/object/" + key
}

func (x *exchange) createVersion(w *Workspace) {
	a := x.attributes()
	serial, isNumber := a["serial"].(float64)
	if w.LockedBy == "" {
		x.refuse(http.StatusConflict, "conflict")
		return
	}
	if sum, _ := a["md5"].(string); !isNumber || sum == "" {
		x.refuse(http.StatusUnprocessableEntity, "invalid attribute")
		return
	}
	v := &Version{ID: x.id("sv"), Serial: int64(serial), Status: "pending", Sent: a}
	w.Versions = append(w.Versions, v)
	if text, ok := a["state"].(string); ok {
		state, err := base64.StdEncoding.DecodeString(text)
		if err != nil || !x.finalize(v, state) {
			x.refuse(http.StatusUnprocessableEntity, "invalid attribute")
			return
		}
	}
	x.send(201, x.version(w, v))
}

// finalize stores the uploaded state.
func (x *exchange) finalize(v *Version, state []byte) bool {
	sum := md5.Sum(state) //nolint:gosec // the API's checksum
	if v.Sent["md5"] != hex.EncodeToString(sum[:]) {
		return false
	}
	text, _ := v.Sent["json-state-outputs"].(string)
	said, _ := base64.StdEncoding.DecodeString(text) // without it, the state's own outputs are used
	v.State, v.Status, v.Outputs = state, "finalized", x.outputsOf(state, said)
	return true
}

func (x *exchange) versionByID(id string) (*Workspace, *Version) {
	for _, w := range x.workspaces {
		if i := slices.IndexFunc(w.Versions, func(v *Version) bool { return v.ID == id }); i >= 0 {
			return w, w.Versions[i]
		}
	}
	return nil, nil
}

func (x *exchange) stateVersion(id, rest string) {
	w, v := x.versionByID(id)
	switch {
	case v == nil || x.access < Read:
		x.notFound()
	case rest == "":
		x.send(200, x.version(w, v))
	case rest == "hosted_state" && v.State != nil:
		http.Redirect(x.w, x.r, x.signed(v), http.StatusTemporaryRedirect)
	default:
		x.notFound()
	}
}

func (x *exchange) listOutputs(v *Version) {
	size := cmp.Or(x.PageSize, len(v.Outputs), 1)
	page, _ := strconv.Atoi(x.r.URL.Query().Get("page[number]")) // the default is the first page
	page = max(1, page)
	list := []any{}
	for _, o := range v.Outputs[min(len(v.Outputs), (page-1)*size):min(len(v.Outputs), page*size)] {
		list = append(list, o.document(false))
	}
	answer := map[string]any{"data": list}
	if x.PageSize > 0 {
		answer["meta"] = pagination(page, (len(v.Outputs)+size-1)/size, len(v.Outputs))
	}
	x.send(200, answer)
}

func (o Output) document(reveal bool) any {
	value := o.Value
	if o.Sensitive && !reveal {
		value = nil
	}
	return resource("state-version-outputs", o.ID, map[string]any{"name": o.Name, "sensitive": o.Sensitive, "type": o.Type, "value": value,
		"detailed-type": o.Detail}, nil)["data"]
}

func (x *exchange) stateVersionOutput(id string) {
	for _, w := range x.workspaces {
		for _, v := range w.Versions {
			i := slices.IndexFunc(v.Outputs, func(o Output) bool { return o.ID == id })
			if i >= 0 && x.access >= Outputs {
				x.send(200, map[string]any{"data": v.Outputs[i].document(true)})
				return
			}
		}
	}
	x.notFound()
}

// object handles requests to the object storage. It does not check tokens: anyone who knows a URL may use it.
func (x *exchange) object() {
	key := strings.TrimPrefix(x.r.URL.Path, "/v1/object/")
	_, v := x.versionByID(key)
	state, signed := x.objects[key]
	switch {
	case x.r.Header.Get("Authorization") != "" && x.Archive != "":
		http.Error(x.w, "canary: signed URLs take no Authorization", http.StatusBadRequest)
	case x.r.Method == http.MethodPut && strings.HasSuffix(key, "-json"):
		if _, v := x.versionByID(strings.TrimSuffix(key, "-json")); v != nil {
			v.JSON = x.body
		}
	case x.r.Method == http.MethodPut && v != nil && v.Status == "pending":
		if !x.finalize(v, x.body) {
			http.Error(x.w, "canary: the checksum differs", http.StatusBadRequest)
		}
	case x.r.Method == http.MethodGet && signed:
		x.w.Header().Set("Content-Type", "application/octet-stream")
		x.w.Header().Set("Content-Length", strconv.Itoa(len(state)))
		_, _ = x.w.Write(state)
	default:
		http.Error(x.w, "canary: there is no such object", http.StatusForbidden)
	}
}
