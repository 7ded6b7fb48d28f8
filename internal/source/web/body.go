package web

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// ReadBody reads a body of at most limit bytes. Compression is undone here, not
// by net/http, which would hide the length and the checksum of what was sent:
// sum gets that as it was.
func ReadBody(resp *http.Response, limit int64, sum io.Writer) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, Final("%w", source.TooLarge(limit))
	}
	sent := &sentBody{r: io.TeeReader(resp.Body, sum)}
	data, err := Decode(sent, resp.Header.Get("Content-Encoding"), resp.ContentLength, limit)
	switch {
	case resp.Request != nil && resp.Request.Context().Err() != nil: // net/http may take what comes while it hangs up for an answer
		return nil, resp.Request.Context().Err()
	case sent.err != nil: // rather than what followed from it
		return nil, sent.err
	case err != nil:
		return nil, Final("%w", err)
	}
	return data, nil
}

// sentBody remembers how the connection failed. Another try may help then, and not
// where the data itself is bad.
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

// Decode reads what was sent: size bytes, or -1 if nobody knows, in an encoding
// that the header Content-Encoding names. What is unpacked has at most limit bytes.
func Decode(sent io.Reader, encoding string, size, limit int64) ([]byte, error) {
	switch strings.ToLower(encoding) {
	case "", "identity":
		return source.Read(sent, size, limit)
	case "gzip", "x-gzip":
		data, err := gunzip(sent, limit)
		if err != nil {
			return nil, fmt.Errorf("unpacking the gzip data: %w", err)
		}
		return data, nil
	default:
		return nil, errors.New("the answer has a content encoding other than gzip, which is not understood")
	}
}

// gunzip stops at the limit: a few kilobytes can unpack to gigabytes, and any
// number of bytes to nothing.
func gunzip(sent io.Reader, limit int64) ([]byte, error) {
	packed := &io.LimitedReader{R: sent, N: source.PackedLimit(limit)}
	unpacked, err := meter.Unpack(packed, gzip.NewReader)
	if errors.Is(err, io.EOF) { // an empty body is an empty file
		return []byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := source.Read(unpacked, -1, limit)
	if packed.N <= 0 {
		return nil, source.TooLarge(limit)
	}
	return data, err
}
