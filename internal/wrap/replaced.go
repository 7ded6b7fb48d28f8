package wrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// CheckReplaced refuses to put a file in the place of anything but an older version of
// it: a mistaken name may be that of settings, of a file with a key, or of another state.
// What is said of a state in plaintext has its label, see [Describe].
func CheckReplaced(there, by encryption.Info) error {
	was, is := content(there), content(by)
	switch {
	case there.Kind == encryption.KindEmpty:
		return nil
	case was == "":
		return errors.New("it is neither a state nor a plan; name another file; to replace it, delete it first")
	case is != "" && was != is:
		return fmt.Errorf("it is a %s, and this would be a %s; to replace it, delete it first", was, is)
	case there.Lineage != "" && by.Lineage != "" && there.Lineage != by.Lineage:
		return fmt.Errorf("it is another state, of the lineage %s; to replace it, delete it first", outside.Quoted(there.Lineage, 100))
	case there.Lineage != "" && by.Lineage != "" && there.Serial != nil && by.Serial != nil && *there.Serial > *by.Serial:
		return fmt.Errorf("it is a newer version of this state: its serial is %d, and this would be %d; to replace it, delete it first",
			*there.Serial, *by.Serial)
	}
	return nil
}

// content is what a file holds, encrypted or not, "" if nobody knows. Of OpenTofu's
// envelopes, those of states have a label.
func content(i encryption.Info) string {
	switch {
	case i.Kind == encryption.KindState, i.Kind == encryption.KindEncrypted && (i.Serial != nil || i.Lineage != ""):
		return "state"
	case i.Kind == encryption.KindPlan, i.Kind == encryption.KindEncrypted:
		return "plan"
	}
	return ""
}

// Describe is [encryption.Inspect], with the label of a state in plaintext.
func Describe(file []byte) (encryption.Info, error) {
	info, err := encryption.Inspect(file)
	if info.Kind == encryption.KindState {
		info.Serial, info.Lineage, _ = store.Label(file)
	}
	return info, err
}

// checkPlace refuses to put a sealed plan in the place of what is no plan. A format that
// nothing is known by is one if the settings open it, or lack only the key for it.
func (h *handover) checkPlace(ctx context.Context, path string) error {
	there, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, _ := encryption.Inspect(there)
	if info.Kind == encryption.KindUnknown {
		_, err := h.Plan.Decrypt(ctx, there)
		if err == nil || errors.Is(err, encryption.ErrNoKey) || fault.Has[fault.NoIdentity](err) {
			return nil
		}
	}
	return CheckReplaced(info, encryption.Info{Kind: encryption.KindPlan})
}
