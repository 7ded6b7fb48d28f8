package mixes_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/mixes"
)

// TestOf: what is set is the same for the same seed, and all of it comes about.
func TestOf(t *testing.T) {
	t.Setenv("STATECRYPT_SEED", "1")
	t.Setenv("STATECRYPT_SOAK", "1")
	names := []string{"A", "B", "C"}
	values := func(name string) []string { return []string{name + "1", name + "2"} }
	sets := func() (text []string, seen map[string]int) {
		seen = map[string]int{}
		for name, v := range mixes.Of(names, values) {
			text = append(text, fmt.Sprint(name, v))
			seen[fmt.Sprint(len(v))]++
			seen[v["A"]]++
		}
		for name, v := range mixes.Pairs(names, values) {
			text = append(text, fmt.Sprint(name, v))
		}
		return text, seen
	}
	first, seen := sets()
	again, _ := sets()
	if fmt.Sprint(first) != fmt.Sprint(again) || len(first) != 1+3+200+3 {
		t.Errorf("%d sets, then %d", len(first), len(again))
	}
	for _, what := range []string{"0", "1", "2", "3", "A1", "A2"} {
		if seen[what] < 5 {
			t.Errorf("%s: %d", what, seen[what])
		}
	}
	t.Setenv("STATECRYPT_SOAK", "")
	if some, _ := sets(); len(some) > 1+20+3 {
		t.Errorf("%d sets are a tenth", len(some))
	}
}

// TestPast: what an error names is unset, and nothing else.
func TestPast(t *testing.T) {
	var asked []string
	mixes.Variables{"X_A": "1", "X_B": "1", "X_C": "1"}.Past(t, func() error {
		now := os.Getenv("X_A") + " " + os.Getenv("X_B") + " " + os.Getenv("X_C")
		asked = append(asked, now)
		switch now {
		case "1 1 1":
			return errors.New("the environment variable X_A must not be set; nor must the environment variable X_C")
		case " 1 ":
			return errors.New("the client would follow the variable X_A")
		}
		return nil
	})
	if got := fmt.Sprintf("%q", asked); got != `["1 1 1" " 1 "]` {
		t.Error(got)
	}
}
