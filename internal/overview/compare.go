package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// Change is how an output, an instance or a check differs between two states.
type Change string

// The changes.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Moved   Change = "moved" // an instance has another address, and may have changed as well
	Changed Change = "changed"
)

// Diff holds the differences between two states. It has no values, but refers to the states, from which a printer can
// get the values that are not sensitive.
type Diff struct {
	Old, New *State

	Outputs   []OutputChange
	Resources []ResourceChange
	Checks    []CheckChange

	before, after *attributeReader
}

// OutputChange is a difference in an output. Parts are the parts that changed: "value", "type" or "sensitive".
type OutputChange struct {
	Change
	Name  string
	Parts []string

	old, now Output
}

// ResourceChange is a difference in an instance. Old is nil for an instance that was added, and New for one that was
// removed.
type ResourceChange struct {
	Change
	Old, New   *Resource
	Attributes []string // names of the attributes that changed
	Metadata   []string // names of other members of the instance in the state that changed, such as "status"

	old, now []attribute // the attributes that changed; one that is absent has no value
}

// CheckChange is another result of the checks of an object. A status is empty if there is no result.
type CheckChange struct {
	Change
	Address, Old, New string
}

// IsEmpty reports whether the two states have the same content, whatever their serials.
func (d *Diff) IsEmpty() bool {
	return len(d.Outputs)+len(d.Resources)+len(d.Checks) == 0 && d.Old.Serial == d.New.Serial && !d.hasOtherHead()
}

// HasOnlySerialAndChecks reports whether nothing but the serial and the results of checks differs.
func (d *Diff) HasOnlySerialAndChecks() bool {
	return len(d.Outputs)+len(d.Resources) == 0 && !d.hasOtherHead() && !d.IsEmpty()
}

func (d *Diff) hasOtherHead() bool {
	return d.Old.Version != d.New.Version || d.Old.TerraformVersion != d.New.TerraformVersion || d.Old.Lineage != d.New.Lineage
}

// Compare returns the differences between two states. Its errors quote no values.
func Compare(old, now *State) (*Diff, error) {
	d := &Diff{Old: old, New: now, before: newAttributeReader(), after: newAttributeReader()}
	d.compareOutputs()
	d.compareChecks()
	return d, d.compareResources()
}

// pairs calls visit with the elements of two sorted lists, in their order. Two elements that are equal by order are one
// pair; for another one, the other side is nil.
func pairs[E any](old, now []E, order func(a, b E) int, visit func(old, now *E)) {
	for len(old) > 0 || len(now) > 0 {
		side := 0
		switch {
		case len(old) == 0:
			side = 1
		case len(now) == 0:
			side = -1
		default:
			side = order(old[0], now[0])
		}
		var a, b *E
		if side <= 0 {
			a, old = &old[0], old[1:]
		}
		if side >= 0 {
			b, now = &now[0], now[1:]
		}
		visit(a, b)
	}
}

func (d *Diff) compareOutputs() {
	byName := func(a, b Output) int { return strings.Compare(a.Name, b.Name) }
	pairs(d.Old.Outputs, d.New.Outputs, byName, func(old, now *Output) {
		switch {
		case old == nil:
			d.Outputs = append(d.Outputs, OutputChange{Change: Added, Name: now.Name, now: *now})
			return
		case now == nil:
			d.Outputs = append(d.Outputs, OutputChange{Change: Removed, Name: old.Name, old: *old})
			return
		}
		var parts []string
		if !equal(old.value, now.value) {
			parts = append(parts, "value")
		}
		if !equal(old.typ, now.typ) {
			parts = append(parts, "type")
		}
		if old.Sensitive != now.Sensitive {
			parts = append(parts, "sensitive")
		}
		if len(parts) > 0 {
			d.Outputs = append(d.Outputs, OutputChange{Changed, now.Name, parts, *old, *now})
		}
	})
}

// compareChecks compares the results of the checks of objects and of their instances.
func (d *Diff) compareChecks() {
	all := func(s *State) (results []CheckInstance) {
		for _, c := range s.Checks {
			results = append(results, CheckInstance{c.Address, c.Status})
			for _, one := range c.Instances {
				if one.Address != c.Address {
					results = append(results, one)
				}
			}
		}
		slices.SortStableFunc(results, byAddress)
		return results
	}
	pairs(all(d.Old), all(d.New), byAddress, func(old, now *CheckInstance) {
		switch {
		case old == nil:
			d.Checks = append(d.Checks, CheckChange{Added, now.Address, "", now.Status})
		case now == nil:
			d.Checks = append(d.Checks, CheckChange{Removed, old.Address, old.Status, ""})
		case old.Status != now.Status:
			d.Checks = append(d.Checks, CheckChange{Changed, now.Address, old.Status, now.Status})
		}
	})
}

func byAddress(a, b CheckInstance) int { return strings.Compare(a.Address, b.Address) }

func (d *Diff) compareResources() error {
	var removed, added []*Resource
	var failed error
	pairs(d.Old.Resources, d.New.Resources, order, func(old, now **Resource) {
		switch {
		case old == nil:
			added = append(added, *now)
		case now == nil:
			removed = append(removed, *old)
		default:
			c, err := d.compared(Changed, *old, *now)
			failed = cmp.Or(failed, err)
			if len(c.Attributes)+len(c.Metadata) > 0 {
				d.Resources = append(d.Resources, c)
			}
		}
	})
	if failed != nil {
		return failed
	}
	moves, err := d.moves(removed, added)
	if err != nil {
		return err
	}
	from := map[*Resource]*Resource{} // where a moved instance was
	for old, now := range moves {
		c, err := d.compared(Moved, old, now)
		if err != nil {
			return err
		}
		from[now] = old
		d.Resources = append(d.Resources, c)
	}
	for _, old := range removed {
		if moves[old] == nil {
			d.Resources = append(d.Resources, ResourceChange{Change: Removed, Old: old})
		}
	}
	for _, now := range added {
		if from[now] == nil {
			d.Resources = append(d.Resources, ResourceChange{Change: Added, New: now})
		}
	}
	slices.SortFunc(d.Resources, func(a, b ResourceChange) int { return order(cmp.Or(a.New, a.Old), cmp.Or(b.New, b.Old)) })
	return nil
}

// object identifies a real object, such as a machine, in one state.
type object struct {
	mode, typ, provider, id string
}

// moves returns the new instance by the old one, for objects that are in both states, at different addresses. An object
// has the same identity in both or, if it has none, the same id. It must be at one address in each state: ids such as
// "none" identify nothing.
func (d *Diff) moves(removed, added []*Resource) (map[*Resource]*Resource, error) {
	may := map[object]bool{} // which types are in both lists; the objects have no id here
	for _, r := range removed {
		may[r.object("")] = true
	}
	both := map[object]bool{}
	for _, r := range added {
		both[r.object("")] = may[r.object("")]
	}
	at := func(all []*Resource) (map[object][]*Resource, error) {
		found := map[object][]*Resource{}
		for _, r := range all {
			if !both[r.object("")] || r.Deposed != "" {
				continue
			}
			ids, err := d.ids(r)
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				o := r.object(id)
				found[o] = append(found[o], r)
			}
		}
		return found, nil
	}
	before, err := at(d.Old.Resources)
	if err != nil {
		return nil, err
	}
	after, err := at(d.New.Resources)
	if err != nil {
		return nil, err
	}
	isGone, isNew := map[*Resource]bool{}, map[*Resource]bool{}
	for _, r := range removed {
		isGone[r] = true
	}
	for _, r := range added {
		isNew[r] = true
	}
	moves, taken := map[*Resource]*Resource{}, map[*Resource]bool{}
	objects := slices.SortedFunc(maps.Keys(before), func(a, b object) int { return strings.Compare(a.id, b.id) }) // identities come first
	for _, o := range objects {
		old, now := before[o], after[o]
		if len(old) != 1 || len(now) != 1 || !isGone[old[0]] || !isNew[now[0]] || moves[old[0]] != nil || taken[now[0]] {
			continue
		}
		if strings.HasPrefix(o.id, "id ") && old[0].hasIdentity() && now[0].hasIdentity() { // which are not the same
			continue
		}
		moves[old[0]], taken[now[0]] = now[0], true
	}
	return moves, nil
}

func (r *Resource) object(id string) object { return object{r.Mode, r.Type, r.Provider(), id} }

func (r *Resource) hasIdentity() bool { return isObject(r.members()["identity"]) }

// ids returns texts that may identify the object of an instance: the digests of its identity and of its id.
func (d *Diff) ids(r *Resource) (ids []string, err error) {
	if identity := r.members()["identity"]; isObject(identity) {
		sum := digestOf(identity)
		ids = append(ids, "Identity "+string(sum[:])) // sorted before "id"
	}
	all, err := d.before.read(r)
	for _, a := range all {
		if a.name == "id" && len(a.value) > 0 && a.value[0] == '"' && string(a.value) != `""` {
			sum := digestOf(a.value)
			ids = append(ids, "id "+string(sum[:]))
		}
	}
	return ids, err
}

// members returns the members of the instance in the state, by their name in lowercase.
func (r *Resource) members() map[string][]byte {
	all := map[string][]byte{}
	_ = jsonwalk.Members(r.stored, func(name string, value []byte) (bool, error) { // it has been read without an error
		all[jsonwalk.Fold(name)] = value
		return true, nil
	})
	return all
}

// compared returns a change of an instance. It has no attributes and no metadata if nothing else changed.
func (d *Diff) compared(change Change, old, now *Resource) (ResourceChange, error) {
	c := ResourceChange{Change: change, Old: old, New: now}
	if old.provider.configuration != now.provider.configuration {
		c.Metadata = append(c.Metadata, "provider")
	}
	if slices.Equal(old.stored, now.stored) && old.isFlat == now.isFlat {
		return c, nil
	}
	before, after := old.members(), now.members()
	if old.hasTexts(before) != now.hasTexts(after) { // one has texts, and the other has values with types
		c.Metadata = append(c.Metadata, "attributes_flat")
		return c, nil
	}
	for _, name := range slices.Sorted(maps.Keys(merged(before, after))) {
		switch name {
		case "attributes", "attributes_flat", "index_key", "deposed", "provider":
			continue
		}
		if a, b := before[name], after[name]; !(isEmpty(a) && isEmpty(b)) && !equal(a, b) && !equalSets(a, b) {
			c.Metadata = append(c.Metadata, name)
		}
	}
	a, err := d.before.read(old)
	if err != nil {
		return c, err
	}
	b, err := d.after.read(now)
	if err != nil {
		return c, err
	}
	byName := func(a, b attribute) int { return strings.Compare(a.name, b.name) }
	pairs(a, b, byName, func(old, now *attribute) {
		one, other := cmp.Or(old, &attribute{}), cmp.Or(now, &attribute{})
		if !equal(one.value, other.value) {
			c.Attributes = append(c.Attributes, cmp.Or(one.name, other.name))
			c.old, c.now = append(c.old, *one), append(c.now, *other)
		}
	})
	return c, nil
}

// hasTexts reports whether the attributes of an instance with these members are texts in one flat map.
func (r *Resource) hasTexts(members map[string][]byte) bool {
	return r.isFlat || isObject(members["attributes_flat"])
}

func merged(a, b map[string][]byte) map[string][]byte {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// isEmpty reports whether Terraform may as well leave out a member with this value.
func isEmpty(raw []byte) bool {
	return slices.Contains([]string{"", "null", "false", "0", `""`, "[]", "{}"}, string(raw))
}

// equalSets reports whether two arrays have the same elements, in any order, as the paths of marks.
func equalSets(a, b []byte) bool {
	sorted := func(raw []byte) (all []string) {
		r := jsonwalk.NewReader(raw)
		if r.Kind() != '[' {
			return nil
		}
		_ = r.Array(func() error { // broken JSON equals nothing else
			part, err := r.Skip()
			sum := digestOf(part)
			all = append(all, string(sum[:]))
			return err
		})
		slices.Sort(all)
		return all
	}
	x, y := sorted(a), sorted(b)
	return x != nil && slices.Equal(x, y)
}
