package object_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// What a store answers decides whether the object is missing. Codes are from
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
func TestAnswers(t *testing.T) {
	version := object.Object{Bucket: "states", Key: "k", Version: "3sL4kqtJlcpXroDTDmJ"}
	sealed := object.Object{Bucket: "states", Key: "k", CustomerKey: make([]byte, 32)}
	says := sourcetest.OpenMistakes(t, "S3, answers", "<", "\u202e")
	for _, c := range []struct {
		object  object.Object
		status  int
		code    string
		message string
		headers []string
		tries   int
		missing bool
	}{
		{status: 404, code: "NoSuchKey", missing: true},
		{status: 404, code: "NoSuchKey", headers: []string{"X-Amz-Delete-Marker", "true"}, missing: true},
		{object: version, status: 404, code: "NoSuchKey", missing: true},
		{object: version, status: 405, code: "MethodNotAllowed", headers: []string{"X-Amz-Delete-Marker", "true"}, missing: true},

		{object: version, status: 405, code: "MethodNotAllowed"},
		{status: 405, code: "MethodNotAllowed", headers: []string{"X-Amz-Delete-Marker", "true"}},
		{object: version, status: 404, code: "NoSuchVersion"},
		{object: version, status: 400, code: "InvalidArgument"},
		{status: 400, code: "InvalidArgument"},
		{status: 404, code: "NoSuchBucket"},
		{status: 400, code: "InvalidBucketName"},
		{status: 403, code: "NoSuchKey"},
		{status: 404, code: "NotFound"},
		{status: 404},
		{status: 403},

		{status: 403, code: "AccessDenied"},
		{object: version, status: 403, code: "AccessDenied"},
		{object: sealed, status: 403, code: "AccessDenied"},
		{status: 403, code: "AccessDenied", message: "User: arn:aws:iam::1:user/u is not authorized to perform: kms:Decrypt on the resource"},
		{status: 403, code: "AllAccessDisabled"},
		{status: 403, code: "InvalidAccessKeyId"},
		{status: 403, code: "SignatureDoesNotMatch"},
		{status: 400, code: "InvalidToken"},
		{status: 400, code: "ExpiredToken"},
		{status: 403, code: "InvalidObjectState"},
		{status: 400, code: "InvalidRequest"},
		{object: sealed, status: 400, code: "InvalidRequest"},
		{status: 400, code: "KMS.DisabledException"},
		{status: 400, code: "KMS.<b>Exception"},

		{status: 301, code: "PermanentRedirect", headers: []string{"X-Amz-Bucket-Region", "us-east-2", "Location", "/elsewhere"}},
		{status: 307, code: "TemporaryRedirect", headers: []string{"Location", "/elsewhere"}},
		{status: 302, code: "Odd", headers: []string{"Location", "/elsewhere", "X-Amz-Bucket-Region", "<b>"}},
		{status: 400, code: "AuthorizationHeaderMalformed", headers: []string{"X-Amz-Bucket-Region", "us-east-2"}},

		{status: 503, code: "SlowDown", tries: 2},
		{status: 500, code: "InternalError", tries: 2},
		{status: 503, code: "ServiceUnavailable", tries: 2},
		{status: 429, code: "TooManyRequests", tries: 2},
		{status: 403, code: "RequestTimeTooSkewed"},
		{status: 501, code: "NotImplemented"}, // as by Swift
		{status: 501, code: "What<is>\u202ethis"},
		{status: 501},
		{status: 507},
		{status: 403, code: "QuotaExceeded"},
		{status: 400, code: "XAmzContentSHA256Mismatch"},
		{status: 405},
		{status: 418, code: "What<is>\u202ethis"},
		{status: 404, code: "NoSuchThing"},
		{status: 404, code: "XMinio.NoSuchKey-2"},
		{status: 418, code: strings.Repeat("Long", 30)},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.code, " ", c.object.Version), func(t *testing.T) {
			asked := 0
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				if c.code == "" {
					w.WriteHeader(c.status)
					return
				}
				objecttest.Refuse(w, c.status, c.code, objecttest.Canary+c.message, c.headers...)
			}))
			defer server.Close()
			if c.object.Bucket == "" {
				c.object = object.Object{Bucket: "states", Key: "k"}
			}
			_, err := storeAt(server).Read(t.Context(), c.object, 1000)
			_, missing := source.IsMissing(err)
			if says.Error(t, strings.TrimPrefix(t.Name(), "TestAnswers/"), err); missing != c.missing {
				t.Errorf("got %v", err)
			}
			if want := max(c.tries, 1); asked != want {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// What says 200 is looked at as well.
func TestStrangeObjects(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "S3, strange objects")
	for name, c := range map[string]struct {
		version string // that is asked for
		headers []string
		want    string // else the revision
		refused bool
	}{
		"no ETag":          {"", nil, "", true},
		"ETag":             {"", []string{"ETag", `"abc"`}, "abc", false},
		"weak ETag":        {"", []string{"ETag", `W/"abc"`}, "abc", false},
		"version":          {"", []string{"ETag", `"abc"`, "X-Amz-Version-Id", "v1"}, "v1", false},
		"no versions":      {"", []string{"ETag", `"abc"`, "X-Amz-Version-Id", "null"}, "abc", false},
		"the version":      {"v1", []string{"ETag", `"abc"`, "X-Amz-Version-Id", "v1"}, "v1", false},
		"the null version": {"null", []string{"ETag", `"abc"`, "X-Amz-Version-Id", "null"}, "abc", false},
		"another version":  {"v1", []string{"ETag", `"abc"`, "X-Amz-Version-Id", "v2"}, "", true},
		"no version":       {"v1", []string{"ETag", `"abc"`}, "", true},
		"hostile version":  {"", []string{"ETag", `"abc"`, "X-Amz-Version-Id", "v\u202e\x9b"}, `v\u202e\x9b`, false},
		"endless version":  {"", []string{"ETag", `"abc"`, "X-Amz-Version-Id", strings.Repeat("v", 5000)}, strings.Repeat("v", 1024) + "…", false},
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(c.headers); i += 2 {
				w.Header().Set(c.headers[i], c.headers[i+1])
			}
			fmt.Fprint(w, "{}")
		}))
		snap, err := storeAt(server).Read(t.Context(), object.Object{Bucket: "states", Key: "k", Version: c.version}, 1000)
		switch {
		case c.refused:
			says.Error(t, name, err)
		case err != nil || snap.Revision != c.want || string(snap.Data) != "{}":
			t.Errorf("%s: got %+v, %v", name, snap, err)
		}
		server.Close()
	}
}

// What a store says of the encoding of an object is taken as everywhere else.
func TestEncodings(t *testing.T) {
	for _, e := range nettest.Encodings() {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Etag"], w.Header()["Content-Encoding"] = []string{`"abc"`}, e.Names
			_, _ = w.Write(e.Body([]byte("{}")))
		}))
		snap, err := storeAt(server).Read(t.Context(), object.Object{Bucket: "states", Key: "k"}, 1000)
		if snap == nil {
			snap = &source.Snapshot{}
		}
		e.Check(t, []byte("{}"), snap.Data, err)
		server.Close()
	}
	var asked int
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header()["Etag"], w.Header()["Content-Encoding"] = []string{`"abc"`}, []string{"gzip"}
		_, _ = w.Write(nettest.Gzip(make([]byte, 8<<20)))
	}))
	defer server.Close()
	if _, err := storeAt(server).Read(t.Context(), object.Object{Bucket: "states", Key: "k"}, 1<<20); !meter.IsTooLarge(err) || asked != 1 {
		t.Errorf("got %v after %d requests", err, asked)
	}
}

// An empty object is what the backends take it for: no state.
//
// Promise: Pins
func TestEmptyObject(t *testing.T) {
	for _, header := range []http.Header{{}, {"Content-Encoding": {"gzip"}}, {"Content-Encoding": {"aws-chunked"}}} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), header)
			w.Header().Set("ETag", `"abc"`)
		}))
		_, err := storeAt(server).Read(t.Context(), object.Object{Bucket: "states", Key: "k"}, 1000)
		if missing, ok := source.IsMissing(err); !ok || !missing.Listed {
			t.Errorf("got %v", err)
		}
		server.Close()
	}
}

// A part of an object is not the object.
func TestParts(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"abc"`)
		w.WriteHeader(http.StatusPartialContent)
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	_, err := storeAt(server).Read(t.Context(), object.Object{Bucket: "states", Key: "k"}, 1000)
	sourcetest.OpenMistakes(t, "S3, parts").Error(t, "one", err)
}

// What the SDK refuses to send is not said to be lost.
func TestSettingsThatExclude(t *testing.T) {
	store := object.Store{Words: words, Client: s3.New(s3.Options{
		BaseEndpoint: aws.String("http://127.0.0.1:1"), Region: "eu-west-1", Credentials: aws.AnonymousCredentials{},
		EndpointOptions: s3.EndpointResolverOptions{UseFIPSEndpoint: aws.FIPSEndpointStateEnabled},
	})}
	_, err := store.Read(t.Context(), object.Object{Bucket: "states", Key: "k"}, 1000)
	sourcetest.OpenMistakes(t, "S3, settings").Error(t, "that exclude each other", err)
}

// A vendor's words, and its codes.
func TestWords(t *testing.T) {
	code := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		objecttest.Refuse(w, 403, code, objecttest.Canary)
	}))
	defer server.Close()
	store := storeAt(server)
	store.Words = object.Words{Store: "OSS",
		Reasons: map[string]string{"SecurityTokenExpired": "the token has expired"}}
	says := sourcetest.OpenMistakes(t, "S3, a vendor's words", objecttest.Canary)
	for _, c := range []string{"AccessDenied", "SecurityTokenExpired", "InvalidRequest", "PermanentRedirect", "KMS.NotFound"} {
		code = c
		_, err := store.Read(t.Context(), object.Object{Bucket: "states", Key: "k"}, 1000)
		says.Error(t, c, err)
	}
}

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"tf-state": true, "a.b.c": true, "Old_Bucket": true, "abc-s3alias": true, "abc--xyz": true, strings.Repeat("a", 255): true,
		"a--x-s3": false, "a--ol-s3": false, "a--op-s3": false,
		"": false, "ab/c": false, "..": false, "a..b": false, "-a": false, "a b": false, "a?b": false, "a#b": false, "a@b": false, "a:b": false,
		"a\nb": false, "é": false, "a": false, strings.Repeat("a", 256): false,
	} {
		if err := object.CheckBucket(name); (err == nil) != good {
			t.Errorf("bucket %q: %v", name, err)
		}
	}
	for key, good := range map[string]bool{
		"a/b": true, "env:/x y/a.tfstate": true, "é": true, "a//b": true, "a?b#c": true, "...": true, strings.Repeat("a", 1024): true,
		"": false, "/a": false, "a/": false, "..": false, "a/../b": false, "./a": false, strings.Repeat("a", 1025): false,
	} {
		if err := object.CheckKey(key); (err == nil) != good {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// late is an answer that comes while nobody waits for it any more, and is taken
// for one by net/http.
type late struct {
	answering
	giveUp context.CancelFunc
}

func (l late) Do(r *http.Request) (*http.Response, error) {
	l.giveUp()
	return l.answering.Do(r)
}

func TestLateAnswers(t *testing.T) {
	for status, body := range map[int]string{200: "", 404: "<Error><Code>NoSuchKey</Code></Error>"} {
		ctx, cancel := context.WithCancel(t.Context())
		client := s3.New(s3.Options{
			BaseEndpoint: aws.String("https://s3.example.com"), Region: "eu-west-1", Credentials: aws.AnonymousCredentials{},
			Retryer: aws.NopRetryer{}, HTTPClient: late{answering{status, http.Header{"Etag": {"abc"}}, []byte(body)}, cancel},
		})
		snap, err := object.Store{Client: client, Words: words}.Read(ctx, object.Object{Bucket: "states", Key: "k"}, 1000)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d: got %+v, %v", status, snap, err)
		}
	}
}

// noHost finds no host.
type noHost string

func (h noHost) Do(*http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: "Get", URL: "http://" + string(h) + "/canary", Err: &net.DNSError{Err: "no such " +
		"host", Name: string(h), IsNotFound: true}}
}

// A bucket before the name of an endpoint that has none, such as MinIO's, is no host.
func TestNoHostOfABucket(t *testing.T) {
	t.Parallel()
	const host = noHost("states.minio.example")
	says := sourcetest.OpenMistakes(t, "S3, no host")
	for name, options := range map[string]s3.Options{
		"twice the bucket":        {HTTPClient: noHost("states.a.states.a.minio.example")},
		"an endpoint":             {BaseEndpoint: aws.String("http://minio.example")},
		"no endpoint":             {},
		"an endpoint, path style": {BaseEndpoint: aws.String("http://minio.example"), UsePathStyle: true},
	} {
		if options.HTTPClient == nil {
			options.HTTPClient = host
		}
		options.Region, options.Credentials, options.RetryMaxAttempts = "eu-west-1", aws.AnonymousCredentials{}, 1
		mine := words
		mine.PathStyle = "use_path_style"
		_, err := object.Store{Client: s3.New(options), Words: mine}.Read(t.Context(), object.Object{Bucket: "states", Key: "k"}, 1000)
		says.Error(t, name, err)
	}
}
