//go:build unix

package world

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopDelay is how long a program that was told to stop may take to clean up. After Ctrl-C, everything must end
// within two seconds. The command's WaitDelay is a separate limit, because it also covers reading a program's
// remaining output after its exit.
const stopDelay = time.Second

// ownGroup puts a command into a new session. The command then has no terminal on which it could ask for
// passwords, and shares a process group with its children. When the context is cancelled, the whole group is
// asked to terminate, and is killed after stopDelay.
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

// KillGroup kills all running processes in the command's group.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

// watch is a shell script that runs a program. A background process in the same process group waits for a
// line from a pipe. If the pipe is closed without one, as happens when this process is killed, the background
// process kills the group. Linux can send a signal in that case, but the signal would not reach the program's
// own children, and other systems have no such signal.
const watch = `(read -r line || kill -s KILL 0) <&%[1]d >/dev/null 2>&1 & exec %[1]d<&-; exec "$@"`

// RunDependent runs a command in its own process group, like [Command]. If there is a shell in PATH, the
// group ends when this process ends, even if this process is killed.
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
	_, _ = write.WriteString("done\n") // processes that the program left behind may keep running
	return err
}
