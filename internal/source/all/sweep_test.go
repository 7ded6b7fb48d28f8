package all

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/mixes"
)

// hostile is what someone would set a variable to who wants a secret.
func (a arena) hostile(name string) []string {
	switch {
	case strings.Contains(strings.ToUpper(name), "PROXY"):
		return []string{stranger.url}
	case strings.Contains(name, "CERT"), strings.Contains(name, "CA_"):
		return []string{stranger.caFile}
	}
	return []string{"https://" + a.thief, a.thief, "true"}
}

// TestSweep: no variables that libraries read by themselves, or that attributes name, lead
// the secret of a block to a stranger, however many there are. git, which gets what is on a
// list, has a sweep of its own.
//
// Promise: Where secrets go (every source; git with every variable, and with every setting that runs a program)
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads from each source a hundred times")
	}
	rows := policies(t)
	for _, k := range Kinds() {
		if k.Name == "file" || k.Name == "git" {
			continue
		}
		a, declared := arenaOf(k, rows[k.Name]), mixes.Declared(slices.Concat(k.Credentials.Attrs, k.Credentials.Variables)...)
		a.hasty = true
		arrived := a.sweep(t, mixes.Variables{"NOBODY_READS_THIS": "x"}, true) // some kinds may refuse all that the chance chooses
		for name, v := range mixes.Of(append(mixes.Known(), declared...), a.hostile) {
			t.Run(k.Name+"/"+name, func(t *testing.T) { arrived = a.sweep(t, v, true) || arrived })
		}
		if !arrived && !t.Failed() {
			t.Errorf("%s: the secret never arrived, so this shows nothing", k.Name)
		}
		for name, v := range mixes.Of(append(mixes.Known(mixes.Refused), declared...), a.hostile) {
			if k.Name == "pg" {
				delete(v, "PGSERVICE") // its driver fails if there is no such service
			}
			t.Run(k.Name+"/off, "+name, func(t *testing.T) { a.sweep(t, v, false) })
		}
	}
}

// sweep reads with variables, with the environment on or off. With it off, the secret
// arrives where it should; with it on, it may.
func (a arena) sweep(t *testing.T, v mixes.Variables, on bool) (arrived bool) {
	v.Past(t, func() error {
		left := map[string]string{}
		for name := range v {
			left[name] = os.Getenv(name)
		}
		_, err := a.readAt(t, a.where(a.direct), left, on, a.own(a.direct))
		if got := a.stolen.take(); strings.Contains(got, "OWN") {
			t.Errorf("the environment is on: %v; the secret arrived at a stranger's (%v):\n%s", on, err, got)
		}
		if !on {
			a.arrives(t, err, "OWN")
			return nil
		}
		arrived = strings.Contains(a.watch.take(), "OWN") || arrived
		return err
	})
	return arrived
}
