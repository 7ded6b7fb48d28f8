package states

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/child"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
)

// Existing moves an existing state into the encrypted backend. The state may be plaintext, or encrypted by another
// tool.
type Existing struct {
	Arrival
	Unused  *Unused
	Process child.Process // the program of the run
}

// MoveIn encrypts the state in the backend or, if the backend has none, moves the module's own state there. It holds
// the state lock while it works.
func (m *Existing) MoveIn(ctx context.Context) error {
	return m.Backend.underLock(ctx, "statecrypt wrap -encrypt-existing", func() error { return m.sealExisting(ctx) })
}

// Arrival writes a new state to the backend.
type Arrival struct {
	Guard   *Guard
	Backend *Backend

	there  store.Version // the version of the state that is now in the backend
	counts bool          // whether to increment the serial, because the new state replaces an older form of the same state
}

func (m *Existing) sealExisting(ctx context.Context) error {
	there, version, err := m.Backend.Read(ctx)
	m.there = version
	switch {
	case err != nil:
		return fmt.Errorf("the state in the backend: %w", err)
	case there == nil:
		return m.sealOwn(ctx)
	}
	switch info, err := encryption.Inspect(there); {
	case err != nil:
		return fmt.Errorf("the state in the backend: %w", err)
	case info.Kind == encryption.KindEncrypted:
		m.Guard.Say("the state in the backend is already encrypted")
		m.Unused.warnOfOthers()
		return m.Backend.settle(ctx, there)
	case info.Kind != encryption.KindState:
		if there, err = m.ofOtherTool(ctx, there); err != nil {
			return err
		}
	}
	if err := cmp.Or(m.noWorkspace(), m.Backend.mayEncrypt()); err != nil {
		return fmt.Errorf("the state in the backend: %w", err)
	}
	m.counts = m.Backend.kind.Counts
	if err := m.seal(ctx, there, "the state in the backend", "encrypted"); err != nil {
		return err
	}
	m.Guard.Say("the state in the backend is now encrypted")
	m.Unused.warnOfOthers()
	return nil
}

// ofOtherTool decrypts a state encrypted by sops or terraform-backend-git.
func (m *Existing) ofOtherTool(ctx context.Context, there []byte) ([]byte, error) {
	opened, err := m.Guard.Target.Decrypt(ctx, there)
	if err != nil {
		return nil, fmt.Errorf("the file in the backend is not a state, and no method in the settings opens it: %w", err)
	}
	for _, warning := range opened.Warnings {
		m.Guard.Say(warning.Text)
	}
	return opened.Data, nil
}

// sealOwn moves the state that the module used without wrap into the backend.
func (m *Existing) sealOwn(ctx context.Context) error {
	place, content, err := m.readOwn(ctx)
	info, _ := encryption.Inspect(content) // seal returns an error for content that is no state
	switch {
	case err != nil:
		return fmt.Errorf("the state in %s: %w", place, err)
	case info.Kind == encryption.KindEncrypted:
		return fmt.Errorf("the state in %s is already encrypted; decrypt it, then run %s", place, moves)
	case len(content) == 0:
		m.Guard.Say("there is no state yet in the backend or in " + place)
		return nil
	}
	if err := m.seal(ctx, content, "the state in "+place, "encrypted"); err != nil {
		return err
	}
	m.Guard.Say("the state in " + place + " is now encrypted in the backend")
	m.Guard.Say("the old state in " + place + " is not encrypted; delete it and its backups")
	return nil
}

// readOwn reads the state that the module used without wrap. It also returns the place of that state, for messages.
func (m *Existing) readOwn(ctx context.Context) (place string, content []byte, err error) {
	file, r, err := m.Unused.find()
	place = cmp.Or(file, "the backend "+r.Name())
	if err != nil {
		return place, nil, err
	}
	if err := m.noWorkspace(); err != nil {
		return place, nil, err
	}
	if file == "" {
		if address, _ := world.Lookup(m.Process.Environ)("TF_HTTP_ADDRESS"); address == "" && r.LacksAddress() {
			return place, nil, errors.New("TF_HTTP_ADDRESS is not set; set it, and the credentials, as before. If there is no state, delete " +
				outside.Line(m.Unused.Module.Data, 300))
		}
		content, err = m.pull(ctx, r.Backend.Type, r.Backend.Config)
		return place, content, err
	}
	if path := files.Join(m.Unused.Module.Dir, file); !m.Backend.Keeps(path) {
		content, err = files.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return place, content, keyfile.Reason(err)
}

// noWorkspace returns an error if a workspace other than default is selected, because such a workspace has its own
// state.
func (m *Existing) noWorkspace() error {
	if workspace := m.workspace(); workspace != "" && workspace != "default" {
		return fmt.Errorf("%s selects a workspace, but wrap does not support workspaces; delete that file", outside.Line(m.selected(), 300))
	}
	return nil
}

// workspace returns the name of the selected workspace, or an empty string for the default workspace.
func (m *Existing) workspace() string {
	if name, _ := world.Lookup(m.Process.Environ)("TF_WORKSPACE"); name != "" {
		return name
	}
	name, _ := keyfile.Read(m.selected()) // usually the file does not exist
	return string(name)
}

// selected returns the path of the file in which Terraform keeps the name of the selected workspace.
func (m *Existing) selected() string { return filepath.Join(m.Unused.Module.Data, "environment") }

// pull has Terraform or OpenTofu read the state from another backend. The module itself names the proxy by now, so
// pull uses a temporary module that contains only the other backend.
func (m *Existing) pull(ctx context.Context, kind string, settings map[string]any) ([]byte, error) {
	f := &files.Temporary{}
	defer f.Remove()
	if err := f.Open(); err != nil {
		return nil, err
	}
	maps.DeleteFunc(settings, func(_ string, value any) bool { return value == nil })
	for name, value := range settings {
		settings[name] = m.resolved(name, value)
	}
	module, err := json.Marshal(map[string]any{"terraform": map[string]any{"backend": map[string]any{kind: settings}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(f.Dir, "main.tf.json"), module, 0o600)
	}
	if err != nil {
		return nil, err
	}
	var withheld []string
	if i := slices.IndexFunc(all.Kinds(), func(k store.Kind) bool { return k.Name == kind }); i >= 0 {
		withheld = all.Kinds()[i].Withhold
	}
	more := slices.DeleteFunc(slices.Clone(m.Process.Environ), func(pair string) bool { // variables complete the block, as without wrap
		name, _, _ := strings.Cut(strings.ToUpper(pair), "=")
		return !(kind == "http" && strings.HasPrefix(name, "TF_HTTP_")) && !slices.Contains(withheld, name)
	})
	return m.run(ctx, f.Dir, more, []string{"init", "-input=false", "-no-color"}, []string{"state", "pull"})
}

// resolved returns the value of a backend argument or environment variable for use in another working directory. It
// makes relative paths of the module's files absolute.
func (m *Existing) resolved(name string, value any) any {
	switch value := value.(type) {
	case string:
		if path := files.Join(m.Unused.Module.Dir, value); namesFile.MatchString(name) && value != "" && recognize.Exists(path) {
			return path
		}
	case []any:
		for i, element := range value {
			value[i] = m.resolved(name, element)
		}
	case map[string]any:
		for inner, element := range value {
			value[inner] = m.resolved(inner, element)
		}
	}
	return value
}

// namesFile matches the names of all backend arguments that take a local file path, and of the matching environment
// variables.
var namesFile = lazyregexp.New(`(?i)(^|_)(credentials|files?|(?:[a-z0-9]+_)paths?|bundle)$`)

// run runs commands in a folder with additional environment variables. It returns the output of the last command,
// without leading and trailing white space.
func (m *Existing) run(ctx context.Context, dir string, more []string, commands ...[]string) (printed []byte, err error) {
	p := m.Process
	p.Environ, p.More, p.Data = slices.Clone(p.Environ), more, (&module.Module{Dir: dir}).OwnData()
	for i, pair := range p.Environ {
		name, value, _ := strings.Cut(pair, "=")
		p.Environ[i] = fmt.Sprint(name, "=", m.resolved(name, value))
	}
	for _, words := range commands {
		text, code, err := p.Output(ctx, dir, words...)
		if err == nil && code != 0 {
			err = fmt.Errorf("%s %s ended with exit code %d", filepath.Base(p.Program), words[0], code)
		}
		if err != nil {
			return nil, err
		}
		printed = bytes.TrimSpace(text) // without a state, the output is an empty line
	}
	return printed, nil
}

// seal encrypts the state, if it is the expected one, and writes it to the backend. In error messages, what names the
// state, and wasNot says what was not done, such as "encrypted".
func (a *Arrival) seal(ctx context.Context, plain []byte, what, wasNot string) error {
	seen, err := a.Guard.expect(plain)
	a.Guard.noteDoubts()
	if err == nil && a.counts {
		if plain, err = store.Next(plain); err == nil {
			seen.Serial, _, err = store.Label(plain)
		}
	}
	var sealed []byte
	if err == nil {
		sealed, _, err = Seal(ctx, a.Guard.Target, plain, nil)
	}
	if err == nil {
		a.Backend.noteForm(sealed)
		err = a.Backend.keep(ctx, sealed, a.there)
	}
	switch {
	case errors.Is(err, store.ErrUnseen):
		return fmt.Errorf("%s: %w", what, err)
	case err != nil:
		return fmt.Errorf("%s was not %s: %w", what, wasNot, err)
	}
	a.Guard.NoteLineage(seen)
	a.Guard.Memory.Remember(ctx, seen)
	a.Guard.NoteRecipients(sealed)
	return nil
}
