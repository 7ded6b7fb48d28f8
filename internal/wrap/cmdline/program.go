package cmdline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// shimMark is the text with which every shim begins. A copy of a shim begins with it, too, and so does a link to one.
const shimMark = "#!/bin/sh\n# A shim of statecrypt runs "

// Shim returns a script for POSIX shells that runs the program through wrap if STATECRYPT_CONFIG is set. The path of
// statecrypt must be absolute. The script has a single command, so that it ends if statecrypt is gone.
func Shim(statecrypt, program string) []byte {
	quoted := "'" + strings.ReplaceAll(statecrypt, "'", `'\''`) + "'"
	return []byte(shimMark + program + " through statecrypt wrap if STATECRYPT_CONFIG names settings.\n" +
		"exec " + quoted + " wrap -shim -- " + program + " \"$@\"\n")
}

// IsShim reports whether the file is a shim.
func IsShim(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return false
	}
	f, err := os.Open(path)
	if err != nil { // a shell cannot read it either, so it is no script
		return false
	}
	defer f.Close()
	begin := make([]byte, len(shimMark))
	_, err = io.ReadFull(f, begin)
	return err == nil && bytes.Equal(begin, []byte(shimMark))
}

// Program returns the absolute path of the program in a command. It finds a name without a folder in PATH, but never a
// shim, because a shim would start statecrypt again.
func Program(command []string) (string, error) {
	if name, rest, _ := strings.Cut(strings.Join(command, " "), " "); len(command) == 1 && rest != "" && isCLI(name) {
		return "", errors.New("the program and its arguments are quoted as one string; remove the quotation marks")
	}
	if len(command) == 0 || !isCLI(command[0]) {
		return "", errors.New("wrap runs only terraform and tofu; write one of these names after the flags of wrap. " +
			"In a script, call statecrypt wrap instead of terraform. Set environment variables before statecrypt")
	}
	path, err := find(command[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if failed, ok := errors.AsType[*exec.Error](err); ok {
		switch err = failed.Err; {
		case errors.Is(err, exec.ErrNotFound):
			err = errors.New("the program is not in PATH; install it, or give its path")
		case errors.Is(err, fs.ErrNotExist): // a similar name may be that of a folder
			err = errors.New("there is no such file; check the path, or give the name alone to find the program in PATH")
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s cannot be run: %w", outside.Quoted(command[0], 300), keyfile.Explain(command[0], err))
	}
	return path, nil
}

// isCLI reports whether the program is called terraform or tofu, perhaps with a version.
func isCLI(program string) bool {
	return cliName.MatchString(filepath.Base(program))
}

var cliName = lazyregexp.New(`^(?i)(terraform|tofu)([-_]v?[0-9][0-9a-z.+-]*)?(\.exe)?$`)

// find is [exec.LookPath] without shims.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case path == "" || !IsShim(path):
		return path, err
	case filepath.Base(name) != name:
		return "", errors.New("it is a shim, which would start statecrypt again; give the path of the program itself")
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if dir == "" {
			dir = "."
		}
		path, err := exec.LookPath(dir + string(filepath.Separator) + name)
		switch {
		case err != nil || IsShim(path):
		case !filepath.IsAbs(dir):
			return "", &exec.Error{Name: name, Err: exec.ErrDot}
		default:
			return path, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
