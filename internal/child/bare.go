package child

import (
	"runtime"
	"slices"
	"strings"
)

// What programs need in order to run at all, and to find the files of their
// user.
var bareNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG",
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// Bare returns of environ only what programs need in order to run: the
// environment of children if the environment is switched off.
func Bare(environ []string) []string {
	return keep(environ, func(name string) bool { return slices.Contains(bareNames, name) || strings.HasPrefix(name, "LC_") })
}

// keep returns the variables whose names, in capitals, are wanted: Windows does
// not tell the cases apart.
func keep(environ []string, wanted func(name string) bool) []string {
	kept := []string{} // and not nil, with which exec passes on everything
	for _, pair := range environ {
		if name, _, _ := strings.Cut(pair, "="); wanted(strings.ToUpper(name)) {
			kept = append(kept, pair)
		}
	}
	return kept
}

// Lookup looks names up in environ, where the last of a name counts, as for
// processes that are started with it.
func Lookup(environ []string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range slices.Backward(environ) {
			key, value, _ := strings.Cut(pair, "=")
			if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
				return value, true
			}
		}
		return "", false
	}
}
