// Command testsummary prints what "go test" would, from what "go test -json"
// prints, and in the end which tests were skipped, by the reason. Its exit
// status is that of the tests.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is described by "go doc test2json".
type event struct{ Action, Package, Test, Output string }

type summary struct {
	output map[event][]string  // :: {Package, Test} → what it printed so far
	skips  map[string][]string // :: reason → tests
	ran    bool
	failed bool
}

func main() {
	s := summary{output: map[event][]string{}, skips: map[string][]string{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text()) // of the go command itself
			continue
		}
		s.take(e)
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		s.failed = true
	}
	s.printSkips()
	if s.failed || !s.ran {
		os.Exit(1)
	}
}

func (s *summary) take(e event) {
	at := event{Package: e.Package, Test: e.Test}
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		s.output[at] = append(s.output[at], e.Output)
		return
	case "build-fail":
		s.failed = true
	case "fail":
		s.failed = true
		s.print(at)
		if e.Test == "" { // those that had not ended yet, too
			for other := range s.output {
				if other.Package == e.Package {
					s.print(other)
				}
			}
		}
	case "skip":
		if e.Test != "" {
			reason := s.reason(at)
			s.skips[reason] = append(s.skips[reason], e.Test)
			break
		}
		s.print(at)
	case "pass":
		s.ran = true
		if e.Test == "" {
			s.print(at)
		}
	default:
		return
	}
	delete(s.output, at)
}

// print prints what a test or a package has printed, without the noise of -v.
func (s *summary) print(at event) {
	for _, line := range s.output[at] {
		if !strings.HasPrefix(line, "=== ") && line != "PASS\n" {
			fmt.Print(line)
		}
	}
	delete(s.output, at)
}

// reason is what a test said when it skipped itself.
func (s *summary) reason(at event) string {
	reason := "no reason given"
	for _, line := range s.output[at] {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "===") && !strings.HasPrefix(text, "---") && text != "" {
			reason = text
		}
	}
	if place, text, ok := strings.Cut(reason, ": "); ok && strings.Contains(place, ".go:") {
		return text
	}
	return reason
}

func (s *summary) printSkips() {
	if len(s.skips) == 0 {
		return
	}
	fmt.Println("\nskipped:")
	for _, reason := range slices.Sorted(maps.Keys(s.skips)) {
		tests := s.skips[reason]
		fmt.Printf("%5d  %s (%s", len(tests), reason, tests[0])
		if len(tests) > 1 {
			fmt.Print(", …")
		}
		fmt.Println(")")
	}
}
