// Package s3test is S3 for tests: a server in the process that checks
// signatures, policies and customer keys as S3 does, and writes down what it
// was asked. Behind it, objects are kept by gofakes3.
package s3test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Leak is in all messages of errors. It must not be shown.
const Leak = "canary-of-the-server"

// Server is a fake of S3, with path-style addresses and those of Suffix.
type Server struct {
	Suffix  string // ".s3.eu-west-1.amazonaws.com": what is before it in a host is the bucket
	Region  string
	Secrets map[string]string // :: ID of an access key → its secret
	Token   string            // of every session; "" takes none

	// Allows decides what identities may do: the names of actions, and ARNs.
	// Nil lets them read objects and tells them of missing ones.
	Allows func(action, resource string) bool

	// Writes lets through whatever is signed: it is for those who write the
	// states that are read. See Change.
	Writes bool

	objects *s3mem.Backend
	behind  http.Handler

	mu       sync.Mutex
	sealed   map[string]string // :: path → MD5 of the customer's key
	requests []Request
}

// Request is one that arrived.
type Request struct {
	Method, Path, Query string
	AccessKey           string // who signed it
	Header              http.Header
}

// New makes a server with a bucket in eu-west-1. It knows the access key
// AKIATEST with the secret canary-secret.
func New(t testing.TB, bucket string) *Server {
	t.Helper()
	objects := s3mem.New()
	if err := objects.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	return &Server{
		Region: "eu-west-1", Secrets: map[string]string{"AKIATEST": "canary-secret"}, objects: objects, sealed: map[string]string{},
		behind: gofakes3.New(objects, gofakes3.WithLogger(gofakes3.DiscardLog())).Server(),
	}
}

// Start serves s without TLS until the test ends.
func (s *Server) Start(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// Create makes another bucket.
func (s *Server) Create(t testing.TB, bucket string) {
	t.Helper()
	if err := s.objects.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
}

// Put writes an object, and returns its version where the bucket keeps any.
func (s *Server) Put(t testing.TB, bucket, key string, data []byte) string {
	t.Helper()
	result, err := s.objects.PutObject(bucket, key, nil, bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.VersionID)
}

// Seal has an object be encrypted with a customer's key, of which it takes the
// MD5 in base64.
func (s *Server) Seal(bucket, key, md5 string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed["/"+bucket+"/"+key] = md5
}

// Get returns what is in an object.
func (s *Server) Get(t testing.TB, bucket, key string) []byte {
	t.Helper()
	o, err := s.objects.GetObject(bucket, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Contents.Close()
	data, err := io.ReadAll(o.Contents)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Delete removes an object, or, where the bucket keeps versions, marks it so
// and returns the version of the mark.
func (s *Server) Delete(t testing.TB, bucket, key string) string {
	t.Helper()
	result, err := s.objects.DeleteObject(bucket, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.VersionID)
}

// KeepVersions has a bucket keep them from now on.
func (s *Server) KeepVersions(t testing.TB, bucket string) {
	t.Helper()
	if err := s.objects.SetVersioningConfiguration(bucket, gofakes3.VersioningConfiguration{Status: gofakes3.VersioningEnabled}); err != nil {
		t.Fatal(err)
	}
}

// Change changes the fields of s while it serves.
func (s *Server) Change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Requests returns what arrived so far, in order, and forgets it.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.requests
	s.requests = nil
	return got
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	accessKey, region := scope(r)
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, accessKey, r.Header.Clone()})
	s.mu.Unlock()

	secret, known := s.Secrets[accessKey]
	switch {
	case accessKey == "":
		Refuse(w, 403, "AccessDenied", Leak)
	case !known:
		Refuse(w, 403, "InvalidAccessKeyId", Leak)
	case region != s.Region:
		Refuse(w, 400, "AuthorizationHeaderMalformed", Leak, "X-Amz-Bucket-Region", s.Region)
	case r.Header.Get("X-Amz-Security-Token") != s.Token:
		Refuse(w, 400, "InvalidToken", Leak)
	case !signed(r, accessKey, secret, region):
		Refuse(w, 403, "SignatureDoesNotMatch", Leak)
	default:
		if bucket, ok := strings.CutSuffix(r.Host, s.Suffix); ok && s.Suffix != "" {
			r.URL.Path, r.URL.RawPath = "/"+bucket+r.URL.Path, ""
		}
		r.Body = io.NopCloser(bytes.NewReader(unpack(r, body)))
		s.authorized(w, r)
	}
}

func (s *Server) authorized(w http.ResponseWriter, r *http.Request) {
	bucket, key, isObject := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	resource, action := "arn:aws:s3:::"+bucket+"/"+key, "s3:GetObject"
	version := r.URL.Query().Get("versionId")
	if version != "" {
		action = "s3:GetObjectVersion"
	}
	reads := r.Method == http.MethodGet && isObject && key != "" && onlyReads(r.URL.Query())
	s.mu.Lock()
	writes := s.Writes
	s.mu.Unlock()
	switch {
	case writes:
		s.sealing(r)
	case !reads, s.Allows != nil && !s.Allows(action, resource):
		Refuse(w, 403, "AccessDenied", Leak)
		return
	}
	if (reads || r.Method == http.MethodHead) && s.has(bucket, key) {
		if code := s.unsealing(r); code != "" {
			Refuse(w, map[string]int{"AccessDenied": 403}[code], code, Leak)
			return
		}
	}
	answer := httptest.NewRecorder()
	s.behind.ServeHTTP(answer, r)
	if answer.Code == http.StatusNotFound && strings.Contains(answer.Body.String(), "NoSuchKey") && s.Allows != nil && !s.Allows("s3:ListBucket", "arn:aws:s3:::"+bucket) {
		Refuse(w, 403, "AccessDenied", Leak)
		return
	}
	if version != "" && answer.Header().Get("X-Amz-Delete-Marker") == "true" {
		Refuse(w, 405, "MethodNotAllowed", Leak, "X-Amz-Delete-Marker", "true")
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (s *Server) has(bucket, key string) bool {
	o, err := s.objects.HeadObject(bucket, key)
	if err != nil {
		return false
	}
	o.Contents.Close()
	return true
}

// unpack takes the chunks apart that the SDK sends over TLS, of which gofakes3
// knows nothing.
func unpack(r *http.Request, body []byte) []byte {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return body
	}
	data, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body)))
	if err != nil {
		return body
	}
	r.ContentLength = int64(len(data))
	r.Header.Set("Content-Length", strconv.Itoa(len(data)))
	r.Header.Del("Content-Encoding")
	return data
}

func onlyReads(query url.Values) bool {
	for name := range query {
		if name != "versionId" && name != "x-id" {
			return false
		}
	}
	return true
}

const customerKeyMD5 = "X-Amz-Server-Side-Encryption-Customer-Key-Md5"

func (s *Server) sealing(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum := r.Header.Get(customerKeyMD5); r.Method == http.MethodPut && sum != "" {
		s.sealed[r.URL.Path] = sum
	}
}

// unsealing returns the code of the error with which S3 refuses an object that
// is encrypted with another key, or none.
func (s *Server) unsealing(r *http.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch sealed, got := s.sealed[r.URL.Path], r.Header.Get(customerKeyMD5); {
	case got == sealed:
		return ""
	case got == "" || sealed == "":
		return "InvalidRequest"
	default:
		return "AccessDenied"
	}
}

// Refuse answers with an error, and with headers in pairs.
func Refuse(w http.ResponseWriter, status int, code, message string, headers ...string) {
	if status == 0 {
		status = 400
	}
	for i := 0; i+1 < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message><RequestId>%s</RequestId></Error>`, html.EscapeString(code), message, Leak)
}

const algorithm = "AWS4-HMAC-SHA256 "

// fields are those of an Authorization header.
func fields(r *http.Request) map[string]string {
	out := map[string]string{}
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), algorithm)
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

// signed reports whether the signature is the one that the secret makes.
func signed(r *http.Request, accessKey, secret, region string) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	again := r.Clone(context.Background())
	again.Header = http.Header{}
	again.ContentLength = 0
	for name := range strings.SplitSeq(fields(r)["SignedHeaders"], ";") {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = r.ContentLength
		case "x-amz-date", "x-amz-security-token":
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	again.URL.Host, again.URL.Scheme = r.Host, "http"
	identity := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret, SessionToken: r.Header.Get("X-Amz-Security-Token")}
	err = v4.NewSigner().SignHTTP(context.Background(), identity, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", region, at, func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = true
	})
	return err == nil && again.Header.Get("Authorization") == r.Header.Get("Authorization")
}
