package tfstate

import (
	"cmp"
	"errors"
	"fmt"
	"iter"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
)

// Resources returns the instances of all resources and data sources, in the order of the file,
// except deposed instances; see [Resource.Address]. It decodes no attributes and keeps no resource,
// so it takes little memory for a state of any size.
//
// Like [State.Resource], it returns an error if a resource is invalid or the state is in format 1,
// 2 or 3. It returns [ErrCost] if the addresses are far longer than the file. A resource that the
// state has twice is returned twice, while [State.Resource] refuses it.
func (s *State) Resources() (iter.Seq[*Resource], error) {
	all := func(yield func(*Resource) bool) error {
		l := lister{budget: newBudget(len(s.list)), providers: map[string]string{}, yield: yield}
		return eachResource(s.list, l.resource)
	}
	err := s.hasResources()
	if err == nil {
		err = all(func(*Resource) bool { return true })
	}
	if err != nil {
		return nil, err
	}
	return func(yield func(*Resource) bool) {
		_ = all(yield) // the first pass found no error
	}, nil
}

// errEnough ends a walk when the caller wants no more resources.
var errEnough = errors.New("enough")

type lister struct {
	budget    *budget
	providers map[string]string // provider addresses by provider configuration address
	yield     func(*Resource) bool
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
		if !l.yield(found) {
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
