package git

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	// secretPath is the path of an open file that git and its child processes inherit. Each time it is
	// opened, it is read from the start.
	secretPath = "/proc/self/fd/3" //nolint:gosec // the path of the secret, not the secret itself

	printAnswer = `while IFS= read -r line; do printf '%s\n' "$line"; done <` + secretPath
)

// handOver writes the password to an unnamed file in memory. It returns git's environment, and the file that
// git must inherit. The password is kept out of the environment and the arguments, because other programs
// can list those.
func (a *access) handOver(environ world.Environ) (world.Environ, *os.File, error) {
	if a.password == "" {
		return environ, nil, nil
	}
	text := a.answer()
	if !a.redirected {
		environ = appendConfig(environ, []setting{{"include.path", secretPath}})
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.server)
		text = fmt.Sprintf("[http \"%s\"]\n\textraHeader = \"%s\"\n", quoted, a.header().value)
	}
	fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("", unix.MFD_CLOEXEC)
	}
	f := os.NewFile(uintptr(fd), "") // nil if creating it failed
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil { // git would ignore a missing file
		_, err = os.Stat(fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	if err != nil {
		_ = f.Close()
		return world.Environ{}, nil, fmt.Errorf("could not pass the password to git: %w", err)
	}
	return environ, f, nil
}
