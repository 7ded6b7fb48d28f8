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

// ReadBody reads a body of at most limit bytes, and decompresses it. Net/http must not decompress
// it, because it would hide the length and the checksum of the sent bytes, which are written to
// sum.
func ReadBody(resp *http.Response, limit int64, sum io.Writer) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, Final("%w", meter.TooLarge(limit))
	}
	data, err := Decode(io.TeeReader(resp.Body, sum), resp.Header, resp.ContentLength, limit)
	if resp.Request != nil && resp.Request.Context().Err() != nil { // net/http may take later bytes for an answer
		return nil, resp.Request.Context().Err()
	}
	return data, err
}

// Decode reads a body of size bytes, -1 if the size is unknown, and decompresses it by its header,
// to at most limit bytes. Errors that [Own] returns concern the data itself; others concern the
// connection, so that another try may help.
func Decode(body io.Reader, header http.Header, size, limit int64) ([]byte, error) {
	sent := &sentBody{r: body}
	data, err := decode(sent, encodings(header), size, limit)
	switch {
	case sent.err != nil: // the first error, and not its consequences
		return nil, sent.err
	case err != nil:
		return nil, Final("%w", err)
	}
	return data, nil
}

// sentBody is a reader that records the error of the connection.
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

// encodings returns the encodings in a header that change the bytes of an answer. Stores keep other
// words there, too, such as aws-chunked, utf-8 or none, which have no effect.
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
		return nil, fmt.Errorf("the answer is encoded with %s, but only a single layer of gzip is supported; have the server send it unencoded",
			encodings[len(encodings)-1])
	}
	data, err := gunzip(sent, size, limit)
	if err != nil {
		return nil, fmt.Errorf("unpacking the gzip data: %w", err)
	}
	return data, nil
}

// gunzip decompresses a body. It limits the decompressed bytes, because a few kilobytes can unpack to
// gigabytes, and the compressed ones, because any number can unpack to nothing.
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
