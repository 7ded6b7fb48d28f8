package object_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// answering gives every request the same answer.
type answering struct {
	status int
	header http.Header
	body   []byte
}

func (a answering) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

// Whatever a store answers, an object is missing only if it says so, and errors
// and revisions hold nothing that is not fit to be shown.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "", "abc", "v1", []byte("{}"))
	f.Add(404, "", "", "", []byte("<Error><Code>NoSuchKey</Code><Message>canary</Message></Error>"))
	f.Add(403, "", "", "", []byte("<Error><Code>AccessDenied</Code><Message>kms:Decrypt</Message></Error>"))
	f.Add(301, "us-east-2", "", "", []byte("<Error><Code>PermanentRedirect</Code><Endpoint>canary</Endpoint></Error>"))
	f.Add(400, "\x1b[2J", "", "", []byte("<Error><Code>KMS.\u202eException</Code></Error>"))
	f.Add(405, "", "", "true", []byte("<Error><Code>MethodNotAllowed</Code></Error>"))
	f.Add(503, "", "", "", []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, region, etag, version string, body []byte) {
		if status < 100 || status > 999 {
			return
		}
		header := http.Header{"X-Amz-Bucket-Region": {region}, "Etag": {etag}, "X-Amz-Version-Id": {version}, "X-Amz-Delete-Marker": {version}}
		client := s3.New(s3.Options{
			BaseEndpoint: aws.String("https://s3.example.com"), Region: "eu-west-1", UsePathStyle: true, Credentials: aws.AnonymousCredentials{},
			Retryer: aws.NopRetryer{}, HTTPClient: answering{status, header, body},
		})
		for _, o := range []object.Object{{Bucket: "states", Key: "k"}, {Bucket: "states", Key: "k", Version: "v1"}} {
			snap, err := object.Store{Client: client, Words: words}.Read(t.Context(), o, 1000)
			switch {
			case err == nil && (status != http.StatusOK || !bytes.Equal(snap.Data, body) || strings.ContainsFunc(snap.Revision, unicode.IsControl)):
				t.Errorf("got %q in the revision %q after %d", snap.Data, snap.Revision, status)
			case err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }):
				t.Errorf("not fit to be shown: %q", err)
			}
			if _, missing := source.IsMissing(err); missing && status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
				t.Errorf("missing after %d: %v", status, err)
			}
		}
	})
}
