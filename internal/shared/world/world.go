// Package world is the only access to this machine: its variables, its programs, the user's folders
// and the authorities that its variables name. No other package may look these up; the linter
// checks that.
package world

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// World is the part of the machine's environment that one client or program may read. [For]
// chooses it by the secrets that the client receives. The zero World finds no variable, as with
// use_environment = false, so code that forgets to pass a World turns the environment off.
type World struct{ kind kind }

type kind int

const (
	// none finds no variable. Programs get only the variables that every program needs to run.
	none kind = iota

	// code serves clients that receive a secret of the configuration, and programs that only
	// TF_ENCRYPTION names. No variable may choose where the secret goes, who sees it on the way,
	// or which programs are started in turn. The proxies and authorities of the machine are
	// found, and programs get them beside the variables that every program needs. Clients read no
	// variables themselves: permitted variables reach them as values of attributes.
	code

	// user serves all other clients and programs, which work like the user's own tools. It finds
	// all variables. Programs get all variables except our own secrets, and except variables that
	// make clients write secrets to logs.
	user
)

// Here returns the World with all variables.
func Here() World { return World{user} }

// For returns the World of a client or a program. Lookup is the environment as the client may
// read it, and nil if it must read none; secret is true if the client receives a secret of the
// configuration.
func For(lookup func(name string) (string, bool), secret bool) World {
	if lookup == nil {
		return World{}
	}
	return Here().Beside(secret)
}

// Beside returns w, reduced if the client receives a secret of the configuration.
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

// Lookup works like [os.LookupEnv], and finds only the variables that w allows.
func (w World) Lookup(name string) (string, bool) {
	if w.kind == none || w.kind == code && !w.Gives(strings.ToUpper(name)) {
		return "", false
	}
	return os.LookupEnv(name)
}

// Home returns the user's home directory. It is found through HOME (USERPROFILE on Windows) in every
// World, because it identifies the user.
func Home() (string, error) { return os.UserHomeDir() }

// ExpandHome returns path with the home directory in place of a leading ~.
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

// ConfigDir returns the folder in which command-line tools written for Unix keep their settings:
// .config below [Home], and on Windows [os.UserConfigDir].
func ConfigDir() (string, error) {
	if runtime.GOOS == "windows" {
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	return home + "/.config", err
}

// Find returns the path of a program, which it looks up in PATH.
func Find(program string) (path string, err error) { return exec.LookPath(program) }
