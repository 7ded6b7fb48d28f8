// Package states reads and writes the state of a module in its backend ([Backend]) and decides whether to accept it
// ([Guard], [Memory]). It finds states that wrap does not use ([Unused]) or could not write ([Leftover]), and moves
// them into the backend ([Existing], [Recovery]). It lists the older versions of a state ([Versions]), and makes one of
// them the current state ([Restoration]).
package states

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
)

// States gives access to the states in one store.
type States struct {
	store.Store
	Kind  store.Kind
	say   func(text string)
	named string // the name of the state in the block
}

// Open opens the store for the module in the working directory.
func Open(w Where, target encryption.Target, environ []string, say func(text string)) (*States, error) {
	w.NoteVariables(environ, say)
	module, err := files.Resolve("", ".")
	if err != nil {
		return nil, err
	}
	return openStates(w, module, target, environ, say)
}

// state returns the Backend of the named state. An empty name means the state that the block names.
func (s *States) state(name string) (*Backend, error) {
	state, err := s.State(cmp.Or(name, s.named))
	if err != nil {
		return nil, err
	}
	p := s.Properties()
	return &Backend{State: careful.New(state, p), Properties: p, store: s.Store, kind: s.Kind, say: s.say}, nil
}

// Open opens the state of a module. If unlocked is true, the user asked for no lock.
func (w Where) Open(target encryption.Target, environ []string, m *module.Module, unlocked bool, say func(text string)) (*Backend, error) {
	s, err := openStates(w, m.Dir, target, environ, say)
	if err != nil {
		return nil, err
	}
	b, err := s.state("")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	b.recorded, b.unread = module.ReadRecord(m.Data)
	b.unlocked = unlocked
	return b, nil
}

// openStates opens the store described by the backend block in the settings. Without a block, environment variables
// describe the store.
func openStates(w Where, module string, target encryption.Target, environ []string, say func(text string)) (*States, error) {
	kind, block, lookup := w.Kind(), w.Backend, world.Lookup(environ)
	if block == nil {
		block = unstable.NewEntry("backend."+kind.Name, kind.Table, nil)
	}
	block, err := forModule(block, w.Settings, module)
	if err != nil {
		return nil, err
	}
	v, err := block.Decode(kind.Table, lookup)
	if err != nil {
		if wrong, ok := errors.AsType[*attr.Error](err); ok && w.Backend == nil && wrong.Attr == "address" {
			where := "to " + outside.Line(w.Settings, 300)
			if folder, _ := folderOf(w.Settings); folder == "" || slices.Contains([]string{".tf", ".tofu"}, filepath.Ext(w.Settings)) {
				where = "to a settings file outside the module's configuration, for example keys.hcl, and name that file with -config"
			}
			err = fmt.Errorf("there is no backend block; add one of type %s %s, or set STATECRYPT_HTTP_ADDRESS", kindNames(), where)
		}
		if ignored, _ := lookup("TF_HTTP_ADDRESS"); ignored != "" {
			err = fmt.Errorf("%w. TF_HTTP_ADDRESS is ignored, because runs without wrap also use it", err)
		}
		return nil, err
	}
	folder, err := folderOf(w.Settings)
	if err != nil {
		return nil, err
	}
	s, err := kind.Open(store.Settings{
		Values: v, Folder: cmp.Or(folder, module), Module: module,
		Limit: w.Most(), Patience: cmp.Or(w.Patience, Patience), Seal: sealCopies(target),
	})
	if err != nil {
		return nil, err
	}
	return &States{s, kind, say, v.String(kind.Named)}, nil
}

// kindNames returns the types of backend blocks as a list in a text.
func kindNames() string {
	var names []string
	for _, k := range all.Kinds() {
		names = append(names, strconv.Quote(k.Name))
	}
	slices.Sort(names)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Look returns the named state, and the lock holder if the store knows it. An empty name means the state that the block
// names.
func (s *States) Look(ctx context.Context, name string) (state []byte, holder *store.Lock, err error) {
	state, lock, err := s.LookAtLock(ctx, name)
	return state, lock.Holder, err
}

// LookAtLock returns the named state and the status of its lock. An empty name means the state that the block names. It
// returns the status even if there is no state.
func (s *States) LookAtLock(ctx context.Context, name string) (state []byte, lock LockStatus, err error) {
	b, state, none := s.read(ctx, name)
	if none != nil && !errors.Is(none, ErrNone) {
		return nil, lock, none
	}
	switch lock.Holder, err = b.Holder(ctx); {
	case err != nil && ctx.Err() != nil:
		return nil, lock, context.Cause(ctx)
	case err != nil && !errors.Is(err, store.ErrHolderUnknown):
		s.say("warning: it is unknown who holds the lock: " + err.Error())
	}
	lock.Free = err == nil && lock.Holder == nil && b.HasLocks
	return state, lock, none
}

// LockStatus is the status of a lock. The zero value means that the store does not say who holds the lock, if anyone.
type LockStatus struct {
	Holder *store.Lock // nil if nobody holds the lock, or if the holder is unknown
	Free   bool        // whether nobody holds the lock
}

// Read returns the named state, like Look, but does not ask who holds the lock.
func (s *States) Read(ctx context.Context, name string) ([]byte, error) {
	_, state, err := s.read(ctx, name)
	return state, err
}

func (s *States) read(ctx context.Context, name string) (b *Backend, state []byte, err error) {
	b, err = s.state(name)
	if err == nil {
		state, _, err = b.Read(ctx)
	}
	if err == nil && state == nil {
		err = b.none()
	}
	return b, state, err
}

// IsSettled reports whether other programs accept the state. They may compare it with a stored digest.
func (s *States) IsSettled(ctx context.Context, name string, state []byte) (bool, error) {
	b, err := s.state(name)
	if err != nil {
		return false, err
	}
	if d, ok := store.As[store.Digested](b.State); ok {
		return d.IsSettled(ctx, state)
	}
	return true, nil
}

// ErrNone means that the state does not exist.
var ErrNone = errors.New("there is no state")

func (b *Backend) none() error {
	advice := "check the address"
	if _, isLocal := store.As[store.Local](b.State); isLocal { // by default, a file in the module
		advice = "check the path, and run this in the module's folder"
	}
	return fmt.Errorf("%w at %s; %s", ErrNone, outside.Line(b.String(), 300), advice)
}

// Rotate replaces the named state with the result of change, under the lock. An empty name means the state that the
// block names. If the result is nil, Rotate does not write the state. It then only writes the digest of the state, if
// the store keeps one, and change must not have modified its argument.
func (s *States) Rotate(ctx context.Context, name string, change func(state []byte) ([]byte, error)) error {
	b, err := s.state(name)
	if err != nil {
		return err
	}
	if !b.HasLocks {
		s.say("warning: the backend has no locks; make sure that nobody else writes the state now")
	}
	err = b.underLock(ctx, "statecrypt rotate", func() error {
		state, version, err := b.Read(ctx)
		switch {
		case err != nil:
			return err
		case state == nil:
			return b.none()
		}
		labelled := isLabelled(state)
		changed, err := change(state)
		switch {
		case err != nil:
			return err
		case changed == nil:
			return b.settle(ctx, state)
		}
		if labelled { // an unlabelled state shows that the server accepts states without a label
			b.noteForm(changed)
		}
		return b.keep(ctx, changed, version)
	})
	return errors.Join(err, b.LookAgain(context.WithoutCancel(ctx)))
}

// Where describes the place of a state.
type Where struct {
	Backend  *unstable.Entry // a block of one of [all.Kinds], or nil if environment variables describe the place
	Settings string          // the file that contains the block
	Limit    int64           // the maximum size of a state, in bytes; 0 means the default
	Patience time.Duration   // the time limit for one request; 0 means the default
}

// Patience is the time limit for one request to the real backend.
const Patience = 5 * time.Minute

// ForOthers returns the place of other states in the same store. The result does not depend on the module.
func (w Where) ForOthers() Where {
	if named := w.Kind().Named; w.Backend != nil && names(w.Backend.Settings[named].Value, unstable.Module) {
		block := *w.Backend
		block.Settings = maps.Clone(block.Settings)
		block.Settings[named] = unstable.Setting{Value: cty.StringVal("any")}
		w.Backend = &block
	}
	return w
}

// Kind returns the kind of the block. Without a block, it returns the kind that environment variables can describe.
func (w Where) Kind() store.Kind {
	kinds := all.Kinds()
	if w.Backend == nil {
		return kinds[0]
	}
	return kinds[slices.IndexFunc(kinds, func(k store.Kind) bool { return k.Name == w.Backend.Kind })]
}

// Most returns the maximum size of a state, in bytes.
func (w Where) Most() int64 { return cmp.Or(w.Limit, files.MaxState) }

// CheckOneModule returns an error if a settings file outside the module names the same state for every module: a run in
// a second module would destroy the resources of the first.
func (w Where) CheckOneModule(module string) error {
	if w.Backend == nil {
		return nil
	}
	named := w.Kind().Named
	setting := w.Backend.Settings[named]
	folder, err := folderOf(w.Settings)
	if err != nil || folder == "" || folder == module || !setting.IsSet() || setting.Err != nil || names(setting.Value, unstable.Module) {
		return err
	}
	err = fmt.Errorf("the settings file is not in the module's folder, so every module would share this state; use %s in "+
		"this value, or move the settings file to the module's folder", unstable.Module)
	return &attr.Error{Address: w.Backend.Address, Attr: named, Pos: setting.Pos, Err: err}
}

// forModule replaces [unstable.Module] in the settings of the block with the path of the module, relative to the folder
// of the settings file. Without a settings file, it returns the block unchanged.
func forModule(block *unstable.Entry, settings, module string) (*unstable.Entry, error) {
	folder, err := folderOf(settings)
	if err != nil || folder == "" {
		return block, err
	}
	name, err := filepath.Rel(folder, module)
	switch {
	case err != nil:
	case !filepath.IsLocal(name):
		err = errors.New("the module is outside that folder; move the settings file to a folder above the module")
	case name == ".":
		err = errors.New("the module is that folder itself; write a value without ${module}")
	}
	filled := *block
	filled.Settings = maps.Clone(block.Settings)
	for attribute, s := range filled.Settings {
		if !names(s.Value, unstable.Module) {
			continue
		}
		if err != nil {
			return nil, &attr.Error{Address: block.Address, Attr: attribute, Pos: s.Pos, Err: fmt.Errorf("%s stands for a path "+
				"below the folder of the settings file, but the module %s has no such path: %w", unstable.Module, outside.Quoted(module, 300), err)}
		}
		s.Value = cty.StringVal(strings.ReplaceAll(s.Value.AsString(), unstable.Module, filepath.ToSlash(name)))
		filled.Settings[attribute] = s
	}
	return &filled, nil
}

// names reports whether a value is a string that contains name.
func names(v cty.Value, name string) bool {
	return module.IsText(v) && strings.Contains(v.AsString(), name)
}

// folderOf returns the folder of the settings file. It resolves all links first, because each module may have a link to
// one shared file. It returns an empty string if there is no regular file.
func folderOf(settings string) (string, error) {
	if info, err := os.Stat(settings); settings == "" || err != nil || !info.Mode().IsRegular() {
		return "", nil //nolint:nilerr // the code that reads the settings reports this
	}
	file, err := files.Resolve("", settings)
	if errors.Is(err, fs.ErrNotExist) { // the file is open, but was deleted
		return "", nil
	}
	return filepath.Dir(file), err
}

// NoteVariables tells the user about environment variables that have no effect: misspelled ones, variables for which
// the block has another value, and all of them if the block is of another kind.
func (w Where) NoteVariables(environ []string, say func(text string)) {
	const prefix = "STATECRYPT_HTTP_"
	lookup := world.Lookup(environ)
	var known []string
	for _, a := range all.Kinds()[0].Attrs {
		known = append(known, a.Env...)
		for _, name := range a.Env {
			switch given, _ := lookup(name); {
			case given == "":
			case w.Backend != nil && w.Backend.Kind != all.Kinds()[0].Name:
				say(fmt.Sprintf("%s is not used, because the backend block is of type %s", name, w.Backend.Kind))
			case differs(w.Backend, a.Name, given):
				say(fmt.Sprintf("%s is not used, because the backend \"http\" block sets another %s", name, a.Name))
			}
		}
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if upper := strings.ToUpper(name); value != "" && strings.HasPrefix(upper, prefix) && !slices.Contains(known, upper) {
			say(fmt.Sprintf("%s is not used, because there is no such variable%s", outside.Line(name, 100), syntax.Suggest(upper, known)))
		}
	}
}

// differs reports whether the block sets an argument to a string other than text.
func differs(block *unstable.Entry, argument, text string) bool {
	if block == nil {
		return false
	}
	setting, ok := block.Settings[argument]
	if !ok || !setting.IsSet() || setting.Err != nil {
		return false
	}
	value, _ := setting.Value.Unmark()
	return value.Type() == cty.String && value.IsKnown() && !value.IsNull() && value.AsString() != text
}

// Notes returns a function that prints messages for the user of the settings file.
func Notes(w io.Writer, settings string) func(text string) {
	return func(text string) {
		_, _ = fmt.Fprintln(w, "statecrypt: "+outside.Text(fault.Name(text, settings))) // there is no way to report a write error
	}
}
