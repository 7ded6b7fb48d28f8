package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

func (c *call) decrypt(ctx context.Context) error {
	if err := c.refuseTerminal(); err != nil {
		return err
	}
	target, err := c.target()
	if err != nil {
		return err
	}
	return c.filter(ctx, func(name string, file []byte) ([]byte, error) {
		opened, err := target.DecryptInPlace(ctx, file)
		if err != nil {
			return nil, err
		}
		c.warn(name, opened)
		return opened.Data, nil
	})
}

func (c *call) encrypt(ctx context.Context) error {
	target, err := c.target()
	if err != nil {
		return err
	}
	if m := target.Methods()[0]; strings.HasPrefix(m, "method."+attr.Unencrypted+".") {
		return fmt.Errorf("%s encrypts nothing; name a method that does", m)
	}
	return c.filter(ctx, func(_ string, file []byte) ([]byte, error) { return target.Encrypt(ctx, file) })
}

// verify prints a line for each file.
func (c *call) verify(ctx context.Context) error {
	target, err := c.target()
	if err != nil {
		return err
	}
	return c.each(ctx, func(name string, file []byte) (exitStatus, error) {
		opened, err := target.DecryptInPlace(ctx, file)
		if err != nil {
			_, _ = fmt.Fprintf(c.stdout, "%s: %s\n", shown(name), c.paint(c.stdout, red, "does not open"))
			return 0, err
		}
		c.warn(name, opened)
		status, text := exitStatus(0), c.paint(c.stdout, green, "ok")
		if opened.UsedFallback {
			status, text = exitFallback, c.paint(c.stdout, yellow, "fallback")
		}
		_, err = fmt.Fprintf(c.stdout, "%s: %s, %s\n", shown(name), text, opened.Method)
		return status, err
	})
}

// filter writes what turn makes of the only file.
func (c *call) filter(ctx context.Context, turn func(name string, file []byte) ([]byte, error)) error {
	var result []byte
	err := c.each(ctx, func(name string, file []byte) (status exitStatus, err error) {
		result, err = turn(name, file)
		return 0, err
	})
	if err != nil {
		return err
	}
	return c.write(ctx, result)
}

// each reads the files and calls work for each, whatever becomes of the others. It
// returns the worst exit status.
func (c *call) each(ctx context.Context, work func(name string, file []byte) (exitStatus, error)) error {
	switch {
	case len(c.args) == 0 && isTerminal(c.stdin):
		return usageError(fmt.Sprintf("there is no FILE, and standard input is a terminal; see statecrypt %s -h", c.name))
	case len(c.args) == 0:
		c.args = []string{stdinName}
	}
	worst := exitStatus(0)
	for _, name := range c.args {
		file, err := c.read(ctx, name)
		status := exitStatus(0)
		if err == nil {
			c.progress("working on", len(file))
			status, err = work(name, file)
			c.clear()
		}
		if err != nil {
			c.report(fmt.Errorf("%s: %w", shown(name), err))
			status = exitFailure
		}
		if status == exitFailure || worst == 0 {
			worst = status
		}
	}
	if worst == 0 {
		return nil
	}
	return worst
}
