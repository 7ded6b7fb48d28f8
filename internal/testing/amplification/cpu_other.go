//go:build !unix

package amplification

// cpuTime returns 0, because CPU time is not measured on this system.
func cpuTime() float64 { return 0 }
