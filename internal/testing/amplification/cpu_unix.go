//go:build unix

package amplification

import "syscall"

// cpuTime returns the CPU time that this process has used, in seconds.
func cpuTime() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()) / 1e9
}
