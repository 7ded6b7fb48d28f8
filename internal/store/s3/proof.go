package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// noObject is an ETag that no object has.
const noObject = `"00000000000000000000000000000000-0"`

// Prove tests whether the store obeys conditions. It must run before the lock is taken: a store that ignores
// conditions would overwrite another run's lock.
func (s *state) Prove(ctx context.Context) error {
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
	case err == nil && unknown: // the store does not support the condition, or another setting in the block
		_, _, err = s.try(ctx, condition{})
	case err == nil && !refused: // the object did not exist before
		if refused, unknown, err = s.try(ctx, condition{none: true}); err == nil {
			err = s.hasRoom(ctx)
		}
	}
	if err != nil {
		return err
	}
	if !refused && s.lockfile {
		what, elsewhere := "ignores", "in a bucket without versions, or on another store"
		if unknown {
			what, elsewhere = "does not support", "on another store"
		}
		return fmt.Errorf("the store %s conditional writes (If-None-Match), so two runs could both hold the lock; keep the state %s. If "+
			`nobody else writes the state, set locks = "unproven"`, what, elsewhere)
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

// proveMatch finds out which form of If-Match the store obeys, after the store has refused a condition that seems to be
// met. In the same form, the store must also refuse a condition that is not met.
func (s *state) proveMatch(ctx context.Context) error {
	etag, err := s.put(ctx, s.key+objects.ProofSuffix, []byte(objects.ProofText), condition{lock: true})
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

// proveRefusal checks that the store refuses a condition that is not met, sent in the given form. If the store
// refuses, proveRefusal records that it obeys If-Match in this form. Otherwise, proveRefusal records that it never
// obeys If-Match.
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

// try writes the proof object with a condition. It reports whether the store refused the write because of the
// condition, and whether the store does not support the condition.
func (s *state) try(ctx context.Context, how condition) (refused, unknown bool, err error) {
	how.lock = true
	var answer *object.Answer
	for try := 0; ; try++ {
		_, err = s.put(ctx, s.key+objects.ProofSuffix, []byte(objects.ProofText), how)
		if answer, _ = errors.AsType[*object.Answer](err); !isConflict(answer) || try == objects.MaxTries {
			break
		}
		if err := objects.Pause(ctx); err != nil {
			return false, false, err
		}
	}
	switch {
	case isOtherwise(err, how):
		return true, false, nil
	case answer != nil && answer.Status == http.StatusNotImplemented && how != (condition{lock: true}):
		return false, true, nil
	case errors.Is(err, store.ErrDenied):
		err = fmt.Errorf("could not test with the object %s whether the store keeps runs from overwriting each other: "+
			"%w", outside.Quoted(s.key+objects.ProofSuffix, 300), err)
	}
	return false, false, err
}

// hasRoom returns an error if the state's key is already a folder in the store: there are objects below the key, but
// no state. Such a store would refuse the state only after the resources have changed. To find out whether the store
// has folders, hasRoom writes an object below the proof object. If the store refuses, hasRoom removes the proof
// object, so that the next run tests this again.
func (s *state) hasRoom(ctx context.Context) error {
	below, err := s.list(ctx, s.key+"/")
	if errors.Is(err, store.ErrDenied) || err == nil && len(below) == 0 {
		return nil
	}
	if err == nil {
		var data []byte
		if data, _, err = s.Read(ctx); err == nil && data != nil {
			return nil
		}
	}
	if err != nil {
		return err
	}
	probe := s.key + objects.ProofSuffix + "/-"
	_, err = s.put(ctx, probe, []byte(objects.ProofText), condition{lock: true})
	if answer, ok := errors.AsType[*object.Answer](err); ok && answer.IsInTheWay() {
		_ = s.removeOnce(ctx, s.key+objects.ProofSuffix, "") // if this is not permitted, the next run does not repeat the test
		return &folderError{below[0]}
	}
	if err == nil {
		_ = s.removeOnce(ctx, probe, "") // if this is not permitted, the object stays, but does no harm
	}
	return nil // there are no folders, or the test failed
}

// folderError is the error for a state whose key is a folder in the store.
type folderError struct{ below string } // an object below the key

func (e *folderError) Error() string {
	return fmt.Sprintf("the key of the state conflicts with the object %s: on this store, an object and a folder cannot have the same name; "+
		"choose another key", outside.Quoted(e.below, 300))
}
