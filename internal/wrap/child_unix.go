//go:build unix

package wrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare returns what passes signals on to the child. The second interrupt has
// Terraform give up at once, so none may arrive twice: one stands for all those at which
// the child would not write its state, and for the first that asks it to end after them.
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
	told, instead := 0, false // how often, and whether for another signal
	return func(s os.Signal) {
		asks := s == syscall.SIGINT || s == syscall.SIGTERM
		if !asks && told > 0 {
			return
		}
		told++
		switch {
		case !asks:
			instead = true
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		case told == 2 && instead, s == syscall.SIGINT && inForeground():
		default:
			_ = cmd.Process.Signal(s)
		}
	}
}

// rare are the signals that end a program of Go without a word to it, apart from a hangup.
func rare() []os.Signal {
	names := []string{"SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS", "SIGEMT", "SIGSTKFLT"}
	var signals []os.Signal
	for _, name := range names {
		if s := unix.SignalNum(name); s != 0 { // no system has all
			signals = append(signals, s)
		}
	}
	return signals
}

// alive is a file in a folder that is locked as long as this process lives.
const alive = "alive"

// keep marks a folder as that of this process, until the file is closed. If files cannot
// be locked there, it has no mark.
func keep(dir string) *os.File {
	path := filepath.Join(dir, alive)
	f, err := os.OpenFile(path+"~", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil && unix.Flock(int(f.Fd()), unix.LOCK_EX) == nil {
		_ = os.Rename(path+"~", path) // nobody sees it without the lock
	}
	return f
}

// isLeft reports whether a folder is that of a process that no longer lives.
func isLeft(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, alive), os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// lend has the child keep a file open. With the reading end of its pipe, its words go nowhere if we
// are killed, and do not end it.
func lend(cmd *exec.Cmd, f *os.File) { cmd.ExtraFiles = append(cmd.ExtraFiles, f) }

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
