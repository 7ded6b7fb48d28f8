// Package ageplugin runs age plugins. These programs have access to keys, such as keys in a YubiKey
// or a TPM; see https://c2sp.org/age-plugin.
//
// Age's own client passes the whole environment of its process to plugins. This package passes only
// the variables of a [world.World].
package ageplugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/plugin"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/program"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	fileKeyLength = 16  // bytes
	maxShown      = 500 // maximum length of a plugin's message in an error, in bytes
)

// Plugin is an identity or a recipient of a plugin. It implements [age.Identity] and
// [age.RecipientWithLabels].
type Plugin struct {
	program  program.Command
	text     string // the identity or the recipient
	identity bool

	// Turn has capacity 1 and is held while a plugin is asked for a key. Identities that share it
	// are asked one at a time, because there may be only one hardware key, and one user to touch it.
	Turn chan struct{}

	ctx  context.Context // set by In, because age's interfaces have no context
	gave bool            // whether Unwrap has returned a key
}

// IsIdentity reports whether text begins like a plugin's identity.
func IsIdentity(text string) bool { return strings.HasPrefix(text, "AGE-PLUGIN-") }

// IsRecipient reports whether text has the form age1NAME1…. Callers must first exclude age's own
// recipients, which begin with age1pq1, age1tag1 or age1tagpq1.
func IsRecipient(text string) bool {
	return strings.HasPrefix(text, "age1") && strings.Count(text, "1") > 1
}

// Parse parses an identity or a recipient of a plugin. Its errors do not repeat the text.
func Parse(text string, w world.World) (*Plugin, error) {
	parse, identity := plugin.ParseRecipient, IsIdentity(text)
	if identity {
		parse = plugin.ParseIdentity
	}
	name, _, err := parse(text)
	if err != nil {
		return nil, errors.New("this looks like a key for an age plugin, but is truncated or mistyped; copy the whole key")
	}
	command := program.Command{Argv: []string{"age-plugin-" + name}, World: w}
	return &Plugin{program: command, text: text, identity: identity, Turn: make(chan struct{}, 1)}, nil
}

// In returns a copy of p for a single use, which ends when ctx does.
func (p *Plugin) In(ctx context.Context) *Plugin {
	bound := *p
	bound.ctx = ctx
	return &bound
}

// Gave reports whether Unwrap has returned a key.
func (p *Plugin) Gave() bool { return p.gave }

// Name returns the name of the plugin's program in quotation marks, for errors.
func (p *Plugin) Name() string { return outside.Quoted(p.program.Argv[0], maxShown) }

// Error means that a plugin failed. The plugin returned no key, encrypted or not, and did not say
// that it has none for the file.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the reason and [age.ErrIncorrectIdentity], so that age tries the next identity.
// Age does the same if a hardware key is not plugged in.
func (e *Error) Unwrap() []error { return []error{e.err, age.ErrIncorrectIdentity} }

// Unwrap asks the plugin for the key of a file with these stanzas. It returns
// [age.ErrIncorrectIdentity] if the plugin has no key for the file.
func (p *Plugin) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	select {
	case p.Turn <- struct{}{}:
		defer func() { <-p.Turn }()
	case <-p.ctx.Done():
		return nil, context.Cause(p.ctx)
	}
	s := session{step: "decrypting a key", secrets: [][]byte{[]byte(p.text)}}
	s.tell(age.Stanza{Type: "add-identity", Args: []string{p.text}})
	for _, stanza := range stanzas {
		s.tell(age.Stanza{Type: "recipient-stanza", Args: slices.Concat([]string{"0", stanza.Type}, stanza.Args), Body: stanza.Body})
	}
	var key []byte
	s.commands = map[string]func(age.Stanza) error{"file-key": func(stanza age.Stanza) error {
		if len(stanza.Args) != 1 || stanza.Args[0] != "0" || len(stanza.Body) != fileKeyLength || key != nil {
			return fmt.Errorf("%w: it did not return exactly one key of 16 bytes for this file", program.ErrProtocol)
		}
		key = stanza.Body
		s.secrets = append(s.secrets, key)
		return nil
	}}
	err := p.run(&s, "identity-v1")
	switch {
	case err != nil:
		return nil, err
	case key == nil && s.refused != "":
		return nil, &Error{fmt.Errorf("%s: %s returned no key%s", s.step, p.Name(), s.context())}
	case key == nil:
		return nil, age.ErrIncorrectIdentity
	}
	p.gave = true
	return key, nil
}

// Wrap calls [Plugin.WrapWithLabels] and ignores the labels.
func (p *Plugin) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	stanzas, _, err := p.WrapWithLabels(fileKey)
	return stanzas, err
}

// WrapWithLabels encrypts a file key with the plugin. Recipients can be combined in a file only if
// their labels are equal.
func (p *Plugin) WrapWithLabels(fileKey []byte) (stanzas []*age.Stanza, labels []string, err error) {
	s := session{step: "encrypting a key", secrets: [][]byte{[]byte(p.text), fileKey}}
	add := "add-recipient"
	if p.identity {
		add = "add-identity"
	}
	s.tell(age.Stanza{Type: add, Args: []string{p.text}})
	s.tell(age.Stanza{Type: "wrap-file-key", Body: fileKey})
	s.tell(age.Stanza{Type: "extension-labels"})
	labeled := false
	s.commands = map[string]func(age.Stanza) error{
		"recipient-stanza": func(stanza age.Stanza) error {
			if len(stanza.Args) < 2 || stanza.Args[0] != "0" {
				return fmt.Errorf("%w: it encrypted the key of another file", program.ErrProtocol)
			}
			stanzas = append(stanzas, &age.Stanza{Type: stanza.Args[1], Args: stanza.Args[2:], Body: stanza.Body})
			return nil
		},
		"labels": func(stanza age.Stanza) error {
			if labeled {
				return fmt.Errorf("%w: it returned labels twice", program.ErrProtocol)
			}
			labeled, labels = true, stanza.Args
			return nil
		},
	}
	err = p.run(&s, "recipient-v1")
	if err == nil && len(stanzas) == 0 {
		err = &Error{fmt.Errorf("%s: %s encrypted nothing%s", s.step, p.Name(), s.context())}
	}
	return stanzas, labels, err
}

// run runs the plugin for session s.
func (p *Plugin) run(s *session, machine string) error {
	if _, err := world.Find(p.program.Argv[0]); err != nil {
		return &Error{fmt.Errorf("%s: %s is not in PATH; install this age plugin", s.step, p.Name())}
	}
	s.tell(age.Stanza{Type: "done"})
	s.plugin = p
	command := p.program
	command.Argv = append(slices.Clone(command.Argv), "--age-plugin="+machine)
	err := command.Talk(p.ctx, s)
	switch {
	case p.ctx.Err() != nil:
		return context.Cause(p.ctx)
	case err != nil:
		return &Error{fmt.Errorf("%s: %w%s", s.step, err, s.context())}
	}
	return nil
}

// session is a dialog with a plugin.
type session struct {
	step     string   // the current step, for errors
	secrets  [][]byte // secrets that errors and messages must not show
	plugin   *Plugin
	asked    bytes.Buffer // the stanzas of the first phase
	commands map[string]func(age.Stanza) error
	reader   reader
	over     bool

	said    string // the last message of the plugin
	refused string // the last refused request of the plugin
}

var _ program.Dialog = (*session)(nil)

func (s *session) tell(stanza age.Stanza) { s.asked.Write(encode(stanza)) }

// Begin sends the stanzas of the first phase, which is part of both protocols. In the second phase,
// the plugin leads.
func (s *session) Begin(stdin io.WriteCloser) { _, _ = stdin.Write(s.asked.Bytes()) }

// Hear answers the stanzas that the plugin prints.
func (s *session) Hear(stdin io.WriteCloser, printed []byte) error {
	for stanza, err := range s.reader.read(printed) {
		if err != nil {
			return err
		}
		answer, err := s.answer(stanza)
		if err != nil {
			return err
		}
		_, _ = stdin.Write(encode(age.Stanza{Type: answer})) // the plugin may have ended without waiting for the answer
	}
	return nil
}

// End returns an error if the plugin ended before it said that it was done.
func (s *session) End() error {
	if !s.over {
		return fmt.Errorf("%w: it ended before the dialog was complete", program.ErrProtocol)
	}
	return nil
}

func (s *session) Clean(said []byte) []byte { return program.Without(said, s.secrets...) }

// answer returns the answer to a stanza. For a command that is not part of the protocol, it is
// "unsupported", as the protocol requires.
func (s *session) answer(stanza age.Stanza) (string, error) {
	text := func() string { return outside.Quoted(string(s.Clean(stanza.Body)), maxShown) }
	switch command := s.commands[stanza.Type]; {
	case command != nil:
		return "ok", command(stanza)
	case stanza.Type == "done":
		s.over = true
		return "", program.ErrDone
	case stanza.Type == "error":
		return "", fmt.Errorf("the plugin says %s", text())
	case stanza.Type == "msg":
		s.said = text()
		notice.Show(s.plugin.ctx, s.plugin.Name()+" says "+s.said)
		return "ok", nil
	case slices.Contains([]string{"confirm", "request-public", "request-secret"}, stanza.Type):
		s.refused = text()
		return "fail", nil
	}
	return "unsupported", nil
}

// context returns the end of an error message: the plugin's last message and its last refused
// request.
func (s *session) context() (text string) {
	if s.said != "" {
		text = ". Its message was " + s.said
	}
	if s.refused != "" {
		text += ". It asked " + s.refused + ", but questions cannot be answered here; use a key that needs no answer, for example " +
			"a key without a PIN"
	}
	return text
}
