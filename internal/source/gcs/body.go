package gcs

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	nethttp "net/http"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// readBody reads and checks the contents of an object. Compression is undone
// here, not by net/http, which would hide the length and the checksum of what
// was sent.
func readBody(resp *nethttp.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, final("%w", source.TooLarge(limit))
	}
	want, checked, err := checksum(resp.Header)
	if err != nil {
		return nil, err
	}
	sum := crc32.New(castagnoli())
	sent := &wire{r: io.TeeReader(resp.Body, sum)}
	data, err := decode(sent, resp, limit)
	switch {
	case sent.err != nil: // rather than what followed from it
		return nil, sent.err
	case err != nil:
		return nil, final("%w", err)
	// The checksum is that of the stored object. What is stored with gzip is
	// sent so; what is not may have been packed on the way.
	case checked && want != sum.Sum32() && want != crc32.Checksum(data, castagnoli()):
		return nil, again("the answer was damaged on its way: its checksum does not match")
	}
	return data, nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// checksum returns the CRC32C that Cloud Storage announces, if it does.
// https://cloud.google.com/storage/docs/xml-api/reference-headers#xgooghash
func checksum(header nethttp.Header) (sum uint32, found bool, err error) {
	for _, line := range header.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(line, ",") {
			text, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c=")
			if !ok {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil || len(b) != crc32.Size {
				return 0, false, again("the answer was damaged on its way: its checksum cannot be read")
			}
			return binary.BigEndian.Uint32(b), true, nil
		}
	}
	return 0, false, nil
}

// wire remembers how the connection failed. Another try may help then, and not
// where the data itself is bad.
type wire struct {
	r   io.Reader
	err error
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

func decode(sent io.Reader, resp *nethttp.Response, limit int64) ([]byte, error) {
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
		return source.Read(sent, resp.ContentLength, limit)
	case "gzip":
		data, err := gunzip(sent, limit)
		if err != nil {
			return nil, fmt.Errorf("unpacking the object, whose content encoding is gzip: %w", err)
		}
		return data, nil
	default:
		return nil, errors.New("the object has a content encoding other than gzip, which is not understood")
	}
}

// gunzip stops at the limit: a few kilobytes can unpack to gigabytes.
func gunzip(sent io.Reader, limit int64) ([]byte, error) {
	unpacked, err := gzip.NewReader(sent)
	if errors.Is(err, io.EOF) { // an empty body is an empty file
		return []byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	return source.Read(unpacked, -1, limit)
}
