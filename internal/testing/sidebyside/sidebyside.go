// Package sidebyside runs tests that spend more time waiting than computing.
package sidebyside

import (
	"maps"
	"slices"
	"sync"
	"testing"
)

const most = 8 // tests at a time, so that none waits long for the processor

// Run runs subtests of t side by side, and returns when all of them have finished. Unlike with t.Parallel, the number
// of tests at a time does not depend on the machine, and the caller may have set environment variables.
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
