//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// OwnGroup puts a command into a session of its own: it has no terminal to ask
// for passwords on, and its children are in one process group, which is
// stopped as a whole when the context ends.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			return os.ErrProcessDone
		}
		return nil
	}
}

// KillGroup ends what outlived the command itself.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
