//go:build !unix && !windows

package world

import (
	"os/exec"
)

// ownGroup does nothing, because programs cannot be started on these systems, such as a browser, or
// have no groups. The end of the context still ends the command itself.
func ownGroup(*exec.Cmd) {}

// KillGroup does nothing, because there are no groups.
func KillGroup(*exec.Cmd) {}

// RunDependent runs a command, which may outlive this process.
func RunDependent(cmd *exec.Cmd) error { return cmd.Run() }
