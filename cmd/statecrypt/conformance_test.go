package main

import (
	"os"
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
