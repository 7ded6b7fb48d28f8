package states

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

// Memory records the last lineage and serial of a state that wrap has seen: a person who can write to the
// store can put back an old state, or another state with the same key, and both open. The recorded
// values act as pins that users need not set.
type Memory struct {
	at      files.Directory
	of      string // the digest of the kind of the store and of the full address of the state
	text    string // the kind and the address for messages; earlier versions used this as the name of the state
	isWhole bool   // whether text has the full address, so that it identifies the state
	reverts bool   // whether an older or another state is normal, because git tracks the file
	accepts bool   // whether the user accepts the state that the backend has

	changes bool // whether the run may leave a state that it cannot write, even if wrap is killed

	mu   sync.Mutex
	last *label          // the label that this run recorded last
	from []store.Version // digests of the states that this run has started from or sent; nil if it has read none
}

// label is the lineage and the serial in a state.
type label struct {
	Lineage string `json:"lineage"`
	Serial  *int64 `json:"serial"`
}

const (
	memoryName = "seen.json"
	baseName   = "base.json"
)

// NewMemory returns the memory of a run. If accepts is true, the user accepts the state that the backend has; if
// changes is true, the run may leave a state that it cannot write.
func NewMemory(ctx context.Context, at files.Directory, b *Backend, accepts, changes bool) *Memory {
	text := b.kind.Name + " " + b.String()
	whole := text
	if a, ok := store.As[store.Addressed](b.State); ok {
		whole = b.kind.Name + " " + a.Address()
	}
	local, isLocal := store.As[store.Local](b.State)
	return &Memory{
		at: at, of: string(store.Digest([]byte(whole))), text: text, isWhole: whole == text,
		reverts: isLocal && local.Reverts(ctx), accepts: accepts, changes: changes,
	}
}

// locked calls do while it holds a lock of wrap's folder, so that no other process changes the files there between a
// read and a write. If there is no folder, as in a new clone, at is nil.
func (m *Memory) locked(do func(at *os.Root) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.Path == "" {
		return do(nil)
	}
	at, err := m.at.Open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return do(nil)
	}
	if err != nil {
		return err
	}
	defer at.Close()
	lock, err := files.LockOwn(context.Background(), at)
	if err != nil {
		return err
	}
	defer lock.Close() // nil has nothing to close
	return do(at)
}

// load reads a JSON object from a file in wrap's folder. The map is empty if there is no file, and after an error.
func load[T any](at *os.Root, name string) (map[string]T, error) {
	none := map[string]T{}
	if at == nil {
		return none, nil
	}
	text, err := files.ReadOwn(at, name)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	var found map[string]T
	if json.Unmarshal(text, &found) != nil || found == nil { // null leaves a nil map
		return none, errors.New("it is damaged")
	}
	return found, nil
}

// save writes all to a file in wrap's folder. Callers ignore its error: without a writable folder, a run remembers
// nothing, as in a new clone.
func save[T any](ctx context.Context, at *os.Root, name string, all map[string]T) error {
	text, err := json.Marshal(all)
	if err == nil {
		err = replace.In(ctx, at, name, append(text, '\n'))
	}
	return err
}

// find returns the label that was recorded for the state, and nil for none. An entry under the name that earlier
// versions used counts if there is no other, or if it has the same lineage and a higher serial.
func (m *Memory) find(seen map[string]label) *label {
	was, ok := seen[m.of]
	renamed, isRenamed := seen[m.text]
	isRenamed = isRenamed && m.isWhole
	switch {
	case isRenamed && (!ok || renamed.Lineage == was.Lineage && renamed.isAfter(was)):
		return &renamed
	case ok:
		return &was
	}
	return nil
}

// isAfter reports whether the serial of l is higher than the serial of other.
func (l label) isAfter(other label) bool {
	return l.Serial != nil && (other.Serial == nil || *l.Serial > *other.Serial)
}

// accept returns an error if the state is older than the recorded one, has another lineage or no serial, or is
// missing (nil), and also if the record cannot be read.
func (m *Memory) accept(state *label) error {
	var was *label
	err := m.locked(func(at *os.Root) error {
		seen, err := load[label](at, memoryName)
		was = m.find(seen)
		return err
	})
	const look = "; restore the newest one, or, once you have checked it, accept the state that is there with statecrypt wrap -accept"
	_, isForeign := errors.AsType[*files.ForeignError](err)
	switch {
	case m.accepts && !isForeign || m.reverts && state != nil:
		return nil
	case isForeign:
		return fmt.Errorf("the note of the state that an earlier run here has seen cannot be read: %w", err)
	case err != nil:
		return fmt.Errorf("the note of the state that an earlier run here has seen cannot be read from %s: %w; once you have checked "+
			"the state, accept it with statecrypt wrap -accept", outside.Quoted(m.at.File(memoryName), 300), keyfile.Reason(err))
	case was == nil:
		return nil
	case state == nil:
		return fmt.Errorf("it does not exist, and an earlier run here has seen one, of the lineage %s%s", outside.Quoted(was.Lineage, 100), look)
	case state.Lineage != was.Lineage:
		return fmt.Errorf("its lineage is %s, and an earlier run here has seen the lineage %s: it is another state%s",
			outside.Quoted(state.Lineage, 100), outside.Quoted(was.Lineage, 100), look)
	case was.Serial != nil && state.Serial == nil:
		return errors.New("it has no serial, and the one that an earlier run here has seen has one" + look)
	case was.Serial != nil && *state.Serial < *was.Serial:
		return fmt.Errorf("its serial is %d, and an earlier run here has seen %d: it is an old copy%s", *state.Serial, *was.Serial, look)
	}
	return nil
}

// Remember records the label of the state that the backend has, nil for none, if [Memory.mayFollow] allows it.
func (m *Memory) Remember(ctx context.Context, state *label) {
	_ = m.locked(func(at *os.Root) error {
		seen, err := load[label](at, memoryName)
		was := m.find(seen)
		if at == nil || err != nil && !m.accepts || !m.mayFollow(was, state) {
			return err
		}
		m.last = state
		_, isNamed := seen[m.of]
		if isNamed != (state != nil) || !reflect.DeepEqual(was, state) {
			delete(seen, m.of)
			if m.isWhole {
				delete(seen, m.text)
			}
			if state != nil {
				seen[m.of] = *state
			}
			return save(ctx, at, memoryName, seen)
		}
		return nil
	})
}

// mayFollow reports whether the label of state may replace the recorded label was. A slower run must not replace the
// label that a faster run has recorded with an older one, unless the record is still the one of the slower run, or
// the user accepts the state.
func (m *Memory) mayFollow(was, state *label) bool {
	switch {
	case was == nil, m.accepts, m.last != nil && reflect.DeepEqual(was, m.last):
		return true
	case state == nil:
		return false
	case state.Lineage != was.Lineage:
		return m.reverts
	case was.Serial == nil:
		return true
	}
	return state.Serial != nil && *state.Serial >= *was.Serial
}

// GoOn records the version of the state that the run starts from.
func (m *Memory) GoOn(ctx context.Context, state store.Version) {
	m.mu.Lock()
	m.from = []store.Version{state}
	m.mu.Unlock()
	m.note(ctx)
}

// Sends records the state that the run is about to write, because the store may have it even if the write fails.
func (m *Memory) Sends(ctx context.Context, state []byte) {
	m.mu.Lock()
	m.from = append(m.from, DigestOf(state))
	m.mu.Unlock()
	m.note(ctx)
}

// note writes down the versions that a leftover of this run may replace, in case wrap is killed.
func (m *Memory) note(ctx context.Context) {
	if !m.changes {
		return
	}
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		all[m.of] = m.from
		return true
	})
}

// End removes the note of this run, when its states are in the backend or in recorded leftovers. A run that has read
// no state, for example because another run had the lock, keeps the note of that other run.
func (m *Memory) End(ctx context.Context) {
	if m.changes && m.from != nil {
		m.rebase(ctx, func(all map[string][]store.Version) bool { return forget(all, m.of) })
	}
}

// Leave records the versions that a leftover file may replace: the states that this run started from or sent.
func (m *Memory) Leave(ctx context.Context, file []byte) {
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		if m.from == nil {
			return false
		}
		all[m.entry(file)] = m.from
		return true
	})
}

// base returns the versions that the state in a file may replace, and nil if they are unknown. For a file that no run
// has recorded and the user has not named, it returns the note of the last run in this folder, which remains if wrap
// was killed.
func (m *Memory) base(file []byte, named bool) []store.Version {
	all := m.bases()
	for _, entry := range []string{m.entry(file), m.earlierEntry(file)} {
		if known, ok := all[entry]; ok {
			return known
		}
	}
	if named {
		return nil
	}
	return all[m.of]
}

// knowsOthers reports whether a run in this folder has started from, or has left, a state at another address.
func (m *Memory) knowsOthers() bool {
	for entry := range m.bases() {
		if entry != m.of && !strings.HasPrefix(entry, m.of+" ") && !strings.HasPrefix(entry, m.text+" ") {
			return true
		}
	}
	return false
}

// moves records that the state of the file from is in the file to.
func (m *Memory) moves(ctx context.Context, from, to []byte) {
	base := m.base(from, false)
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		if base != nil {
			all[m.entry(to)] = base
		}
		return forget(all, m.entry(from), m.earlierEntry(from), m.of) || base != nil
	})
}

// written removes the entries of a file whose state is in the backend.
func (m *Memory) written(ctx context.Context, file []byte, named bool) {
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		entries := []string{m.entry(file), m.earlierEntry(file)}
		if !named {
			entries = append(entries, m.of)
		}
		return forget(all, entries...)
	})
}

// forget removes entries, and reports whether any existed.
func forget(all map[string][]store.Version, entries ...string) bool {
	before := len(all)
	for _, entry := range entries {
		delete(all, entry)
	}
	return len(all) < before
}

// bases returns the replaceable versions of each file, by entry. If they cannot be read, the map is empty.
func (m *Memory) bases() (all map[string][]store.Version) {
	_ = m.locked(func(at *os.Root) (err error) {
		all, err = load[[]store.Version](at, baseName)
		return err
	})
	return all
}

// rebase changes the result of [Memory.bases], and writes it if change returns true.
func (m *Memory) rebase(ctx context.Context, change func(all map[string][]store.Version) bool) {
	_ = m.locked(func(at *os.Root) error {
		all, _ := load[[]store.Version](at, baseName)
		if !change(all) || at == nil {
			return nil
		}
		return save(context.WithoutCancel(ctx), at, baseName, all)
	})
}

// entry returns the name of the entry for a file. It contains the address of the state, because with other settings,
// the folder may have leftovers of other states.
func (m *Memory) entry(file []byte) string { return m.of + " " + string(DigestOf(file)) }

// earlierEntry returns the name that earlier versions used for the entry of a file.
func (m *Memory) earlierEntry(file []byte) string { return m.text + " " + string(DigestOf(file)) }

// DigestOf returns the digest of a state, and "" for nil.
func DigestOf(state []byte) store.Version {
	if state == nil {
		return ""
	}
	return store.Digest(state)
}
