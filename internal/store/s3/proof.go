package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// inProof is the content of an object beside the lock. The object stays, so that the next run proves the
// condition in one refused request, and the bucket does not collect versions of it.
const inProof = "statecrypt has shown here that this store refuses to replace an object that must not be there. You may delete it.\n"

// noObject is an ETag that no object has.
const noObject = `"00000000000000000000000000000000-0"`

// prove looks whether the store keeps its promises before anything depends on them. On the lock
// it would be too late: a store that ignores conditions has replaced a foreign one by then.
func (s *state) prove(ctx context.Context) error {
	if _, err := s.client(ctx); err != nil {
		return err
	}
	s.bucket.mu.Lock()
	proven := s.proven
	s.bucket.mu.Unlock()
	if proven {
		return nil
	}
	refused, unknown, err := s.try(ctx, condition{none: true})
	switch {
	case err == nil && unknown: // that, or something else that the block asks for
		_, _, err = s.try(ctx, condition{})
	case err == nil && !refused: // it was not there
		refused, unknown, err = s.try(ctx, condition{none: true})
	}
	if err != nil {
		return err
	}
	if !refused && s.lockfile {
		what, elsewhere := "replaces an object although the request says that there must be none", "in a bucket without versions, or elsewhere"
		if unknown {
			what, elsewhere = "does not know requests that say that there must be no object", "elsewhere"
		}
		return fmt.Errorf("the store %s (If-None-Match): two runs would both hold the lock, and each would release that of the "+
			`other. Keep the state %s, or, if nobody else writes it, set locks = "unproven"`, what, elsewhere)
	}
	match := never
	if refused {
		if refused, _, err = s.try(ctx, condition{match: noObject}); err != nil {
			return err
		}
	}
	if refused {
		match = untried
	}
	s.takes(ctx, match)
	s.bucket.mu.Lock()
	s.proven, s.noneOff = true, unknown
	s.bucket.mu.Unlock()
	return nil
}

// proveMatch finds out, after a condition was refused that seems to be met, how the store takes one. It must
// also refuse one that is not met in the same form.
func (s *state) proveMatch(ctx context.Context) error {
	etag, err := s.put(ctx, s.key+proofSuffix, []byte(inProof), condition{lock: true})
	if err != nil {
		return err
	}
	for _, match := range []form{quoted, bare} {
		refused, unknown, err := s.try(ctx, condition{match: etag, bare: match == bare})
		if err == nil && !refused && !unknown {
			return s.proveRefusal(ctx, match)
		}
		if err != nil {
			return err
		}
	}
	s.takes(ctx, never)
	return nil
}

// proveRefusal notes how the store takes a condition that is met, if it refuses one in this form that is not.
func (s *state) proveRefusal(ctx context.Context, match form) error {
	refused, _, err := s.try(ctx, condition{match: noObject, bare: match == bare})
	if err == nil && !refused {
		match = never
	}
	if err == nil {
		s.takes(ctx, match)
	}
	return err
}

// try puts the proof there once more, under a condition.
func (s *state) try(ctx context.Context, how condition) (refused, unknown bool, err error) {
	how.lock = true
	_, err = s.put(ctx, s.key+proofSuffix, []byte(inProof), how)
	answer, _ := errors.AsType[*object.Answer](err)
	switch {
	case isOtherwise(err, how):
		return true, false, nil
	case answer != nil && answer.Status == http.StatusNotImplemented && how != (condition{lock: true}):
		return false, true, nil
	case errors.Is(err, store.ErrDenied):
		err = fmt.Errorf("whether the store keeps one run from writing over another is tried on the object %s, for which s3:PutObject is "+
			"required: %w", outside.Quoted(s.key+proofSuffix, 300), err)
	}
	return false, false, err
}
