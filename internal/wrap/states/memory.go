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
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

// Memory records the lineage and serial of the last state that wrap saw, because an attacker who can write to the store
// can restore an old state, or put in another state encrypted with the same key. Both would decrypt without an error.
// The recorded values act like pins that users need not set.
type Memory struct {
	at      files.Directory
	of      string // the digest of the store kind and the full address of the state
	text    string // the store kind and the address, for messages; earlier versions used this text as the name of the state
	isWhole bool   // whether text contains the full address, and so identifies the state
	reverts bool   // whether an older or a different state is normal, because git tracks the file
	accepts bool   // whether the user accepts the state now in the backend

	changes bool // whether the run may leave a state that it cannot write, even if wrap is killed

	mu   sync.Mutex
	last *label          // the label that this run recorded last
	from []store.Version // digests of the states that this run started from or sent; nil if it has read none
}

// label holds the lineage and serial of a state.
type label struct {
	Lineage string `json:"lineage"`
	Serial  *int64 `json:"serial"`
}

const (
	memoryName = "seen.json"
	baseName   = "base.json"
)

// NewMemory returns the memory for a run. If accepts is true, the user accepts the state now in the backend. If changes
// is true, the run may leave a state that it cannot write.
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

// locked calls do while holding a lock on wrap's folder, so that no other process changes the files there between a
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
	defer lock.Close() // Close accepts a nil file
	return do(at)
}

// load reads a JSON object from a file in wrap's folder. If the file does not exist, or if there is an error, the map
// is empty.
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
	if json.Unmarshal(text, &found) != nil || found == nil { // null leaves the map nil
		return none, errors.New("it is damaged")
	}
	return found, nil
}

// save writes the map to a file in wrap's folder. Callers ignore errors: without a writable folder, a run remembers
// nothing, as in a new clone.
func save[T any](ctx context.Context, at *os.Root, name string, all map[string]T) error {
	text, err := json.Marshal(all)
	if err == nil {
		err = replace.In(ctx, at, name, append(text, '\n'))
	}
	return err
}

// find returns the label recorded for the state, or nil if there is none. An entry under the name used by earlier
// versions counts if there is no other entry, or if it has the same lineage and a higher serial.
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

// seen returns the label that earlier runs in this folder recorded last, or nil if there is none.
func (m *Memory) seen() (was *label) {
	_ = m.locked(func(at *os.Root) error {
		all, err := load[label](at, memoryName)
		was = m.find(all)
		return err
	})
	return was
}

// isAfter reports whether the serial of l is higher than the serial of other.
func (l label) isAfter(other label) bool {
	return l.Serial != nil && (other.Serial == nil || *l.Serial > *other.Serial)
}

// accept returns an error if the state is older than the recorded one, has another lineage, has no serial, or is
// missing (nil). It also returns an error if it cannot read the record.
func (m *Memory) accept(state *label) error {
	var was *label
	err := m.locked(func(at *os.Root) error {
		seen, err := load[label](at, memoryName)
		was = m.find(seen)
		return err
	})
	const look = "; to restore the newest state, run statecrypt history -config " + fault.Config + ", then statecrypt restore -config " +
		fault.Config + " -replace VERSION. If this change was intended, accept it with statecrypt wrap -accept"
	_, isForeign := errors.AsType[*files.ForeignError](err)
	switch {
	case m.accepts && !isForeign || m.reverts && state != nil:
		return nil
	case isForeign:
		return fmt.Errorf("the record of the last state cannot be read: %w", err)
	case err != nil:
		return fmt.Errorf("the record of the last state, %s, cannot be read: %w; check "+
			"the state in the backend, then accept it with statecrypt wrap -accept", outside.Quoted(m.at.File(memoryName), 300), keyfile.Reason(err))
	case was == nil:
		return nil
	case state == nil:
		_, place, _ := strings.Cut(m.text, " ")
		return fmt.Errorf("there is no state at %s, but an earlier run in this folder read a state with lineage %s%s",
			outside.Line(place, 300), outside.Quoted(was.Lineage, 100), look)
	case state.Lineage != was.Lineage:
		return fmt.Errorf("its lineage is %s, but an earlier run in this folder read lineage %s, so it is another state%s",
			outside.Quoted(state.Lineage, 100), outside.Quoted(was.Lineage, 100), look)
	case was.Serial != nil && state.Serial == nil:
		return errors.New("it has no serial, but an earlier run in this folder read a state with a serial" + look)
	case was.Serial != nil && *state.Serial < *was.Serial:
		return fmt.Errorf("its serial is %d, but an earlier run in this folder read serial %d, so it is an old copy%s",
			*state.Serial, *was.Serial, look)
	}
	return nil
}

// Remember records the label of the state in the backend, or nil if there is no state, provided that [Memory.mayFollow]
// allows it.
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

// mayFollow reports whether the label of state may replace the recorded label, was. A slow run must not replace the
// label recorded by a faster run with an older one, unless the slow run recorded that label itself, or the user accepts
// the state.
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

// GoOn records the version of the state from which the run starts.
func (m *Memory) GoOn(ctx context.Context, state store.Version) {
	m.mu.Lock()
	m.from = []store.Version{state}
	m.mu.Unlock()
	m.note(ctx)
}

// Sends notes which state the run is about to write, because the store may receive it even if the write fails.
func (m *Memory) Sends(ctx context.Context, state []byte) {
	m.mu.Lock()
	m.from = append(m.from, DigestOf(state))
	m.mu.Unlock()
	m.note(ctx)
}

// note stores the versions that a leftover of this run may replace, in case wrap is killed.
func (m *Memory) note(ctx context.Context) {
	if !m.changes {
		return
	}
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		all[m.of] = m.from
		return true
	})
}

// End removes the note of this run once its states are in the backend or in recorded leftovers. A run that has read no
// state, for example because another run held the lock, keeps the note of that other run.
func (m *Memory) End(ctx context.Context) {
	if m.changes && m.from != nil {
		m.rebase(ctx, func(all map[string][]store.Version) bool { return forget(all, m.of) })
	}
}

// Leave records the versions that a leftover file may replace: the states from which this run started, or which it
// sent.
func (m *Memory) Leave(ctx context.Context, file []byte) {
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		if m.from == nil {
			return false
		}
		all[m.entry(file)] = m.from
		return true
	})
}

// base returns the versions that the state in a file may replace, or nil if they are unknown. If no run has recorded
// the file and the user did not name it, base returns the note of the last run in this folder, which remains if wrap
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

// knowsOthers reports whether a run in this folder started from, or left behind, a state at another address.
func (m *Memory) knowsOthers() bool {
	for entry := range m.bases() {
		if entry != m.of && !strings.HasPrefix(entry, m.of+" ") && !strings.HasPrefix(entry, m.text+" ") {
			return true
		}
	}
	return false
}

// moves records that the state in the file from is now in the file to.
func (m *Memory) moves(ctx context.Context, from, to []byte) {
	base := m.base(from, false)
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		if base != nil {
			all[m.entry(to)] = base
		}
		return forget(all, m.entry(from), m.earlierEntry(from), m.of) || base != nil
	})
}

// written removes the entries for a file whose state is now in the backend.
func (m *Memory) written(ctx context.Context, file []byte, named bool) {
	m.rebase(ctx, func(all map[string][]store.Version) bool {
		entries := []string{m.entry(file), m.earlierEntry(file)}
		if !named {
			entries = append(entries, m.of)
		}
		return forget(all, entries...)
	})
}

// forget removes entries, and reports whether any of them existed.
func forget(all map[string][]store.Version, entries ...string) bool {
	before := len(all)
	for _, entry := range entries {
		delete(all, entry)
	}
	return len(all) < before
}

// bases returns the versions that each file may replace, keyed by entry. If they cannot be read, the map is empty.
func (m *Memory) bases() (all map[string][]store.Version) {
	_ = m.locked(func(at *os.Root) (err error) {
		all, err = load[[]store.Version](at, baseName)
		return err
	})
	return all
}

// rebase loads the map that [Memory.bases] returns, calls change with it, and saves it if change returns true.
func (m *Memory) rebase(ctx context.Context, change func(all map[string][]store.Version) bool) {
	_ = m.locked(func(at *os.Root) error {
		all, _ := load[[]store.Version](at, baseName)
		if !change(all) || at == nil {
			return nil
		}
		return save(context.WithoutCancel(ctx), at, baseName, all)
	})
}

// entry returns the entry name for a file. It contains the address of the state, because the folder may also have
// leftovers of other states from runs with other settings.
func (m *Memory) entry(file []byte) string { return m.of + " " + string(DigestOf(file)) }

// earlierEntry returns the entry name that earlier versions used for a file.
func (m *Memory) earlierEntry(file []byte) string { return m.text + " " + string(DigestOf(file)) }

// DigestOf returns the digest of a state, or an empty string for nil.
func DigestOf(state []byte) store.Version {
	if state == nil {
		return ""
	}
	return store.Digest(state)
}
