package sops

import (
	"fmt"
	"io"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// programs limits how often and how long the user's programs run for one file. Each key in the file may start
// a program, which may take time and ask the user for a passphrase.
type programs struct {
	runs     map[keyKind]int
	deadline time.Time // the deadline for all runs; zero before the first run
}

const (
	maxRuns = 10 // the maximum number of runs for keys of the same kind

	// programPatience is the time limit for all runs together. It is long, because the user may be asked for
	// a passphrase or a smart card.
	programPatience = time.Minute
)

// patience returns the time limit for the next run for a key of the given kind, and counts the run. It
// returns an error if no more runs are allowed. The parameter instead says how to do without the program.
func (p *programs) patience(kind keyKind, instead string) (time.Duration, error) {
	if p.runs[kind] == maxRuns {
		return 0, fmt.Errorf("a program has already run for %d keys of this kind, and no more are allowed for one file; %s", maxRuns, instead)
	}
	if p.deadline.IsZero() {
		p.runs, p.deadline = map[keyKind]int{}, time.Now().Add(programPatience)
	}
	left := time.Until(p.deadline)
	if left <= 0 {
		return 0, fmt.Errorf("the programs for the earlier keys took %v in total, and no more time is allowed for one file; %s",
			programPatience, instead)
	}
	p.runs[kind]++
	return left, nil
}

// program returns a program to run for the user. It gets the environment of w, without our secrets.
func program(w world.World, patience time.Duration, limit int, stdin io.Reader, arguments ...string) world.Program {
	return world.Program{Args: arguments, Environ: w.Environ(), Stdin: stdin, Patience: patience, Limit: limit}
}
