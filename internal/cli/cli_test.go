package cli

import (
	"slices"
	"testing"
)

func table() Table[string] {
	return Table[string]{
		{Name: "plan", Flags: "var= input", Does: "reads"},
		{Name: "state rm", Flags: "input dry-run", Max: Many, Does: "writes"},
		{Name: "version"},
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	if got, ok := table().Find("state rm"); !ok || got.Does != "writes" || got.Max != Many {
		t.Errorf("state rm is %v, %t", got, ok)
	}
	if got, ok := table().Find("state"); ok || got.Name != "" {
		t.Errorf("state is %v", got)
	}
	for flag, want := range map[string][]string{"input": {"plan", "state rm"}, "var": {"plan"}, "var=": nil, "none": nil} {
		if got := table().With(flag); !slices.Equal(got, want) {
			t.Errorf("-%s is of %q, want %q", flag, got, want)
		}
	}
	if got := table().FlagNames(); !slices.Equal(got, []string{"var", "input", "input", "dry-run"}) {
		t.Errorf("the flags are %q", got)
	}
	plan := table()[0]
	if !plan.TakesValue("var") || plan.TakesValue("input") || plan.HasFlag("var=") || !plan.HasFlag("input") {
		t.Error("plan has -var VALUE and -input")
	}
}

// The first mistake counts that is for the command, or for a flag that it has.
func TestMeant(t *testing.T) {
	t.Parallel()
	mistakes := []Mistake{
		{Flags: "yes y", With: "plan", Meant: "of plan"},
		{Flags: "yes y", With: "dry-run", Meant: "beside -dry-run"},
		{Flags: "yes", Meant: "of any"},
	}
	for _, test := range []struct{ command, flag, want string }{
		{"plan", "y", "of plan"}, {"state rm", "y", "beside -dry-run"}, {"version", "yes", "of any"}, {"version", "y", ""}, {"plan", "yes y", ""},
	} {
		command, _ := table().Find(test.command)
		if got := command.Meant(test.flag, mistakes); got != test.want {
			t.Errorf("-%s of %s is meant as %q, want %q", test.flag, test.command, got, test.want)
		}
	}
}
