package world_test

import (
	"os"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// TestSteering: each variable that a client would follow although the environment
// is off is reported, unless its value changes nothing.
//
// Promise: use_environment = false
func TestSteering(t *testing.T) {
	for _, some := range world.Steering() {
		for name := range strings.FieldsSeq(some.Names) {
			t.Setenv(name, "")
		}
	}
	for _, some := range world.Steering() {
		for name := range strings.FieldsSeq(some.Names) {
			t.Run(name, func(t *testing.T) {
				for _, harmless := range append(strings.Fields(some.Except), "") {
					t.Setenv(name, harmless)
					if err := (world.World{}).Refuse(some.Client); err != nil {
						t.Errorf("%q: %v", harmless, err)
					}
				}
				t.Setenv(name, "/evil")
				if err := (world.World{}).Refuse(some.Client); err == nil || !strings.Contains(err.Error(), "the variable "+name) {
					t.Errorf("got %v", err)
				}
				if err := world.Here().Refuse(some.Client); err != nil {
					t.Errorf("with the environment on: %v", err)
				}
				beside := world.For(os.LookupEnv, true).Refuse(some.Client)
				if isOfMachine := some.Client == world.Authorities; (beside == nil) != isOfMachine {
					t.Errorf("beside a secret: %v", beside)
				}
			})
		}
	}
}

// TestZeroWorld: whoever forgets to pass a World on has the environment off.
//
// Promise: use_environment = false
func TestZeroWorld(t *testing.T) {
	t.Setenv("AWS_PROFILE", "theirs")
	var off world.World
	if value, set := off.Lookup("AWS_PROFILE"); set || off.ReadsEnvironment() {
		t.Errorf("it found %q", value)
	}
	if value, set := off.Environ().Lookup("AWS_PROFILE"); set {
		t.Errorf("programs get %q", value)
	}
	if got := new(world.Environ).Pairs(); got == nil || len(got) > 0 {
		t.Errorf("without a world, programs get %q", got)
	}
	if value, _ := world.Here().Lookup("AWS_PROFILE"); value != "theirs" {
		t.Errorf("with the environment on, it found %q", value)
	}
}
