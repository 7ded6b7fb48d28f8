package lighttest

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// Counting returns [Registry] with a pbkdf2 that counts the keys it is asked to derive.
func Counting() (encryption.Registry, *atomic.Int64) {
	registry, derived := Registry(), &atomic.Int64{}
	build := registry.KeyProviders[0].Build
	registry.KeyProviders[0].Build = func(v attr.Values) (driver.KeyProvider, error) {
		built, err := build(v)
		if err != nil {
			return nil, err
		}
		all, ok := built.(quick)
		if !ok {
			return nil, errors.New("the first key provider is another")
		}
		return counted{all, derived}, nil
	}
	return registry, derived
}

type counted struct {
	quick
	derived *atomic.Int64
}

func (c counted) Key(ctx context.Context, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
	if stored != nil {
		c.derived.Add(1)
	}
	return c.quick.Key(ctx, keys, stored)
}
