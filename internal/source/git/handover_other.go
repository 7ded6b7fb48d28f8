//go:build !linux

package git

import (
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	answerVariable = "STATECRYPT_GIT_ANSWER"
	printAnswer    = `printf '%s' "$` + answerVariable + `"`
)

// handOver puts the password into git's environment, because only Linux has unnamed files that several
// processes can read.
func (a *access) handOver(environ world.Environ) (world.Environ, *os.File, error) {
	switch {
	case a.password == "":
		return environ, nil, nil
	case a.redirected:
		return environ.With(answerVariable + "=" + a.answer()), nil, nil
	}
	return appendConfig(environ, []setting{a.header()}), nil, nil
}
