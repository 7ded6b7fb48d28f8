package nettest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// Encoding is an answer with headers Content-Encoding.
type Encoding struct {
	Names   []string
	Packed  bool   // with gzip
	Refused string // what an error names, "" if the answer is read
}

// Encodings are what servers and stores answer: what names no compression is only a word, and
// what is compressed is unpacked, or refused by the name of that.
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

// Body is what is sent of a content. What is refused is not looked at.
func (e Encoding) Body(content []byte) []byte {
	if e.Packed {
		return Gzip(content)
	}
	return slices.Clone(content)
}

// Check looks at what became of the answer.
func (e Encoding) Check(t *testing.T, content, got []byte, err error) {
	t.Helper()
	switch {
	case e.Refused == "" && (err != nil || !bytes.Equal(got, content)):
		t.Errorf("Content-Encoding %q: got %q, %v", e.Names, got, err)
	case e.Refused != "" && (err == nil || !strings.Contains(err.Error(), "encoded with "+e.Refused)):
		t.Errorf("Content-Encoding %q: want an error that names %s, got %q, %v", e.Names, e.Refused, got, err)
	}
}
