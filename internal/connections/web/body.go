package web

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// ReadBody reads and decompresses a response body of at most limit bytes. It writes the bytes before
// decompression to sum. The HTTP client must not decompress the body itself, because it would hide the length
// and checksum of these bytes.
func ReadBody(resp *http.Response, limit int64, sum io.Writer) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, Final("%w", meter.TooLarge(limit))
	}
	data, err := Decode(io.TeeReader(resp.Body, sum), resp.Header, resp.ContentLength, limit)
	if resp.Request != nil && resp.Request.Context().Err() != nil { // net/http may mistake later bytes for the response
		return nil, resp.Request.Context().Err()
	}
	return data, err
}

// Decode reads a body of size bytes (-1 if the size is unknown) and decompresses it as its header says, to at
// most limit bytes. Errors that [Own] recognizes are about the data itself. All others are about the
// connection, so that another attempt may help.
func Decode(body io.Reader, header http.Header, size, limit int64) ([]byte, error) {
	sent := &sentBody{r: body}
	data, err := decode(sent, encodings(header), size, limit)
	switch {
	case sent.err != nil: // the original error rather than its consequences
		return nil, sent.err
	case err != nil:
		return nil, Final("%w", err)
	}
	return data, nil
}

// sentBody is a reader that records connection errors.
type sentBody struct {
	r   io.Reader
	err error
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// encodings returns the content encodings in a header that change the bytes of a response. Stores also put
// other words there that have no effect, such as aws-chunked, utf-8 or none.
func encodings(header http.Header) (found []string) {
	for name := range strings.SplitSeq(strings.ToLower(strings.Join(header.Values("Content-Encoding"), ",")), ",") {
		switch name = strings.TrimSpace(name); name {
		case "x-gzip":
			found = append(found, "gzip")
		case "gzip", "br", "deflate", "compress", "x-compress", "zstd", "dcb", "dcz", "exi", "aes128gcm", "pack200-gzip", "bzip2", "xz",
			"lzma", "lz4", "snappy":
			found = append(found, name)
		}
	}
	return found
}

func decode(sent io.Reader, encodings []string, size, limit int64) ([]byte, error) {
	switch {
	case len(encodings) == 0:
		return meter.Read(sent, size, limit)
	case len(encodings) > 1 || encodings[0] != "gzip":
		return nil, fmt.Errorf("the answer is encoded with %s, but only a single layer of gzip is supported; configure the server "+
			"to send it unencoded",
			encodings[len(encodings)-1])
	}
	data, err := gunzip(sent, size, limit)
	if err != nil {
		return nil, fmt.Errorf("unpacking the gzip data: %w", err)
	}
	return data, nil
}

// gunzip decompresses a body. It limits the decompressed size, because a few kilobytes can expand to
// gigabytes, and the compressed size, because any amount of data can decompress to nothing.
func gunzip(sent io.Reader, size, limit int64) ([]byte, error) {
	packed, err := meter.Read(sent, size, meter.PackedLimit(limit))
	if meter.IsTooLarge(err) {
		err = meter.TooLarge(limit)
	}
	if err != nil || len(packed) == 0 { // an empty body is an empty file
		return packed, err
	}
	return meter.Unpack(packed, limit, gzip.NewReader)
}
