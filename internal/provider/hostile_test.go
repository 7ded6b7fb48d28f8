package provider

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/hostiletest"
)

// message reads the outputs of a state, or its resource x.y, and returns what
// would be sent.
func message(file []byte, resource bool) ([]byte, error) {
	if resource {
		return resourceMessage(file)
	}
	s, err := tfstate.Parse(file)
	if err != nil {
		return nil, err
	}
	values, err := s.Values(slices.Collect(maps.Keys(s.Outputs))...)
	if err != nil {
		return nil, err
	}
	return marshal(cty.ObjectVal(values), cty.DynamicPseudoType)
}

func resourceMessage(file []byte) ([]byte, error) {
	s, err := tfstate.Parse(file)
	if err != nil {
		return nil, err
	}
	found, err := s.Resource("x.y")
	if err != nil {
		return nil, err
	}
	open, sensitive, err := found.Values()
	if err != nil {
		return nil, err
	}
	return marshal(cty.TupleVal([]cty.Value{open, sensitive}), cty.DynamicPseudoType)
}

// allocated is how many bytes f allocates, whether or not they are kept.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// mostAllocated is what a file may cost: see the guide on limits.
func mostAllocated(file []byte) int { return 320*len(file) + 49<<20 }

// What a stranger's file costs is bounded by its size. Memory stands for time
// here, because it does not depend on the machine; "make bench" has both.
//
// Promise: Cost
func TestHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("reading large files takes long")
	}
	for _, file := range hostiletest.Files() {
		t.Run(file.Name, func(t *testing.T) {
			var sent []byte
			var err error
			cost := allocated(func() { sent, err = message(file.Data, file.Resource) })
			switch {
			case file.Refused && !errors.Is(err, tfstate.ErrCost) && !errors.Is(err, tfstate.ErrDigits):
				t.Errorf("got %d bytes, %v", len(sent), err)
			case !file.Refused && err != nil:
				t.Error(err)
			}
			if cost > mostAllocated(file.Data) || len(sent) > 4*len(file.Data)+32<<20 {
				t.Errorf("it takes %d MB for %d bytes, and sends %d", cost>>20, len(file.Data), len(sent))
			}
		})
	}
}

// FuzzHostile looks for files that cost more than their size allows. What it finds
// belongs into package hostiletest.
//
// Promise: Cost
func FuzzHostile(f *testing.F) {
	for _, file := range hostiletest.Files() {
		if len(file.Data) < 64<<10 {
			f.Add(file.Data, file.Resource)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, resource bool) {
		if len(data) > 64<<10 {
			return
		}
		var sent []byte
		cost := allocated(func() { sent, _ = message(data, resource) })
		if cost > mostAllocated(data) || len(sent) > 32<<20 {
			t.Errorf("it takes %d MB for %d bytes, and sends %d", cost>>20, len(data), len(sent))
		}
	})
}
