// Package keyfile reads small files, such as keys, tokens, certificates and profiles.
package keyfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// limit is the maximum file size, in bytes. Files with keys, tokens or profiles are far smaller.
const limit = 1 << 20

// Read returns the content of a file of at most 1 MiB. It expands a leading ~ to the home directory. It opens
// only regular files, because opening a pipe would wait for a writer. If the file does not exist, the error
// wraps [fs.ErrNotExist]. Errors never contain the file's content, and contain its whole name only if [Shown]
// returns it.
func Read(name string) ([]byte, error) {
	return readAs(name, cmp.Or(Shown(name), "the file (its name may be a secret)"))
}

// ReadText works like [Read], but returns an error for UTF-16 and removes the byte order mark that some
// editors write at the start of UTF-8 files. As with Read, the error wraps a reason that does not contain the
// file name.
func ReadText(name string) ([]byte, error) {
	content, err := Read(name)
	if err == nil && recognize.IsUTF16(content) {
		return nil, fmt.Errorf("%s: %w", Shown(name), errors.New(recognize.NotText(content)))
	}
	return bytes.TrimPrefix(content, []byte("\ufeff")), err
}

// Shown returns a file name in quotation marks, for error messages. It returns an empty string if name may be
// a secret that was set by mistake: no such file exists, and [recognize.IsPath] does not accept the name.
func Shown(name string) string {
	if recognize.IsPath(name) || recognize.Exists(name) {
		return fmt.Sprintf("%.200q", name)
	}
	return ""
}

// ReadArgument works like [Read], for a file name in a command-line argument. Errors show the name in the
// form that [Argument] returns.
func ReadArgument(name string) ([]byte, error) {
	if recognize.IsContent(name) {
		return nil, errContent
	}
	return readAs(name, fmt.Sprintf("%.200q", Argument(name)))
}

// Argument returns the file name in a command-line argument, for error messages. It removes the parts of a
// URL that may be secret, and the secret in openssl's notation pass:SECRET.
func Argument(name string) string {
	if recognize.Exists(name) {
		return name
	}
	if u, err := url.Parse(name); err == nil && u.Scheme != "" && (u.Host != "" || u.Scheme == "file") {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	} else if strings.Contains(name, "://") {
		return "an address"
	}
	if kind := recognize.NamedSecret(name); kind != "" {
		return kind + "…"
	}
	return name
}

var errContent = errors.New("this is the content of a file, not its path; write the content to a file, and give the path")

func readAs(name, shown string) ([]byte, error) {
	path, err := world.ExpandHome(name)
	if err != nil {
		return nil, err
	}
	content, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", shown, Explain(path, err))
	}
	return content, nil
}

// ExpectRegular returns an error if path is not a regular file. It does not open the file, because opening a
// pipe would wait for a writer, and a device may never end.
func ExpectRegular(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a folder, not a file; give the path of a file in it")
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file; copy the content to a regular file")
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
		err = errors.New("it is larger than 1 MiB; check that this is the right file")
	}
	return content, err
}

// Reason returns the underlying error of an error from package os, without the operation and the file name.
func Reason(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

var errAsk = errors.New("ask the owner of the file for permission")

// Explain returns an error that says why a file cannot be read or written, with advice but without the file's
// name.
func Explain(name string, err error) error {
	err = Reason(err)
	switch {
	case recognize.IsContent(name):
		return errContent
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w%w", err, sought(name))
	case errors.Is(err, fs.ErrPermission) && !errors.Is(err, errAsk):
		return fmt.Errorf("%w; %w", err, errAsk)
	}
	return err
}

var ofSCP = lazyregexp.New(`^[a-z]+@[\w.-]+:`)

// sought returns an error that says where a missing file was looked for. Its text begins with a punctuation mark,
// because it follows the error of the system. It shows only folders that exist, because the rest of the path may be
// a secret that was set by mistake.
func sought(name string) error {
	if name == "" {
		return errors.New(": the path is empty; check whether a variable is empty")
	}
	if strings.HasPrefix(name, "file://") {
		return errors.New(": this is a URL, not a path; leave out file://")
	}
	if recognize.Scheme(name) != "" || ofSCP.MatchString(name) {
		return errors.New(": this is an address, not a path; fetch the file first")
	}
	if strings.ContainsAny(name, "*?[") {
		return errors.New(": this is a pattern, but patterns are not expanded here; give the path of each file")
	}
	if kind := recognize.NamedSecret(name); kind != "" {
		return errors.New(": " + kind + "… is the name of a secret for other programs, not a path; write the secret to a file, and give the " +
			"path")
	}
	if recognize.IsOfWindows(name) {
		return errors.New(": this is a Windows path, but this machine does not run Windows; give the path of the file on this machine")
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return errors.New("; check its path")
	}
	folder, near := Near(path)
	text := fmt.Sprintf("; check the path: %q has no such file", folder)
	if folder != filepath.Dir(path) {
		text = fmt.Sprintf("; check the path: only %q exists", folder)
	}
	err = errors.New(text)
	if odd := recognize.Text(name, recognize.Value).Said(""); odd != "" {
		err = fmt.Errorf("%w. The path %w", err, fault.Odd(odd))
	}
	if near != "" {
		err = fmt.Errorf("%w. Did you mean %q?", err, near)
	}
	return err
}

// Near returns the deepest existing folder in an absolute path, and the name in that folder that was probably
// meant. The name is empty if none is similar.
func Near(path string) (folder, name string) {
	for folder = filepath.Dir(path); !recognize.IsFolder(folder) && folder != filepath.Dir(folder); {
		folder = filepath.Dir(folder)
	}
	rest, _ := filepath.Rel(folder, path)
	first, _, _ := strings.Cut(rest, string(filepath.Separator))
	if len(first) > recognize.MaxName {
		return folder, ""
	}
	there := names(folder)
	if slices.Contains(there, first) { // a symlink whose target is missing
		return folder, ""
	}
	return folder, syntax.Nearest(first, there)
}

// names returns the sorted names of up to 1,000 files in a folder.
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
