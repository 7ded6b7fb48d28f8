package wrap

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/child"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
)

// Become replaces this process with the program of the command, without wrap. It returns only if that fails.
func Become(command, environ []string) error {
	program, err := newProgram(command, environ)
	if err != nil {
		return err
	}
	mark, _ := child.Started(environ, program, command[1:])
	name, _, _ := strings.Cut(mark, "=")
	environ = slices.DeleteFunc(slices.Clone(environ), func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
	err = syscall.Exec(program, command, append(environ, mark)) //nolint:gosec // the user named it
	return fmt.Errorf("%s cannot be run: %w", outside.Quoted(program, 300), err)
}

// newProgram returns the path of the program in the command. It returns an error if that program has started this
// process in its own place.
func newProgram(command, environ []string) (string, error) {
	program, err := cmdline.Program(command)
	if err != nil {
		return "", err
	}
	if _, again := child.Started(environ, program, command[1:]); again {
		return "", fmt.Errorf("%s only starts statecrypt again; remove it from PATH, or give the path of the program itself",
			outside.Quoted(program, 300))
	}
	return program, nil
}
