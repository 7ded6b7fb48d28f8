//go:build !unix

package amplification

// cpuTime is not measured here.
func cpuTime() float64 { return 0 }
