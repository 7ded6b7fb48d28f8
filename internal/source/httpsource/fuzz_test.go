package httpsource

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"
	"time"
)

// FuzzBody reads bodies as a server may send them. What comes out is what was
// sent, or what gzip unpacks of it, and never more than the limit.
func FuzzBody(f *testing.F) {
	const limit = 4 << 10
	packed := func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(data); err != nil {
			f.Fatal(err)
		}
		if err := z.Close(); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	state := []byte(`{"version":4,"outputs":{}}`)
	whole := packed(state)
	for _, body := range [][]byte{nil, state, whole, whole[:len(whole)-3], append(bytes.Clone(whole), whole...),
		append(bytes.Clone(whole), 0), packed(make([]byte, limit)), packed(make([]byte, 1<<20))} {
		for _, encoding := range []string{"", "gzip", "X-GZIP", "identity", "br", "gzip, gzip"} {
			f.Add(body, encoding, "", int64(len(body)))
		}
		f.Add(body, "", "AAAAAAAAAAAAAAAAAAAAAA==", int64(-1))
		f.Add(body, "gzip", "not base64", int64(1<<40))
	}
	f.Add(state, "", "tUKVsPyRfsHlcJHeQxaZ2g==", int64(3))
	f.Fuzz(func(t *testing.T, body []byte, encoding, md5sum string, length int64) {
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: max(length, -1)}
		resp.Header.Set("Content-Encoding", encoding)
		resp.Header.Set("Content-MD5", md5sum)
		start := time.Now()
		data, err := readBody(resp, limit)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		switch {
		case err != nil:
			if text := err.Error(); len(text) > 300 {
				t.Errorf("the error says %q", text)
			}
		case len(data) > limit:
			t.Errorf("%d bytes are read", len(data))
		case bytes.Equal(data, body):
		case !bytes.Equal(data, unpacked(body)):
			t.Errorf("%q came out of %q", data, body)
		}
	})
}

// unpacked is what the standard library makes of gzip data; nil when nothing.
func unpacked(body []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(z, 1<<20))
	if err != nil {
		return nil
	}
	return data
}
