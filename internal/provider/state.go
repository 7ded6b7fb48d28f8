package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/kubestate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// openedState is a state that was fetched, decrypted and parsed. All readers of a state share it, so it must
// not be modified.
type openedState struct {
	*tfstate.State
	source   source.Source
	missing  *source.MissingError // set if there is no state; State is then nil
	revision string
	lock     *source.Lock      // nil if the state is not locked
	fetched  []source.Warning  // the source's warnings
	opened   encryption.Opened // the result of decrypting, without the data
}

// open fetches, decrypts and parses the requested state, and checks it against the user's pins. A missing
// state is not an error unless a pin requires one.
func (c *configured) open(ctx context.Context, req stateRequest) (*openedState, error) {
	src, err := c.source(req)
	if err != nil {
		return nil, &stepError{step: stepConfiguration, err: err}
	}
	target, err := c.target(req)
	if err != nil {
		return nil, &stepError{step: stepConfiguration, source: src, err: err}
	}
	state, err := c.states.Do(ctx, req.identity(target), func(ctx context.Context) (*openedState, error) {
		return req.openAt(ctx, src, target)
	})
	if err != nil {
		return nil, err
	}
	return state, req.acceptPins(state)
}

// source opens the requested source.
func (c *configured) source(req stateRequest) (source.Source, error) {
	if c.unknown != nil {
		return nil, c.unknown
	}
	return c.sources[req.kind.Name](req.source)
}

// target returns the methods that may open the requested state.
func (c *configured) target(req stateRequest) (encryption.Target, error) {
	err := c.checkName(req.name)
	if err != nil {
		return encryption.Target{}, err
	}
	t := c.encryption.RemoteState(req.name)
	if len(t.Methods()) == 0 {
		t = c.encryption.State()
	}
	switch {
	case req.target != nil:
		t, err = c.encryption.Use(slices.Concat([]string{req.target.Method}, req.target.Fallbacks)...)
	case len(t.Methods()) == 0:
		t, err = c.encryption.Use() // without settings, even plaintext is read only if the user asks for it
	}
	if !c.enforced.IsKnown() || isYes(c.enforced) {
		t = t.Enforce()
	}
	return t, err
}

// openAt fetches, decrypts and parses a state. A missing state is not an error.
func (r stateRequest) openAt(ctx context.Context, src source.Source, target encryption.Target) (*openedState, error) {
	snapshot, err := src.Fetch(ctx)
	var file []byte
	if err == nil {
		ctx = meter.Into(ctx, meter.New(len(snapshot.Data)))
		file, err = r.file(ctx, snapshot.Data)
	}
	if missing, ok := source.IsMissing(err); ok {
		return &openedState{source: src, missing: missing, lock: missing.Lock}, nil
	}
	if err != nil {
		return nil, &stepError{step: stepFetch, source: src, err: err}
	}
	opened, err := target.DecryptInPlace(ctx, file)
	if errors.Is(err, encryption.ErrOtherKind) || err == nil && opened.Kind != encryption.KindState {
		return nil, &stepError{step: stepEnvelope, source: src, err: errPlan}
	}
	if err != nil {
		return nil, &stepError{step: stepOf(err), source: src, err: err}
	}
	state, err := r.parse(opened.Data)
	if err != nil {
		return nil, &stepError{step: stepParse, source: src, err: err}
	}
	opened.Data = nil // the state keeps the parts of the data that it needs
	return &openedState{
		State: state, source: src, revision: snapshot.Revision, lock: snapshot.Lock, fetched: snapshot.Warnings, opened: *opened,
	}, nil
}

var errPlan = fault.With(errors.New("this is a plan, not a state"),
	"set the path of the state file. To see the content of a plan, use the show command of the CLI or, if the plan is encrypted, "+
		"statecrypt decrypt -plan")

// file returns the state file. If the source returned a Kubernetes manifest, file extracts the state file
// from it.
func (r stateRequest) file(ctx context.Context, fetched []byte) ([]byte, error) {
	if r.object == nil || r.kind.Objects {
		return fetched, nil
	}
	file, err := r.object.File(fetched, meter.For(ctx, len(fetched)))
	if errors.Is(err, kubestate.ErrNoState) {
		err = &source.MissingError{Detail: err.Error() + ". A manifest that you wrote yourself contains no state; take the manifest from the " +
			"cluster (kubectl get -o yaml)"}
	}
	return file, err
}

func (r stateRequest) parse(plaintext []byte) (*tfstate.State, error) {
	s, err := tfstate.Parse(plaintext)
	if err != nil || r.resources {
		return s, err
	}
	return s.WithoutResources(), nil // frees the memory of the file, because the state may be kept for a long time
}

// warnings returns the warnings from the source and from decryption.
func (s *openedState) warnings() (out []source.Warning) {
	warn := func(title, format string, args ...any) {
		out = append(out, source.Warning{Title: title, Text: s.source.String() + fmt.Sprintf(format, args...)})
	}
	for _, w := range s.fetched {
		warn(w.Title, ": %s", w.Text)
	}
	for _, w := range s.opened.Warnings {
		warn(w.Title, ": opened with %s", w.Text)
	}
	if !s.opened.Encrypted && s.opened.UsedFallback {
		warn("Unencrypted state", " is not encrypted. It was read, because the fallback %q allows plaintext.", s.opened.Method)
	} else if s.opened.UsedFallback {
		warn("Fallback used", " was opened by the fallback %s.%s", s.opened.Method, attempts(s.opened))
	}
	return out
}

func attempts(opened encryption.Opened) string {
	if len(opened.Attempts) == 0 {
		return ""
	}
	out := " These methods were tried before:"
	for _, a := range opened.Attempts {
		out += fmt.Sprintf("\n  - %s: %v", a.Method, a.Err)
	}
	return out
}

// acceptPins returns an error if the state does not match the user's pins. A missing state does not match any
// pin, because deleting a state is a rollback, too.
func (r stateRequest) acceptPins(s *openedState) error {
	switch {
	case s.missing != nil && (r.expectedLineage != "" || r.minimumSerial != nil):
		return s.failed(stepFetch, fmt.Errorf("%w. A state is required, because expected_lineage or minimum_serial is set", s.missing))
	case s.missing != nil:
	case r.expectedLineage != "" && s.Lineage != r.expectedLineage:
		err := fault.With(errors.New("this is another state"), "check the source of the state and the value of expected_lineage")
		if strings.EqualFold(strings.Trim(r.expectedLineage, "{} \n"), s.Lineage) {
			err = fault.With(errors.New("this is the same lineage in another spelling"), "write it as in the state")
		}
		return s.failed(stepCheck, fmt.Errorf("the state has lineage %s, but expected_lineage is %s: %w",
			outside.Quoted(s.Lineage, maxName), outside.Quoted(r.expectedLineage, maxName), err))
	case r.minimumSerial != nil && s.Serial < *r.minimumSerial:
		return s.failed(stepCheck, fault.With(fmt.Errorf("the state has serial %d, but minimum_serial is %d", s.Serial, *r.minimumSerial),
			"if this is an old copy, restore the newest one. Otherwise, lower minimum_serial"))
	}
	return nil
}

func (s *openedState) failed(at step, err error) error {
	return &stepError{step: at, source: s.source, err: err}
}

// about returns the error for a missing state. It names the workspace, and says whether credentials were
// sent.
func (r stateRequest) about(m *source.MissingError) error {
	switch {
	case m.Mistaken:
		return m
	case !r.kind.Workspaces, r.object != nil:
		return r.sent(m)
	case r.source.Workspace == "default":
		return fault.With(r.sent(m), `. This is the place of the workspace "default"; set the argument workspace to read another workspace`)
	}
	return fault.With(r.sent(m), fmt.Sprintf(". This is the place of the workspace %q; to see the names, run \"terraform workspace list\" "+
		"in the configuration that writes the state", r.source.Workspace))
}

// sent returns the error for a missing state. It says whether credentials were sent, for sources that use
// credentials.
func (r stateRequest) sent(m *source.MissingError) error {
	switch {
	case m.Listed:
	case m.CredentialsSent:
		return fmt.Errorf("%w. Credentials were sent, but some servers give the same answer if access is denied", m)
	case r.kind.Credentials.Name != "":
		return fault.Known(fmt.Errorf("%w. No credentials were sent, and some servers give the same answer if credentials are missing", m),
			fault.NoCredentials{})
	}
	return m
}
