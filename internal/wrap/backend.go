package wrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
)

const (
	maxState = 512 << 20       // bytes, of a state and of any other body
	patience = 5 * time.Minute // for one request to the real backend
)

// backend is the state where it is kept.
type backend struct {
	store.State
	store.Properties
	store store.Store
	kind  store.Kind

	former   recorded // what the module has had without wrap
	unread   error    // why that cannot be said
	unlocked bool     // the user wants no lock

	open   atomic.Bool // what was read last is not OpenTofu's envelope
	plain  atomic.Bool // but a state in plaintext
	sealed atomic.Bool // which was replaced by an encrypted one
}

// Read notes whether the state is one that others work on without wrap.
func (b *backend) Read(ctx context.Context) ([]byte, store.Version, error) {
	state, version, err := b.State.Read(ctx)
	if err == nil {
		info, _ := encryption.Inspect(state) // unknown, for what it does not know
		b.open.Store(state != nil && info.Kind != encryption.KindEncrypted)
		b.plain.Store(info.Kind == encryption.KindState)
	}
	return state, version, err
}

// Write is the only way to encrypt a state in its place.
func (b *backend) Write(ctx context.Context, sealed []byte, read store.Version) (store.Version, error) {
	if err := b.mayEncrypt(); err != nil {
		return "", err
	}
	next, err := b.State.Write(ctx, sealed, read)
	if err == nil && b.plain.Load() {
		b.sealed.Store(true)
	}
	return next, err
}

// mayEncrypt refuses to encrypt a state in its place without the lock of those who work on it
// without wrap.
func (b *backend) mayEncrypt() error {
	if !b.open.Load() {
		return nil
	}
	err := b.unread
	if err == nil || errors.Is(err, fs.ErrNotExist) { // then the block says which lock others take
		_, err = b.succeeds(b.former)
	}
	if err == nil && b.unlocked && b.HasLocks {
		err = errors.New("-lock=false keeps out nobody who works on it without wrap; leave that out")
	}
	if err != nil {
		err = fmt.Errorf("it is not encrypted, and stays so: %w", err)
	}
	return err
}

// succeeds compares the state with one that the module has had without wrap. It returns an error if the lock keeps
// out nobody who goes on there.
func (b *backend) succeeds(former recorded) (same bool, err error) {
	if s, ok := store.As[store.Successor](b.State); ok {
		return s.Former(former.Backend.Type, former.Backend.Config)
	}
	return false, nil
}

// settle has others accept a state who compare it with a digest.
func (b *backend) settle(ctx context.Context, state []byte) error {
	if s, ok := store.As[store.Digested](b.State); ok {
		return s.Settle(ctx, state)
	}
	return nil
}

// lookAgain finds out, if a state was encrypted in its place, whether somebody who had read it
// before has written it since, in plaintext, without the lock.
func (b *backend) lookAgain(ctx context.Context) error {
	if !b.sealed.Load() {
		return nil
	}
	there, _, err := b.State.Read(ctx)
	if err != nil {
		return fmt.Errorf("the state in the backend: %w", err)
	}
	if info, err := encryption.Inspect(there); err == nil && info.Kind == encryption.KindState {
		return errors.New("somebody has written the state in the backend meanwhile, in plaintext, and without its lock; have everybody use " +
			"wrap, and then run init with -encrypt-existing once more")
	}
	return nil
}

// noteForm says beforehand that some servers refuse the form that a state is about to get.
func (b *backend) noteForm(stderr io.Writer, sealed []byte) {
	if b.kind.Looks && !isLabelled(sealed) {
		say(stderr, "note: the state will show neither its serial nor its lineage, which sops and age encrypt; a server that looks for them, "+
			"such as Gitea, refuses it, and keeps the one that there is")
	}
}

// isLabelled reports whether a state shows which one it is.
func isLabelled(state []byte) bool {
	serial, lineage, err := store.Label(state)
	return err == nil && (serial != nil || lineage != "")
}

// Close gives up what ends with the process.
func (b *backend) Close() error { return b.store.Close() }

// Backends are the kinds that the block of [Options] may have.
func Backends() (tables []attr.Table) {
	for _, k := range all.Kinds() {
		tables = append(tables, k.Table)
	}
	return tables
}

// kindOf is the kind of a block, or the one that variables may describe.
func kindOf(block *unstable.Entry) store.Kind {
	kinds := all.Kinds()
	if block == nil {
		return kinds[0]
	}
	return kinds[slices.IndexFunc(kinds, func(k store.Kind) bool { return k.Name == block.Kind })]
}

// newBackend is the state that the block of the settings names, or the variables in its place.
func newBackend(o Options, module string) (*backend, error) {
	s, err := openStates(o, module)
	if err != nil {
		return nil, err
	}
	b, err := s.state("")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return b, nil
}

// States are those of one store.
type States struct {
	store.Store
	options Options
	kind    store.Kind
	named   string // by the block
}

// Older says where what a store kept before stays.
func (s *States) Older() string { return s.kind.Older }

// Counts reports whether a state that gets another key gets the next serial.
func (s *States) Counts() bool { return s.kind.Counts }

// OpenStates opens the store of the module that we are in. If it is for others than the one that
// the block names, that may depend on a module that there is not.
func OpenStates(o Options, others bool) (*States, error) {
	noteVariables(o)
	module, err := resolve("", ".")
	if err != nil {
		return nil, err
	}
	if place := kindOf(o.Backend).Place; others && o.Backend != nil && names(o.Backend.Settings[place].Value, unstable.Module) {
		block := *o.Backend
		block.Settings = maps.Clone(block.Settings)
		block.Settings[place] = unstable.Setting{Value: cty.StringVal("any")}
		o.Backend = &block
	}
	return openStates(o, module)
}

// state is one of them, "" for that of the block.
func (s *States) state(name string) (*backend, error) {
	state, err := s.State(cmp.Or(name, s.named))
	if err != nil {
		return nil, err
	}
	p := s.Properties()
	return &backend{State: careful.New(state, p), Properties: p, store: s.Store, kind: s.kind}, nil
}

func openStates(o Options, module string) (*States, error) {
	kind, block, lookup := kindOf(o.Backend), o.Backend, world.Lookup(o.Environ)
	if block == nil {
		block = unstable.NewEntry("backend."+kind.Name, kind.Table, nil)
	}
	block, err := forModule(block, o.Settings, module)
	if err != nil {
		return nil, err
	}
	v, err := block.Decode(kind.Table, lookup)
	if err != nil {
		if wrong, ok := errors.AsType[*attr.Error](err); ok && o.Backend == nil && wrong.Attr == "address" {
			err = fmt.Errorf("%w; the file of the settings has no block backend \"http\": "+
				"add backend \"http\" { address = \"https://HOST/PATH\" }", err)
		}
		if ignored, _ := lookup("TF_HTTP_ADDRESS"); ignored != "" {
			err = fmt.Errorf("%w; TF_HTTP_ADDRESS is not used, so that nobody writes there without wrap", err)
		}
		return nil, err
	}
	folder, err := folderOf(o.Settings)
	if err != nil {
		return nil, err
	}
	s, err := kind.Open(store.Settings{
		Values: v, Folder: cmp.Or(folder, module), Module: module,
		Limit: cmp.Or(o.limit, maxState), Patience: cmp.Or(o.patience, patience), Seal: sealCopies(o.State),
	})
	if err != nil {
		return nil, err
	}
	return &States{s, o, kind, v.String(kind.Place)}, nil
}

// sealCopies makes of a state that a store has found what a copy of it may hold: it is
// encrypted in any case. There is none of what is no state, see [recovery.keepDamaged].
func sealCopies(target encryption.Target) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, found []byte) ([]byte, error) {
		if info, err := encryption.Inspect(found); err == nil && info.Kind == encryption.KindEncrypted {
			return found, nil
		}
		sealed, _, err := Seal(ctx, target, found)
		if err != nil {
			if _, failed := target.Decrypt(ctx, found); isNoState(found, failed) {
				return nil, nil
			}
		}
		return sealed, err
	}
}

// noteVariables names variables that say nothing: misspelt ones, and those whose argument
// the block has, with another value.
func noteVariables(o Options) {
	const prefix = "STATECRYPT_HTTP_"
	lookup := world.Lookup(o.Environ)
	var known []string
	for _, a := range kindOf(nil).Attrs {
		known = append(known, a.Env...)
		for _, name := range a.Env {
			switch given, _ := lookup(name); {
			case given == "":
			case o.Backend != nil && o.Backend.Kind != kindOf(nil).Name:
				say(o.Stderr, fmt.Sprintf("%s is not used: the backend block is of the kind %s", name, o.Backend.Kind))
			case differs(o.Backend, a.Name, given):
				say(o.Stderr, fmt.Sprintf("%s is not used: the block backend \"http\" has another %s", name, a.Name))
			}
		}
	}
	for _, pair := range o.Environ {
		name, value, _ := strings.Cut(pair, "=")
		if upper := strings.ToUpper(name); value != "" && strings.HasPrefix(upper, prefix) && !slices.Contains(known, upper) {
			say(o.Stderr, fmt.Sprintf("%s is not used: there is no such variable%s", outside.Line(name, 100), syntax.Suggest(upper, known)))
		}
	}
}

// differs reports whether the block sets an argument to another text than this one.
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
