package module

import (
	"testing"
)

// TestInitBesideARun: init -backend=false leaves the record of another run as it was, and a run beside it ends well.
func TestInitBesideARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, during bool // another run writes its record
	}{
		"alone": {}, "beside a run": {before: true}, "a run begins": {during: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &Module{Dir: t.TempDir()}
			data := m.OwnRecord()
			if c.before {
				if err := WriteRecord(t.Context(), data); err != nil {
					t.Fatal(err)
				}
			}
			forget, err := m.HideBackend(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := CheckRecord(data); c.before && err != nil {
				t.Errorf("the run beside it ends with %v", err)
			}
			if c.during {
				if err := WriteRecord(t.Context(), data); err != nil {
					t.Fatal(err)
				}
			}
			forget()
			text, err := data.Read(recordName)
			if isThere := err == nil; isThere != (c.before || c.during) || isThere && string(text) != record {
				t.Errorf("afterwards, there is %s, %v", text, err)
			}
		})
	}
}
