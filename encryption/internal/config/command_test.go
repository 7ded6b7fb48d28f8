package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
)

// TestCommandsOfTheEnvironment: whoever can set a variable must not thereby
// choose what runs here.
//
// Promise: TF_ENCRYPTION
// Promise: Commands
func TestCommandsOfTheEnvironment(t *testing.T) {
	table := attr.Table{Name: "run", Attrs: []attr.Attr{
		{Name: "command", Type: cty.List(cty.String), Required: true, Form: attr.Command},
		{Name: "note", Type: cty.String},
	}}
	options := config.Options{KeyProviders: []attr.Table{table}}
	parse := func(text string, fromEnvironment bool) *config.Config {
		c, err := config.Parse(text, "text", options)
		if fromEnvironment {
			c, err = config.ParseEnvironment(func(string) (string, bool) { return text, true }, options)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const names, other, note = `key_provider "run" "x" { command = ["a", "canary"] }`, `key_provider "run" "x" { command = ["b", "canary"] }`,
		`key_provider "run" "x" { note = "n" }`
	for name, c := range map[string]struct {
		code, environment string
		refused           bool
	}{
		"code alone":                   {names, "", false},
		"environment alone":            {"", names, true},
		"environment replaces":         {names, other, true},
		"environment repeats":          {names, names, false},
		"environment adds to the rest": {names, note, false},
		"code has the rest only":       {note, names, true},
	} {
		merged := config.Merge(parse(c.code, false), parse(c.environment, true))
		entry := merged.KeyProviders["key_provider.run.x"]
		_, err := entry.Resolve(table, entries.Scope{AllowCommands: merged.AllowCommands})
		e, isError := errors.AsType[*attr.Error](err)
		if (err != nil) != c.refused || c.refused && (!isError || e.Attr != "command" || e.Pos.Line != 1 ||
			strings.Contains(err.Error(), "canary")) {
			t.Errorf("%s: %v", name, err)
		}
		merged.AllowCommands = true
		if _, err := entry.Resolve(table, entries.Scope{AllowCommands: merged.AllowCommands}); err != nil {
			t.Errorf("%s, allowed: %v", name, err)
		}
	}
	if !config.Merge(&config.Config{AllowCommands: true}, &config.Config{}).AllowCommands {
		t.Error("the permission is lost in a merge")
	}
}
