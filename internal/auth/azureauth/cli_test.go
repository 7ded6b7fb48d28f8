package azureauth

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// A token is used again for as long as it lives.
func TestTokensOfTheCLI(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for az is a shell script")
	}
	dir := t.TempDir()
	expires := func(at time.Time) {
		script := fmt.Sprintf("#!/bin/sh\necho x >>%s/asked\necho '{\"accessToken\":\"a\",\"expires_on\":%d}'\n", dir, at.Unix())
		if err := os.WriteFile(filepath.Join(dir, "az.new"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "az.new"), filepath.Join(dir, "az")); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	expires(time.Now().Add(time.Hour))
	table := attr.Table{Name: "x", Attrs: Attrs(nil)}
	values, err := unstable.NewEntry("x", table, nil).Decode(table, nil) // use_cli is true
	if err != nil {
		t.Fatal(err)
	}
	access, err := New(values, world.World{})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := access.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(scope string, want int) {
		t.Helper()
		token, err := identity.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{scope + "/.default"}})
		if err != nil || token.Token != "a" {
			t.Fatalf("got %+v, %v", token, err)
		}
		asked, err := os.ReadFile(filepath.Join(dir, "asked"))
		if got := strings.Count(string(asked), "x"); err != nil || got != want {
			t.Errorf("az was asked %d times, want %d", got, want)
		}
	}
	ask("https://storage.azure.com", 1)
	ask("https://storage.azure.com", 1)
	expires(time.Now().Add(time.Minute))
	ask("https://management.azure.com", 3) // another token; it ends soon, so that az is asked for a newer one
	ask("https://management.azure.com", 4)
}

// No variable says what az starts in turn if only TF_ENCRYPTION has it run.
//
// Promise: TF_ENCRYPTION
func TestCLIOfALayer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for az is a shell script")
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nenv >%s/env\nexit 1\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("AZURE_EXTENSION_DIR", "canary")
	t.Setenv("PYTHONPATH", "canary")
	table := attr.Table{Name: "x", Attrs: Attrs(nil)}
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "Azure, az of a layer", "canary")
	for name, c := range map[string]struct {
		layered, allowed bool
		settings         map[string]unstable.Setting
	}{
		"code":             {},
		"a layer":          {layered: true},
		"a layer, allowed": {layered: true, allowed: true},
		"use_cli":          {settings: map[string]unstable.Setting{"use_cli": {Value: cty.True, FromEnvironment: true}}},
	} {
		entry := &unstable.Entry{Address: "x", Settings: c.settings, FromEnvironment: c.layered}
		values, err := entry.Resolve(table, unstable.Scope{Lookup: os.LookupEnv, AllowCommands: c.allowed})
		if err != nil {
			t.Fatal(err)
		}
		access, err := New(values, world.Here())
		if err != nil {
			t.Fatal(err)
		}
		identity, err := access.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = identity.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
		got, _ := os.ReadFile(filepath.Join(dir, "env"))
		bare := (c.layered || c.settings != nil) && !c.allowed
		if strings.Contains(string(got), "canary") == bare || !strings.Contains(string(got), "PATH=") {
			t.Errorf("%s: az got %s", name, got)
		}
		says.Error(t, name, err)
	}
}
