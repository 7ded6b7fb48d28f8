package tfstate

import (
	"cmp"
	"errors"
	"fmt"
	"iter"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
)

// Resources goes through the instances of all resources, those of data sources
// included, in the order of the file; see [Resource.Address]. Instances that wait to
// be destroyed are left out. It decodes no attributes and keeps no resource, so that
// it takes little memory for a state of any size; who has seen enough breaks off.
//
// An error, without a resource, is the last pair: as with [State.Resource], for states
// in formats 1 to 3, and [ErrCost] for addresses that are far longer than the file. What
// the state has twice comes twice, and is an error of [State.Resource] alone.
func (s *State) Resources() iter.Seq2[*Resource, error] {
	return func(yield func(*Resource, error) bool) {
		err := s.hasResources()
		if err == nil {
			l := lister{budget: newBudget(len(s.list)), providers: map[string]string{}, yield: yield}
			err = eachResource(s.list, l.resource)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// errEnough ends a walk that nobody follows any more.
var errEnough = errors.New("enough")

type lister struct {
	budget    *budget
	providers map[string]string // :: address of a configuration → address of its provider
	yield     func(*Resource, error) bool
}

func (l *lister) resource(r *storedResource) error {
	at := r.Resource()
	err := eachInstance(r.instances, func(one storedInstance) error {
		found := &Resource{Mode: r.Mode, Type: r.Type, SchemaVersion: &one.SchemaVersion, address: r.Address, instances: []storedInstance{one}}
		found.address.Key = one.key
		found.Provider = l.provider(cmp.Or(one.Provider, r.provider))
		if err := l.budget.Copies(len(at), "the addresses of its instances"); err != nil {
			return err
		}
		if !l.yield(found, nil) {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("resource %s: %w", show(at), err)
	}
	return nil
}

func (l *lister) provider(configuration string) string {
	provider, known := l.providers[configuration]
	if !known {
		provider = address.Provider(configuration)
		l.providers[configuration] = provider
	}
	return provider
}
