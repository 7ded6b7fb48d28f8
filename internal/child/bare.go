package child

import (
	"slices"
	"strings"
)

// What programs need in order to run at all, and to find the files of their
// user.
var (
	bareNames = []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG",
		"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
		"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
	}
	barePrefixes = []string{"LC_"}
)

// Bare returns of environ only what programs need in order to run: the
// environment of children if the environment is switched off.
func Bare(environ []string) []string {
	kept := []string{} // and not nil, with which exec passes on everything
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		name = strings.ToUpper(name)
		if slices.Contains(bareNames, name) || slices.ContainsFunc(barePrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			kept = append(kept, pair)
		}
	}
	return kept
}
