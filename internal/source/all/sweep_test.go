package all

import (
	"strings"
	"testing"

	machine "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// hostile is what somebody would set a variable to who wants a secret.
func (a arena) hostile(name string) string {
	switch {
	case strings.Contains(strings.ToUpper(name), "PROXY"):
		return stranger.url
	case strings.Contains(name, "CERT"), strings.Contains(name, "CA_"):
		return stranger.caFile
	case strings.Contains(name, "URL"), strings.Contains(name, "ENDPOINT"), strings.Contains(name, "ADDR"), strings.Contains(name, "MASTER"):
		return "https://" + a.thief
	case strings.Contains(name, "LOG"), strings.Contains(name, "ENABLE"), strings.Contains(name, "DISABLE"), strings.Contains(name, "USE_"):
		return "true"
	}
	return a.thief
}

// TestSweep: no variable that a library reads by itself leads the secret of a
// block to a stranger. git, which gets what is on a list, has a sweep of its own.
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads from each source a few hundred times")
	}
	rows := policies(t)
	for _, k := range Kinds() {
		if k.Name == "file" || k.Name == "git" {
			continue
		}
		a := arenaOf(k, rows[k.Name])
		for _, some := range machine.Known() {
			for name := range strings.FieldsSeq(some.Names) {
				switch name {
				case "PATH", "path", "HOME", "GODEBUG": // of this process itself
					continue
				}
				t.Run(k.Name+"/"+name, func(t *testing.T) { a.sweep(t, name, some.Class) })
			}
		}
	}
}

// sweep reads with the variable set, with the environment on and off. With it off,
// the secret arrives where it should, unless the variable is an error.
func (a arena) sweep(t *testing.T, name string, class machine.Class) {
	for _, on := range []bool{true, false} {
		_, err := a.readAt(t, a.where(a.direct), map[string]string{strings.ReplaceAll(name, "*", "X"): a.hostile(name)}, on, a.own(a.direct))
		if got := a.stolen.take(); strings.Contains(got, "OWN") {
			t.Errorf("the environment is on: %v; the secret arrived at a stranger's (%v):\n%s", on, err, got)
		}
		// The driver of PostgreSQL fails if there is no such service.
		if !on && class != machine.Refused && (name != "PGSERVICE" || a.kind.Name != "pg") {
			a.arrives(t, err, "OWN")
		}
	}
}
