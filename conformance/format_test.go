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
	cases, named := map[string]conformance.Case{}, map[string]bool{}
	for _, c := range conformance.All() {
		cases[c.Name] = c
	}
	rules := rules(t)
	for rule, names := range rules {
		for _, name := range names {
			if _, exists := cases[name]; !exists {
				t.Errorf("%s names the case %s, which is not there", rule, name)
			}
			named[name] = true
		}
	}
	if len(rules) < 90 {
		t.Errorf("%d rules", len(rules))
	}
	for _, mention := range regexp.MustCompile(`\b[A-Z][0-9]+\b`).FindAllString(format(t), -1) {
		if _, is := rules[mention]; !is {
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

func format(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rules are the cases of each rule of the text, none if the rule says why.
func rules(t *testing.T) map[string][]string {
	t.Helper()
	rule := regexp.MustCompile(`^\*\*([A-Z][0-9]+)\.\*\* .*\((?:Cases: ([^()]+)|No case: [^()]+)\.\)$`)
	rules := map[string][]string{}
	for paragraph := range strings.SplitSeq(format(t), "\n\n") {
		paragraph = strings.ReplaceAll(strings.TrimSpace(paragraph), "\n", " ")
		if !regexp.MustCompile(`^\*\*[A-Z][0-9]`).MatchString(paragraph) {
			continue
		}
		found := rule.FindStringSubmatch(paragraph)
		if found == nil {
			t.Fatalf("a rule must end with its cases, or why it has none: %s", paragraph)
		}
		if _, twice := rules[found[1]]; twice {
			t.Errorf("there are two rules %s", found[1])
		}
		rules[found[1]] = strings.Fields(strings.NewReplacer("`", "", ",", "").Replace(found[2]))
	}
	return rules
}
