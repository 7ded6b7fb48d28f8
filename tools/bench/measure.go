package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/tools/bench/notes"
)

// command is a process to measure.
type command struct {
	name string
	args []string
	dir  string
	env  []string // added to a minimal environment

	mayFail bool // whether a failure of the command is an acceptable result
}

// cost is the cost of one run of a command, including its children.
type cost struct {
	wall, cpu   time.Duration
	provider    int64         // peak resident memory of a provider or a noted process, in bytes; 0 without such a process
	providerCPU time.Duration // total CPU time of these processes
}

// run runs c once.
func (b *bench) run(c command) (cost, error) {
	noted := b.path("notes")
	_ = os.Remove(noted)
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.path("home"), "TMPDIR=" + b.path("tmp"),
		"CHECKPOINT_DISABLE=1", "TF_INPUT=0", "TF_IN_AUTOMATION=1", notes.Variable + "=" + noted,
	}, c.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Run(); err != nil && (!c.mayFail || cmd.ProcessState == nil) {
		return cost{}, fmt.Errorf("%s: %w\n%s", c.name, err, out.Bytes())
	}
	took := cost{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	took.provider, took.providerCPU = notes.Read(noted)
	return took, nil
}

// compare runs the commands in turn, so that a busy moment of the machine affects all of them, and returns the median
// cost of each command.
func (b *bench) compare(commands ...command) ([]cost, error) {
	all := make([][]cost, len(commands))
	for run := range b.runs {
		for i, c := range commands {
			fmt.Fprintf(os.Stderr, "\r\033[K%s, %d of %d", c.name, run+1, b.runs)
			took, err := b.run(c)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], took)
		}
	}
	fmt.Fprint(os.Stderr, "\r\033[K")
	medians := make([]cost, len(commands))
	for i, runs := range all {
		medians[i] = cost{
			wall:     median(runs, func(c cost) time.Duration { return c.wall }),
			cpu:      median(runs, func(c cost) time.Duration { return c.cpu }),
			provider: median(runs, func(c cost) int64 { return c.provider }),

			providerCPU: median(runs, func(c cost) time.Duration { return c.providerCPU }),
		}
	}
	return medians, nil
}

func median[T int64 | time.Duration](runs []cost, of func(cost) T) T {
	values := make([]T, len(runs))
	for i, r := range runs {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
