// Package gcs keeps a state in a Google Cloud Storage bucket. It uses the same objects and the same lock as the gcs
// backends of Terraform and OpenTofu. Unlike them, it replaces only the generation that was read.
package gcs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	gcssource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// writeScope is the OAuth scope for reading and writing objects.
// https://developers.google.com/identity/protocols/oauth2/scopes#storage
const writeScope = "https://www.googleapis.com/auth/devstorage.read_write"

// Kind returns the gcs store.
func Kind() store.Kind { return KindOver(gcssource.Network{}) }

// KindOver returns the same kind as [Kind], but with another network.
func KindOver(n gcssource.Network) store.Kind {
	return store.Kind{
		Table: gcssource.Backend(), Named: "prefix", Older: "versions and deleted objects that the bucket keeps", Counts: true,
		Withhold: []string{"GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT",
			"GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_BACKEND_UNIVERSE_DOMAIN", "GOOGLE_ENCRYPTION_KEY"},
		Open: func(s store.Settings) (store.Store, error) { return open(s, n) },
	}
}

// stateSuffix is the suffix of every state object's name.
const stateSuffix = ".tfstate"

// partSize is the object size, in bytes, above which an upload is split into several requests. Both CLIs use the same
// size.
const partSize = 16 << 20

// bucket is a bucket that holds states.
type bucket struct {
	store.Settings
	server *gcssource.Server
	part   int // the size of one part, in bytes

	warn sync.Once // for the warning about an unencrypted connection

	mu     sync.Mutex
	proven bool // whether conditions and the bucket's retention rules were tested
}

func open(s store.Settings, n gcssource.Network) (store.Store, error) {
	server, err := gcssource.Connect(s.Values, writeScope, n)
	if err != nil {
		return nil, err
	}
	return &bucket{Settings: s, server: server, part: partSize}, nil
}

// Close does nothing, because a lock outlives its process.
func (*bucket) Close() error { return nil }

// Properties returns the properties of the bucket.
func (*bucket) Properties() store.Properties { return store.Properties{HasLocks: true} }

// State returns the state in the default workspace of a prefix. The name may also be an object name returned by List.
func (b *bucket) State(name string) (store.State, error) {
	object := name
	if name == b.String("prefix") || !strings.HasSuffix(name, stateSuffix) {
		object = gcssource.ObjectName(name, "")
	}
	base := strings.TrimSuffix(object, stateSuffix)
	if !gcssource.IsObjectName(object) || !gcssource.IsObjectName(base+objects.ProofSuffix) {
		return nil, b.Errorf("prefix", "the prefix is not a valid object name; use at most 1024 bytes of printable UTF-8")
	}
	s := &state{bucket: b, proof: base + objects.ProofSuffix}
	lock := base + objects.LockSuffix
	s.State = &objects.State{
		Requests: s, Name: object, Path: "gs://" + b.server.Bucket + "/" + lock, Limit: b.Limit,
		Locks: objects.Locks{{Slot: objects.Beside{LockRequests: s, Name: lock}, ByMark: true}},
	}
	return s, nil
}

// List returns the names of the state objects.
func (b *bucket) List(ctx context.Context, prefix string) ([]string, error) {
	names, err := b.list(ctx, prefix)
	if own := b.String("prefix"); slices.Contains(names, own) && strings.HasSuffix(own, stateSuffix) {
		err = fmt.Errorf("the prefix in the block, %q, is also the name of an object in the bucket; set another prefix", own)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, stateSuffix) }), err
}

// state is the state in one object.
type state struct {
	*bucket
	*objects.State
	proof string // the name of the proof object

	kept error // why the newest lock cannot be deleted, or nil
}

func (s *state) String() string {
	text := "gs://" + s.server.Bucket + "/" + s.Name
	if endpoint := s.server.Endpoint(); endpoint != "" {
		text += " at " + endpoint
	}
	return text
}

// Lock takes the lock. If the bucket does not allow the lock to be deleted, only the response to its creation shows
// that.
func (s *state) Lock(ctx context.Context, lock store.Lock) error {
	s.kept = nil
	err := s.State.Lock(ctx, lock)
	if err == nil && s.kept != nil {
		err = errors.Join(s.kept, s.Unlock(context.WithoutCancel(ctx), lock.ID))
	}
	return err
}

// IsStateOf reports whether a gcs backend with these arguments has this state in its default workspace. The error is
// always nil, because every gcs backend takes the same lock.
func (s *state) IsStateOf(kind string, arguments map[string]any) (same bool, err error) {
	text := func(name string) string { t, _ := arguments[name].(string); return t }
	// If their backend sets no endpoint, it uses the environment variables, as we do.
	endpoint, universe := text("storage_custom_endpoint"), text("universe_domain")
	if endpoint == "" {
		endpoint, _ = s.Environment().Get("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT")
	}
	if universe == "" {
		universe, _ = s.Environment().Get("GOOGLE_BACKEND_UNIVERSE_DOMAIN")
	}
	return kind == "gcs" && text("bucket") == s.server.Bucket && gcssource.ObjectName(text("prefix"), "") == s.Name &&
		s.server.IsAt(endpoint, universe), nil
}
