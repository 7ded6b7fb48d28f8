//go:build unix

package child

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare returns a function that passes signals on to the child. Terraform aborts at the second interrupt. Signals
// that would end the child before it writes its state are therefore replaced by one interrupt, or dropped if the child
// was interrupted before. The first SIGINT or SIGTERM after this interrupt is dropped.
//
// On a terminal, the child stays in our process group, because it asks questions, and Ctrl-C reaches it directly.
// Without a terminal, a job system may signal the whole process group, so the child gets its own group.
func prepare(cmd *exec.Cmd) (forward func(os.Signal)) {
	terminal, err := os.Open("/dev/tty")
	if err == nil {
		terminal.Close()
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	sent, instead := 0, false // number of signals sent, and whether the first was replaced by an interrupt
	return func(s os.Signal) {
		asks := s == syscall.SIGINT || s == syscall.SIGTERM
		if !asks && sent > 0 {
			return
		}
		sent++
		switch {
		case !asks:
			instead = true
			_ = cmd.Process.Signal(os.Interrupt) // fails if the child has already exited
		case sent == 2 && instead, s == syscall.SIGINT && inForeground():
		default:
			_ = cmd.Process.Signal(s)
		}
	}
}

// rare returns the signals other than SIGINT, SIGTERM and SIGHUP that end a Go process unless it catches them.
func rare() []os.Signal {
	names := []string{"SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS", "SIGEMT", "SIGSTKFLT"}
	var signals []os.Signal
	for _, name := range names {
		if s := unix.SignalNum(name); s != 0 { // no system has all of them
			signals = append(signals, s)
		}
	}
	return signals
}

// lowest is the lowest descriptor number for lent files, if the descriptor limit allows it. Scripts and other programs
// use lower numbers: make uses 3 and 4, and exec 200>lock is common.
const lowest = 900

// lend lets the child inherit files, so that they stay open until the child exits. Their descriptor numbers are higher
// than all descriptors that the parent process passed down to wrap, which the child inherits unchanged. The files are
// inheritable only in the child, so no other program started at the same time gets them. If there are too few
// descriptor numbers, the child inherits no files. The caller calls release once the child is running.
func lend(cmd *exec.Cmd, files []*os.File) (release func(), err error) {
	limit, handed := descriptors()
	last := 2 // descriptors 0 to 2 always exist
	if len(handed) > 0 {
		last = handed[len(handed)-1]
	}
	needed := len(files) + len(handed) + 2 // Go needs two descriptors to start a program
	if last+needed >= limit {
		return func() {}, nil
	}
	first := max(last+1, min(lowest, limit-needed))
	release = func() {
		for _, f := range cmd.ExtraFiles {
			_ = f.Close() // Close accepts a nil file
		}
	}
	inherit := func(descriptor uintptr, number int) error { // number 0 means the first free number
		copied, err := unix.FcntlInt(descriptor, unix.F_DUPFD_CLOEXEC, first)
		if err != nil {
			return err
		}
		at := cmp.Or(number, copied) - 3
		cmd.ExtraFiles = append(cmd.ExtraFiles, make([]*os.File, max(0, at+1-len(cmd.ExtraFiles)))...)
		cmd.ExtraFiles[at] = os.NewFile(uintptr(copied), "")
		return nil
	}
	for _, f := range files {
		err = errors.Join(err, inherit(f.Fd(), 0))
	}
	for _, number := range handed {
		err = errors.Join(err, inherit(uintptr(number), number))
	}
	if err = errors.Join(err, expectFree()); err != nil {
		release()
		cmd.ExtraFiles = nil
		release = func() {}
	}
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.EINVAL) { // a number would exceed the limit
		err = nil
	}
	return release, err
}

// expectFree returns an error if there are too few free descriptors to start a program.
func expectFree() (err error) {
	var files [4]*os.File
	for i := range files {
		if err == nil {
			files[i], err = os.Open(os.DevNull)
		}
	}
	for _, f := range files {
		_ = f.Close() // Close accepts a nil file
	}
	return err
}

// descriptors returns the limit for descriptor numbers, and the inheritable descriptors from 3 upward, which the parent
// process passed down.
func descriptors() (limit int, handed []int) {
	const most = 1 << 12 // parents do not pass down higher numbers
	limit = most
	if system := (unix.Rlimit{}); unix.Getrlimit(unix.RLIMIT_NOFILE, &system) == nil && system.Cur < most {
		limit = int(system.Cur)
	}
	syscall.ForkLock.Lock() // a descriptor that is just being opened may not be close-on-exec yet
	defer syscall.ForkLock.Unlock()
	for number := 3; number < limit; number++ {
		flags, err := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			handed = append(handed, number)
		}
	}
	return limit, handed
}

// inForeground reports whether Ctrl-C reaches our process group.
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
