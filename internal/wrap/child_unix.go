//go:build unix

package wrap

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare returns what passes signals on to the child. The second interrupt has
// Terraform give up at once, so none may arrive twice.
//
// On a terminal, the child stays in our process group, because it asks
// questions: Ctrl-C reaches it from there. Without one, whoever stops a job may
// signal its whole process group, so the child gets one of its own.
func prepare(cmd *exec.Cmd) (forward func(os.Signal)) {
	terminal, err := os.Open("/dev/tty")
	if err == nil {
		terminal.Close()
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	return func(s os.Signal) {
		if s != syscall.SIGINT || !inForeground() {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}
}

// inForeground reports whether Ctrl-C is for our process group.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
