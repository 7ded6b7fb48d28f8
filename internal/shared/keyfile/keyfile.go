// Package keyfile reads small files: keys, tokens, certificates, profiles.
package keyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const maxName = 255 // bytes, which no file system exceeds

// limit is in bytes. Files of keys, tokens and profiles are far smaller.
const limit = 1 << 20

// Read returns the content of a file of at most 1 MiB. A leading ~ is the home
// directory. Only regular files are opened, because a pipe would wait for a
// writer. From an error, [fs.ErrNotExist] can be told; it holds nothing of the content,
// and the name only as [Shown] has it.
func Read(name string) ([]byte, error) {
	shown := Shown(name)
	if shown == "" {
		shown = "the file, whose name is not shown because it may be a secret,"
	}
	return readAs(name, shown)
}

// ReadText is [Read] for text: UTF-16 is an error, and the byte order mark that some editors
// write at the beginning of UTF-8 is left out. As with Read, the error wraps what it says
// beside the name.
func ReadText(name string) ([]byte, error) {
	content, err := Read(name)
	if err == nil && syntax.IsUTF16(content) {
		return nil, fmt.Errorf("%s: %w", Shown(name), errors.New(syntax.NotText(content)))
	}
	return bytes.TrimPrefix(content, []byte("\ufeff")), err
}

// Shown is the name of a file for an error, in quotes, and "" if it may be a secret in the
// place of one: it is of no file, and not what [IsPath] calls surely a path.
func Shown(name string) string {
	if IsPath(name) || Exists(name) {
		return fmt.Sprintf("%.200q", name)
	}
	return ""
}

// ReadArgument is [Read] for a name that an argument of a command gives, which is shown as
// [Argument] has it.
func ReadArgument(name string) ([]byte, error) {
	if IsContent(name) {
		return nil, errContent
	}
	return readAs(name, fmt.Sprintf("%.200q", Argument(name)))
}

// Argument is a name that an argument of a command gives, as errors show it: of an address
// without what may be a secret, and of pass:SECRET, as openssl has it, without the secret.
func Argument(name string) string {
	if Exists(name) {
		return name
	}
	if u, err := url.Parse(name); err == nil && u.Scheme != "" && (u.Host != "" || u.Scheme == "file") {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	} else if strings.Contains(name, "://") {
		return "an address"
	}
	if kind := inPlaceOfName(name); kind != "" {
		return kind + "…"
	}
	return name
}

// inPlaceOfName is how a secret begins that is named as other programs do, "" for a name.
func inPlaceOfName(text string) string {
	if parts := namedSecret.FindStringSubmatch(text); parts != nil {
		return parts[1]
	}
	return ""
}

var namedSecret = lazyregexp.New(`^((pass|env|literal|key|secret|token|password|passphrase)[:=])`)

var errContent = errors.New("the path of a file is required, and this is the content of one; write it to a file, and give its path")

// IsContent reports whether text in the place of the name of a file is what belongs in
// one, such as "$(cat FILE)" makes it: it has lines, quotation marks, braces or a private
// key, or is longer than any name, and there is no such file. It may be secret. A name with
// quotation marks around it, or a line break at its end, is one.
func IsContent(text string) bool {
	text = strings.Trim(strings.TrimRight(text, "\r\n"), "\"'")
	tooLong := slices.ContainsFunc(strings.Split(filepath.ToSlash(text), "/"), func(part string) bool { return len(part) > maxName })
	return (tooLong || strings.ContainsFunc(text, unicode.IsControl) || strings.ContainsAny(text, `"{}`) ||
		syntax.HoldsPrivateKey([]byte(text))) && !Exists(text) && !isFolder(text)
}

func readAs(name, shown string) ([]byte, error) {
	path, err := ExpandHome(name)
	if err != nil {
		return nil, err
	}
	content, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", shown, Explain(path, err))
	}
	return content, nil
}

// ExpectRegular refuses what is no regular file before it is opened: a pipe waits for
// somebody who writes, and a device may never end.
func ExpectRegular(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is not a regular file, but a folder; the path of a file in it is required")
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file; save what it holds in one")
	}
	return nil
}

func read(path string) ([]byte, error) {
	if err := ExpectRegular(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && len(content) > limit {
		err = errors.New("it is larger than 1 MiB; check which file is named")
	}
	return content, err
}

// IsDocument reports whether text in the place of a name or an address, of which some may
// have braces and quotation marks, is a document: it has several lines or a private key,
// or begins as a JSON object does.
func IsDocument(text string) bool {
	const several = 3
	return strings.Count(strings.TrimRight(text, "\r\n"), "\n") >= several-1 || syntax.HoldsPrivateKey([]byte(text)) ||
		strings.HasPrefix(strings.TrimSpace(text), `{"`)
}

// Reason is what happened, without the name of the call and of the file.
func Reason(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

var errAsk = errors.New("ask its owner for permission")

// Explain is why a file of that name cannot be read or written, and what to do about it,
// without the name.
func Explain(name string, err error) error {
	err = Reason(err)
	switch {
	case IsContent(name):
		return errContent
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; %w", err, sought(name))
	case errors.Is(err, fs.ErrPermission) && !errors.Is(err, errAsk):
		return fmt.Errorf("%w; %w", err, errAsk)
	}
	return err
}

var (
	address   = lazyregexp.New(`^([a-z][a-z0-9+.-]*://|[a-z]+@[\w.-]+:)`)
	ofWindows = lazyregexp.New(`^[A-Za-z]:[\\/]`)
)

// IsOfWindows reports whether a path begins with a drive, on another system.
func IsOfWindows(path string) bool { return filepath.Separator != '\\' && ofWindows.MatchString(path) }

// sought says where a file that is not there was looked for. Of the path, only folders
// that exist are shown: the rest may be a secret in the place of a path.
func sought(name string) error {
	if name == "" {
		return errors.New("the path is empty; is a variable empty?")
	}
	if path, ok := strings.CutPrefix(name, "file://"); ok && path != "" {
		return errors.New("a path is required, and this is a URL: leave out file://")
	}
	if strings.ContainsAny(name, "*?[") {
		return errors.New("this is a pattern, which nothing expands here; name each file")
	}
	if kind := inPlaceOfName(name); kind != "" {
		return errors.New("the name of a file is required, and " + kind + "… is how other programs name a secret: write it to a file, or set " +
			"a variable of the settings with TF_VAR_NAME")
	}
	if address.MatchString(name) {
		return errors.New("this is an address, and a path is required: fetch the file first")
	}
	if IsOfWindows(name) {
		return errors.New("this is a path of Windows, and this is another system; give the path that the file has here")
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return errors.New("check its path")
	}
	folder, near := Near(path)
	text := fmt.Sprintf("check the path: it is looked for in %q", folder)
	if folder != filepath.Dir(path) {
		text = fmt.Sprintf("check the path: the last folder of it that exists is %q", folder)
	}
	err = errors.New(text)
	if odd, _ := syntax.Oddity(name); odd != "" {
		err = fmt.Errorf("%w; the path %w", err, fact.Odd(odd))
	}
	if near != "" {
		err = fmt.Errorf("%w. Did you mean %q?", err, near)
	}
	return err
}

// Near returns the last folder in an absolute path that exists, and what in it the path is
// probably a misspelling of, "" if nothing is near.
func Near(path string) (folder, name string) {
	for folder = filepath.Dir(path); !isFolder(folder) && folder != filepath.Dir(folder); {
		folder = filepath.Dir(folder)
	}
	rest, _ := filepath.Rel(folder, path)
	first, _, _ := strings.Cut(rest, string(filepath.Separator))
	if len(first) > maxName {
		return folder, ""
	}
	there := names(folder)
	if slices.Contains(there, first) { // a link that leads nowhere
		return folder, ""
	}
	return folder, syntax.Nearest(first, there)
}

// names are those of the first 1,000 files in a folder.
func names(folder string) (names []string) {
	f, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ = f.Readdirnames(1000)
	slices.Sort(names)
	return names
}

// ExpandHome puts the home directory in the place of a leading ~.
func ExpandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return path, nil
	}
	home, err := world.Home()
	if err != nil {
		return "", errors.New("~ is the home directory, and HOME, which names it, is not set; write the whole path")
	}
	return filepath.Join(home, rest), nil
}

var pathPattern = lazyregexp.New(`^(~|\.{0,2})[/\\]?[A-Za-z0-9_. /\\-]{1,200}\.(json|pem|crt|cer|key|p12|pfx|txt|pub|age|hcl|tf|tofu|tfvars|ya?ml|ini|conf)$`)

// IsPath reports whether text, which may be a secret in the place of a path, is
// surely a path, and may be shown: it looks like the path of a key file, begins at
// the home directory, or begins with a folder that exists, which no key does.
func IsPath(text string) bool {
	return pathPattern.MatchString(text) || strings.HasPrefix(text, "~/") || isFolder(begin(text))
}

// NoPEM says what is in the place of a certificate or a key in PEM, and what to do about
// it: a path, or base64. It is "" for anything else.
func NoPEM(text string) string {
	const encoded = "LS0tLS1CRUdJTi" // -----BEGIN
	switch {
	case IsPath(text) || Exists(text):
		return "; use file(…) to read a file"
	case strings.HasPrefix(text, encoded):
		return "; use base64decode(…) to decode base64"
	}
	return ""
}

// Exists reports whether text is the path of a file that there is.
func Exists(text string) bool {
	path, err := ExpandHome(text)
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// begin is the first folder in a path of several, below the root; "" if there is none.
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

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// OddToken says what is odd about a token, "" for nothing.
func OddToken(text string) string {
	const tokenInBase64 = "ZXlK" // eyJ, with which JSON Web Tokens begin
	switch scheme, _, more := strings.Cut(text, " "); {
	case more && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "token")):
		return "begins with " + scheme + ", which is sent before it anyway"
	case IsPath(text) || Exists(text):
		return "is the path of a file: file(…) reads what is in it"
	case strings.HasPrefix(text, tokenInBase64):
		return "is in base64, as Kubernetes keeps it: base64decode(…) gives the token"
	}
	return ""
}
