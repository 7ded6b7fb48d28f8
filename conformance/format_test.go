package conformance_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
)

// TestFormat: each rule of the text has a name of its own, and names cases that are there or
// says why it has none; and each case that is about OpenTofu's format belongs to a rule.
func TestFormat(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]conformance.Case{}
	for _, c := range conformance.All() {
		cases[c.Name] = c
	}
	rule := regexp.MustCompile(`^\*\*([A-Z][0-9]+)\.\*\* .*\((?:Cases: ([^()]+)|No case: [^()]+)\.\)$`)
	rules, named := map[string]bool{}, map[string]bool{}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		paragraph = strings.ReplaceAll(strings.TrimSpace(paragraph), "\n", " ")
		if !regexp.MustCompile(`^\*\*[A-Z][0-9]`).MatchString(paragraph) {
			continue
		}
		found := rule.FindStringSubmatch(paragraph)
		if found == nil {
			t.Errorf("a rule must end with its cases, or why it has none: %s", paragraph)
			continue
		}
		if rules[found[1]] {
			t.Errorf("there are two rules %s", found[1])
		}
		rules[found[1]] = true
		for name := range strings.SplitSeq(found[2], ", ") {
			name = strings.Trim(name, "`")
			if _, exists := cases[name]; !exists && found[2] != "" {
				t.Errorf("%s names the case %s, which is not there", found[1], name)
			}
			named[name] = true
		}
	}
	if len(rules) < 90 {
		t.Errorf("%d rules", len(rules))
	}
	for _, mention := range regexp.MustCompile(`\b[A-Z][0-9]+\b`).FindAllString(string(text), -1) {
		if !rules[mention] {
			t.Errorf("the text mentions %s, which is no rule", mention)
		}
	}
	for name, c := range cases {
		// What is encrypted once more by another tool has settings for what is in it.
		if about := strings.HasPrefix(c.Kind, "opentofu_") || c.Config() != ""; about && !named[name] {
			t.Errorf("no rule names the case %s", name)
		}
	}
}
