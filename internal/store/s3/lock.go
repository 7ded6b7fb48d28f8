package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	s3source "github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// Create creates a lock object. If it is unproven that the store obeys conditions, another run may have replaced the
// lock at once, so Create reads it back.
func (s *state) Create(ctx context.Context, key string, lock []byte) (etag string, err error) {
	etag, err = s.put(ctx, key, lock, condition{none: true, lock: true})
	if err == nil && s.unproven {
		var there []byte
		if there, etag, err = s.Get(ctx, key, source.MaxLock); err == nil && !bytes.Equal(there, lock) {
			err = store.ErrLost
		}
	}
	answer, _ := errors.AsType[*object.Answer](err)
	if answer != nil && (answer.Status == http.StatusPreconditionFailed || isConflict(answer)) {
		err = objects.TakenError{Err: fmt.Errorf("the store refuses the lock although nobody holds it (%d), as some stores do after a "+
			"lock was released in a bucket that keeps versions; keep the state in a bucket without versions, or on another "+
			"store", answer.Status)}
	}
	return etag, err
}

// IsOwn reports whether requests go to AWS.
func (s *state) IsOwn(ctx context.Context) (bool, error) {
	client, err := s.client(ctx)
	return err == nil && s3source.IsAWS(client), err
}
