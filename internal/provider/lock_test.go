package provider

import (
	"context"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// lockable is a source of one state, or none, that someone may have locked.
type lockable struct {
	data string
	lock *source.Lock
}

func (l lockable) String() string { return "lockable" }

func (l lockable) Fetch(context.Context) (*source.Snapshot, error) {
	if l.data == "" {
		return nil, &source.MissingError{Detail: "nothing is here", Lock: l.lock}
	}
	return &source.Snapshot{Data: []byte(l.data), Lock: l.lock}, nil
}

func (l lockable) kinds() kinds {
	return kinds{registry: builtin.Registry(), sources: []source.Kind{{
		Table: attr.Table{Name: "lockable", Doc: "A source.", Attrs: []attr.Attr{{Name: "path", Type: cty.String, Doc: "A path."}}},
		Begin: func(source.Settings) source.Open {
			return func(source.Request) (source.Source, error) { return l, nil }
		},
	}}}
}

func TestLockAttribute(t *testing.T) {
	t.Parallel()
	lock := func(id, who, operation, created cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"id": id, "who": who, "operation": operation, "created": created})
	}
	unknown := cty.NullVal(cty.String)
	for name, tt := range map[string]struct {
		source lockable
		want   cty.Value
	}{
		"free": {lockable{plainState, nil}, cty.NullVal(lockType)},
		"locked": {lockable{plainState, &source.Lock{ID: "i", Who: "w", Operation: "o", Created: "c"}},
			lock(text1("i"), text1("w"), text1("o"), text1("c"))},
		"not told":    {lockable{plainState, &source.Lock{}}, lock(unknown, unknown, unknown, unknown)},
		"no state":    {lockable{"", nil}, cty.NullVal(lockType)},
		"first state": {lockable{"", &source.Lock{ID: "i"}}, lock(text1("i"), unknown, unknown, unknown)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tt.source.kinds()
			req, err := requestFor(t, c, map[string]cty.Value{
				"lockable": one(map[string]cty.Value{}), "method": text1("unencrypted"), "on_missing": text1("defaults"),
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := req.read(t.Context(), configureWith(t, c, nil, nil))
			if err != nil {
				t.Fatal(err)
			}
			if lock := got.attributes["lock"]; !lock.RawEquals(tt.want) {
				t.Errorf("got %#v, want %#v", lock, tt.want)
			}
			if typ := got.attributes["lock"].Type(); !typ.Equals(lockType) {
				t.Errorf("sent as %#v", typ)
			}
		})
	}
}
