package main

import (
	"context"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// wrap runs terraform or tofu with a backend that encrypts. Its exit code is ours.
func (c *call) wrap(ctx context.Context) error {
	target, err := c.target()
	if err != nil {
		return err
	}
	code, err := wrap.Run(ctx, wrap.Options{
		State: target, Command: c.args, Environ: c.environ, Withhold: c.keyVariables(), Force: c.force,
		Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr,
	})
	if err != nil {
		c.report(err)
	}
	return exitStatus(code)
}
