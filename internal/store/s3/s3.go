// Package s3 keeps a state in a bucket of Amazon S3, or of a store that uses the same protocol. It uses the same
// objects, locks and, with a DynamoDB table, digests as the s3 backends of Terraform and OpenTofu. Unlike them, it
// replaces only the version that was read, and does not rely on conditions that a store may ignore.
package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	s3source "github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/digest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// Kind returns the s3 store.
func Kind() store.Kind { return KindOver(object.Network{}) }

// KindOver returns the same kind as [Kind], but with another network.
func KindOver(n object.Network) store.Kind {
	return store.Kind{
		Table: s3source.Backend(), Named: "key", Older: "versions that the bucket keeps", Counts: true,
		Withhold: []string{"AWS_SSE_CUSTOMER_KEY"},
		Open:     func(s store.Settings) (store.Store, error) { return open(s, n) },
	}
}

// bucket is a bucket that holds states.
type bucket struct {
	store.Settings
	server   *s3source.Server
	lockfile bool
	unproven bool // whether the user accepts locks that may not keep others out
	table    *table

	mu      sync.Mutex
	known   *awss3.Client
	proven  bool // whether the store is known to obey conditions, or needs no test
	match   form // the form of If-Match that the store accepts
	noneOff bool // whether the store does not support If-None-Match
}

// form is a way to make sure that an object has not changed since it was read.
type form int

const (
	untried form = iota // unknown: the ETag is sent in quotes, and a refusal is investigated
	quoted              // the ETag in quotes, as HTTP requires
	bare                // the ETag without quotes
	never               // no condition: the object is read first
)

func open(s store.Settings, n object.Network) (store.Store, error) {
	server, err := s3source.Connect(s.Values, n)
	if err != nil {
		return nil, err
	}
	b := &bucket{Settings: s, server: server, lockfile: s.Bool("use_lockfile") || !s.Has("use_lockfile") && s.String("dynamodb_table") == ""}
	switch {
	case !s.Bool("encrypt") && s.Has("kms_key_id"):
		return nil, s.Errorf("kms_key_id", "this argument has no effect without encrypt = true; set encrypt = true")
	case !s.Bool("encrypt") && s.Has("sse_customer_key"):
		return nil, s.Errorf("sse_customer_key", "this argument has no effect without encrypt = true; set encrypt = true")
	}
	b.unproven = s.String("locks") != ""
	if name := s.String("dynamodb_table"); name != "" {
		b.table = &table{bucket: b, name: name}
	}
	return b, nil
}

// Close does nothing, because locks outlive their process.
func (*bucket) Close() error { return nil }

// Properties returns the properties of the bucket, according to the block. States with a table are already wrapped by
// package careful.
func (b *bucket) Properties() store.Properties {
	return store.Properties{HasLocks: b.lockfile || b.table != nil, Verifies: b.table != nil}
}

// State returns the state in the object with this key.
func (b *bucket) State(key string) (store.State, error) {
	if err := cmp.Or(object.CheckKey(key), object.CheckKey(key+objects.ProofSuffix)); err != nil {
		return nil, b.Errorf("key", "%w", err)
	}
	s := &state{bucket: b, key: key}
	s.State = &objects.State{Requests: s, Name: key, Path: s.id(), Limit: b.Limit}
	if b.lockfile {
		s.Locks = append(s.Locks, &objects.Lock{Slot: objects.Beside{LockRequests: s, Name: key + objects.LockSuffix}})
	}
	if b.table == nil {
		return s, nil
	}
	s.Locks = append(s.Locks, &objects.Lock{Slot: lockItem{b.table, s.id()}})
	return &digest.State{
		State: careful.New(s, store.Properties{}), Item: digestItem{s}, Object: key, Table: b.table.name, Name: s.digestID(),
	}, nil
}

// List returns the keys of objects that are neither locks nor proof objects.
func (b *bucket) List(ctx context.Context, prefix string) ([]string, error) {
	keys, err := b.list(ctx, prefix)
	return slices.DeleteFunc(keys, objects.IsBeside), err
}

// client returns the S3 client. On first use, it connects and records properties of the store.
func (b *bucket) client(ctx context.Context) (*awss3.Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known != nil {
		return b.known, nil
	}
	client, err := b.server.Connect(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, source.Grant{Values: b.Values, Found: true}.Blame(errors.New(err.Error())) // the wrapped errors may quote server responses
	}
	warnings, err := b.server.CheckEncryption(client, b.server.Words)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		notice.Show(ctx, "warning: "+w.Text)
	}
	b.known = client
	isAWS := s3source.IsAWS(client)
	b.proven = b.unproven || isAWS
	if isAWS {
		b.match = quoted
	}
	return client, nil
}

// state is the state in one object.
type state struct {
	*bucket
	*objects.State
	key string
}

// id returns the bucket and the key of the state. Together, they name the state in locks.
func (s *state) id() string { return s.server.Bucket + "/" + s.key }

func (s *state) digestID() string { return s.id() + "-md5" }

func (s *state) String() string {
	text := fmt.Sprintf("object %q in the %s bucket %q", s.key, s.server.Words.Short, s.server.Bucket)
	if endpoint := s.server.Endpoint(); endpoint != "" {
		text += " at " + endpoint
	}
	return text
}

// Get returns an object and its ETag, which is "" if the object does not exist.
func (s *state) Get(ctx context.Context, key string, limit int64) (data []byte, etag string, err error) {
	client, err := s.client(ctx)
	if err != nil {
		return nil, "", err
	}
	c, err := object.Store{Client: client, Words: s.server.Words, Patience: s.Patience}.Get(ctx, s.object(key), limit)
	switch _, missing := source.IsMissing(err); {
	case missing:
		return nil, "", nil
	case err != nil:
		return nil, "", s.failed(ctx, key, err)
	}
	return c.Data, strong(c.ETag), nil
}

// Put writes an object if it is still the version that was read.
func (s *state) Put(ctx context.Context, key string, data []byte, read string) (string, error) {
	for try := 0; ; try++ {
		match, noneOff := s.conditions()
		how := condition{match: read, bare: match == bare, none: read == ""}
		if match == never {
			if err := s.Unchanged(ctx, store.Version(read)); err != nil {
				return "", err
			}
			how.match, how.none = "", how.none && !noneOff
		}
		etag, err := s.put(ctx, key, data, how)
		answer, _ := errors.AsType[*object.Answer](err)
		switch {
		case err == nil:
			return etag, nil
		case isOtherwise(err, how):
			if how.match == "" || match != untried {
				return "", store.ErrChanged
			}
			err := s.Unchanged(ctx, store.Version(read))
			if err == nil {
				err = s.proveMatch(ctx)
			}
			if err != nil {
				return "", err
			}
		case answer != nil && answer.Status == http.StatusNotImplemented && how.match != "":
			s.takes(ctx, never)
		case !isConflict(answer) || try == objects.MaxTries:
			return "", err
		default:
			if err := objects.Pause(ctx); err != nil {
				return "", err
			}
		}
	}
}

// takes records which form of If-Match the store accepts. If it accepts none, takes tells the user.
func (b *bucket) takes(ctx context.Context, match form) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if match == never && b.match != never {
		notice.Show(ctx, "the store has no conditional writes (If-Match), so the state is read and compared before it is replaced; "+
			"a simultaneous write without the lock is not prevented")
	}
	b.match = match
}

// conditions returns the form of If-Match, and whether If-None-Match is known not to work.
func (b *bucket) conditions() (match form, noneOff bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unproven {
		return never, b.noneOff
	}
	return b.match, b.noneOff
}

// isOtherwise reports whether err means that a condition is not met, because the object is missing or has changed.
func isOtherwise(err error, how condition) bool {
	answer, _ := errors.AsType[*object.Answer](err)
	_, missing := source.IsMissing(err)
	return missing && how.match != "" || answer != nil && answer.Status == http.StatusPreconditionFailed
}

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
		err = objects.TakenError{Err: fmt.Errorf("the store refuses the lock although nobody holds it (%d), perhaps because the bucket keeps "+
			"versions; keep the state in a bucket without versions, or on another store", answer.Status)}
	}
	return etag, err
}

// IsOwn reports whether requests go to AWS.
func (s *state) IsOwn(ctx context.Context) (bool, error) {
	client, err := s.client(ctx)
	return err == nil && s3source.IsAWS(client), err
}
