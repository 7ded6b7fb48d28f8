package states

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// Guard decides which states a run accepts, and warns the user about them.
type Guard struct {
	Target    encryption.Target
	Doubts    []encryption.Finding // probable mistakes in Target
	Backend   *Backend
	Memory    *Memory // the memory of earlier runs
	Elsewhere error   // the error if there is a state without wrap, whose resources would be created again; nil if there is none
	Pins      Pins
	Force     bool // whether a state may replace a state with another lineage
	Changes   bool // whether the run changes resources
	Say       func(text string)

	readers  atomic.Int64           // the number of age recipients of the state
	Lineage  atomic.Pointer[string] // the lineage of the state; "" if there is no state, nil until the state is read
	nameless sync.Once              // see NoteLineage
	sealable atomic.Bool            // see rehearse
	oldKey   sync.Once              // see warn
}

// AcceptNone returns an error if the run must not continue without a state.
func (g *Guard) AcceptNone(ctx context.Context, _ []byte) ([]byte, error) {
	switch {
	case g.Pins != Pins{}:
		return nil, errors.New("there is no state, but -lineage and -minimum-serial require one; check the address")
	case g.Elsewhere != nil && g.Changes:
		return nil, g.Elsewhere
	}
	if err := g.Memory.accept(nil); err != nil {
		return nil, err
	}
	if err := g.rehearse(ctx, g.Target); err != nil {
		return nil, err
	}
	if g.Lineage.Load() == nil {
		g.Say(fmt.Sprintf("there is no state at %s yet; if you expected a state, check the address",
			outside.Line(g.Backend.String(), 300)))
		if g.Elsewhere != nil {
			g.Say("warning: " + g.Elsewhere.Error())
		}
		g.noteDoubts()
	}
	g.remember("")
	g.Memory.Remember(ctx, nil)
	return nil, nil
}

// rehearse tests the encryption of a state with keys derived from a salt, before the run creates anything that the
// state must record. It does so only once, and only if the run changes resources. See also [Backend.Rehearse].
func (g *Guard) rehearse(ctx context.Context, target encryption.Target) error {
	if !g.Changes || !g.Target.IsSalted() || g.sealable.Load() {
		return nil
	}
	if err := rehearse(ctx, target); err != nil {
		return fmt.Errorf("the program was not given the state, because wrap would be unable to write a changed state: %w", err)
	}
	g.sealable.Store(true)
	return nil
}

// Open returns the plaintext of a state from the backend. It returns an error if the run must not accept the state.
func (g *Guard) Open(ctx context.Context, state []byte) ([]byte, error) {
	readers := Recipients(state)
	opened, seen, err := g.decrypt(ctx, state)
	if err != nil {
		return nil, err
	}
	if g.Changes {
		if err := g.Backend.mayEncrypt(); err != nil { // before the run creates anything that the state must record
			return nil, err
		}
		if err := g.rehearse(ctx, opened.Rehearsal()); err != nil {
			return nil, err
		}
	}
	g.warn(opened)
	g.NoteLineage(seen)
	g.remember(seen.Lineage)
	g.Memory.Remember(ctx, seen)
	g.readers.Store(int64(readers))
	return opened.Data, nil
}

// decrypt opens a state from the backend, if the run accepts it. It overwrites state.
func (g *Guard) decrypt(ctx context.Context, state []byte) (*encryption.Opened, *label, error) {
	opened, err := g.Target.DecryptInPlace(ctx, state)
	if errors.Is(err, encryption.ErrPlaintext) {
		return nil, nil, fmt.Errorf("%w; to encrypt the state, run "+moves, err)
	}
	if err != nil {
		return nil, nil, err
	}
	seen, err := g.expect(opened.Data)
	return opened, seen, err
}

// expect returns the label of a state. It returns an error if the run does not accept the state.
func (g *Guard) expect(plain []byte) (*label, error) {
	serial, lineage, err := store.Label(plain)
	seen := &label{lineage, serial}
	if err == nil {
		err = cmp.Or(g.Pins.Accept(serial, lineage), g.Memory.accept(seen))
	}
	return seen, err
}

func (g *Guard) warn(opened *encryption.Opened) {
	switch {
	case !opened.Encrypted:
		g.Say("the state in the backend is not encrypted; wrap will encrypt the next state that is written")
	case opened.UsedFallback:
		g.oldKey.Do(func() {
			g.Say("only the fallback " + opened.Method + " can open the state in the backend; before you delete the old key, give the state " +
				"the new key with statecrypt rotate -again -to " + fault.Config + " -backend")
		})
	}
	for _, warning := range opened.Warnings {
		g.Say(warning.Text)
	}
}

// noteDoubts reports probable mistakes in a key that has not yet encrypted a state.
func (g *Guard) noteDoubts() {
	for _, doubt := range g.Doubts {
		g.Say(words.Doubt(doubt))
	}
}

// remember records the first lineage that is read. If the backend loses or replaces the state while the child runs, the
// run accepts no other lineage.
func (g *Guard) remember(lineage string) {
	if known := g.Lineage.Load(); known == nil || *known == "" {
		g.Lineage.Store(&lineage)
	}
}

func (g *Guard) NoteRecipients(sealed []byte) {
	if note := NoteRecipients(int(g.readers.Load()), sealed); note != "" {
		g.Say("the state in the backend: " + note)
	}
	g.readers.Store(int64(Recipients(sealed)))
}

// MayWrite returns the label of a plaintext state. It returns an error if the state must not replace the state in the
// backend.
func (g *Guard) MayWrite(plain []byte) (*label, error) {
	if info, err := encryption.Inspect(plain); err != nil || info.Kind != encryption.KindState {
		return nil, errors.New("it is not a plaintext state; check whether an encryption block in the configuration already encrypts it")
	}
	serial, lineage, err := store.Label(plain)
	known := g.Lineage.Load()
	switch {
	case err != nil || g.Force:
	case known == nil:
		err = errors.New("the existing state has not been read; use -force to overwrite it")
	case *known != "" && *known != lineage:
		err = fmt.Errorf("its lineage is %s, but the existing state has lineage %s; use -force to overwrite the existing state",
			outside.Quoted(lineage, 100), outside.Quoted(*known, 100))
	}
	return &label{lineage, serial}, err
}

// NoteLineage warns, once per run, about a state without a lineage.
func (g *Guard) NoteLineage(of *label) {
	if of == nil || of.Lineage != "" {
		return
	}
	g.nameless.Do(func() {
		g.Say("warning: the state has no lineage, so wrap cannot detect whether another state replaces it. To add a lineage, save " +
			"the output of state pull in a file. In that file, set lineage to a UUID, and serial to a higher number. Then run state push " +
			"with that file")
	})
}

// Pins are the user's requirements for the state. An attacker who can write to the store can restore an old state, or
// put in another state encrypted with the same key. Both would decrypt without an error. The zero value accepts any
// state.
type Pins struct {
	Lineage string // the required lineage; an empty string accepts any
	Serial  *int64 // the lowest accepted serial; nil accepts any
}

// Accept returns an error if a state does not satisfy the pins, or lacks a pinned value.
func (p Pins) Accept(serial *int64, lineage string) error {
	switch {
	case p.Lineage != "" && lineage != p.Lineage && lineage == strings.Trim(p.Lineage, "\"' \r\n"):
		return errors.New("the value of -lineage has quotation marks or spaces around it; remove them, for example with jq -r")
	case p.Lineage != "" && lineage != p.Lineage:
		return fmt.Errorf("its lineage is %s, but -lineage requires %s; check which state is read, and the value of -lineage",
			outside.Quoted(lineage, 300), outside.Quoted(p.Lineage, 300))
	case p.Serial != nil && serial == nil:
		return errors.New("it has no serial, but -minimum-serial requires a serial")
	case p.Serial != nil && *serial < *p.Serial:
		return fmt.Errorf("its serial is %d, but -minimum-serial requires at least %d, so it is an old copy; "+
			"restore the newest copy, or lower -minimum-serial", *serial, *p.Serial)
	}
	return nil
}
