package amplification

import "testing"

// FuzzCost looks for files that cost more than the meter allows. What it finds is
// a production that a grammar lacks.
//
// Promise: Cost
func FuzzCost(f *testing.F) {
	if testing.Short() {
		f.Skip("TestAmplification reads a sample of what this begins with")
	}
	alone(f)
	b := newBench(f)
	all := readers(f, b)
	for i, r := range all {
		for _, g := range r.grammars {
			for _, p := range g.Productions {
				f.Add(i, g.grown(2<<10, p))
			}
		}
	}
	unit := b.secondsPerUnit(f)
	f.Fuzz(func(t *testing.T, i int, file string) {
		if i < 0 || i >= len(all) || len(file) > 64<<10 {
			return
		}
		c := b.read(t, all[i], file)
		c.cpu /= 4 // others fuzz beside this one, and instrumented code is slow
		if wrong := all[i].bounds(unit).wrong(c, Cost{}); wrong != "" {
			t.Errorf("%s: %s; %s", all[i].name, wrong, c)
		}
	})
}
