//go:build !unix && !windows

package child

import "os/exec"

// OwnGroup does nothing: programs cannot be started here, as in a browser, or have
// no groups. The end of the context still ends the command itself.
func OwnGroup(*exec.Cmd) {}

// KillGroup does nothing either.
func KillGroup(*exec.Cmd) {}

// RunDependent runs a command, which outlives this process.
func RunDependent(cmd *exec.Cmd) error { return cmd.Run() }
