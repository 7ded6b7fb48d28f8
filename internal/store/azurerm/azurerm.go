// Package azurerm keeps a state in a blob of Azure Storage. It uses the same blob, the same lease as a lock, and the
// same description of the lock holder as the azurerm backends of Terraform and OpenTofu. Unlike them, it never
// overwrites an existing blob when it creates one, replaces only the state that was read, and does not rely on
// conditions that a server may ignore.
package azurerm

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	azuresource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// Kind returns the azurerm store.
func Kind() store.Kind { return KindOver(azuresource.Network{}) }

// KindOver returns the same kind as [Kind], but with another network.
func KindOver(n azuresource.Network) store.Kind {
	return store.Kind{
		Table: azuresource.Backend(), Named: "key", Older: "versions, snapshots and deleted blobs that the account keeps", Counts: true,
		Withhold: []string{"ARM_ACCESS_KEY", "ARM_SAS_TOKEN", "ARM_CUSTOMER_PROVIDED_KEY"},
		Open:     func(s store.Settings) (store.Store, error) { return open(s, n) },
	}
}

// container is a container that holds states.
type container struct {
	store.Settings
	server *azuresource.Server
	scope  *blob.CPKScopeInfo // nil if the block sets none
}

func open(s store.Settings, n azuresource.Network) (store.Store, error) {
	server, err := azuresource.Connect(s.Values, n, s.Limit, s.Patience, separate{}, leasing{})
	if err != nil {
		return nil, err
	}
	c := &container{Settings: s, server: server}
	if scope := s.String("encryption_scope"); scope != "" {
		c.scope = &blob.CPKScopeInfo{EncryptionScope: &scope}
	}
	return c, nil
}

// Close does nothing, because a lock outlives its process.
func (*container) Close() error { return nil }

// Properties returns the properties of the container.
func (*container) Properties() store.Properties { return store.Properties{HasLocks: true} }

// State returns the state in the blob called key.
func (c *container) State(key string) (store.State, error) {
	if err := cmp.Or(azuresource.CheckBlobName(key), azuresource.CheckBlobName(key+objects.ProofSuffix)); err != nil {
		return nil, c.Errorf("key", "%w", err)
	}
	s := &state{container: c, key: key}
	s.State = &objects.State{
		Requests: s, Name: key, Path: c.server.Container + "/" + key, Limit: c.Limit, Locks: objects.Locks{{Slot: s}},
	}
	return s, nil
}

// List returns the names of the blobs that may hold states.
func (c *container) List(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	err := c.list(ctx, prefix, "", func(page []listed) bool {
		for _, b := range page {
			names = append(names, b.name)
		}
		return true
	})
	return slices.DeleteFunc(names, objects.IsBeside), err
}

// state is the state in one blob. Its lock is a lease on that blob.
type state struct {
	*objects.State
	*container
	key string
	memory
}

func (s *state) String() string {
	text := fmt.Sprintf("blob %q in the container %s of the storage account %s", s.key, s.server.Container, s.server.Account)
	if endpoint := s.server.Endpoint(); endpoint != "" {
		text += " at " + endpoint
	}
	return text
}

// Ready returns an error if a policy prevents changes to the blob, or if the server ignores the conditions that locks
// and writes rely on.
func (s *state) Ready(ctx context.Context) error {
	if err := s.checkPolicies(ctx); err != nil {
		return err
	}
	return s.State.Ready(ctx)
}

// Get returns the state and its version. The version is a digest of the content, because the ETag of a blob changes
// whenever the lock is taken or released.
func (s *state) Get(ctx context.Context, name string, _ int64) (data []byte, version string, err error) {
	data, etag, err := s.download(ctx, name)
	if err != nil || len(data) == 0 {
		return nil, "", err
	}
	version = string(store.Digest(data))
	s.know(etag, version)
	return data, version, nil
}

// Put replaces the state if it is still the version that was read. An empty blob counts as no state.
func (s *state) Put(ctx context.Context, name string, data []byte, read string) (version string, err error) {
	for try := 0; ; try++ {
		b := s.takeLast()
		if b == nil {
			if b, err = s.head(ctx, name); err != nil {
				return "", err
			}
		}
		now, err := s.versionOf(ctx, name, b)
		if err == nil && now != read {
			err = store.ErrChanged
		}
		if err == nil && s.Bool("snapshot") && b.size > 0 {
			err = s.snapshot(ctx, name, b)
		}
		var etag string
		if err == nil {
			etag, err = s.put(ctx, name, data, b)
		}
		switch {
		case err == nil:
			if len(data) > 0 {
				version = string(store.Digest(data))
			}
			s.know(etag, version)
			return version, nil
		case !isOther(err) || try == objects.MaxTries:
			return "", err
		}
	}
}

// versionOf returns the version of the state in blob b. If the version is not known yet, versionOf downloads the blob.
func (s *state) versionOf(ctx context.Context, name string, b *found) (string, error) {
	if !b.there || b.size == 0 {
		return "", nil
	}
	if version, known := s.version(b.etag); known {
		return version, nil
	}
	_, version, err := s.Get(ctx, name, s.Limit)
	if _, known := s.version(b.etag); err == nil && !known {
		err = otherError{store.ErrChanged} // the blob has changed since b was found
	}
	return version, err
}

// Delete empties the blob if it still has this version. Deleting the blob would also delete its lease, and with it the
// lock. Both CLIs treat an empty blob as no state.
func (s *state) Delete(ctx context.Context, name, version string) error {
	_, err := s.Put(ctx, name, nil, version)
	return err
}

// IsStateOf reports whether an azurerm backend with these arguments uses this state. The error is always nil, because
// that backend takes the same lock.
func (s *state) IsStateOf(kind string, arguments map[string]any) (same bool, err error) {
	text := func(name string, variables ...string) string {
		if t, _ := arguments[name].(string); t != "" {
			return t
		}
		t, _ := s.Environment().Get(variables...) // their backend reads the same variables
		return t
	}
	cloud := func(name string) string { return cmp.Or(name, "public") }
	isTheirs := s.server.Endpoint() == "" || s.server.IsAzure() // their backend reaches no other server
	return isTheirs && kind == "azurerm" && text("storage_account_name") == s.server.Account && text("container_name") == s.server.Container &&
		text("key") == s.key && cloud(text("environment", "ARM_ENVIRONMENT")) == cloud(s.Settings.String("environment")) &&
		text("metadata_host", "ARM_METADATA_HOST") == s.Settings.String("metadata_host"), nil
}

var _ store.Shared = (*state)(nil)
