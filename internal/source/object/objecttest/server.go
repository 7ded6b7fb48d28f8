// Package objecttest is an S3 server for tests. It checks signatures, policies and customer keys as S3 does.
// If a test allows it, clients of real CLIs can also write.
package objecttest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // the protocol asks for it
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"hash/crc64"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Canary is part of all secrets and of the server's messages. It must never be shown.
const Canary = "canary"

// Server is a fake object store. It returns an object if the request is signed with one of Keys. It refuses
// all requests other than GetObject, unless it is Writable.
type Server struct {
	nettest.Log[Request]

	Region string            // the region that signatures must be for
	Keys   []aws.Credentials // keys that may read; nil accepts any key
	Hosts  []string          // hosts that may be prefixed with a bucket

	// Allows reports whether the client may perform an action, such as "s3:GetObject", on the resource with
	// this ARN. If it is nil, clients may read objects and learn whether an object exists.
	Allows func(action, resource string) bool

	// Answer is called first for each request. It returns true if it has sent a response. It may be nil.
	Answer func(http.ResponseWriter, *http.Request) bool

	// Writable allows clients to write, and to use signatures that only the vendor can check.
	Writable atomic.Bool

	// Conditions says how the server treats conditional writes.
	Conditions Conditions

	// WeakTags makes read responses use weak ETags such as W/"…", as a proxy that compresses responses does.
	WeakTags bool

	// WholeOnly makes reads ignore ranges.
	WholeOnly bool

	// Prefix is the prefix of the vendor's own headers, such as "X-Cos-". It is empty for S3's headers.
	Prefix string

	writes  sync.Mutex // held while a condition is checked and the write that depends on it is done
	mu      sync.Mutex
	buckets map[string]*bucket
}

// Conditions says how a store treats If-Match and If-None-Match in requests that write.
type Conditions int

// The zero value behaves as S3 does.
const (
	Kept          Conditions = iota
	Ignored                  // all conditions are ignored
	IgnoredIfs               // If-Match is ignored, as in stores that only support If-None-Match
	UnknownMatch             // requests with If-Match return 501
	UnknownDelete            // deletions with If-Match return 501
	Unknown                  // requests with a condition return 501
	IgnoredDelete            // all conditions of deletions are ignored, as in MinIO
	OnlyBare                 // If-Match only matches an ETag without quotes, as in radosgw 16
	NeverMet                 // If-Match never matches
	RadosGW                  // like OnlyBare; If-None-Match is also ignored in a bucket that keeps versions
	Deaf                     // a deletion reports success, but nothing is deleted
)

type bucket struct {
	keepsVersions bool
	objects       map[string][]version // by key; the newest version is the last
}

type version struct {
	id       string // "" if the bucket did not keep versions
	data     []byte
	deleted  bool
	sealed   string      // MD5 of the customer's key
	header   http.Header // metadata
	modified time.Time   // in whole seconds, as S3 shows it
}

// Request is one request that the server received.
type Request struct {
	Method, Host, Path, Query string
	AccessKey                 string // the ID of the key that signed the request
	Header                    http.Header
}

// New returns a store with these buckets.
func New(buckets ...string) *Server {
	s := &Server{buckets: map[string]*bucket{}}
	for _, name := range buckets {
		s.Create(name)
	}
	return s
}

// Create creates a bucket.
func (s *Server) Create(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[name] = &bucket{objects: map[string][]version{}}
}

// Serve starts s without TLS and returns its URL. The server stops at the end of the test.
func (s *Server) Serve(t testing.TB) string {
	t.Helper()
	return nettest.Serve(t, s)
}

// Put writes an object. It returns the version ID if the bucket keeps versions.
func (s *Server) Put(name, key string, data []byte) string {
	return s.add(name, key, version{data: data})
}

// Delete deletes an object. If the bucket keeps versions, it returns the version ID of the delete marker.
func (s *Server) Delete(name, key string) string {
	return s.add(name, key, version{deleted: true})
}

func (s *Server) add(name, key string, v version) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	if !b.keepsVersions {
		b.objects[key] = nil
	} else {
		v.id = rand.Text()
	}
	v.modified = time.Now().UTC().Truncate(time.Second)
	b.objects[key] = append(b.objects[key], v)
	return v.id
}

// Forget removes a version for good.
func (s *Server) Forget(name, key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	b.objects[key] = slices.DeleteFunc(b.objects[key], func(v version) bool { return v.id == id })
}

// Get returns the content of an object, or nil if there is none.
func (s *Server) Get(name, key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := s.buckets[name].newest(key)
	return v.data
}

// Everything returns all data that was ever written to a bucket that keeps versions.
func (s *Server) Everything(name string) (all [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, versions := range s.buckets[name].objects {
		for _, v := range versions {
			all = append(all, v.data)
		}
	}
	return all
}

func (b *bucket) newest(key string) (version, bool) {
	if all := b.objects[key]; len(all) > 0 {
		return all[len(all)-1], !all[len(all)-1].deleted
	}
	return version{}, false
}

// Keep makes a bucket keep versions from now on.
func (s *Server) Keep(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[name].keepsVersions = true
}

// Seal marks an object as encrypted with a customer's key.
func (s *Server) Seal(name, key string, customerKey []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := md5.Sum(customerKey) //nolint:gosec // see above
	all := s.buckets[name].objects[key]
	all[len(all)-1].sealed = base64.StdEncoding.EncodeToString(sum[:])
}

// OnlyRead returns an error if any request other than GetObject arrived.
func (s *Server) OnlyRead() error {
	for _, r := range s.Requests() {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.Query, "x-id=GetObject") {
			return fmt.Errorf("it was asked to %s %s?%s", r.Method, r.Path, r.Query)
		}
	}
	return nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	accessKey, region := scope(r)
	s.Note(Request{r.Method, r.Host, r.URL.Path, r.URL.RawQuery, accessKey, r.Header.Clone()})
	if s.Answer != nil && s.Answer(w, r) {
		return
	}
	i := slices.IndexFunc(s.Keys, func(k aws.Credentials) bool { return k.AccessKeyID == accessKey })
	switch authorization := r.Header.Get("Authorization"); {
	case s.Writable.Load() && authorization != "" && accessKey == "": // the vendor's own signature method
	case accessKey == "":
		s.refuse(w, http.StatusForbidden, "AccessDenied")
		return
	case s.Keys == nil:
	case i < 0:
		s.refuse(w, http.StatusForbidden, "InvalidAccessKeyId")
		return
	case region != s.Region:
		s.refuse(w, http.StatusBadRequest, "AuthorizationHeaderMalformed", "X-Amz-Bucket-Region", s.Region)
		return
	case r.Header.Get("X-Amz-Security-Token") != s.Keys[i].SessionToken:
		s.refuse(w, http.StatusBadRequest, "InvalidToken")
		return
	case !isSigned(r, s.Keys[i], region):
		s.refuse(w, http.StatusForbidden, "SignatureDoesNotMatch")
		return
	}
	s.serve(w, r, unpacked(r, body))
}

// serve handles a request whose signature was accepted.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	for _, host := range s.Hosts {
		if before, ok := strings.CutSuffix((&url.URL{Host: r.Host}).Hostname(), "."+host); ok {
			name, key = before, strings.TrimPrefix(r.URL.Path, "/")
		}
	}
	query, action := r.URL.Query(), "s3:GetObject"
	if query.Has("versionId") {
		action += "Version"
	}
	switch {
	case r.Method == http.MethodPut:
		action = "s3:PutObject"
	case r.Method == http.MethodDelete:
		action = "s3:DeleteObject"
	case key == "" && query.Has("versions"):
		action = "s3:ListBucketVersions"
	case key == "":
		action = "s3:ListBucket"
	}
	resource := strings.TrimSuffix("arn:aws:s3:::"+name+"/"+key, "/")
	reads := r.Method == http.MethodGet && key != ""
	for param := range query {
		reads = reads && (param == "versionId" || param == "x-id")
	}
	s.mu.Lock()
	b := s.buckets[name]
	s.mu.Unlock()
	switch {
	case !s.Writable.Load() && !reads || s.Allows != nil && !s.Allows(action, resource):
		s.refuse(w, http.StatusForbidden, "AccessDenied")
	case b == nil:
		s.refuse(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodPut && key != "":
		s.put(w, r, name, key, body)
	case r.Method == http.MethodDelete:
		s.remove(w, r, name, key)
	case key == "" && query.Has("versions"):
		s.listVersions(w, name, query)
	case key == "":
		s.list(w, name, query.Get("prefix"))
	default:
		s.get(w, r, name, key)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, name, key string) {
	id := r.URL.Query().Get("versionId")
	s.mu.Lock()
	v, found := s.buckets[name].newest(key)
	exists := v.data != nil || v.deleted
	if id != "" {
		all := s.buckets[name].objects[key]
		i := slices.IndexFunc(all, func(v version) bool { return shownID(v) == id && (v.id != "" || !v.deleted) })
		if found = i >= 0; found {
			v = all[i]
		}
	}
	s.mu.Unlock()
	given := r.Header.Get(customerKey)
	switch {
	case id != "" && !found:
		s.refuse(w, http.StatusNotFound, "NoSuchVersion")
	case id != "" && v.deleted:
		s.refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", s.named("Delete-Marker"), "true")
	case !found && s.Allows != nil && !s.Allows("s3:ListBucket", "arn:aws:s3:::"+name):
		s.refuse(w, http.StatusForbidden, "AccessDenied")
	case !found && exists:
		s.refuse(w, http.StatusNotFound, "NoSuchKey", s.named("Delete-Marker"), "true")
	case !found:
		s.refuse(w, http.StatusNotFound, "NoSuchKey")
	case given != v.sealed && (given == "" || v.sealed == ""):
		s.refuse(w, http.StatusBadRequest, "InvalidRequest")
	case given != v.sealed:
		s.refuse(w, http.StatusForbidden, "AccessDenied")
	default:
		maps.Copy(w.Header(), v.header)
		w.Header().Set("Content-Type", "application/octet-stream")
		tag := etag(v.data)
		if s.WeakTags {
			tag = "W/" + tag
		}
		w.Header().Set("ETag", tag)
		if v.id != "" {
			w.Header().Set(s.named("Version-Id"), v.id)
		}
		if s.WholeOnly {
			r.Header.Del("Range")
		}
		if isBehind(r.Header.Get("Range"), len(v.data)) {
			s.refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(v.data))
	}
}

// refuses reports whether a condition of a write request is not met. If so, it sends an error response.
func (s *Server) refuses(w http.ResponseWriter, r *http.Request, name, key string) bool {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	s.mu.Lock()
	v, there := s.buckets[name].newest(key)
	keepsVersions := s.buckets[name].keepsVersions
	s.mu.Unlock()
	deletes := r.Method == http.MethodDelete
	want := etag(v.data)
	switch {
	case s.Conditions == OnlyBare, s.Conditions == RadosGW:
		want = strings.Trim(want, `"`)
	case s.Conditions == NeverMet:
		want = ""
	}
	switch {
	case s.Conditions == Ignored, match != "" && s.Conditions == IgnoredIfs, match == "" && none == "",
		deletes && s.Conditions == IgnoredDelete, none != "" && s.Conditions == RadosGW && keepsVersions:
		return false
	case s.Conditions == Unknown, match != "" && (s.Conditions == UnknownMatch || deletes && s.Conditions == UnknownDelete):
		s.refuse(w, http.StatusNotImplemented, "NotImplemented")
	case match != "" && !there && deletes:
		return false
	case match != "" && !there:
		s.refuse(w, http.StatusNotFound, "NoSuchKey")
	case match != "" && match != want, none == "*" && there:
		s.refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	default:
		return false
	}
	return true
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request, name, key string) {
	s.writes.Lock()
	defer s.writes.Unlock()
	if s.refuses(w, r, name, key) {
		return
	}
	if s.Conditions != Deaf {
		s.Delete(name, key)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, name, key string, body []byte) {
	s.writes.Lock()
	defer s.writes.Unlock()
	sum := sha256.Sum256(body)
	if given := r.Header.Get("X-Amz-Checksum-Sha256"); given != "" && given != base64.StdEncoding.EncodeToString(sum[:]) {
		s.refuse(w, http.StatusBadRequest, "BadDigest")
		return
	}
	if s.refuses(w, r, name, key) {
		return
	}
	v := version{data: body, sealed: r.Header.Get(customerKey), header: http.Header{}}
	for name, values := range r.Header {
		if strings.HasPrefix(name, s.named("Meta-")) {
			v.header[name] = values
		}
	}
	s.add(name, key, v)
	w.Header().Set("ETag", etag(body))
	// The client compares this checksum with the checksum of the data that it sent.
	w.Header().Set(s.named("Hash-Crc64ecma"), strconv.FormatUint(crc64.Checksum(body, crc64.MakeTable(crc64.ECMA)), 10))
}

func (s *Server) list(w http.ResponseWriter, name, prefix string) {
	type object struct {
		Key, LastModified, ETag, StorageClass string
		Size                                  int
	}
	list := struct {
		XMLName           xml.Name `xml:"ListBucketResult"`
		Name, Prefix      string
		KeyCount, MaxKeys int
		Contents          []object
	}{Name: name, Prefix: prefix, MaxKeys: 1000}
	s.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(s.buckets[name].objects)) {
		if v, ok := s.buckets[name].newest(key); ok && strings.HasPrefix(key, prefix) {
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
			list.Contents = append(list.Contents, object{key, now, etag(v.data), "STANDARD", len(v.data)})
		}
	}
	s.mu.Unlock()
	list.KeyCount = len(list.Contents)
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(list)
}

// shownID returns the ID of a version in requests and responses.
func shownID(v version) string { return cmp.Or(v.id, "null") }

// isBehind reports whether a range begins behind an object of this size.
func isBehind(header string, size int) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	from, err := strconv.Atoi(first)
	return err == nil && from >= size
}

// listVersions serves a page of versions and delete markers: keys in order, the newest version of each first.
func (s *Server) listVersions(w http.ResponseWriter, name string, query url.Values) {
	type entry struct {
		XMLName                      xml.Name
		Key, VersionId, LastModified string
		IsLatest                     bool
		ETag, StorageClass           string `xml:",omitempty"`
		Size                         *int   `xml:",omitempty"`
	}
	most, err := strconv.Atoi(query.Get("max-keys"))
	if err != nil || most > 1000 {
		most = 1000
	}
	page := struct {
		XMLName                            xml.Name `xml:"ListVersionsResult"`
		Name, Prefix                       string
		KeyMarker, VersionIdMarker         string
		MaxKeys                            int
		IsTruncated                        bool
		NextKeyMarker, NextVersionIdMarker string `xml:",omitempty"`
		Entries                            []entry
	}{Name: name, Prefix: query.Get("prefix"), KeyMarker: query.Get("key-marker"), MaxKeys: most,
		VersionIdMarker: query.Get("version-id-marker")}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	passed := page.KeyMarker == "" // whether the entries before the page are over
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if !strings.HasPrefix(key, page.Prefix) || key < page.KeyMarker {
			continue
		}
		passed = passed || key > page.KeyMarker
		for i, v := range slices.Backward(b.objects[key]) {
			switch {
			case !passed:
				passed = shownID(v) == page.VersionIdMarker
				continue
			case v.deleted && v.id == "": // the bucket keeps no delete markers
				continue
			case len(page.Entries) == most:
				last := page.Entries[most-1]
				page.IsTruncated, page.NextKeyMarker, page.NextVersionIdMarker = true, last.Key, last.VersionId
			}
			if page.IsTruncated {
				break
			}
			e := entry{XMLName: xml.Name{Local: "DeleteMarker"}, Key: key, VersionId: shownID(v), IsLatest: i == len(b.objects[key])-1,
				LastModified: v.modified.Format("2006-01-02T15:04:05.000Z")}
			if !v.deleted {
				size := len(v.data)
				e.XMLName.Local, e.ETag, e.StorageClass, e.Size = "Version", etag(v.data), "STANDARD", &size
			}
			page.Entries = append(page.Entries, e)
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page)
}

const customerKey = "X-Amz-Server-Side-Encryption-Customer-Key-Md5"

func (s *Server) named(header string) string { return cmp.Or(s.Prefix, "X-Amz-") + header }

func etag(data []byte) string {
	return fmt.Sprintf(`"%x"`, md5.Sum(data)) //nolint:gosec // see above
}

// unpacked decodes the chunks that the AWS SDK sends over TLS.
func unpacked(r *http.Request, body []byte) []byte {
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		if data, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body))); err == nil {
			return data
		}
	}
	return body
}

func (s *Server) refuse(w http.ResponseWriter, status int, code string, headers ...string) {
	Refuse(w, status, code, Canary+" of the server", headers...)
}

// Refuse sends an error response. headers are alternating names and values.
func Refuse(w http.ResponseWriter, status int, code, message string, headers ...string) {
	for i := 0; i+1 < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message><RequestId>%s</RequestId></Error>`,
		html.EscapeString(code), message, Canary)
}

// fields returns the fields of the Authorization header.
func fields(r *http.Request) map[string]string {
	out := map[string]string{}
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if ok {
			out[name] = value
		}
	}
	return out
}

func scope(r *http.Request) (accessKey, region string) {
	parts := strings.Split(fields(r)["Credential"], "/")
	if len(parts) != 5 || parts[3] != "s3" {
		return "", ""
	}
	return parts[0], parts[2]
}

// isSigned reports whether the request has a recent and correct signature made with keys.
func isSigned(r *http.Request, keys aws.Credentials, region string) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute {
		return false
	}
	again := r.Clone(context.Background())
	again.Header, again.Body, again.ContentLength = http.Header{}, http.NoBody, 0
	again.URL.Host, again.URL.Scheme = r.Host, "http"
	for name := range strings.SplitSeq(fields(r)["SignedHeaders"], ";") {
		switch name {
		case "host", "x-amz-date", "x-amz-security-token":
		case "content-length":
			again.ContentLength = r.ContentLength
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	err = signer.SignHTTP(context.Background(), keys, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", region, at)
	return err == nil && again.Header.Get("Authorization") == r.Header.Get("Authorization")
}
