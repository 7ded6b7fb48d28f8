package child

import (
	"os"
	"os/exec"
)

// prepare returns a function that does nothing. On Windows, the console signals all of its processes, and there is no
// other way to interrupt a process.
func prepare(*exec.Cmd) (forward func(os.Signal)) { return func(os.Signal) {} }

// lend does nothing. On Windows, a closed pipe does not end a process, and locks are not inherited.
func lend(*exec.Cmd, []*os.File) (release func(), err error) { return func() {}, nil }

func rare() []os.Signal { return nil }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
