package objecttest

import (
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// Policy returns a function that reports whether a policy file from the documentation allows an action.
func Policy(t *testing.T, file string) func(action, resource string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Version   string
		Statement []struct {
			Sid, Effect      string
			Action, Resource []string
		}
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return func(action, resource string) bool {
		for _, s := range p.Statement {
			if s.Effect == "Allow" && slices.Contains(s.Action, action) && slices.ContainsFunc(s.Resource, func(pattern string) bool {
				ok, err := path.Match(pattern, resource)
				return err == nil && ok
			}) {
				return true
			}
		}
		return false
	}
}
