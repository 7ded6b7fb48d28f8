// Command testsum is gotestsum as this project runs its tests. A test that failed
// is run again, alone, up to two times; if it passes then, the run is green, and the
// test is named in the end. gotestsum judges by the tests that failed: it is green if a
// package failed without one, or if a data race did not come back. So the events are
// looked at once more. In the folder that TEST_RECORD names, the file flakes has the
// tests that were run again, and the file tests how many passed and were skipped.
//
//	testsum --packages "pkg..." -- [flags of go test]
//	testsum --raw-command -- a command that prints events
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/cmd"
	"gotest.tools/gotestsum/cmd/tool/slowest"
	"gotest.tools/gotestsum/testjson"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	work, err := os.MkdirTemp("", "testsum")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	events, flakes := work+"/events", work+"/flakes"

	go signs(events, packages(args))
	failure := cmd.Run("gotestsum", append([]string{
		"--format=pkgname-and-test-fails", "--format-hide-empty-pkg", "--hide-summary=skipped", "--jsonfile=" + events,
		"--rerun-fails", "--rerun-fails-abort-on-data-race", "--rerun-fails-run-root-test", "--rerun-fails-report=" + flakes,
	}, args...))

	r, err := read(events)
	if err != nil {
		return errors.Join(failure, err)
	}
	r.printSkips()
	fmt.Println("\nslowest:")
	return errors.Join(failure, slowest.Run("slowest", []string{"--jsonfile=" + events, "--num=10", "--threshold=1s"}),
		r.judge(packages(args)), name(flakes), record("tests", fmt.Sprintln(r.tests, r.skipped())))
}

// packages is how many packages gotestsum was told to test; a command that prints
// events tests one.
func packages(args []string) int {
	if i := slices.Index(args, "--packages"); i >= 0 {
		return len(strings.Fields(args[i+1]))
	}
	return 1
}

// signs says each half minute how far the run is.
func signs(events string, packages int) {
	for begin := time.Now(); ; {
		time.Sleep(30 * time.Second)
		r, _ := read(events) // whose last line may be half written
		longest := time.Now()
		for _, since := range r.running {
			longest = slices.MinFunc([]time.Time{longest, since}, time.Time.Compare)
		}
		fmt.Printf("    … %s, %d of %d packages, %d tests passed", time.Since(begin).Round(time.Second), r.ended, packages, r.tests)
		for test, since := range r.running {
			if since.Equal(longest) {
				fmt.Printf(", running %s for %s", test, time.Since(since).Round(time.Second))
			}
		}
		fmt.Println()
	}
}

// report is what gotestsum's own summary leaves out.
type report struct {
	ended   int                  // packages
	tests   int                  // that passed
	faults  []string             // that are no failed test
	failed  map[string]int       // :: package → its tests that had failed when it was last started
	skips   map[string][]string  // :: reason → tests
	running map[string]time.Time // :: test → since when
}

func read(events string) (*report, error) {
	r := &report{failed: map[string]int{}, skips: map[string][]string{}, running: map[string]time.Time{}}
	file, err := os.Open(events)
	if err != nil {
		return r, err
	}
	defer file.Close()
	_, err = testjson.ScanTestOutput(testjson.ScanConfig{Stdout: file, Stderr: strings.NewReader(""), Handler: r})
	return r, err
}

// Err is for standard error, which there is none of.
func (*report) Err(string) error { return nil }

// Event looks at each event, those of tests that are run again among them.
func (r *report) Event(e testjson.TestEvent, run *testjson.Execution) error {
	pkg, name := run.Package(e.Package), strings.TrimSpace(e.Package+" "+e.Test)
	switch e.Action {
	case "start":
		r.failed[e.Package] = len(pkg.Failed)
	case testjson.ActionRun, testjson.ActionCont:
		r.running[name] = e.Time
	case testjson.ActionOutput:
		if strings.HasPrefix(e.Output, "WARNING: DATA RACE") {
			r.faults = append(r.faults, "a data race in "+name)
		}
	case testjson.ActionPause:
		delete(r.running, name)
	case testjson.ActionPass, testjson.ActionFail, testjson.ActionSkip:
		delete(r.running, name)
		r.end(e, pkg)
	}
	return nil
}

func (r *report) end(e testjson.TestEvent, pkg *testjson.Package) {
	switch {
	case e.PackageEvent():
		r.ended++
		if e.Action == testjson.ActionFail && len(pkg.Failed) == r.failed[e.Package] {
			r.faults = append(r.faults, e.Package+" failed without a test that failed")
		}
	case e.Action == testjson.ActionPass:
		r.tests++
	case e.Action == testjson.ActionSkip:
		reason := "no reason given"
		for _, line := range pkg.OutputLines(pkg.Skipped[len(pkg.Skipped)-1]) {
			if _, text, ok := strings.Cut(line, ".go:"); ok {
				_, reason, _ = strings.Cut(strings.TrimSpace(text), ": ")
			}
		}
		r.skips[reason] = append(r.skips[reason], e.Test)
	}
}

func (r *report) skipped() (n int) {
	for _, tests := range r.skips {
		n += len(tests)
	}
	return n
}

func (r *report) printSkips() {
	if len(r.skips) > 0 {
		fmt.Println("\nskipped:")
	}
	for _, reason := range slices.Sorted(maps.Keys(r.skips)) {
		fmt.Printf("%5d  %s (such as %s)\n", len(r.skips[reason]), reason, r.skips[reason][0])
	}
}

// judge returns what gotestsum does not take for a failure.
func (r *report) judge(packages int) error {
	switch {
	case len(r.faults) > 0:
		return errors.New(strings.Join(slices.Compact(r.faults), "; "))
	case r.ended < packages:
		return fmt.Errorf("only %d of %d packages were tested", r.ended, packages)
	case r.tests+len(r.skips) == 0:
		return errors.New("there is no test")
	}
	return nil
}

// name names the tests that passed only when they were run again.
func name(flakes string) error {
	report, err := os.ReadFile(flakes)
	if errors.Is(err, os.ErrNotExist) || len(report) == 0 {
		return nil
	}
	fmt.Printf("\nfailed, and run again:\n%s", report)
	return errors.Join(err, record("flakes", string(report)))
}

// record adds to what several runs leave in the folder that TEST_RECORD names.
func record(file, text string) error {
	folder := os.Getenv("TEST_RECORD")
	if folder == "" {
		return nil
	}
	kept, err := os.OpenFile(folder+"/"+file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(kept, text)
	return errors.Join(err, kept.Close())
}
