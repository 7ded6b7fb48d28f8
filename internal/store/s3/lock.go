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

// requests sends the requests for a state and its lock. It implements [objects.Requests] and [objects.LockRequests].
type requests struct{ *state }

func (r requests) Get(ctx context.Context, key string, limit int64) (data []byte, etag string, err error) {
	c, err := r.get(ctx, key, limit)
	if err != nil || c == nil {
		return nil, "", err
	}
	return c.Data, c.ETag, nil
}

// Create creates a lock object. If it is unproven that the store obeys conditions, another run may have replaced the
// lock at once, so Create reads it back.
func (r requests) Create(ctx context.Context, key string, lock []byte) (etag string, err error) {
	etag, err = r.put(ctx, key, lock, condition{none: true, lock: true})
	if err == nil && r.unproven {
		var there []byte
		if there, etag, err = r.Get(ctx, key, source.MaxLock); err == nil && !bytes.Equal(there, lock) {
			err = store.ErrLost
		}
	}
	answer, _ := errors.AsType[*object.Answer](err)
	if answer != nil && (answer.Status == http.StatusPreconditionFailed || isConflict(answer)) {
		err = objects.TakenError{Err: fmt.Errorf("the store refuses the lock although nobody has it (%d), as some do in a bucket that keeps "+
			"versions once a lock was released; keep the state in a bucket without versions, or on another store", answer.Status)}
	}
	return etag, err
}

func (r requests) Put(ctx context.Context, key string, data []byte, read string) (string, error) {
	return r.replace(ctx, key, data, read)
}

func (r requests) Delete(ctx context.Context, key, etag string) error {
	return r.remove(ctx, key, etag)
}

func (r requests) IsOwn(ctx context.Context) (bool, error) {
	client, err := r.client(ctx)
	return err == nil && s3source.IsAWS(client), err
}

func (r requests) Prove(ctx context.Context) error { return r.prove(ctx) }
