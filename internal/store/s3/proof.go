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

// inProof is what is in the object beside the lock. It stays: whoever is refused to put it there
// once more has the proof in one request, and no bucket fills up with its versions.
const inProof = "statecrypt has shown here that this store refuses to replace an object that must not be there. You may delete it.\n"

// noObject is what no store calls an object.
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
	refuses := func(how condition) (bool, error) {
		how.lock = true
		_, err := s.put(ctx, s.key+proofSuffix, []byte(inProof), how)
		answer, _ := errors.AsType[*object.Answer](err)
		switch {
		case isOtherwise(err, how):
			return true, nil
		case answer != nil && answer.Status == http.StatusNotImplemented:
			return false, nil
		case errors.Is(err, store.ErrDenied):
			err = fmt.Errorf("whether the store keeps one run from taking the lock of another is tried on the object %s, for which s3:PutObject is "+
				"required: %w", outside.Quoted(s.key+proofSuffix, 300), err)
		}
		return false, err
	}
	refused, err := refuses(condition{none: true})
	if err == nil && !refused { // it was not there
		refused, err = refuses(condition{none: true})
	}
	if err != nil {
		return err
	}
	if !refused && s.lockfile {
		return errors.New("the store replaces an object although the request says that there must be none (If-None-Match): two runs would " +
			`both have the lock, and each would give back that of the other. Keep the state elsewhere, or, if nobody else writes it, set ` +
			`locks = "unproven"`)
	}
	if refused {
		refused, err = refuses(condition{match: noObject})
	}
	if err != nil {
		return err
	}
	s.bucket.mu.Lock()
	s.proven = true
	s.bucket.mu.Unlock()
	if !refused {
		s.notice501(ctx)
	}
	return nil
}
