// Command testsummary prints what "go test" would, from what "go test -json"
// prints, how far it is whenever nothing else was printed for half a minute, and
// in the end which tests were skipped, by the reason. Its exit status is that of
// the tests.
//
//	testsummary [number of packages]
//
// If TEST_TIMES names a file, a line is appended to it for each test: how many
// seconds it took, its name and its package.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const silence = 30 * time.Second

// event is described by "go doc test2json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

type summary struct {
	output  map[event][]string  // :: {Package, Test} → what it printed so far
	running map[event]time.Time // :: {Package, Test} → since when
	skips   map[string][]string // :: reason → tests
	tests   int                 // that passed
	ran     map[string]bool     // :: package → it passed
	failed  bool
	quiet   *time.Ticker // ticks when nothing was printed for a while
	times   []string     // a line for each test that is not part of another
}

func main() {
	s := summary{
		output: map[event][]string{}, running: map[event]time.Time{}, skips: map[string][]string{},
		ran: map[string]bool{}, quiet: time.NewTicker(silence),
	}
	begin, lines := time.Now(), make(chan string)
	go s.read(lines)
	for open := true; open; {
		select {
		case <-s.quiet.C:
			fmt.Printf("    … %s, %s\n", time.Since(begin).Round(time.Second), s.progress())
		case line, ok := <-lines:
			open = ok
			s.line(line)
		}
	}
	fmt.Printf("%d tests passed in %s\n", s.tests, time.Since(begin).Round(time.Second))
	s.printSkips()
	if err := s.keepTimes(os.Getenv("TEST_TIMES")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		s.failed = true
	}
	if s.failed || len(s.ran) == 0 {
		os.Exit(1)
	}
}

func (s *summary) read(lines chan<- string) {
	defer close(lines)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		lines <- in.Text()
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (s *summary) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) == nil {
		s.take(e)
	} else if line != "" {
		s.say(line + "\n") // of the go command itself
	}
}

func (s *summary) take(e event) {
	at := event{Package: e.Package, Test: e.Test}
	switch e.Action {
	case "start", "run", "cont":
		s.running[at] = time.Now()
		return
	case "pause":
		delete(s.running, at)
		return
	case "build-output":
		s.say(e.Output)
		return
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
		if e.Test == "" {
			s.ran[e.Package] = true
			s.print(at)
			break
		}
		s.tests++
	default:
		return
	}
	if e.Test != "" && !strings.Contains(e.Test, "/") {
		s.times = append(s.times, fmt.Sprintf("%7.1f s  %s (%s)\n", e.Elapsed, e.Test, e.Package))
	}
	delete(s.output, at)
	delete(s.running, at)
}

// print prints what a test or a package has printed, without the noise of -v.
func (s *summary) print(at event) {
	for _, line := range s.output[at] {
		if !strings.HasPrefix(line, "=== ") && line != "PASS\n" {
			s.say(line)
		}
	}
	delete(s.output, at)
}

func (s *summary) say(text string) {
	fmt.Print(text)
	s.quiet.Reset(silence)
}

// progress says what has ended and what has been running for longest. Go says
// nothing while it compiles.
func (s *summary) progress() string {
	text := fmt.Sprintf("%d tests passed", s.tests)
	if len(os.Args) > 1 {
		text = fmt.Sprintf("%d of %s packages, ", len(s.ran), os.Args[1]) + text
	}
	var slowest event
	for at, since := range s.running {
		if at.Test != "" && (slowest.Test == "" || since.Before(s.running[slowest])) {
			slowest = at
		}
	}
	if slowest.Test == "" {
		return text + ", compiling"
	}
	return fmt.Sprintf("%s, running %s for %s", text, slowest.Test, time.Since(s.running[slowest]).Round(time.Second))
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

func (s *summary) keepTimes(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(s.times, ""))
	return errors.Join(err, file.Close())
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
