//go:build unix

package world

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopDelay is how long a program may take to clean up when it is stopped.
// After Ctrl-C, everything has to end within two seconds. It is not the
// command's WaitDelay: that one also limits how long the output of a program is
// read after its end, which takes longer if there is much to do.
const stopDelay = time.Second

// ownGroup puts a command into a session of its own: it has no terminal to ask
// for passwords on, and its children are in one process group, which is stopped
// as a whole when the context ends, and killed if it goes on.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			return os.ErrProcessDone
		}
		time.AfterFunc(stopDelay, func() { KillGroup(cmd) })
		return nil
	}
}

// KillGroup ends what outlived the command itself.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
