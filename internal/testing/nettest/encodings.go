package nettest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// Encoding is a response with Content-Encoding headers.
type Encoding struct {
	Names   []string
	Packed  bool   // whether the body is compressed with gzip
	Refused string // the encoding that an error names, or "" if the response is readable
}

// Encodings returns the encodings that servers and stores send. Names that mean no compression are ignored. Compressed
// content must be unpacked, or refused by the name of its encoding.
func Encodings() []Encoding {
	var all []Encoding
	for _, name := range []string{"aws-chunked", "utf-8", "UTF-8", "binary", "none", "identity", "8bit", "base64", "null", "", " , ",
		"\u00fcber"} {
		all = append(all, Encoding{Names: []string{name}})
	}
	for _, names := range [][]string{{"gzip"}, {"X-GZIP"}, {"aws-chunked,gzip"}, {"gzip , utf-8"}, {"gzip", "aws-chunked"},
		{"aws-chunked", "gzip"}} {
		all = append(all, Encoding{Names: names, Packed: true})
	}
	for _, name := range []string{"br", "deflate", "compress", "x-compress", "zstd", "dcb", "dcz", "lzma", "xz", "bzip2", "snappy", "lz4",
		"exi", "pack200-gzip", "aes128gcm"} {
		all = append(all, Encoding{Names: []string{name}, Refused: name})
	}
	return append(all,
		Encoding{Names: []string{"BR"}, Refused: "br"},
		Encoding{Names: []string{"aws-chunked", "br"}, Refused: "br"},
		Encoding{Names: []string{"utf-8, zstd"}, Refused: "zstd"},
		Encoding{Names: []string{"gzip, br"}, Packed: true, Refused: "br"},
		Encoding{Names: []string{"gzip, gzip"}, Packed: true, Refused: "gzip"},
	)
}

// Body returns the body to send for the content. The content of refused encodings does not matter.
func (e Encoding) Body(content []byte) []byte {
	if e.Packed {
		return Gzip(content)
	}
	return slices.Clone(content)
}

// Check checks the result of reading the response.
func (e Encoding) Check(t *testing.T, content, got []byte, err error) {
	t.Helper()
	switch {
	case e.Refused == "" && (err != nil || !bytes.Equal(got, content)):
		t.Errorf("Content-Encoding %q: got %q, %v", e.Names, got, err)
	case e.Refused != "" && (err == nil || !strings.Contains(err.Error(), "encoded with "+e.Refused)):
		t.Errorf("Content-Encoding %q: want an error that names %s, got %q, %v", e.Names, e.Refused, got, err)
	}
}
