package wrap

import (
	"os"
	"os/exec"
)

// prepare returns a function that does nothing: the console tells all of its
// processes, and there is no other way to interrupt one.
func prepare(*exec.Cmd) (forward func(os.Signal)) { return func(os.Signal) {} }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
