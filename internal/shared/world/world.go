// Package world is the only way to this machine: its variables, its programs, the
// user's folders and the authorities that its variables name. Nothing else may
// look these up; the linter checks it.
package world

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// World is what one client or program may know of the machine. Which one it gets
// follows from what it is handed itself: see [For]. The zero World is that of
// use_environment = false, so whoever forgets to pass a World on turns the environment
// off.
type World struct{ kind kind }

type kind int

const (
	// none finds no variable. Programs get what any program needs in order to run.
	none kind = iota

	// code is for whoever is handed a secret of the code, or is a program that only
	// TF_ENCRYPTION has run: nothing of the machine says where the secret goes, or who
	// sees it on the way, and no variable says what the program starts in turn. The machine's proxies and authorities are
	// found, and programs get them beside what any program needs. Clients read nothing by
	// themselves: what a variable may still say reaches them as the value of an attribute.
	code

	// user is for all others, which work as the user's own tools do. Everything is found.
	// Programs get all but the secrets that are ours, and what writes secrets to logs.
	user
)

// Here is this machine with its environment.
func Here() World { return World{user} }

// For returns the World of a client or a program that is handed a secret of the code, or none. Lookup is the
// environment as that client may read it, and nil if it must read none.
func For(lookup func(name string) (string, bool), secret bool) World {
	if lookup == nil {
		return World{}
	}
	return Here().Beside(secret)
}

// Beside is w for whoever is handed a secret of the code, or none.
func (w World) Beside(secret bool) World {
	if secret {
		w.kind = min(w.kind, code)
	}
	return w
}

// ReadsEnvironment reports whether a client may look at the environment by itself.
func (w World) ReadsEnvironment() bool { return w.kind == user }

// Reason says why clients must not look at the environment, as the beginning of a sentence.
func (w World) Reason() string {
	if w.kind == none {
		return "the environment is switched off"
	}
	return "a secret of the configuration is sent"
}

// Lookup is [os.LookupEnv] for the variables that are found.
func (w World) Lookup(name string) (string, bool) {
	if w.kind == none || w.kind == code && !w.Gives(strings.ToUpper(name)) {
		return "", false
	}
	return os.LookupEnv(name)
}

// Home is the user's home directory. It belongs to the user and not to the
// environment, and so do the files of the user's tools in it.
func Home() (string, error) { return os.UserHomeDir() }

// ExpandHome puts the home directory in the place of a leading ~.
func ExpandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return path, nil
	}
	home, err := Home()
	if err != nil {
		return "", errors.New("~ is the home directory, and HOME, which names it, is not set; write the whole path")
	}
	return filepath.Join(home, rest), nil
}

// ConfigDir is the folder below [Home] in which command-line tools that were
// written for Unix keep their settings. On Windows, it is that of all programs.
func ConfigDir() (string, error) {
	if runtime.GOOS == "windows" {
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	return home + "/.config", err
}

// Find returns the path of a program that is looked up in PATH.
func Find(program string) (path string, err error) { return exec.LookPath(program) }
