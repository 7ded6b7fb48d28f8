package sops

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/child"
)

const (
	programPatience = time.Minute // somebody may be asked for a passphrase or a smart card
	maxSaid         = 64 << 10    // bytes of what a program says
)

// program runs programs of the user.
type program struct {
	environment bool // they get the environment, without our secrets; else what they need to run
}

// run runs a program without a shell. It returns what the program wrote, up to
// limit and one byte, and what it said. The error of a program that took too
// long is context.DeadlineExceeded.
func (p program) run(ctx context.Context, stdin io.Reader, limit int, variables []string, name string, arguments ...string) (stdout, stderr *capped, err error) {
	limited, cancel := context.WithTimeout(ctx, programPatience)
	defer cancel()
	cmd := exec.CommandContext(limited, name, arguments...) //nolint:gosec // the user's program
	if cmd.Env = child.Bare(os.Environ()); p.environment {
		cmd.Env = child.Environ(os.Environ())
	}
	cmd.Env = append(cmd.Env, variables...)
	stdout, stderr = &capped{limit: limit + 1}, &capped{limit: maxSaid}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	child.OwnGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	child.KillGroup(cmd)
	if limited.Err() != nil {
		err = limited.Err()
	}
	return stdout, stderr, err
}

// capped keeps the beginning of what is written.
type capped struct {
	bytes.Buffer
	limit int
}

func (c *capped) Write(p []byte) (int, error) {
	_, _ = c.Buffer.Write(p[:min(len(p), c.limit-c.Len())])
	return len(p), nil
}

func (c *capped) has(text string) bool { return strings.Contains("\n"+c.String(), text) }

// said is what is meant for people.
func (c *capped) said() string {
	var out []string
	for line := range strings.Lines(c.String()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[GNUPG:]") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}
