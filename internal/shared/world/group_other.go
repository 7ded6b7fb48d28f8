//go:build !unix && !windows

package world

import (
	"os/exec"
)

// ownGroup does nothing: programs cannot be started here, as in a browser, or have
// no groups. The end of the context still ends the command itself.
func ownGroup(*exec.Cmd) {}

// KillGroup does nothing either.
func KillGroup(*exec.Cmd) {}

// RunDependent runs a command, which outlives this process.
func RunDependent(cmd *exec.Cmd) error { return cmd.Run() }
