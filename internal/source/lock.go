package source

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

const (
	// MaxLock is the size limit of a lock description, in bytes. Most have a few hundred.
	MaxLock    = 64 << 10
	maxEscaped = 200 // size limit of each string that is shown, in bytes
)

// ParseLock reads the JSON document about a lock that Terraform passes to a backend:
// https://github.com/opentofu/opentofu/blob/v1.12.6/internal/states/statemgr/locker.go
// If it fails, it also returns an empty lock, because the state is still locked.
func ParseLock(data []byte) (*Lock, error) {
	if len(data) > MaxLock {
		return &Lock{}, fmt.Errorf("the lock's description is larger than %d bytes", MaxLock)
	}
	var text struct{ ID, Who, Operation, Created string }
	if err := json.Unmarshal(data, &text); err != nil {
		return &Lock{}, errors.New("the lock's description is not the JSON object that Terraform writes")
	}
	return &Lock{ID: shown(text.ID), Who: shown(text.Who), Operation: shown(text.Operation), Created: shown(text.Created)}, nil
}

// shown escapes and truncates s, because anyone with write access to the place may have written it.
func shown(s string) string { return outside.Value(s, maxEscaped) }
