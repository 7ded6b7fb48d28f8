// Package notes accumulates costs of processes in a file, because Terraform and OpenTofu start a provider several
// times.
package notes

import (
	"fmt"
	"os"
	"time"
)

// Variable is the environment variable for the path of the file. Without it, nothing is noted.
const Variable = "STATECRYPT_BENCH_NOTES"

// Read returns the highest peak memory in bytes, and the total CPU time.
func Read(path string) (peak int64, cpu time.Duration) {
	if text, err := os.ReadFile(path); err == nil {
		_, _ = fmt.Sscan(string(text), &peak, &cpu)
	}
	return peak, cpu
}

// Add notes the cost of one process.
func Add(peak int64, cpu time.Duration) {
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	before, total := Read(path)
	_ = os.WriteFile(path, fmt.Appendf(nil, "%d %d", max(before, peak), total+cpu), 0o600)
}
