package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestTestsRunAnew fails if a recipe, script or workflow runs tests without -count. Go would
// answer from its cache, which does not notice a change in a file outside the module of the
// test, or in a file that a started program reads.
func TestTestsRunAnew(t *testing.T) {
	listed, err := exec.Command("git", "ls-files", "GNUmakefile", ".ci", "scripts", ".github/workflows").Output()
	if err != nil {
		t.Skip("this is no clone:", err)
	}
	flags := regexp.MustCompile(`(?m)^TEST +:= (.*)$`).FindStringSubmatch(readText(t, "GNUmakefile"))[1]
	runs := regexp.MustCompile(`\bgo"? test |/testsum --packages`)
	found := 0
	for _, name := range strings.Fields(string(listed)) {
		text := strings.NewReplacer("\\\n", " ", "$(TEST)", flags).Replace(readText(t, name))
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") || strings.Contains(line, "name: ") || !runs.MatchString(line) {
				continue
			}
			if found++; !strings.Contains(line, " -count 1") && !strings.Contains(line, " -count 6") && !strings.Contains(line, " -fuzz ") {
				t.Errorf("%s: this may answer from the cache: %s", name, line)
			}
		}
	}
	if found < 12 {
		t.Errorf("%d lines run tests", found)
	}
}
