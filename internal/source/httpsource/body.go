package httpsource

import (
	"bytes"
	"crypto/fips140"
	"crypto/md5" //nolint:gosec // Content-MD5 finds accidents, not attacks
	"encoding/base64"
	"io"
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// readBody reads and checks the body of a 200.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	header := resp.Header.Get("Content-MD5")
	if header == "" || fips140.Enabled() { // there, MD5 may be forbidden
		return web.ReadBody(resp, limit, io.Discard)
	}
	sent := md5.New() //nolint:gosec // see above
	data, err := web.ReadBody(resp, limit, sent)
	if err != nil {
		return nil, err
	}
	return data, checkMD5(header, sent.Sum(nil), data)
}

// checkMD5 compares with a Content-MD5 header. Servers disagree on whether it
// is of the compressed data.
func checkMD5(header string, sent, unpacked []byte) error {
	want, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return web.Final("the server's Content-MD5 header is not base64")
	}
	sum := md5.Sum(unpacked) //nolint:gosec // see above
	if !bytes.Equal(want, sent) && !bytes.Equal(want, sum[:]) {
		return web.Again("the answer does not match its Content-MD5 header; it was damaged on the way")
	}
	return nil
}
