// Package sidebyside runs tests that wait more than they compute.
package sidebyside

import (
	"maps"
	"slices"
	"sync"
	"testing"
)

const most = 8 // at a time, so that none waits for long for the processor

// Run runs subtests of t side by side, and returns when all of them have ended.
// Unlike after t.Parallel, their number does not depend on the machine, and
// variables of the environment may have been set before.
func Run(t *testing.T, tests map[string]func(t *testing.T)) {
	t.Helper()
	names := make(chan string)
	var workers sync.WaitGroup
	for range most {
		workers.Go(func() {
			for name := range names {
				t.Run(name, tests[name])
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		names <- name
	}
	close(names)
	workers.Wait()
}
