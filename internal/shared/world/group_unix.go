//go:build unix

package world

import (
	"fmt"
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

// KillGroup kills the processes of the command's group that are still running.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

// watch waits beside the program, in its process group. The pipe ends without a
// line if we were killed. No signal that Linux could send goes to the program's
// own children, and other systems have none.
const watch = `(read -r line || kill -s KILL 0) <&%[1]d >/dev/null 2>&1 & exec %[1]d<&-; exec "$@"`

// RunDependent runs a command in a group of its own, as [Command] has it. The
// group ends with this process, however that ends.
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
