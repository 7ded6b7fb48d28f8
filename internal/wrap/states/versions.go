package states

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Versions gives access to the versions of one state in a store.
type Versions struct {
	store.Historian
	none error // the error if there are none
}

// Versions returns the versions of the state that the block names.
func (s *States) Versions() (Versions, error) {
	b, err := s.state("")
	if err != nil {
		return Versions{}, err
	}
	return b.versions()
}

// versions returns the versions of the state. It returns [store.ErrNoHistory] if the store does not list them.
func (b *Backend) versions() (Versions, error) {
	h, ok := store.As[store.Historian](b.State)
	if !ok {
		return Versions{}, store.ErrNoHistory
	}
	return Versions{h, b.none()}, nil
}

// Versions returns the newest versions, and whether there are more. It returns [ErrNone] if there are none.
func (v Versions) Versions(ctx context.Context, limit int) (kept []store.Kept, more bool, err error) {
	kept, more, err = v.Historian.Versions(ctx, limit)
	if err == nil && len(kept) == 0 {
		err = v.none
	}
	return kept, more, err
}

// These are errors about versions that the store lists, but cannot read.
var (
	errDeletion = errors.New("the state was deleted in this version, so it has no content; name the version below it in statecrypt history")
	errUndelete = errors.New("this version was deleted; undelete it with the tools of the store first")
)

// Whole returns the content of a version. If it has none, and is one of the newest versions, the error says why.
func (v Versions) Whole(ctx context.Context, id string) ([]byte, error) {
	file, err := v.ReadVersion(ctx, id, 0, -1)
	if !errors.Is(err, store.ErrNoVersion) {
		return file, err
	}
	const few, short = 20, 7           // git fetches the listed versions; a commit may be abbreviated to 7 digits
	kept, _, _ := v.Versions(ctx, few) // without a list, the version is unknown
	for _, k := range kept {
		isIt := k.ID == id || len(id) >= short && strings.HasPrefix(k.ID, id)
		switch {
		case isIt && k.Status == store.KeptDeleted:
			return nil, errDeletion
		case isIt && k.Status == store.KeptUndelete:
			return nil, errUndelete
		}
	}
	return nil, err
}

const (
	headSize = 64 << 10 // in bytes; a smaller version is read whole
	tailSize = 16 << 10 // in bytes
)

// Brief returns a version that is small. Of a large one, it returns a short file of the same kind with the same serial,
// lineage and names of key providers, made from both ends of the version. If these do not show the kind, Brief reads
// the whole version.
func (v Versions) Brief(ctx context.Context, k store.Kept) ([]byte, error) {
	head, err := v.ReadVersion(ctx, k.ID, 0, headSize)
	if err != nil || len(head) < headSize {
		return head, err
	}
	tail, err := v.ReadVersion(ctx, k.ID, max(k.Size-tailSize, headSize), tailSize)
	if err != nil {
		return nil, err
	}
	if brief := shortened(head, tail); brief != nil {
		return brief, nil
	}
	return v.ReadVersion(ctx, k.ID, 0, -1)
}

// shortened returns a short file with the members of an envelope or of a plaintext state that say what it is. It
// returns nil if the ends do not show the kind of the file.
func shortened(head, tail []byte) []byte {
	small := map[string]json.RawMessage{}
	cut := "" // the member whose value does not fit into the head
	r := jsonwalk.NewReader(head)
	_ = r.Object(func(name string) error { // the head is incomplete
		cut = jsonwalk.Fold(name)
		value, err := r.Skip()
		if err == nil && says(cut) {
			small[cut] = value
		}
		return err
	})
	if cut == "encrypted_data" {
		end := bytes.IndexByte(tail, '"') // base64 has no quotation marks
		if end < 0 {
			return nil
		}
		rest := append([]byte(`{"encrypted_data":""`), tail[end+1:]...)
		err := jsonwalk.Members(rest, func(name string, value []byte) (bool, error) {
			if name = jsonwalk.Fold(name); says(name) || name == cut {
				small[name] = value
			}
			return true, nil
		})
		if err != nil || small["encryption_version"] == nil {
			return nil
		}
	} else if isOfOther(head) || isOfOther(tail) || !isNumber(small["version"]) || !isNumber(small["serial"]) || small["lineage"] == nil {
		return nil
	}
	brief, err := json.Marshal(small)
	if err != nil {
		return nil
	}
	return brief
}

// says reports whether a member says what a file is.
func says(member string) bool {
	return slices.Contains([]string{"serial", "lineage", "meta", "encryption_version", "version", "terraform_version"}, member)
}

func isNumber(value json.RawMessage) bool {
	return len(value) > 0 && value[0] >= '0' && value[0] <= '9'
}

// isOfOther reports whether a part of a file may be encrypted, other than in OpenTofu's format. A tool may have
// encrypted only some values of a state.
func isOfOther(part []byte) bool {
	names := []string{`"sops"`, `"mac"`, `"enc"`, `"encrypted_data"`, `"encryption_version"`}
	return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(part, []byte(name)) })
}
