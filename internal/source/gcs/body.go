package gcs

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
)

// readBody returns an object's content, which may have at most limit bytes, and verifies its checksum.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	want, checked, err := checksum(resp.Header)
	if err != nil {
		return nil, err
	}
	sent := crc32.New(castagnoli())
	data, err := web.ReadBody(resp, limit, sent)
	if err != nil {
		return nil, err
	}
	// The checksum covers the stored object. An object stored with gzip is sent as it is. Any other object may have
	// been compressed for the transfer.
	if checked && want != sent.Sum32() && want != crc32.Checksum(data, castagnoli()) {
		return nil, web.Again("the answer was damaged in transit: its checksum does not match")
	}
	return data, nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// checksum returns the CRC32C checksum in Cloud Storage's headers, and whether there is one.
// https://cloud.google.com/storage/docs/xml-api/reference-headers#xgooghash
func checksum(header http.Header) (sum uint32, found bool, err error) {
	for _, line := range header.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(line, ",") {
			text, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c=")
			if !ok {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil || len(b) != crc32.Size {
				return 0, false, web.Again("the answer was damaged in transit: its checksum cannot be read")
			}
			return binary.BigEndian.Uint32(b), true, nil
		}
	}
	return 0, false, nil
}
