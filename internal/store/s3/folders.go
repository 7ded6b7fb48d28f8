package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

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
		return fmt.Errorf("the object %s is below the key of the state, but on this store, a key cannot be both an object and a folder; "+
			"choose another key", outside.Quoted(below[0], 300))
	}
	if err == nil {
		_ = s.removeOnce(ctx, probe, "") // if this is not permitted, the object stays, but does no harm
	}
	return nil // there are no folders, or the test failed
}
