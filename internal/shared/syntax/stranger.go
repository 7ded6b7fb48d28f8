package syntax

import (
	"bytes"
	"unicode/utf8"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

var privateKey = lazyregexp.New(`(?m)^(AGE-SECRET-KEY-|AGE-PLUGIN-|-----BEGIN [A-Z ]*PRIVATE KEY)`)

// HoldsPrivateKey reports whether a line begins a private key: an identity of age or of one
// of its plugins, or a key in PEM.
func HoldsPrivateKey(text []byte) bool { return privateKey.Match(text) }

// NotText says what is in the place of text in UTF-8, "" for text.
func NotText(content []byte) string {
	switch {
	case IsUTF16(content):
		return "this is UTF-16, as PowerShell writes it with >; save it as UTF-8, as Set-Content -Encoding utf8 does"
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		return "this is a plan or another zip archive; check which file is read"
	case bytes.HasPrefix(content, []byte("\x1f\x8b")):
		return "this is compressed with gzip; decompress it"
	case bytes.IndexByte(content, 0) >= 0, !utf8.Valid(content):
		return "this is not text in UTF-8; check which file is read"
	}
	return ""
}

// IsUTF16 reports whether content is text in UTF-16: it has the mark of one, or every
// other byte of its beginning is 0.
func IsUTF16(content []byte) bool {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return true
	}
	const least, most = 4, 16 // bytes
	start := content[:min(len(content)&^1, most)]
	for _, zero := range []int{0, 1} {
		every := len(start) >= least
		for i, b := range start {
			every = every && (b == 0) == (i%2 == zero)
		}
		if every {
			return true
		}
	}
	return false
}
