package wrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// memory is what wrap has last seen of a state, beside its record: whoever can write to
// the store can put back an old state, or another one of the same key, and both open. These
// are pins that nobody has to set.
type memory struct {
	path    string
	of      string // kind of the store, and the name of the state in it
	reverts bool   // an older state, or another one, is nobody's mistake
	accepts bool   // the user has looked

	changes bool // the run may leave a state that it cannot write, also if wrap is killed

	mu   sync.Mutex
	from []store.Version // by their digests: the states that this run has gone on from, or has sent; nil if none was read
}

// label is what a state says of itself.
type label struct {
	Lineage string `json:"lineage"`
	Serial  *int64 `json:"serial"`
}

const (
	memoryName = "seen.json"
	baseName   = "base.json"
)

func newMemory(data, of string) *memory {
	return &memory{path: filepath.Join(data, memoryName), of: of}
}

// load reads a file of ours, with nothing in it if it cannot be read. In a new clone, there is none.
func load[T any](path string) (map[string]T, error) {
	found := map[string]T{}
	text, err := keyfile.Read(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err == nil && (json.Unmarshal(text, &found) != nil || found == nil) { // as null is
		err = errors.New("it is damaged")
	}
	if err != nil {
		return map[string]T{}, fmt.Errorf("what an earlier run here has seen cannot be read from %s: %w", outside.Quoted(path, 300),
			keyfile.Reason(err))
	}
	return found, nil
}

// save writes one. A folder that cannot be written has no memory, as one that was just cloned.
func save[T any](ctx context.Context, path string, all map[string]T) {
	if text, err := json.Marshal(all); err == nil {
		_ = replace.File(ctx, path, append(text, '\n'), nil)
	}
}

// accept refuses a state that is older than the one that was seen, another one, and that
// there is none, which is nil.
func (m *memory) accept(state *label) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, err := load[label](m.path)
	was, known := seen[m.of]
	const look = "; restore the newest one, or, once you have looked, accept what there is with statecrypt wrap -accept"
	switch {
	case m.accepts || m.reverts && state != nil:
		return nil
	case err != nil:
		return fmt.Errorf("%w; once you have looked, accept what there is with statecrypt wrap -accept", err)
	case !known:
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

// remember notes what was seen, nil for none.
func (m *memory) remember(ctx context.Context, state *label) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, _ := load[label](m.path) // which was accepted
	was, known := seen[m.of]
	switch {
	case m.path == "", state == nil && !known, state != nil && known && reflect.DeepEqual(was, *state):
		return
	case state == nil:
		delete(seen, m.of)
	default:
		seen[m.of] = *state
	}
	save(ctx, m.path, seen)
}

// goOn notes what the run goes on from, by its digest.
func (m *memory) goOn(ctx context.Context, state store.Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from = []store.Version{state}
	m.note(ctx)
}

// sends notes what the run is about to write, which may be there in spite of an error.
func (m *memory) sends(ctx context.Context, state []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from = append(m.from, digestOf(state))
	m.note(ctx)
}

// note keeps what a state may replace that this run leaves when wrap has been killed.
func (m *memory) note(ctx context.Context) {
	if m.changes {
		m.keep(ctx, m.of, m.from)
	}
}

// keep keeps what a state may replace, and forgets it if that is nil.
func (m *memory) keep(ctx context.Context, entry string, from []store.Version) {
	if m.path == "" {
		return
	}
	all := m.bases()
	switch _, known := all[entry]; {
	case from != nil:
		all[entry] = from
	case !known:
		return
	default:
		delete(all, entry)
	}
	save(context.WithoutCancel(ctx), m.basePath(), all)
}

// end forgets the run, of which everything is where it belongs, or was left.
func (m *memory) end(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changes {
		m.keep(ctx, m.of, nil)
	}
}

// leave notes, beside the state in a file that could not be written, what it may replace: what this
// run has gone on from.
func (m *memory) leave(ctx context.Context, file []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.from != nil {
		m.keep(ctx, m.entry(file), m.from)
	}
}

// base is what the state in a file may replace, nil if that is not known. In a file that nobody has named,
// it is that of the last run here if wrap was killed.
func (m *memory) base(file []byte, named bool) []store.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.bases()
	if known, ok := all[m.entry(file)]; ok || named {
		return known
	}
	return all[m.of]
}

// knowsOthers reports whether a run in this folder has begun with, or has left, a state of another place.
func (m *memory) knowsOthers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for entry := range m.bases() {
		if entry != m.of && !strings.HasPrefix(entry, m.of+" ") {
			return true
		}
	}
	return false
}

// moves notes that the state of a file is in another one now.
func (m *memory) moves(ctx context.Context, from, to []byte) {
	base := m.base(from, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	if base != nil {
		m.keep(ctx, m.entry(to), base)
	}
	m.keep(ctx, m.entry(from), nil)
	m.keep(ctx, m.of, nil)
}

// written forgets a file whose state is where it belongs.
func (m *memory) written(ctx context.Context, file []byte, named bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(ctx, m.entry(file), nil)
	if !named {
		m.keep(ctx, m.of, nil)
	}
}

// entry is a file with a state of this place: with other settings, the folder has others.
func (m *memory) entry(file []byte) string { return m.of + " " + string(digestOf(file)) }

// bases are those of all files. What cannot be read is not known.
func (m *memory) bases() map[string][]store.Version {
	all, _ := load[[]store.Version](m.basePath())
	return all
}

func (m *memory) basePath() string { return filepath.Join(filepath.Dir(m.path), baseName) }

// digestOf is which bytes there are, "" for none.
func digestOf(state []byte) store.Version {
	if state == nil {
		return ""
	}
	return store.Digest(state)
}
