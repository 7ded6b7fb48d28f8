package gcs

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

// Whatever a service answers, reading it ends, within the limit.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(stateJSON), "crc32c=AAAAAA==,md5=x", "", int64(-1))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"), "md5=x", "gzip", int64(-1))
	f.Add([]byte{}, "", "GZIP", int64(0))
	f.Add([]byte("short"), "crc32c=,crc32c=AAAA", "identity", int64(100))
	const limit = 1 << 10
	f.Fuzz(func(t *testing.T, body []byte, hash, encoding string, length int64) {
		resp := &http.Response{
			StatusCode: 200, ContentLength: max(-1, length), Body: io.NopCloser(bytes.NewReader(body)),
			Header: http.Header{"X-Goog-Hash": {hash}, "Content-Encoding": {encoding}},
		}
		if data, err := readBody(resp, limit); err == nil && len(data) > limit {
			t.Errorf("got %d bytes", len(data))
		}
	})
}

// Only what names the object says that it is not there.
func FuzzComplaint(f *testing.F) {
	f.Add([]byte("No such object: states/net/default.tfstate"))
	f.Add([]byte(`{"error":{"code":404,"message":"No such object: states/net/default.tfstate#1","errors":[{"reason":"notFound"}]}}`))
	f.Add([]byte(`{"error":{"errors":[]}}`))
	f.Add([]byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := readComplaint(body)
		if c.isNoObject("states", object) && !bytes.Contains(body, []byte("No such object")) && !bytes.Contains(body, []byte(`\`)) {
			t.Errorf("%q shows no such thing", body)
		}
		c.explain()
	})
}
