// Package storetest is a store that understands the API of S3, for tests: what
// the vendors of such stores show to a client that reads, and, where a test
// wants that, to one that writes.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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

// Server is a store. It gives objects to those who sign with one of its keys,
// and refuses whatever is not a GetObject.
type Server struct {
	Region string            // that signatures must be for; "" for any
	Keys   []aws.Credentials // that may read
	Bases  []string          // hosts before which buckets may stand

	// Answer is asked first, and returns true when it has answered. It may be nil.
	Answer func(w http.ResponseWriter, r *http.Request) bool

	// Writable has the server take what the vendor's own clients send, signed or
	// not, and write.
	Writable bool

	// Prefix begins the vendor's headers, such as "X-Cos-", in what those
	// clients send and get.
	Prefix string

	backend *s3mem.Backend
	fake    http.Handler

	mu       sync.Mutex
	requests []Request
}

// Request is one that arrived.
type Request struct {
	Method, Host, Path, Query string
	AccessKey, Token          string
	Header                    http.Header
}

// New makes a store with these buckets.
func New(t testing.TB, buckets ...string) *Server {
	t.Helper()
	s := &Server{backend: s3mem.New()}
	for _, b := range buckets {
		if err := s.backend.CreateBucket(b); err != nil {
			t.Fatal(err)
		}
	}
	s.fake = gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog()), gofakes3.WithTimeSkewLimit(0)).Server()
	return s
}

// Serve starts s without TLS and returns its URL. It ends with the test.
func (s *Server) Serve(t testing.TB) string {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// Put writes an object.
func (s *Server) Put(t testing.TB, bucket, key string, data []byte) {
	t.Helper()
	if _, err := s.backend.PutObject(bucket, key, nil, bytes.NewReader(data), int64(len(data)), nil); err != nil {
		t.Fatal(err)
	}
}

// Keep has a bucket keep versions from now on.
func (s *Server) Keep(t testing.TB, bucket string) {
	t.Helper()
	if err := s.backend.SetVersioningConfiguration(bucket, gofakes3.VersioningConfiguration{Status: gofakes3.VersioningEnabled}); err != nil {
		t.Fatal(err)
	}
}

// Objects returns what the bucket holds.
func (s *Server) Objects(t testing.TB, bucket string) map[string][]byte {
	t.Helper()
	list, err := s.backend.ListBucket(bucket, &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, c := range list.Contents {
		object, err := s.backend.GetObject(bucket, c.Key, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := b.ReadFrom(object.Contents); err != nil {
			t.Fatal(err)
		}
		out[c.Key] = b.Bytes()
	}
	return out
}

// Requests returns what arrived, and forgets it.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// OnlyRead reports whether anything but GetObject arrived.
func (s *Server) OnlyRead() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.Method != http.MethodGet {
			return fmt.Errorf("it was asked to %s %s", r.Method, r.Path)
		}
	}
	return nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	accessKey, _, _ := strings.Cut(between(r.Header.Get("Authorization"), "Credential=", ","), "/")
	s.mu.Lock()
	s.requests = append(s.requests, Request{
		r.Method, r.Host, r.URL.Path, r.URL.RawQuery, accessKey, r.Header.Get("X-Amz-Security-Token"), r.Header.Clone(),
	})
	s.mu.Unlock()
	if s.Answer != nil && s.Answer(w, r) {
		return
	}
	if !s.Writable {
		if code := s.refusal(r); code != "" {
			Refuse(w, http.StatusForbidden, code)
			return
		}
		if query := r.URL.Query(); r.Method != http.MethodGet || query.Get("x-id") != "GetObject" {
			Refuse(w, http.StatusForbidden, "AccessDenied")
			return
		}
	}
	inner := r.Clone(r.Context())
	for _, base := range s.Bases {
		if bucket, ok := strings.CutSuffix(hostname(r.Host), "."+base); ok {
			inner.URL.Path, inner.URL.RawPath = "/"+bucket+r.URL.Path, ""
		}
	}
	inner.Host = "store"
	if s.Prefix != "" {
		rename(inner.Header, s.Prefix, "X-Amz-")
		if r.Method == http.MethodPut { // what was written is compared with this
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			inner.Body = io.NopCloser(bytes.NewReader(body))
			w.Header().Set(s.Prefix+"Hash-Crc64ecma", strconv.FormatUint(crc64.Checksum(body, crc64.MakeTable(crc64.ECMA)), 10))
		}
		w = &renaming{ResponseWriter: w, prefix: s.Prefix}
	}
	s.fake.ServeHTTP(w, inner)
}

// refusal is the code for a request that nobody signed who may read.
func (s *Server) refusal(r *http.Request) string {
	authorization := r.Header.Get("Authorization")
	credential := strings.Split(between(authorization, "Credential=", ","), "/")
	if !strings.HasPrefix(authorization, "AWS4-HMAC-SHA256 ") || len(credential) != 5 {
		return "AccessDenied"
	}
	i := slices.IndexFunc(s.Keys, func(k aws.Credentials) bool { return k.AccessKeyID == credential[0] })
	if i < 0 {
		return "InvalidAccessKeyId"
	}
	if s.Keys[i].SessionToken != r.Header.Get("X-Amz-Security-Token") {
		return "InvalidToken"
	}
	if s.Region != "" && credential[2] != s.Region || verify(r, s.Keys[i], credential[2]) != nil {
		return "SignatureDoesNotMatch"
	}
	return ""
}

// verify signs the same request and compares.
func verify(r *http.Request, keys aws.Credentials, region string) error {
	authorization := r.Header.Get("Authorization")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	if d := time.Since(at); d > 15*time.Minute || d < -15*time.Minute {
		return errors.New("the request is too old")
	}
	again := r.Clone(r.Context())
	again.Header, again.Body, again.ContentLength = http.Header{}, http.NoBody, 0
	again.URL.Scheme, again.URL.Host = "http", r.Host
	for _, name := range strings.Split(between(authorization, "SignedHeaders=", ","), ";") {
		if values := r.Header.Values(name); name != "host" && len(values) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(r.Context(), keys, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", region, at); err != nil {
		return err
	}
	if again.Header.Get("Authorization") != authorization {
		return errors.New("the signature is another one")
	}
	return nil
}

// Refuse answers as stores do. The message is one that nobody should see.
func Refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>the own words of the server</Message><RequestId>1</RequestId><HostId>2</HostId></Error>`, code)
}

func between(s, before, after string) string {
	_, rest, _ := strings.Cut(s, before)
	part, _, _ := strings.Cut(rest, after)
	return part
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

func rename(h http.Header, from, to string) {
	for name, values := range h {
		if rest, ok := strings.CutPrefix(name, from); ok {
			h[to+rest] = values
		}
	}
}

// renaming gives the vendor's names to the headers of an answer.
type renaming struct {
	http.ResponseWriter
	prefix string
}

func (r *renaming) WriteHeader(status int) {
	rename(r.Header(), "X-Amz-", r.prefix)
	r.ResponseWriter.WriteHeader(status)
}

func (r *renaming) Write(b []byte) (int, error) {
	rename(r.Header(), "X-Amz-", r.prefix)
	return r.ResponseWriter.Write(b)
}
