// Command noted runs a program, and notes its cost. In the place of a provider, it runs the executable beside it whose
// name has the suffix ".measured". With -parent, it notes the peak memory of the process that has started it instead.
//
// It is a program of its own because it is small: for the system, the memory of the process that starts another one
// counts as that one's, and a parent's peak includes its children's.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/tools/bench/notes"
)

func main() {
	args := os.Args[1:]
	if self, err := os.Executable(); err == nil {
		if _, err := os.Stat(self + ".measured"); err == nil {
			args = append([]string{self + ".measured"}, args...)
		}
	}
	if args[0] == "-parent" {
		code, _ := run(args[1:])
		notes.Add(peakOf(os.Getppid()), 0)
		os.Exit(code)
	}
	code, state := run(args)
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		notes.Add(usage.Maxrss*1024, state.UserTime()+state.SystemTime()) // Linux counts in kilobytes
	}
	os.Exit(code)
}

func run(args []string) (code int, state *os.ProcessState) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), cmd.ProcessState
}

// peakOf returns the peak memory of a running process in bytes, without its children.
func peakOf(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	_, _ = fmt.Sscan(after, &kilobytes)
	return kilobytes * 1024
}
