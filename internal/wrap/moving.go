package wrap

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
)

// moveIn seals the state that there is: that in the backend, if there is one, and
// else the module's own. It has the lock meanwhile.
func moveIn(ctx context.Context, p *proxy) error {
	m := &move{proxy: p}
	return p.backend.underLock(ctx, "statecrypt wrap -encrypt-existing", func() error { return m.sealExisting(ctx) })
}

// move is a state on its way in.
type move struct {
	*proxy
	there  store.Version // the state in the backend
	counts bool          // it is the same state, and gets the next serial
}

func (m *move) sealExisting(ctx context.Context) error {
	there, version, err := m.backend.Read(ctx)
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
		say(m.Stderr, "the state in the backend is encrypted already")
		m.call.warnOfLeft(m.Stderr)
		return m.backend.settle(ctx, there)
	case info.Kind != encryption.KindState:
		if there, err = m.ofOtherTool(ctx, there); err != nil {
			return err
		}
	}
	if err := cmp.Or(m.noWorkspace(), m.backend.mayEncrypt()); err != nil {
		return fmt.Errorf("the state in the backend: %w", err)
	}
	m.counts = m.backend.kind.Counts
	if err := m.store(ctx, there, "the state in the backend", "encrypted"); err != nil {
		return err
	}
	say(m.Stderr, "the state in the backend is encrypted now")
	m.call.warnOfLeft(m.Stderr)
	return nil
}

// ofOtherTool opens what sops or terraform-backend-git has encrypted.
func (m *move) ofOtherTool(ctx context.Context, there []byte) ([]byte, error) {
	opened, err := m.State.Decrypt(ctx, there)
	if err != nil {
		return nil, fmt.Errorf("what the backend has is not a state, and the settings do not open it; check the address, and if another tool "+
			"has encrypted it, put the method for that into a fallback: %w", err)
	}
	for _, warning := range opened.Warnings {
		say(m.Stderr, warning.Text)
	}
	return opened.Data, nil
}

// sealOwn is about the state that the module had without wrap.
func (m *move) sealOwn(ctx context.Context) error {
	place, content, err := m.own(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the state in %s: %w", place, err)
	case len(content) == 0:
		say(m.Stderr, "there is no state yet, neither in the backend nor in "+place)
		return nil
	}
	if err := m.store(ctx, content, "the state in "+place, "encrypted"); err != nil {
		return err
	}
	say(m.Stderr, "the state in "+place+" is in the backend now, encrypted")
	say(m.Stderr, "what is left in "+place+" is not encrypted; delete it, and its backups")
	return nil
}

// warnOfLeft is about states beside that in the backend, which nobody will look at.
func (i *invocation) warnOfLeft(stderr io.Writer) {
	i.warnOfWorkspaces(stderr)
	backups, _ := filepath.Glob(filepath.Join(i.dir, "*.backup"))
	for _, path := range backups {
		if file := filepath.Base(path); i.kindOf(file) == encryption.KindState {
			say(stderr, "warning: there is a plaintext state in "+outside.Line(file, 200)+"; if it is an older version of this state, delete it")
		}
	}
	switch file, r, err := i.former(); {
	case err != nil:
	case file == "":
		say(stderr, "warning: this module has also had a state in the backend "+r.name()+", which is not used under wrap; if it is not this "+
			"very one by another address, but an older version of it, delete it")
	case i.kindOf(file) == encryption.KindState:
		say(stderr, "warning: there is also a plaintext state in "+outside.Line(file, 200)+", which stays there, and is not used under wrap; "+
			"if it is an older version of this state, delete it")
	}
}

// former says where the module has its state without wrap, by Terraform's record: in
// file, or, if that is "", in another backend.
func (i *invocation) former() (file string, r recorded, err error) {
	file = "terraform.tfstate"
	r, err = readRecord(i.data)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	path, _ := r.Backend.Config["path"].(string)
	same := false
	if i.backend != nil {
		same, _ = i.backend.succeeds(r)
	}
	switch local := slices.Contains([]string{"", "local"}, r.Backend.Type); {
	case err != nil:
	case local:
		file = cmp.Or(path, file)
	case same: // it is no other
	case r.Backend.Type != "http" || len(r.Backend.Config) > 0: // init names all arguments, and wrap none, also before -leave
		file = ""
	}
	return file, r, err
}

// own reads the state of the module from where it is without wrap.
func (m *move) own(ctx context.Context) (place string, content []byte, err error) {
	file, r, err := m.call.former()
	place = cmp.Or(file, "the backend "+r.name())
	if err != nil {
		return place, nil, err
	}
	if err := m.noWorkspace(); err != nil {
		return place, nil, err
	}
	if file == "" {
		if address, _ := world.Lookup(m.Environ)("TF_HTTP_ADDRESS"); address == "" && r.lacksAddress() {
			return place, nil, errors.New("set that variable and those of its credentials as they were, or, if nothing is there, delete " +
				outside.Line(m.call.data, 300))
		}
		content, err = m.pull(ctx, r.Backend.Type, r.Backend.Config)
		return place, content, err
	}
	if path := join(m.call.dir, file); !m.call.keeps(path) {
		content, err = readFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return place, content, keyfile.Reason(err)
}

// noWorkspace refuses a module whose state is that of a workspace, which is another one.
func (m *move) noWorkspace() error {
	if workspace := m.workspace(); workspace != "" && workspace != "default" {
		return errors.New("a workspace is selected, and there are none under wrap; select default first")
	}
	return nil
}

// workspace is what is selected, "" if nothing is.
func (m *move) workspace() string {
	if name, _ := world.Lookup(m.Environ)("TF_WORKSPACE"); name != "" {
		return name
	}
	name, _ := keyfile.Read(filepath.Join(m.call.data, "environment")) // none, as a rule
	return string(name)
}

// pull has the CLI read the state from another backend. The module names ours by
// now, so it is read by a module that has nothing but that backend.
func (m *move) pull(ctx context.Context, kind string, settings map[string]any) ([]byte, error) {
	f := &folder{}
	defer f.remove()
	if err := f.open(); err != nil {
		return nil, err
	}
	maps.DeleteFunc(settings, func(_ string, value any) bool { return value == nil })
	for name, value := range settings {
		settings[name] = m.resolved(name, value)
	}
	module, err := json.Marshal(map[string]any{"terraform": map[string]any{"backend": map[string]any{kind: settings}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, "main.tf.json"), module, 0o600)
	}
	if err != nil {
		return nil, err
	}
	var more []string
	if kind == "http" { // as without wrap: what its block leaves out is in variables
		more = slices.DeleteFunc(slices.Clone(m.Environ), func(pair string) bool {
			return !strings.HasPrefix(strings.ToUpper(pair), "TF_HTTP_")
		})
	}
	return m.run(ctx, f.dir, more, []string{"init", "-input=false", "-no-color"}, []string{"state", "pull"})
}

// resolved is the value of an argument, or of a variable, that a backend has in another
// folder: the relative name of a file of the module would lead nowhere there.
func (m *move) resolved(name string, value any) any {
	switch value := value.(type) {
	case string:
		if path := join(m.call.dir, value); namesFile.MatchString(name) && value != "" && recognize.Exists(path) {
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

// namesFile is how the arguments of all backends are called that name files of this machine,
// and the variables in their place.
var namesFile = lazyregexp.New(`(?i)(^|_)(credentials|files?|(?:[a-z0-9]+_)paths?|bundle)$`)

// run runs commands in a folder, with more variables, and returns what the last of them prints.
func (m *move) run(ctx context.Context, dir string, more []string, commands ...[]string) (printed []byte, err error) {
	o := m.Options
	o.Environ = slices.Clone(o.Environ)
	for i, pair := range o.Environ {
		name, value, _ := strings.Cut(pair, "=")
		o.Environ[i] = fmt.Sprint(name, "=", m.resolved(name, value))
	}
	for _, words := range commands {
		var out bytes.Buffer
		o.Stdin, o.Stdout = nil, &out
		child := &invocation{command: command{Name: words[0]}, program: m.call.program, dir: dir, args: words[1:]}
		code, err := child.run(ctx, o, child.environ(o, more...))
		if err == nil && code != 0 {
			err = fmt.Errorf("%s %s ended with %d", filepath.Base(m.call.program), words[0], code)
		}
		if err != nil {
			return nil, err
		}
		printed = bytes.TrimSpace(out.Bytes()) // without a state, it is an empty line
	}
	return printed, nil
}

// store seals a state, if it is the one that is expected, and writes it to the backend. If it
// fails, what was not is for the error, such as "encrypted".
func (m *move) store(ctx context.Context, plain []byte, what, wasNot string) error {
	seen, err := m.expect(plain)
	m.noteDoubts()
	if err == nil && m.counts {
		if plain, err = store.Next(plain); err == nil {
			seen.Serial, _, err = store.Label(plain)
		}
	}
	var sealed []byte
	if err == nil {
		sealed, _, err = Seal(ctx, m.State, plain)
	}
	if err == nil {
		m.backend.noteForm(m.Stderr, sealed)
		err = m.backend.keep(ctx, sealed, m.there)
	}
	switch {
	case errors.Is(err, store.ErrUnseen):
		return fmt.Errorf("%s: %w", what, err)
	case err != nil:
		return fmt.Errorf("%s was not %s: %w", what, wasNot, err)
	}
	m.noteLineage(seen)
	m.memory.remember(ctx, seen)
	m.noteRecipients(sealed)
	return nil
}
