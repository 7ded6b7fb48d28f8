//go:build unix

package world

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		script  string
		ctx     context.Context
		printed string
		err     error
	}{
		"prints":            {script: "cat; printf %s \"$X\"; echo said >&2", printed: "input of it"},
		"prints too much":   {script: "yes | head -n 100000", err: ErrTooLong},
		"takes too long":    {script: "sleep 600", err: context.DeadlineExceeded},
		"nobody waits":      {script: "sleep 600", ctx: ended, err: context.Canceled},
		"an agent stays":    {script: "printf x; sleep 600 &", printed: "x"},
		"is not there":      {script: "", err: exec.ErrNotFound},
		"fails and says so": {script: "echo said >&2; exit 3", err: &exec.ExitError{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Program{
				Args: []string{"sh", "-c", c.script}, Environ: World{}.Environ().With("X=of it"),
				Stdin: strings.NewReader("input "), Patience: 2 * time.Minute, Limit: 100, waitDelay: time.Second / 2,
			}
			switch {
			case errors.Is(c.err, context.DeadlineExceeded):
				p.Patience = 100 * time.Millisecond
			case errors.Is(c.err, exec.ErrNotFound):
				p.Args = []string{"statecrypt-no-such-program"}
			}
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			printed, said, err := p.Run(ctx)
			if _, exited := errors.AsType[*exec.ExitError](err); !errors.Is(err, c.err) && !exited {
				t.Errorf("got %v, want %v", err, c.err)
			}
			if c.err == nil && string(printed) != c.printed || len(printed) > 101 {
				t.Errorf("it printed %.200q", printed)
			}
			if strings.Contains(c.script, "said") != (string(said) == "said\n") {
				t.Errorf("it said %q", said)
			}
		})
	}
}
