package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// The command does with the files of real tools what these do, but for differences that
// have a reason.
func TestConformance(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the keys of many cases take long to derive")
	}
	conforms(t, conformance.Runs(), "statecrypt", "statecrypt.known", "STATECRYPT="+built(t), 130)
}

// What the command writes is what OpenTofu writes with the same settings, but for differences that
// have a reason. Few keys take long to derive, as each is derived five times.
func TestConformanceOfWriter(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the keys take long to derive")
	}
	runs := slices.DeleteFunc(conformance.Writes(), func(r conformance.Run) bool {
		return r.Opens && conformance.Get(r.Name).Slow() && r.Name != "aes_gcm_aad"
	})
	conforms(t, runs, "statecrypt", "statecrypt-write.known", "STATECRYPT="+built(t), 30)
}

// OpenTofu, which wrote most of the files, passes the suite. So it says what OpenTofu does.
func TestConformanceOfOpenTofu(t *testing.T) {
	t.Parallel()
	runs := testkit.Sample(conformance.Runs())
	conforms(t, runs, "tofu", "tofu.known", "TOFU="+testkit.Program(t, "STATECRYPT_TOFU"), len(runs)*6/10)
}

// OpenTofu opens what the adapter in Node writes, with new keys, in the place of what it
// has read.
func TestOpenTofuOpensFilesOfNode(t *testing.T) {
	t.Parallel()
	tofu := testkit.Program(t, "STATECRYPT_TOFU")
	node, err := exec.LookPath("node")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("it requires node and sh")
	}
	adapters, err := filepath.Abs("../../conformance/adapters")
	if err != nil {
		t.Fatal(err)
	}
	p := conformance.Program{Timeout: 10 * time.Minute, Command: []string{"sh", "-euc", `
		"$0" "$1/node/main.js" >plain
		CASE_TASK=write "$0" "$1/node/main.js" <plain >written
		TOFU=$2 CHECKPOINT_DISABLE=1 exec sh "$1/tofu.sh" <written`, node, adapters, tofu}}
	names := []string{"aes_gcm_aad", "config_json", "config_literal_keys", "external_method_with_keys", "fallback_old_key",
		"merge_code_and_env", "metadata_alias_unicode", "pbkdf2_chain_external", "pbkdf2_chain_pbkdf2_alias", "pbkdf2_sha256_key16",
		"pbkdf2_sha512_key24_salt64", "settings_decomposed"}
	names = testkit.Sample(names)
	for _, r := range conformance.Runs() {
		if slices.Contains(names, r.Name) {
			t.Run(r.Name, func(t *testing.T) {
				t.Parallel()
				if got := p.Judge(t.Context(), r); got.Verdict != conformance.Passed {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}

// conforms runs the adapter called name, which finds its program by a variable.
func conforms(t *testing.T, runs []conformance.Run, name, known, variable string, least int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the adapters are shell scripts")
	}
	adapters, err := filepath.Abs("../../conformance/adapters")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(adapters, known))
	if err != nil {
		t.Fatal(err)
	}
	p := conformance.Program{Timeout: 10 * time.Minute,
		Command: []string{"env", variable, "CHECKPOINT_DISABLE=1", "sh", filepath.Join(adapters, name+".sh")}}
	if p.Known, err = conformance.ParseKnown(string(text)); err != nil {
		t.Fatal(err)
	}
	var passed atomic.Int32
	t.Cleanup(func() {
		if !t.Failed() && int(passed.Load()) < least {
			t.Errorf("%d passed", passed.Load())
		}
	})
	for _, r := range runs {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			switch got := p.Judge(t.Context(), r); got.Verdict {
			case conformance.Passed:
				passed.Add(1)
			case conformance.Failed:
				t.Error(got.Why)
			}
		})
	}
}
