// Package digest decorates a state with a digest in a table, like the DynamoDB table that the s3 backends of Terraform
// and OpenTofu use. Both refuse a state with a different digest.
package digest

import (
	"context"
	"crypto/md5" //nolint:gosec // Terraform and OpenTofu use MD5
	"encoding/hex"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Item reads and writes the digest of one state.
type Item interface {
	Get(ctx context.Context) (sum string, there bool, err error)
	Put(ctx context.Context, sum string) error
	Delete(ctx context.Context) error

	// MayChange returns an error if another run holds the lock of the state, or if our lock is gone.
	MayChange(ctx context.Context) error
}

// State is a state with its digest. The decorated state must handle lost responses.
type State struct {
	store.State
	Item

	Object, Table, Name string // names for error messages: the state object, the table, and the table item
}

// Unwrap returns the state without its digest.
func (s *State) Unwrap() store.State { return s.State }

// Read reads the state. It shows a notice if the table does not have the right digest, because Terraform and OpenTofu
// would then fail. It returns an error if there is a digest but no state, as both of them do, because Terraform would
// create all resources again.
func (s *State) Read(ctx context.Context) ([]byte, store.Version, error) {
	data, version, err := s.State.Read(ctx)
	if err != nil {
		return data, version, err
	}
	sum, there, err := s.Get(ctx)
	if data == nil {
		if err == nil && there {
			err = fmt.Errorf("the bucket has no object %q, but the table %q has its digest; restore the object. If the state should not exist, "+
				"delete the item %q from the table", s.Object, s.Table, s.Name)
		}
		return nil, version, err
	}
	if err == nil && (!there || sum != of(data)) {
		notice.Show(ctx, fmt.Sprintf("the table %q has another digest of the state or none, so Terraform and OpenTofu without wrap may "+
			"refuse the state; the next write corrects the digest", s.Table))
	}
	return data, version, err
}

func of(data []byte) string {
	sum := md5.Sum(data) //nolint:gosec // Terraform and OpenTofu use MD5
	return hex.EncodeToString(sum[:])
}

// Write writes the state, then its digest.
func (s *State) Write(ctx context.Context, data []byte, read store.Version) (store.Version, error) {
	next, err := s.State.Write(ctx, data, read)
	if err == nil {
		err = s.note(ctx, data)
	}
	return next, err
}

// note writes the digest of a state that is already in the store.
func (s *State) note(ctx context.Context, data []byte) error {
	err := s.Put(ctx, of(data))
	if err != nil {
		err = fmt.Errorf("%w: %w", store.ErrUnfinished, err)
	}
	return err
}

// IsSettled reports whether the table has the digest of the state.
func (s *State) IsSettled(ctx context.Context, read []byte) (bool, error) {
	sum, there, err := s.Get(ctx)
	return there && sum == of(read), err
}

// Settle writes the digest of the state if the table does not have it.
func (s *State) Settle(ctx context.Context, read []byte) error {
	settled, err := s.IsSettled(ctx, read)
	if err != nil || settled {
		return err
	}
	if err = s.MayChange(ctx); err == nil {
		err = s.note(ctx, read)
	}
	if err == nil {
		notice.Show(ctx, fmt.Sprintf("the table %q now has the digest of the state; before, it had another digest or none", s.Table))
	}
	return err
}

// Remove removes the state, then its digest.
func (s *State) Remove(ctx context.Context, read store.Version) error {
	err := s.State.Remove(ctx, read)
	if err == nil {
		err = s.Delete(ctx)
	}
	return err
}
