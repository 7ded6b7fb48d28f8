package states

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// kind describes a file without its encrypted data and its values.
func kind(t *testing.T, file []byte) string {
	t.Helper()
	info, err := Describe(file)
	if info.Kind == encryption.KindState { // only the ends of the file are known
		err = nil
	}
	own := slices.IndexFunc(builtin.Registry().Methods, func(m driver.Block[driver.Method]) bool {
		return m.OwnFormat != nil && !m.Vague && m.OwnFormat(file)
	})
	serial := "none"
	if info.Serial != nil {
		serial = fmt.Sprint(*info.Serial)
	}
	return fmt.Sprint(info.Kind, info.Version, " ", serial, " ", info.Lineage, info.KeyProviders, own, err)
}

// TestShortened: of files of real tools, both ends say the same as the whole file, or nothing, wherever they end.
func TestShortened(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, c := range conformance.All() {
		file := c.State()
		if _, err := Describe(file); err != nil || c.PlanFile != "" || len(file) > 50_000 { // the damage is in the middle
			continue
		}
		want := kind(t, file)
		for head := 1; head < len(file); head += max(1, len(file)/30) {
			tail := 1 << 12
			if c.Kind == "opentofu_state" {
				tail = 1
			}
			for ; tail < tailSize; tail = tail*4 + 3 {
				brief := shortened(bytes.Clone(file[:head]), bytes.Clone(file[max(head, len(file)-tail):]))
				if brief == nil {
					continue
				}
				if got := kind(t, brief); got != want {
					t.Fatalf("%s: %d and %d of %d bytes say %s, but the file says %s\n%s", c.Name, head, tail, len(file), got, want, brief)
				}
				found[c.Kind]++
			}
		}
	}
	for _, kind := range []string{"opentofu_state", "plain_state"} {
		if found[kind] < 100 {
			t.Errorf("of files of the kind %s, the ends have said something %d times: %v", kind, found[kind], found)
		}
	}
}

// kept is a version that notes which parts of it are read.
type kept struct {
	store.Historian

	file  []byte
	parts [][2]int64
}

func (k *kept) ReadVersion(_ context.Context, _ string, offset, length int64) ([]byte, error) {
	k.parts = append(k.parts, [2]int64{offset, length})
	size := int64(len(k.file))
	if length < 0 {
		length = size
	}
	return k.file[min(offset, size):min(offset+length, size)], nil
}

// unread has versions that cannot be read.
type unread []store.Kept

func (u unread) Versions(context.Context, int) ([]store.Kept, bool, error) { return u, false, nil }

func (unread) ReadVersion(context.Context, string, int64, int64) ([]byte, error) {
	return nil, store.ErrNoVersion
}

// TestWholeOfNone: an error says why a version of the list cannot be read.
func TestWholeOfNone(t *testing.T) {
	t.Parallel()
	v := Versions{Historian: unread{{ID: "deadbeef00", Status: store.KeptDeleted}, {ID: "17", Status: store.KeptUndelete}, {ID: "18"}}}
	for id, want := range map[string]error{
		"deadbeef00": errDeletion, "deadbee": errDeletion, "deadb": store.ErrNoVersion, "": store.ErrNoVersion,
		"17": errUndelete, "1": store.ErrNoVersion, "18": store.ErrNoVersion,
	} {
		if _, err := v.Whole(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", id, err, want)
		}
	}
}

// TestBrief: a large version is read at its ends, and whole only if these do not say what it is.
func TestBrief(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("A", 1<<20)
	ends := [][2]int64{{0, headSize}, {1<<20 + 100 - tailSize, tailSize}}
	for name, c := range map[string]struct {
		file  string
		parts [][2]int64
	}{
		"small":      {`{"serial":1,"encrypted_data":"AAAA","encryption_version":"v0"}`, ends[:1]},
		"encrypted":  {`{"serial":7,"lineage":"l","meta":{"k":"e30="},"encrypted_data":"` + large + `","encryption_version":"v0"}`, ends},
		"plaintext":  {`{"version":4,"terraform_version":"1.11.4","serial":7,"lineage":"l","outputs":{"a":"` + large + `"}}`, ends},
		"partly":     {`{"version":4,"serial":7,"outputs":{"a":"` + large + `"},"sops":{"mac":"x"}}`, append(slices.Clone(ends), [2]int64{0, -1})},
		"another":    {large, append(slices.Clone(ends), [2]int64{0, -1})},
		"version v1": {`{"serial":7,"encrypted_data":"` + large + `","encryption_version":"v1"}`, ends},
		"cut off":    {`{"serial":7,"encrypted_data":"` + large, append(slices.Clone(ends), [2]int64{0, -1})},
	} {
		k := &kept{file: []byte(c.file)}
		brief, err := Versions{Historian: k}.Brief(t.Context(), store.Kept{ID: "1", Size: 1<<20 + 100})
		if err != nil || !reflect.DeepEqual(k.parts, c.parts) {
			t.Errorf("%s: %v, %v", name, k.parts, err)
		}
		if whole, got := kind(t, k.file), kind(t, brief); whole != got && name != "cut off" {
			t.Errorf("%s: %s, not %s", name, got, whole)
		}
	}
}
