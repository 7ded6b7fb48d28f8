//go:build !unix && !windows

package world

import (
	"os/exec"
)

// ownGroup does nothing, because these systems, such as a browser, either cannot start programs or have no
// process groups. Cancelling the context still kills the command itself.
func ownGroup(*exec.Cmd) {}

// KillGroup does nothing, because these systems have no process groups.
func KillGroup(*exec.Cmd) {}

// RunDependent runs a command. The command may outlive this process.
func RunDependent(cmd *exec.Cmd) error { return cmd.Run() }
