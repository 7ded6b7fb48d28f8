package azurerm

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	azuresource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// lockMetadata is the name of the metadata entry that describes the lock, in base64.
const lockMetadata = "terraformlockid"

var uuid = lazyregexp.New(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// leaseID returns the lease ID for a lock. Azure requires a UUID. The CLIs' lock IDs are UUIDs and are used as they
// are; for any other ID, leaseID derives a UUID.
func leaseID(id string) string {
	if uuid.MatchString(id) {
		return strings.ToLower(id)
	}
	sum := sha256.Sum256([]byte(id))
	return store.UUID(sum[:])
}

// undescribed is the ID prefix of a lock without a description. The blob's ETag follows.
const undescribed = "lease-"

// holder returns the lock on a blob, or nil if the blob has no lease. A description without a lease remains from an
// earlier lock, and is ignored. A lease without a description can remain if a run ends between the two requests that
// create a lock. In that case, holder makes up an ID, so that users can release the lock.
func holder(b *found) *store.Lock {
	if b == nil || !b.leased {
		return nil
	}
	text, _ := base64.StdEncoding.DecodeString(value(b.metadata[lockMetadata])) // an empty text is not a lock
	if lock, ok := store.ParseLock(text); ok && lock.ID != "" {
		return &lock
	}
	return &store.Lock{ID: undescribed + strings.Trim(b.etag, `"`), Created: b.changed.UTC().Format(time.RFC3339),
		Operation: "an unknown operation"}
}

// Look returns the lock and its mark. The lock is an infinite lease on the blob, and a description in the metadata. Its
// mark is the lease ID or, for a lease without a description, the ID that holder returns.
func (s *state) Look(ctx context.Context) (by *store.Lock, mark string, err error) {
	b, err := s.head(ctx, s.key)
	if err != nil {
		return nil, "", err
	}
	s.with(func() { s.last = b })
	by = holder(b)
	switch {
	case by == nil:
		return nil, "", nil
	case strings.HasPrefix(by.ID, undescribed):
		return by, by.ID, nil
	}
	return by, leaseID(by.ID), nil
}

// Add acquires the lease, and writes the lock description. It also succeeds if the lease is already ours.
func (s *state) Add(ctx context.Context, lock store.Lock) (mark string, err error) {
	if lock.ID == "" { // two locks without an ID would share one lease
		return "", errors.New("the lock has no ID, so its lease could not be distinguished from others")
	}
	if err := s.Prove(ctx); err != nil {
		return "", err
	}
	mark = leaseID(lock.ID)
	for try := 0; ; try++ {
		err := s.add(ctx, lock, mark)
		if err == nil {
			return mark, nil
		}
		by := holder(s.takeLast())
		isNew := by != nil && strings.HasPrefix(by.ID, undescribed) // the holder may be about to write the description
		_, isTaken := errors.AsType[objects.TakenError](err)
		if try == objects.MaxTries || !isOther(err) && !(isTaken && isNew) {
			return "", err
		}
		if err := objects.Pause(ctx); err != nil {
			return "", err
		}
	}
}

func (s *state) add(ctx context.Context, lock store.Lock, mark string) (err error) {
	b, err := s.head(ctx, s.key)
	if err != nil {
		return err
	}
	s.with(func() { s.last = b })
	if by := holder(b); by != nil && by.ID != lock.ID && !strings.HasPrefix(by.ID, undescribed) {
		return objects.TakenError{Err: &store.HeldError{By: by}}
	}
	if !b.there {
		if b.etag, err = s.put(ctx, s.key, nil, b); err != nil {
			return err
		}
		b.there, b.metadata = true, map[string]*string{}
	}
	s.with(func() { s.mine = mark })
	err = s.lease(ctx, s.key, nil, map[string]string{"action": "acquire", "duration": "-1", "proposed-id": mark})
	if _, isTaken := errors.AsType[objects.TakenError](err); isTaken {
		return err
	}
	if err == nil {
		err = s.proveLease(ctx)
	}
	if err == nil {
		err = s.describeAs(ctx, b, lock, mark)
	}
	if err != nil { // nobody would release the lease later
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		_ = s.lease(ctx, s.key, nil, map[string]string{"action": "release", "id": mark}) // there may be no lease
	}
	return err
}

// describeAs writes the description of our lock into the blob's metadata. b is the blob as it was found before the
// lease was acquired.
func (s *state) describeAs(ctx context.Context, b *found, lock store.Lock, mark string) error {
	for try := 0; ; try++ {
		text := base64.StdEncoding.EncodeToString(lock.JSON())
		b.metadata[lockMetadata] = &text
		err := s.describe(ctx, s.key, b, &mark)
		if !isOther(err) || try == objects.MaxTries {
			return err
		}
		if b, err = s.head(ctx, s.key); err != nil {
			return err
		}
		if by := holder(b); by != nil && by.ID == lock.ID { // the write succeeded, and only its response was lost
			return nil
		}
	}
}

// Drop releases the lease, and then removes the description, which has no effect without a lease. If the lease has no
// description or is another run's, Drop breaks it, because the user has named that lock.
func (s *state) Drop(ctx context.Context, mark string) error {
	b := s.takeLast()
	if b == nil {
		return store.ErrLost
	}
	err := store.ErrLost
	if !strings.HasPrefix(mark, undescribed) {
		err = s.lease(ctx, s.key, nil, map[string]string{"action": "release", "id": mark})
	}
	var ours bool
	s.with(func() { ours = s.mine == mark })
	if errors.Is(err, store.ErrLost) && !ours {
		err = s.lease(ctx, s.key, b, map[string]string{"action": "break", "break-period": "0"})
	}
	if err != nil {
		return err
	}
	if delete(b.metadata, lockMetadata); !strings.HasPrefix(mark, undescribed) {
		_ = s.describe(ctx, s.key, b, nil) // the next holder replaces the description anyway
	}
	return nil
}

// errFrozen means that a policy prevents changes to the blob.
var errFrozen = errors.New(azuresource.Frozen)

// checkPolicies returns an error if an immutability policy or a legal hold prevents changes to the blob. It ignores
// the container's policies if the credentials do not allow reading them.
func (s *state) checkPolicies(ctx context.Context) error {
	b, err := s.head(ctx, s.key)
	if err == nil && !b.frozen {
		b.frozen, err = s.isFrozen(ctx)
	}
	if err == nil && b.frozen {
		err = errFrozen
	}
	return err
}

// Prove returns an error if the server ignores conditions. It does not test Microsoft's servers, which obey them.
func (s *state) Prove(ctx context.Context) error {
	var proven bool
	if s.with(func() { proven = s.proven }); proven || s.server.IsAzure() {
		return nil
	}
	name := s.key + objects.ProofSuffix
	replace := func(ctx context.Context, b *found) (string, error) {
		etag, err := s.put(ctx, name, []byte(objects.ProofText), b)
		if errors.Is(err, store.ErrDenied) {
			err = fmt.Errorf("could not test with this blob whether the server keeps runs from overwriting each other: %w", err)
		}
		return etag, err
	}
	err := objects.Trial{
		Look: func(ctx context.Context) (string, error) {
			b, err := s.head(ctx, name)
			if err != nil {
				return "", err
			}
			return b.etag, nil
		},
		Create: func(ctx context.Context) (string, error) { return replace(ctx, &found{}) },
		Replace: func(ctx context.Context, version string) (string, error) {
			return replace(ctx, &found{there: true, etag: version})
		},
	}.Prove(ctx)
	if err == nil {
		s.with(func() { s.proven = true })
	}
	return err
}

// proveLease returns an error if the server grants our lease to a second holder. It does not test Microsoft's servers.
func (s *state) proveLease(ctx context.Context) error {
	if s.server.IsAzure() {
		return nil
	}
	another := leaseID("statecrypt")
	err := s.lease(ctx, s.key, nil, map[string]string{"action": "acquire", "duration": "-1", "proposed-id": another})
	if _, isTaken := errors.AsType[objects.TakenError](err); isTaken {
		return nil
	}
	if err == nil {
		_ = s.lease(ctx, s.key, nil, map[string]string{"action": "release", "id": another}) // a remaining lock is reported later
		err = errors.New("the server grants a lease that someone else holds, so two runs could both hold the lock; keep the state on another " +
			"server")
	}
	return err
}
