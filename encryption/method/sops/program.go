package sops

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/child"
)

// programPatience is long: the user may be asked for a passphrase or a smart
// card.
const programPatience = time.Minute

// program is a program of the user. It gets the environment without our secrets
// or, if that must not be read, what it needs to run.
func program(environment bool, limit int, stdin io.Reader, arguments ...string) child.Program {
	environ := child.For(os.Environ(), environment)
	return child.Program{Args: arguments, Environ: environ, Stdin: stdin, Patience: programPatience, Limit: limit}
}

// forPeople is what gpg said, without its status lines.
func forPeople(said string) string {
	var out []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[GNUPG:]") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}
