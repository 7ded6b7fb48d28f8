//go:build unix

package world

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopDelay is the time that a stopped program has to clean up. After Ctrl-C, everything must end
// within two seconds. The command's WaitDelay is another limit, because it also covers the time in
// which the output of a program is read after its end.
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

// KillGroup kills the processes of the command's group that are still running.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

// watch is a shell script that runs a program. In the same process group, it waits at a pipe, and
// kills the group if the pipe ends without a line, as it does if this process is killed. The signal
// that Linux can send in that case would not reach the program's own children, and other systems
// have no such signal.
const watch = `(read -r line || kill -s KILL 0) <&%[1]d >/dev/null 2>&1 & exec %[1]d<&-; exec "$@"`

// RunDependent runs a command in a group of its own, like [Command]. If there is a shell in PATH,
// the group ends with this process, even if the process is killed.
func RunDependent(cmd *exec.Cmd) error {
	ownGroup(cmd)
	shell, err := exec.LookPath("sh")
	if err != nil || cmd.Err != nil {
		return cmd.Run()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	script := fmt.Sprintf(watch, 3+len(cmd.ExtraFiles))
	cmd.ExtraFiles = append(cmd.ExtraFiles, read)
	cmd.Args = append([]string{shell, "-c", script, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
	err = cmd.Start()
	_ = read.Close()
	if err != nil {
		return err
	}
	err = cmd.Wait()
	_, _ = write.WriteString("done\n") // processes that the program left running may go on
	return err
}
