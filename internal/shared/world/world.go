// Package world is the only access to the environment of this process: its variables, programs, the user's
// folders, and the certificate authorities that variables name. The linter checks that no other package looks
// these up.
package world

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// World is the part of the environment that one client or program may read. [For] chooses it, depending on
// the secrets that the client receives. The zero World contains no variables, as with use_environment =
// false, so if code forgets to pass a World, the environment is off.
type World struct{ kind kind }

type kind int

const (
	// none contains no variables. Programs get only the variables that every program needs to run.
	none kind = iota

	// code is for clients that receive a secret of the configuration, and for programs that only
	// TF_ENCRYPTION names. No variable may choose where the secret goes, who can see it on the way, or which
	// other programs are started. This World contains the machine's proxies and certificate authorities;
	// programs get these in addition to the variables that every program needs. Clients do not read variables
	// themselves: the values of permitted variables are passed to them as attributes.
	code

	// user is for all other clients and programs, which work like the user's own tools. It contains all
	// variables. Programs get all variables except our own secrets and those that make clients log secrets.
	user
)

// Here returns the World that contains all variables.
func Here() World { return World{user} }

// For returns the World for a client or program. Lookup is nil if the client must not use the environment.
// Secret is true if the client receives a secret of the configuration.
func For(lookup func(name string) (string, bool), secret bool) World {
	if lookup == nil {
		return World{}
	}
	return Here().Beside(secret)
}

// Beside returns w, or a restricted World if secret is true. Secret is true if the client receives a secret
// of the configuration.
func (w World) Beside(secret bool) World {
	if secret {
		w.kind = min(w.kind, code)
	}
	return w
}

// ReadsEnvironment reports whether a client may read environment variables by itself.
func (w World) ReadsEnvironment() bool { return w.kind == user }

// Reason says why clients must not read the environment, as the beginning of a sentence.
func (w World) Reason() string {
	if w.kind == none {
		return "the environment must not be used"
	}
	return "a secret comes from the configuration"
}

// Lookup works like [os.LookupEnv], but finds only variables that w contains.
func (w World) Lookup(name string) (string, bool) {
	if w.kind == none || w.kind == code && !w.Gives(strings.ToUpper(name)) {
		return "", false
	}
	return os.LookupEnv(name)
}

// Home returns the user's home directory. Every World finds it through HOME (USERPROFILE on Windows), because
// that variable only identifies the user.
func Home() (string, error) { return os.UserHomeDir() }

// ExpandHome returns path with a leading ~ replaced by the home directory.
func ExpandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return path, nil
	}
	home, err := Home()
	if err != nil {
		return "", errors.New("~ cannot be expanded, because HOME is not set; write the whole path")
	}
	return filepath.Join(home, rest), nil
}

// ConfigDir returns the folder where command-line tools written for Unix keep their settings: .config in
// [Home], or [os.UserConfigDir] on Windows.
func ConfigDir() (string, error) {
	if runtime.GOOS == "windows" {
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	return home + "/.config", err
}

// Find looks up a program in PATH and returns its path.
func Find(program string) (path string, err error) { return exec.LookPath(program) }
