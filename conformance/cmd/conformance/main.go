// Command conformance runs a program on the cases of the suite, and reports where its results differ from the tools
// that wrote the files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const usage = `Usage: conformance [-known FILE] [-run REGEXP] [-timeout DURATION] [-v] [-write] PROGRAM [ARGUMENT]…

Starts the program once for each case, and compares what it does with what the tool did that wrote the file.

  -known FILE         differences that are known: in each line, the name of a case, a space and the reason
  -run REGEXP         run only the cases whose names match
  -timeout DURATION   of each call; default 1m
  -v                  print the cases that pass, too
  -write              have the program write files, with the settings of the cases, and check these

The exit code is 1 if a case fails, a known difference is none, or the program opens, or writes, no file at all.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	program conformance.Program
	runs    []conformance.Run
	done    string // the word for success; at least one file must succeed, because a program that refuses everything proves nothing
	verbose bool
}

// run returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "%v\n\n%s", err, usage)
		return 2
	}
	failed, worked := 0, false
	counts := map[conformance.Verdict]int{}
	for r, result := range o.judged(ctx) {
		counts[result.Verdict]++
		if result.Verdict == conformance.Failed {
			failed = 1
		}
		worked = worked || result.Verdict == conformance.Passed && r.Opens
		if o.verbose || result.Why != "" {
			fmt.Fprintln(stdout, strings.TrimSpace(fmt.Sprintf("%-7s %s  %s", result.Verdict, r.Name, result.Why)))
		}
	}
	fmt.Fprintf(stdout, "suite %s: %d passed, %d differ as known, %d skipped, %d failed\n", conformance.Version(),
		counts[conformance.Passed], counts[conformance.Differs], counts[conformance.Skipped], counts[conformance.Failed])
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stdout, "interrupted")
		return 1
	case !worked: // a program that refuses all files has not shown that it checks them
		fmt.Fprintf(stdout, "nothing was %s\n", o.done)
		return 1
	}
	return failed
}

// judged runs several cases at the same time, and yields the results in order.
func (o options) judged(ctx context.Context) func(yield func(conformance.Run, conformance.Result) bool) {
	return func(yield func(conformance.Run, conformance.Result) bool) {
		type pending struct {
			run    conformance.Run
			result chan conformance.Result
		}
		queue := make(chan pending, runtime.NumCPU()-1)
		go func() {
			defer close(queue)
			for _, r := range o.runs {
				if ctx.Err() == nil {
					p := pending{r, make(chan conformance.Result, 1)}
					queue <- p
					go func() { p.result <- o.program.Judge(ctx, r) }()
				}
			}
		}()
		for p := range queue {
			result := <-p.result // wait even after an interrupt, so that no folder is left behind
			if ctx.Err() == nil && !yield(p.run, result) {
				return
			}
		}
	}
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	known, chosen := flags.String("known", "", ""), flags.String("run", "", "")
	flags.DurationVar(&o.program.Timeout, "timeout", time.Minute, "")
	flags.BoolVar(&o.verbose, "v", false, "")
	write := flags.Bool("write", false, "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.program.Command = flags.Args(); len(o.program.Command) == 0 {
		return o, errors.New("the name of the program is missing")
	}
	if o.program.Command[0], err = find(o.program.Command[0]); err != nil {
		return o, err
	}
	expression, err := regexp.Compile(*chosen)
	if err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	o.runs, o.done = conformance.Runs(), "opened"
	if *write {
		o.runs, o.done = conformance.Writes(), "written"
	}
	o.runs = slices.DeleteFunc(o.runs, func(r conformance.Run) bool { return !expression.MatchString(r.Name) })
	if *known != "" {
		text, err := os.ReadFile(*known)
		if err != nil {
			return o, err
		}
		o.program.Known, err = conformance.ParseKnown(string(text))
		return o, err
	}
	return o, nil
}

// find returns the path of a program that will be started in other folders.
func find(name string) (string, error) {
	path, err := world.Find(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
