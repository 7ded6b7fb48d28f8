// Package world is the only way to this machine: its variables, its programs, the
// user's folders and the authorities that its variables name. Nothing else may
// look these up; the linter checks it.
package world

import (
	"os"
	"os/exec"
	"runtime"
)

// World is what one part of this program may know of the machine. The zero World
// is that of use_environment = false: it finds no variable, and programs get only
// what any program needs in order to run. So whoever forgets to pass a World on
// turns the environment off.
type World struct{ environment bool }

// Here is this machine with its environment.
func Here() World { return World{environment: true} }

// If is [Here] if the environment may be read, and the zero World if not.
func If(environment bool) World { return World{environment: environment} }

// ReadsEnvironment reports whether the environment may be read.
func (w World) ReadsEnvironment() bool { return w.environment }

// Lookup is [os.LookupEnv], which finds nothing if the environment is off.
func (w World) Lookup(name string) (string, bool) {
	if !w.environment {
		return "", false
	}
	return os.LookupEnv(name)
}

// Home is the user's home directory. It belongs to the user and not to the
// environment, and so do the files of the user's tools in it.
func Home() (string, error) { return os.UserHomeDir() }

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
