// Command testsum runs gotestsum in the way this project runs its tests. It runs a failed test again, alone, up to two
// times. If the test then passes, the run is green, and the test is named at the end. gotestsum itself looks only at
// failed tests: its result is green if a package failed without a failed test, or if a data race did not occur again.
// Therefore testsum checks the events once more. In the folder that TEST_RECORD names, the file flakes lists the tests
// that were run again, and the file tests has the numbers of passed and skipped tests.
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

// packages returns the number of packages that gotestsum was told to test. A command that prints events tests one
// package.
func packages(args []string) int {
	if i := slices.Index(args, "--packages"); i >= 0 {
		return len(strings.Fields(args[i+1]))
	}
	return 1
}

// signs prints the progress of the run every 30 seconds.
func signs(events string, packages int) {
	for begin := time.Now(); ; {
		time.Sleep(30 * time.Second)
		r, _ := read(events) // the last line may be incomplete
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

// report holds the facts that gotestsum's own summary leaves out.
type report struct {
	ended   int                  // number of packages that ended
	tests   int                  // number of passed tests
	faults  []string             // failures other than failed tests
	failed  map[string]int       // :: package → number of failed tests when it was last started
	skips   map[string][]string  // :: reason → tests
	running map[string]time.Time // :: test → start time
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

// Err does nothing, because there is no standard error output.
func (*report) Err(string) error { return nil }

// Event handles an event, including events of tests that are run again.
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

// judge returns the failures that gotestsum does not report.
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

// name prints the tests that passed only after they were run again.
func name(flakes string) error {
	report, err := os.ReadFile(flakes)
	if errors.Is(err, os.ErrNotExist) || len(report) == 0 {
		return nil
	}
	fmt.Printf("\nfailed, and run again:\n%s", report)
	return errors.Join(err, record("flakes", string(report)))
}

// record appends text to a file in the folder that TEST_RECORD names, where several runs collect their results.
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
