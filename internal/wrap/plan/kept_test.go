package plan

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestBackendOfARun: a plan is kept without the settings of the run that made it, and applied with those of another.
// All else in it stays, and whatever else it has of a backend is gone.
//
// Promise: Only encrypted states
func TestBackendOfARun(t *testing.T) {
	t.Parallel()
	run := module.Settings{"address": "https://127.0.0.1:1/state", "password": wraptest.Canary, "retry_max": int64(7)}
	made := map[string]any{"address": run["address"], "password": run["password"], "retry_max": 7, "lock_method": nil}
	text := protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), "a resource")
	group := append(protowire.AppendTag(nil, 7, protowire.StartGroupType), backendOf(t, made)...)
	group = protowire.AppendTag(group, 7, protowire.EndGroupType)
	for name, c := range map[string]struct {
		message []byte
		refused bool
	}{
		"once":               {message: append(backendOf(t, made), text...)},
		"at the end":         {message: append(bytes.Clone(text), backendOf(t, made)...)},
		"twice":              {message: append(backendOf(t, made), append(text, backendOf(t, made)...)...)},
		"empty":              {message: append(backendOf(t, map[string]any{"address": nil}), text...)},
		"another address":    {message: append(backendOf(t, map[string]any{"address": "https://example.com/"}), text...), refused: true},
		"another number":     {message: append(backendOf(t, map[string]any{"retry_max": 8}), text...), refused: true},
		"a text as a number": {message: append(backendOf(t, map[string]any{"address": 1}), text...), refused: true},
		"one more":           {message: append(backendOf(t, map[string]any{"lock_method": "POST"}), text...), refused: true},
		"a list":             {message: append(backendOf(t, map[string]any{"address": []any{run["address"]}}), text...), refused: true},
	} {
		plan, err := checkPlan(archived(t, 1, c.message), run)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		kept, err := plan.with(nil)
		if err != nil {
			t.Fatal(err)
		}
		if message := messageOf(t, kept); bytes.Contains(message, []byte(wraptest.Canary)) || bytes.Contains(message, []byte("127.0.0.1")) {
			t.Errorf("%s: this was kept: %q", name, message)
		}
		if plan, err = checkPlan(kept, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		next := module.Settings{"address": "https://127.0.0.1:2/state", "password": "another", "retry_max": int64(7)}
		filled, err := plan.with(next)
		if err == nil {
			_, err = checkPlan(filled, next)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		message := messageOf(t, filled)
		addresses := bytes.Count(message, []byte("https://"))
		if !bytes.Contains(message, text) || addresses != 1 || !bytes.Contains(message, []byte("https://127.0.0.1:2/state")) {
			t.Errorf("%s: this is applied: %q", name, message)
		}
	}
	if _, err := checkPlan(archived(t, 1, append(group, text...)), run); err == nil {
		t.Error("a backend in a group is one")
	}
}

// messageOf returns the message of a plan.
func messageOf(t *testing.T, content []byte) []byte {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	message, err := fs.ReadFile(archive, "tfplan")
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// TestMembersOfTheSameBytes: an archive whose files are the same bytes is not copied: it would grow without end.
//
// Promise: Cost
func TestMembersOfTheSameBytes(t *testing.T) {
	t.Parallel()
	plan, err := checkPlan(archived(t, 1, backendOf(t, map[string]any{})), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		again := *plan.member
		again.Name, again.CompressedSize64 = "again", uint64(plan.size)
		plan.archive.File = append(plan.archive.File, &again)
	}
	if _, err := plan.with(nil); err == nil {
		t.Error("it was copied")
	}
}
