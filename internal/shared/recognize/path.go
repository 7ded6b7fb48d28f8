package recognize

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// MaxName is the length of the longest file name on any system, in bytes.
const MaxName = 255

var (
	pathPattern = lazyregexp.New(`^(~|\.{0,2})[/\\]?[A-Za-z0-9_. /\\-]{1,200}\.(json|pem|crt|cer|key|p12|pfx|txt|pub|age|hcl|tf|tofu|tfvars|ya?ml|ini|conf)$`)
	ofWindows   = lazyregexp.New(`^[A-Za-z]:[\\/]`)
)

// IsPath reports whether text, which may be a secret in place of a path, is certainly a path and
// may be shown: it looks like the path of a key file, or begins with the home directory or with a
// folder that exists, and no key begins like that.
func IsPath(text string) bool {
	return pathPattern.MatchString(text) || strings.HasPrefix(text, "~/") || IsFolder(begin(text))
}

// IsOfWindows reports whether a path begins with a drive, on another system.
func IsOfWindows(path string) bool { return filepath.Separator != '\\' && ofWindows.MatchString(path) }

// IsContent reports whether text is the content of a file in place of its name, as "$(cat FILE)"
// gives it: it has several lines, quotation marks, a { at its beginning, a private key or other
// PEM, or is longer than any name, and no file has this name. Such a text may be secret. A name in
// quotation marks, or with a line break at its end, is still a name.
func IsContent(text string) bool {
	text = strings.Trim(strings.TrimRight(text, "\r\n"), "\"'")
	tooLong := slices.ContainsFunc(strings.Split(filepath.ToSlash(text), "/"), func(part string) bool { return len(part) > MaxName })
	return (tooLong || strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, `"`) || strings.HasPrefix(text, "{") ||
		HoldsPrivateKey(text) || IsPEM(text)) && !Exists(text) && !IsFolder(text)
}

// IsDocument reports whether text in the place of a name or an address, of which some may have
// braces and quotation marks, is a document: it has several lines or a private key, or begins like
// a JSON object.
func IsDocument(text string) bool {
	const several = 3
	return strings.Count(strings.TrimRight(text, "\r\n"), "\n") >= several-1 || HoldsPrivateKey(text) ||
		strings.HasPrefix(strings.TrimSpace(text), `{"`)
}

// Exists reports whether text is the path of an existing regular file.
func Exists(text string) bool {
	path, err := world.ExpandHome(text)
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// IsFolder reports whether path is the path of an existing folder.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// begin returns the topmost folder of a path below the root, and "" if the path has no folder.
func begin(path string) string {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		switch above := filepath.Dir(folder); {
		case folder == above || folder == ".":
			return ""
		case above == filepath.Dir(above):
			return folder
		}
	}
}
