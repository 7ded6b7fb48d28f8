// Package gcstest provides a Google Cloud Storage server for tests. It supports the requests that read an object, and
// the requests of Terraform's gcs backend.
package gcstest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/md5" //nolint:gosec // Cloud Storage sends it too
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Token is the access token that a new service accepts by default.
const Token = "gcstest-access-token"

// Service is a Cloud Storage service. It is safe for concurrent use. Set the fields before the first request, or with
// Change.
type Service struct {
	nettest.Log[string] // the requests, such as "GET /storage/v1/b/…"

	Accepts     func(token string) bool // reports whether a token is valid; by default, only Token is
	Permissions []string                // the client's permissions; nil means all
	Ignores     Condition               // conditions to ignore, as emulators do
	Vague       bool                    // whether a 404 does not say what is missing, as in fake-gcs-server
	Retention   int                     // how long new objects are retained, in seconds
	DefaultHold bool                    // whether each new object gets an event-based hold
	SoftDelete  bool                    // whether the bucket soft-deletes replaced and deleted objects, and keeps no versions
	WholeOnly   bool                    // whether reads ignore ranges
	PageSize    int                     // maximum number of objects in a list page; 0 means no limit

	mu         sync.Mutex
	buckets    map[string]map[string][]*Object // versions by bucket and name; the live version is the last
	uploads    map[string]*upload
	generation int64
}

// Condition is a set of request conditions.
type Condition int

// The first three are conditions that a service can ignore. With NeverMet, a service treats a condition as never met.
const (
	OnCreate  Condition = 1 << iota // the object must not exist
	OnReplace                       // the object must have this generation
	OnDelete                        // like OnReplace, but for DELETE
	NeverMet                        // the service refuses to replace any generation
)

// Object is one version of an object.
type Object struct {
	Data       []byte // as stored
	Encoding   string // the Content-Encoding of Data
	Key        []byte // the customer-supplied key, or nil
	KMS        string // the Cloud KMS key name; "" means Google's own key
	Generation int64
	Retained   bool // whether a retention policy prevents deletion
	Held       bool // whether an event-based hold prevents deletion
	deleted    bool // whether the object was deleted; its generation can still be read
	soft       bool // whether the object was soft-deleted; its generation cannot be read
	until      time.Time
}

// created returns the time of the object. Like that of the real service, it is the generation in microseconds.
func (o *Object) created() time.Time { return time.UnixMicro(o.Generation).UTC() }

// generation returns the generation as the API writes it, or "0" if o is nil.
func (o *Object) generation() string {
	if o == nil {
		return "0"
	}
	return strconv.FormatInt(o.Generation, 10)
}

type upload struct {
	bucket, name, match, kms, sum string

	key, data []byte
	done      *Object
}

// New returns a service with the given buckets.
func New(buckets ...string) *Service {
	s := &Service{
		Accepts: func(token string) bool { return token == Token },
		buckets: map[string]map[string][]*Object{}, uploads: map[string]*upload{}, generation: 1700000000000000,
	}
	for _, b := range buckets {
		s.buckets[b] = map[string][]*Object{}
	}
	return s
}

// Start serves the service until the test ends. It returns the endpoint of the JSON API.
func (s *Service) Start(tb testing.TB) string {
	tb.Helper()
	return nettest.Serve(tb, s) + "/storage/v1/"
}

// Change calls how with the service locked, so that how can change its fields while the service is in use.
func (s *Service) Change(how func(*Service)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
}

// Put stores a new version of an object and returns its generation.
func (s *Service) Put(bucket, name string, o Object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(bucket, name, &o).generation()
}

// Everything returns the content of all versions of all objects in a bucket.
func (s *Service) Everything(bucket string) (all [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, versions := range s.buckets[bucket] {
		for _, o := range versions {
			all = append(all, o.Data)
		}
	}
	return all
}

// Delete deletes the live version of an object, even if a hold or a retention policy would prevent this.
func (s *Service) Delete(bucket, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.live(bucket, name); o != nil {
		s.retire(o)
	}
}

// retire makes a live object noncurrent or soft-deleted.
func (s *Service) retire(o *Object) {
	s.generation++
	o.deleted, o.soft, o.until = true, s.SoftDelete, time.UnixMicro(s.generation).UTC()
}

// Forget deletes a generation for good.
func (s *Service) Forget(bucket, name, generation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[bucket][name] = slices.DeleteFunc(s.buckets[bucket][name], func(o *Object) bool { return o.generation() == generation })
}

// Create creates a bucket.
func (s *Service) Create(bucket string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[bucket] = map[string][]*Object{}
}

func (s *Service) put(bucket, name string, o *Object) *Object {
	if old := s.live(bucket, name); old != nil {
		s.retire(old)
	}
	s.generation++
	o.Generation = s.generation
	s.buckets[bucket][name] = append(s.buckets[bucket][name], o)
	return o
}

// Get returns the live version of an object, or nil if there is none.
func (s *Service) Get(bucket, name string) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live(bucket, name)
}

func (s *Service) live(bucket, name string) *Object {
	versions := s.buckets[bucket][name]
	if n := len(versions); n > 0 && !versions[n-1].deleted {
		return versions[n-1]
	}
	return nil
}

// ServeHTTP handles one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a truncated body is handled like any other invalid body
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Note(r.Method + " " + r.RequestURI)
	x := &exchange{Service: s, w: w, r: r, body: body}
	if !s.Accepts(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
		x.refuse(401, "authError", "Invalid Credentials")
		return
	}
	x.route()
}

// exchange is one request.
type exchange struct {
	*Service
	w    http.ResponseWriter
	r    *http.Request
	body []byte
}

func (x *exchange) route() {
	path := x.r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, "/storage/v1/b/"); ok {
		bucket, name, isObject := cut(rest, "/o/")
		bucket = strings.TrimSuffix(bucket, "/o")
		switch {
		case !isObject && x.r.Method == http.MethodGet && !strings.HasSuffix(path, "/o"):
			x.describeBucket(bucket)
		case !isObject && x.r.Method == http.MethodGet:
			x.list(bucket)
		case isObject && x.r.Method == http.MethodGet && x.r.FormValue("alt") == "media":
			x.contents(bucket, name)
		case isObject && x.r.Method == http.MethodGet:
			x.metadata(bucket, name)
		case isObject && x.r.Method == http.MethodDelete:
			x.remove(bucket, name)
		default:
			x.refuse(405, "methodNotAllowed", "Method Not Allowed")
		}
		return
	}
	if rest, ok := strings.CutPrefix(path, "/upload/storage/v1/b/"); ok && (x.r.Method == http.MethodPost || x.r.Method == http.MethodPut) {
		bucket, _, _ := cut(rest+"/", "/o/")
		x.upload(bucket)
		return
	}
	// This is the XML API, which Google's Go client uses for reading.
	if bucket, name, ok := cut(strings.TrimPrefix(path, "/"), "/"); ok && x.r.Method == http.MethodGet {
		x.contents(bucket, name)
		return
	}
	x.w.WriteHeader(404)
}

func cut(path, sep string) (before, after string, found bool) {
	before, after, found = strings.Cut(path, sep)
	before, _ = url.PathUnescape(before)
	after, _ = url.PathUnescape(after)
	return before, after, found
}

// refuse sends an error response. The body is a line of text if the request was for an object's content, and JSON
// otherwise.
func (x *exchange) refuse(code int, reason, message string) {
	if code == 404 && x.Vague {
		message = "Not Found"
	}
	if x.r.FormValue("alt") == "media" && code != 401 {
		x.w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		x.w.WriteHeader(code)
		fmt.Fprint(x.w, message)
		return
	}
	nettest.Reply(x.w, code, map[string]any{"error": map[string]any{
		"code": code, "message": message, "errors": []any{map[string]string{"domain": "global", "reason": reason, "message": message}},
	}})
}

func (x *exchange) may(permission string) bool {
	return x.Permissions == nil || slices.Contains(x.Permissions, permission)
}

// allowed reports whether the client has a permission. If not, it sends an error response.
func (x *exchange) allowed(bucket, permission string) bool {
	if _, ok := x.buckets[bucket]; !ok {
		x.refuse(404, "notFound", "The specified bucket does not exist.")
		return false
	}
	if x.may(permission) {
		return true
	}
	x.refuse(403, "forbidden", "canary@p.iam.gserviceaccount.com does not have "+permission+
		" access to the Google Cloud Storage object. Permission '"+permission+"' denied on resource (or it may not exist).")
	return false
}

// find returns the requested version. If there is none, it returns nil and sends an error response.
func (x *exchange) find(bucket, name string) *Object {
	if !x.allowed(bucket, "storage.objects.get") {
		return nil
	}
	o := x.live(bucket, name)
	if g := x.r.FormValue("generation"); g != "" {
		o = nil
		all := x.buckets[bucket][name]
		if i := slices.IndexFunc(all, func(v *Object) bool { return v.generation() == g && !v.soft }); i >= 0 {
			o = all[i]
		}
	}
	switch {
	case o != nil && !x.matches(o, 0):
		return nil
	case o != nil:
		return o
	case !x.may("storage.objects.list"):
		x.allowed(bucket, "storage.objects.list")
	default:
		x.refuse(404, "notFound", "No such object: "+bucket+"/"+name)
	}
	return nil
}

// key returns the customer-supplied key of a request. If the key's headers are inconsistent, it returns false
// and sends an error response.
func (x *exchange) key() ([]byte, bool) {
	text := x.r.Header.Get("X-Goog-Encryption-Key")
	if text == "" {
		return nil, true
	}
	key, err := base64.StdEncoding.DecodeString(text)
	sum := sha256.Sum256(key)
	if err != nil || len(key) != 32 || x.r.Header.Get("X-Goog-Encryption-Algorithm") != "AES256" ||
		x.r.Header.Get("X-Goog-Encryption-Key-Sha256") != base64.StdEncoding.EncodeToString(sum[:]) {
		x.refuse(400, "customerEncryptionKeySha256IsInvalid", "Missing a SHA256 hash of the encryption key, or it is not base64 encoded, or "+
			"it does not match the encryption key.")
		return nil, false
	}
	return key, true
}

func (x *exchange) contents(bucket, name string) {
	o := x.find(bucket, name)
	if o == nil {
		return
	}
	key, ok := x.key()
	switch {
	case !ok:
		return
	case o.Key == nil && key != nil:
		x.refuse(400, "resourceNotEncryptedWithCustomerEncryptionKey",
			"The target object is not encrypted by a customer-supplied encryption key.")
		return
	case o.Key != nil && key == nil:
		x.refuse(400, "resourceIsEncryptedWithCustomerEncryptionKey", "The target object is encrypted by a customer-supplied encryption key.")
		return
	case !bytes.Equal(o.Key, key):
		x.refuse(400, "customerEncryptionKeyIsIncorrect", "The provided encryption key is incorrect.")
		return
	}
	data, h := o.Data, x.w.Header()
	if o.Encoding == "gzip" && !strings.Contains(x.r.Header.Get("Accept-Encoding"), "gzip") {
		z, err := gzip.NewReader(bytes.NewReader(data)) // https://cloud.google.com/storage/docs/transcoding
		if err == nil {
			data, err = io.ReadAll(z)
		}
		if err != nil {
			x.w.WriteHeader(500)
			return
		}
	} else if o.Encoding != "" {
		h.Set("Content-Encoding", o.Encoding)
	}
	h.Set("X-Goog-Generation", o.generation())
	h.Set("X-Goog-Metageneration", "1")
	h.Set("X-Goog-Hash", "crc32c="+crc32c(o.Data)+",md5="+md5sum(o.Data))
	h.Set("X-Goog-Stored-Content-Length", strconv.Itoa(len(o.Data)))
	h.Set("Content-Type", "application/json")
	first, _, ranged := strings.Cut(strings.TrimPrefix(x.r.Header.Get("Range"), "bytes="), "-")
	from, err := strconv.Atoi(first)
	switch {
	case !ranged || x.WholeOnly:
		h.Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = x.w.Write(data)
	case err != nil || from >= len(data):
		x.refuse(416, "requestedRangeNotSatisfiable", "Request range not satisfiable")
	default:
		http.ServeContent(x.w, x.r, "", time.Time{}, bytes.NewReader(data))
	}
}

func crc32c(data []byte) string {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func md5sum(data []byte) string {
	sum := md5.Sum(data) //nolint:gosec // Cloud Storage sends it too
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (x *exchange) metadata(bucket, name string) {
	if o := x.find(bucket, name); o != nil {
		nettest.Reply(x.w, 200, describe(bucket, name, o))
	}
}

const timeFormat = "2006-01-02T15:04:05.000Z"

func describe(bucket, name string, o *Object) map[string]any {
	about := map[string]any{
		"kind": "storage#object", "bucket": bucket, "name": name, "generation": o.generation(), "metageneration": "1",
		"size": strconv.Itoa(len(o.Data)), "crc32c": crc32c(o.Data), "md5Hash": md5sum(o.Data),
	}
	about["timeCreated"] = o.created().Format(timeFormat)
	if o.soft {
		about["softDeleteTime"], about["hardDeleteTime"] = o.until.Format(timeFormat), o.until.AddDate(0, 0, 7).Format(timeFormat)
	} else if o.deleted {
		about["timeDeleted"] = o.until.Format(timeFormat)
	}
	if o.Retained {
		about["retentionExpirationTime"] = "2126-11-29T00:00:00Z"
	}
	if o.Held {
		about["eventBasedHold"] = true
	}
	return about
}

func (x *exchange) describeBucket(bucket string) {
	if !x.allowed(bucket, "storage.buckets.get") {
		return
	}
	about := map[string]any{"kind": "storage#bucket", "name": bucket}
	if x.Retention > 0 {
		about["retentionPolicy"] = map[string]any{"retentionPeriod": strconv.Itoa(x.Retention)}
	}
	if x.DefaultHold {
		about["defaultEventBasedHold"] = true
	}
	nettest.Reply(x.w, 200, about)
}

func (x *exchange) list(bucket string) {
	if !x.allowed(bucket, "storage.objects.list") {
		return
	}
	query := x.r.URL.Query()
	versions, soft := query.Get("versions") == "true", query.Get("softDeleted") == "true"
	if soft && !x.SoftDelete {
		x.refuse(400, "invalid", "Soft delete policy is required to list soft-deleted versions")
		return
	}
	items, answer := []any{}, map[string]any{"kind": "storage#objects"}
	prefix, delimiter, after := query.Get("prefix"), query.Get("delimiter"), query.Get("pageToken")
	for _, name := range slices.Sorted(maps.Keys(x.buckets[bucket])) {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || delimiter != "" && strings.Contains(rest, delimiter) {
			continue
		}
		for _, o := range x.buckets[bucket][name] {
			position := fmt.Sprintf("%s\x00%020d", name, o.Generation)
			if position <= after || o.soft != soft || o.deleted && !versions && !soft || answer["nextPageToken"] != nil {
				continue
			}
			if x.PageSize > 0 && len(items) == x.PageSize {
				answer["nextPageToken"] = after
				continue
			}
			items = append(items, describe(bucket, name, o))
			after = position
		}
	}
	answer["items"] = items
	nettest.Reply(x.w, 200, answer)
}

// matches reports whether the request's ifGenerationMatch is met. The value 0 means that the object must not exist.
// For any other value, named is the condition that the service may ignore. If the condition is not met, matches sends
// an error response.
func (x *exchange) matches(o *Object, named Condition) bool {
	return x.meets(x.r.FormValue("ifGenerationMatch"), o, named)
}

func (x *exchange) meets(match string, o *Object, named Condition) bool {
	if match == "0" {
		named = OnCreate
	}
	never := x.Ignores&NeverMet != 0 && named == OnReplace
	if !never && (match == "" || match == o.generation() || x.Ignores&named != 0) {
		return true
	}
	x.refuse(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
	return false
}

// lets reports whether an object may be deleted or replaced. If not, it sends an error response.
func (x *exchange) lets(bucket, name string, o *Object) bool {
	switch {
	case o != nil && o.Retained:
		x.refuse(403, "retentionPolicyNotMet", "Object '"+bucket+"/"+name+"' is subject to bucket's retention policy or object retention and "+
			"cannot be deleted or overwritten until 2126-11-29T00:00:00Z")
	case o != nil && o.Held:
		x.refuse(403, "objectUnderActiveHold", "Object '"+bucket+"/"+name+"' is under active Event-Based hold and cannot be deleted, "+
			"overwritten or archived until hold is removed.")
	default:
		return true
	}
	return false
}

func (x *exchange) remove(bucket, name string) {
	if !x.allowed(bucket, "storage.objects.delete") {
		return
	}
	o := x.live(bucket, name)
	if o == nil {
		x.refuse(404, "notFound", "No such object: "+bucket+"/"+name)
		return
	}
	if x.matches(o, OnDelete) && x.lets(bucket, name, o) {
		x.retire(o)
		x.w.WriteHeader(204)
	}
}

// upload handles uploads, in a single request or in several.
// https://cloud.google.com/storage/docs/uploads-downloads#uploads
func (x *exchange) upload(bucket string) {
	if !x.allowed(bucket, "storage.objects.create") {
		return
	}
	query := x.r.URL.Query()
	if id := query.Get("upload_id"); id != "" {
		x.chunk(id)
		return
	}
	key, ok := x.key()
	if !ok {
		return
	}
	u := &upload{
		bucket: bucket, name: query.Get("name"), match: query.Get("ifGenerationMatch"), key: key, kms: query.Get("kmsKeyName"),
	}
	if key != nil && u.kms != "" {
		x.refuse(400, "invalid", "A customer-supplied encryption key and a key of Cloud KMS exclude each other.")
		return
	}
	switch query.Get("uploadType") {
	case "multipart":
		_, params, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
		parts := multipart.NewReader(bytes.NewReader(x.body), params["boundary"])
		description, err := readPart(parts)
		if err == nil {
			u.data, err = readPart(parts)
		}
		if err != nil {
			x.refuse(400, "badRequest", err.Error())
			return
		}
		u.describe(description)
		x.finish(u)
	case "resumable":
		u.describe(x.body)
		if !x.meets(u.match, x.live(u.bucket, u.name), OnReplace) {
			return
		}
		id := strconv.Itoa(len(x.uploads) + 1)
		x.uploads[id] = u
		query.Set("upload_id", id)
		scheme := "http://"
		if x.r.TLS != nil {
			scheme = "https://"
		}
		x.w.Header().Set("Location", scheme+x.r.Host+x.r.URL.EscapedPath()+"?"+query.Encode())
		x.w.WriteHeader(200)
	default:
		x.refuse(400, "badRequest", "no such uploadType")
	}
}

func (u *upload) describe(document []byte) {
	var o struct{ Name, CRC32C string }
	_ = json.Unmarshal(document, &o) // the document may be empty
	u.name, u.sum = cmp.Or(o.Name, u.name), o.CRC32C
}

func readPart(parts *multipart.Reader) ([]byte, error) {
	part, err := parts.NextPart()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(part)
}

// chunk handles one part of a resumable upload. In the last part, the Content-Range ends with the total size.
func (x *exchange) chunk(id string) {
	u := x.uploads[id]
	if u == nil {
		x.refuse(404, "notFound", "no such upload")
		return
	}
	position, size, ok := strings.Cut(strings.TrimPrefix(x.r.Header.Get("Content-Range"), "bytes "), "/")
	first, _, ranged := strings.Cut(position, "-")
	if from, err := strconv.Atoi(first); ranged && ok && err == nil && from <= len(u.data) && from+len(x.body) > len(u.data) {
		u.data = append(u.data, x.body[len(u.data)-from:]...)
	}
	if want, err := strconv.Atoi(size); err == nil && len(u.data) == want {
		x.finish(u)
		return
	}
	if len(u.data) > 0 {
		x.w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(u.data)-1))
	}
	if x.r.Header.Get("X-Guploader-No-308") == "yes" {
		x.w.Header().Set("X-Http-Status-Code-Override", "308")
		x.w.WriteHeader(200)
		return
	}
	x.w.WriteHeader(308)
}

func (x *exchange) finish(u *upload) {
	before := x.live(u.bucket, u.name)
	switch {
	case u.done != nil: // the upload was already complete; the client asks again
	case before != nil && !x.allowed(u.bucket, "storage.objects.delete"), !x.meets(u.match, before, OnReplace),
		!x.lets(u.bucket, u.name, before):
		return
	case u.sum != "" && u.sum != crc32c(u.data):
		x.refuse(400, "invalid", "Provided CRC32C does not match.")
		return
	default:
		u.done = x.put(u.bucket, u.name, &Object{Data: u.data, Key: u.key, KMS: u.kms, Retained: x.Retention > 0, Held: x.DefaultHold})
	}
	nettest.Reply(x.w, 200, describe(u.bucket, u.name, u.done))
}
