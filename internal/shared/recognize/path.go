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

// MaxName is the maximum length of a file name on any system, in bytes.
const MaxName = 255

var (
	pathPattern = lazyregexp.New(`^(~|\.{0,2})[/\\]?[A-Za-z0-9_. /\\-]{1,200}\.(json|pem|crt|cer|key|p12|pfx|txt|pub|age|hcl|tf|tofu|tfvars|ya?ml|ini|conf)$`)
	ofWindows   = lazyregexp.New(`^[A-Za-z]:[\\/]`)
)

// IsPath reports whether text is certainly a path, and not a secret that was set by mistake, so that errors
// may show it. It must look like the path of a key file, or begin with ~/ or with a folder that exists; no
// key begins like that.
func IsPath(text string) bool {
	return pathPattern.MatchString(text) || strings.HasPrefix(text, "~/") || IsFolder(begin(text))
}

// IsOfWindows reports whether a path begins with a Windows drive letter although this system is not Windows.
func IsOfWindows(path string) bool { return filepath.Separator != '\\' && ofWindows.MatchString(path) }

// IsContent reports whether text is the content of a file instead of its name, as from "$(cat FILE)". Such a
// text may be secret. It contains a control character, a quotation mark or a private key, begins with { or
// like a PEM block, or is longer than any file name, and no such file exists. Quotation marks around a name
// and line breaks after it are ignored.
func IsContent(text string) bool {
	text = strings.Trim(strings.TrimRight(text, "\r\n"), "\"'")
	tooLong := slices.ContainsFunc(strings.Split(filepath.ToSlash(text), "/"), func(part string) bool { return len(part) > MaxName })
	return (tooLong || strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, `"`) || strings.HasPrefix(text, "{") ||
		HoldsPrivateKey(text) || IsPEM(text)) && !Exists(text) && !IsFolder(text)
}

// IsDocument reports whether text is a document instead of a name or address. It is for names and addresses
// that may contain braces and quotation marks. A document has at least three lines, contains a private key,
// or begins like a JSON object.
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

// begin returns the topmost folder in a path, below the root, or an empty string if the path contains no
// folder.
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
