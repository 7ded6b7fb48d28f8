package plan

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// archived is a plan in so many members.
func archived(t *testing.T, members int, plan []byte) []byte {
	t.Helper()
	var content bytes.Buffer
	w := zip.NewWriter(&content)
	for range members {
		member, err := w.Create("tfplan")
		if err == nil {
			_, err = member.Write(plan)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

// alike is a plan whose resources have one text of such a length in common.
func alike(t *testing.T, resources, length int) []byte {
	t.Helper()
	text := make([]byte, length)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = byte(random.IntN(256)) //nolint:gosec // less than 256
	}
	var plan []byte
	for i := range resources {
		change := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), text)
		change = protowire.AppendString(protowire.AppendTag(change, 1, protowire.BytesType), fmt.Sprint("x.y[", i, "]"))
		plan = protowire.AppendBytes(protowire.AppendTag(plan, 3, protowire.BytesType), change)
	}
	return append(plan, backendOf(t, map[string]any{})...)
}

// TestHugePlans: an honest plan may unpack to hundreds of times its size, and nothing of it is kept. One that
// is in its archive many times is refused, and so is one that is longer than any message of protobuf.
//
// Promise: Cost
func TestHugePlans(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "huge plan")
	ours := slices.Clip(backendOf(t, map[string]any{}))
	group := protowire.AppendTag(append(protowire.AppendTag(nil, 7, protowire.StartGroupType), ours...), 7, protowire.EndGroupType)
	for name, c := range map[string]struct {
		plan    []byte
		members int
		refused bool
	}{
		"once":                          {plan: ours},
		"twice":                         {plan: ours, members: 2, refused: true},
		"300 texts of 20 kB":            {plan: alike(t, 300, 20_000)},
		"1,500 texts of 9 kB":           {plan: alike(t, 1500, 9000)},
		"64 MB of a text":               {plan: append(protowire.AppendBytes([]byte{0x1a}, make([]byte, 64<<20)), ours...)},
		"64 MB of nothing":              {plan: make([]byte, 64<<20), refused: true},
		"a backend in a group":          {plan: group, refused: true},
		"a backend beside a group":      {plan: append(group, ours...)},
		"a group without its end":       {plan: append(ours, 0x3b), refused: true},
		"the end of a group alone":      {plan: append(ours, 0x3c), refused: true},
		"a text that is cut off":        {plan: append(ours, 0x1a, 5, 'x'), refused: true},
		"a backend that is cut off":     {plan: ours[:len(ours)-1], refused: true},
		"a number that is cut off":      {plan: append(ours, 0x08, 0x80), refused: true},
		"a text longer than any number": {plan: append(ours, 0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), refused: true},
		"a backend of 2 MB": {refused: true,
			plan: append(ours, protowire.AppendBytes([]byte{fieldBackend<<3 | 2}, make([]byte, 2<<20))...)},
	} {
		content := archived(t, max(c.members, 1), c.plan)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := checkPlan(content, nil)
		runtime.ReadMemStats(&after)
		if (err != nil) != c.refused {
			t.Errorf("%s, %d : %d: %v", name, len(c.plan), len(content), err)
		}
		if c.refused {
			mistakes.Failed(t, name, "", err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", name, used)
		}
	}
	archive, err := zip.NewReader(bytes.NewReader(archived(t, 1, ours)), int64(len(archived(t, 1, ours))))
	if err != nil {
		t.Fatal(err)
	}
	for limit, fits := range map[int]bool{len(ours): true, len(ours) - 1: false} {
		if _, err := checkMember(archive.File[0], int64(limit), nil); (err == nil) != fits {
			t.Errorf("%d of %d bytes: %v", limit, len(ours), err)
		}
	}
	_, err = checkMember(archive.File[0], 1, nil)
	mistakes.Failed(t, "longer than it may be", "", err)
}
