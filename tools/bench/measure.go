package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// command is a process to measure.
type command struct {
	name string
	args []string
	dir  string
	env  []string // added to a scrubbed environment

	mayFail bool // an error of the command is a result like another
}

// cost is what one run of a command took, its children included.
type cost struct {
	wall, cpu   time.Duration
	provider    int64         // bytes, the most that a provider or a noted process had resident; 0 without one
	providerCPU time.Duration // of all these processes
}

// run runs c once.
func (b *bench) run(c command) (cost, error) {
	notes := b.path("notes")
	_ = os.Remove(notes)
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.path("home"), "TMPDIR=" + b.path("tmp"),
		"CHECKPOINT_DISABLE=1", "TF_INPUT=0", "TF_IN_AUTOMATION=1", notesVariable + "=" + notes,
	}, c.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Run(); err != nil && (!c.mayFail || cmd.ProcessState == nil) {
		return cost{}, fmt.Errorf("%s: %w\n%s", c.name, err, out.Bytes())
	}
	took := cost{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	took.provider, took.providerCPU = readNotes(notes)
	return took, nil
}

// compare runs the commands in turn, so that a busy moment of the machine hits
// all of them, and returns the median of each.
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
