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
	of      string // the digest of the kind of the store, and of the whole address of the state
	text    string // both as people may see them, which was the name in earlier versions
	isWhole bool   // the text has the whole address, so it identifies the state
	reverts bool   // an older state, or another one, is nobody's mistake
	accepts bool   // the user has looked

	changes bool // the run may leave a state that it cannot write, also if wrap is killed

	mu   sync.Mutex
	last *label          // the label that this run has remembered last
	from []store.Version // by their digests: the states that this run has gone on from, or has sent; nil if none was read
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

// NewMemory is the memory of a run, which the user has accept a state, or which may leave one.
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

// locked calls do under a lock of the folder, so that no other process changes its files between a read and
// a write. In a new clone, there is no folder, and at is nil.
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
	lock, err := files.LockOwn(at)
	if err != nil {
		return err
	}
	defer lock.Close() // if there is one
	return do(at)
}

// load reads a file of ours. After an error, there is nothing in it.
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
	if json.Unmarshal(text, &found) != nil || found == nil { // as null is
		return none, errors.New("it is damaged")
	}
	return found, nil
}

// save writes one. A folder that cannot be written has no memory, as one that was just cloned.
func save[T any](ctx context.Context, at *os.Root, name string, all map[string]T) error {
	text, err := json.Marshal(all)
	if err == nil {
		err = replace.In(ctx, at, name, append(text, '\n'))
	}
	return err
}

// find returns the label that was seen, nil if there is none. If an earlier version has seen a higher serial since,
// under the name that it has, that counts.
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

// isAfter reports whether the serial is higher than the serial of other.
func (l label) isAfter(other label) bool {
	return l.Serial != nil && (other.Serial == nil || *l.Serial > *other.Serial)
}

// accept refuses a state that is older than the one that was seen, another one, and that
// there is none, which is nil.
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
		return fmt.Errorf("there is none, and an earlier run here has seen one, of the lineage %s%s", outside.Quoted(was.Lineage, 100), look)
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

// Remember records the label of a state that was read, nil for none.
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

// mayFollow reports whether a state is remembered in place of another one. The state that a slower run
// has seen does not count as newer than the one that a faster run has left, unless nobody has gone on since
// this run, or the user has looked.
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

// GoOn records the digest of the state that the run starts from.
func (m *Memory) GoOn(ctx context.Context, state store.Version) {
	m.mu.Lock()
	m.from = []store.Version{state}
	m.mu.Unlock()
	m.note(ctx)
}

// Sends records the state that the run is about to write, which the store may have in spite of an error.
func (m *Memory) Sends(ctx context.Context, state []byte) {
	m.mu.Lock()
	m.from = append(m.from, DigestOf(state))
	m.mu.Unlock()
	m.note(ctx)
}

// note keeps a list of the states that may be replaced by the one which this run leaves if wrap is killed.
func (m *Memory) note(ctx context.Context) {
	if !m.changes {
		return
	}
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		all[m.of] = m.from
		return true
	})
}

// End forgets the run, of which everything is where it belongs, or was left. A run that has read no state, such as one
// that a lock has kept out, leaves the notes of the run that has the lock.
func (m *Memory) End(ctx context.Context) {
	if m.changes && m.from != nil {
		m.rebase(ctx, func(all map[string][]store.Version) bool { return forget(all, m.of) })
	}
}

// Leave records, beside a leftover file, the states that it may replace: the ones that this run started
// from.
func (m *Memory) Leave(ctx context.Context, file []byte) {
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		if m.from == nil {
			return false
		}
		all[m.entry(file)] = m.from
		return true
	})
}

// base returns the versions that the state in a file may replace, and nil if they are unknown. For a file that no
// run recorded, it returns the versions of the last run in this folder, if wrap was killed.
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

// knowsOthers reports whether a run in this folder has begun with, or has left, a state of another place.
func (m *Memory) knowsOthers() bool {
	for entry := range m.bases() {
		if entry != m.of && !strings.HasPrefix(entry, m.of+" ") && !strings.HasPrefix(entry, m.text+" ") {
			return true
		}
	}
	return false
}

// moves notes that the state of a file is in another one now.
func (m *Memory) moves(ctx context.Context, from, to []byte) {
	base := m.base(from, false)
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		if base != nil {
			all[m.entry(to)] = base
		}
		return forget(all, m.entry(from), m.earlierEntry(from), m.of) || base != nil
	})
}

// written forgets a file whose state is where it belongs.
func (m *Memory) written(ctx context.Context, file []byte, named bool) {
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		entries := []string{m.entry(file), m.earlierEntry(file)}
		if !named {
			entries = append(entries, m.of)
		}
		return forget(all, entries...)
	})
}

// forget removes entries, and reports whether there were any.
func forget(all map[string][]store.Version, entries ...string) bool {
	before := len(all)
	for _, entry := range entries {
		delete(all, entry)
	}
	return len(all) < before
}

// bases returns the file of replaceable states, by their entries. A file that cannot be read is empty.
func (m *Memory) bases() (all map[string][]store.Version) {
	_ = m.locked(func(at *os.Root) (err error) {
		all, err = load[[]store.Version](at, baseName)
		return err
	})
	return all
}

// rebase writes the file of [Memory.bases], if change says that it has changed something.
func (m *Memory) rebase(ctx context.Context, change func(all map[string][]store.Version) bool) {
	_ = m.locked(func(at *os.Root) error {
		all, _ := load[[]store.Version](at, baseName)
		if !change(all) || at == nil {
			return nil
		}
		return save(context.WithoutCancel(ctx), at, baseName, all)
	})
}

// entry is a file with a state of this place: with other settings, the folder has others.
func (m *Memory) entry(file []byte) string { return m.of + " " + string(DigestOf(file)) }

// earlierEntry is how earlier versions called it. The digest tells it from others.
func (m *Memory) earlierEntry(file []byte) string { return m.text + " " + string(DigestOf(file)) }

// DigestOf is which bytes there are, "" for none.
func DigestOf(state []byte) store.Version {
	if state == nil {
		return ""
	}
	return store.Digest(state)
}
