package http

import (
	"bytes"
	"compress/gzip"
	"crypto/fips140"
	"crypto/md5" //nolint:gosec // Content-MD5 finds accidents, not attacks
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	nethttp "net/http"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// readBody reads and checks the body of a 200. Compression is undone here, not
// by net/http, which would hide the length and the checksum of what was sent.
func readBody(resp *nethttp.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, final("%w", source.TooLarge(limit))
	}
	sent := &wire{r: resp.Body}
	header := resp.Header.Get("Content-MD5")
	var sum hash.Hash
	if header != "" && !fips140.Enabled() { // there, MD5 may be forbidden
		sum = md5.New() //nolint:gosec // see above
		sent.r = io.TeeReader(resp.Body, sum)
	}
	data, err := decode(sent, resp, limit)
	switch {
	case sent.err != nil: // rather than what followed from it
		return nil, sent.err
	case err != nil:
		return nil, final("%w", err)
	case sum != nil:
		return data, checkMD5(header, sum.Sum(nil), data)
	}
	return data, nil
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
	case "gzip", "x-gzip":
		data, err := gunzip(sent, limit)
		if err != nil {
			return nil, fmt.Errorf("unpacking the gzip data: %w", err)
		}
		return data, nil
	default:
		return nil, errors.New("the server sent a content encoding that was not asked for; only gzip is understood")
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

// checkMD5 compares with a Content-MD5 header. Servers disagree on whether it
// is of the compressed data.
func checkMD5(header string, sent, unpacked []byte) error {
	want, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return final("the server's Content-MD5 header is not base64")
	}
	sum := md5.Sum(unpacked) //nolint:gosec // see above
	if !bytes.Equal(want, sent) && !bytes.Equal(want, sum[:]) {
		return again("the answer does not match its Content-MD5 header; it was damaged on the way")
	}
	return nil
}
