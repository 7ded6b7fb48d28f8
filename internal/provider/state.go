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
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// openedState is a state that was fetched, decrypted and parsed. Every reader
// of the same state shares it, so nothing in it is ever changed.
type openedState struct {
	*tfstate.State
	source   source.Source
	missing  *source.MissingError // set if there is no state; State is nil then
	revision string
	lock     *source.Lock // nil if nobody has locked the state
	warnings []source.Warning

	method       string // address of the method that decrypted the file; "" if it was not encrypted
	usedFallback bool
}

// open is the main path: everything that happens between the arguments that a
// user wrote and a state whose contents can be given. A missing state is no
// error here.
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

// source is where the state is.
func (c *configured) source(req stateRequest) (source.Source, error) {
	if c.unknown != nil {
		return nil, c.unknown
	}
	return c.sources[req.kind.Name](req.source)
}

// target is the methods that may open the state.
func (c *configured) target(req stateRequest) (encryption.Target, error) {
	if err := c.checkName(req.name); err != nil {
		return encryption.Target{}, err
	}
	t, err := c.encryption.RemoteState(req.name)
	if err != nil {
		t, err = c.encryption.State(), nil
	}
	switch {
	case req.target != nil:
		t, err = c.encryption.Use(slices.Concat([]string{req.target.Method}, req.target.Fallbacks)...)
	case len(t.Methods()) == 0:
		t, err = c.encryption.Use() // plaintext is read only by name, without any settings as well
	}
	if !c.enforced.IsKnown() || isYes(c.enforced) {
		t = t.Enforce()
	}
	return t, err
}

// openAt fetches, decrypts and parses a state.
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
	if source.IsTooLarge(err) {
		err = fmt.Errorf("%w; if that is expected, raise max_size", err)
	}
	if err != nil {
		return nil, &stepError{step: stepFetch, source: src, err: err}
	}
	opened, err := target.DecryptInPlace(ctx, file)
	if errors.Is(err, encryption.ErrOtherKind) {
		return nil, &stepError{step: stepOf(err), source: src, err: errPlan}
	}
	if err != nil {
		return nil, &stepError{step: stepOf(err), source: src, err: err}
	}
	if opened.Kind != encryption.KindState {
		return nil, &stepError{step: stepEnvelope, source: src, err: errPlan}
	}
	state, err := r.parse(opened.Data)
	if err != nil {
		return nil, &stepError{step: stepParse, source: src, err: err}
	}
	out := &openedState{
		State:        state,
		source:       src,
		revision:     snapshot.Revision,
		lock:         snapshot.Lock,
		warnings:     openingWarnings(src, snapshot, opened),
		usedFallback: opened.UsedFallback,
	}
	if opened.Encrypted {
		out.method = opened.Method
	}
	return out, nil
}

var errPlan = errors.New("this is a plan, and not a state: name the file of the state; what is in a plan, statecrypt decrypt -plan shows")

// file is the file of the state, which is taken out of a manifest if the source has
// read one.
func (r stateRequest) file(ctx context.Context, fetched []byte) ([]byte, error) {
	if r.object == nil || r.kind.Objects {
		return fetched, nil
	}
	file, err := r.object.File(fetched, meter.For(ctx, len(fetched)))
	if errors.Is(err, kubestate.ErrNoState) {
		err = &source.MissingError{Detail: err.Error() + "; a manifest that was written to be applied has none, so take it from the cluster " +
			"(kubectl get -o yaml)"}
	}
	return file, err
}

func (r stateRequest) parse(plaintext []byte) (*tfstate.State, error) {
	s, err := tfstate.Parse(plaintext)
	if err != nil || r.resources {
		return s, err
	}
	return s.WithoutResources(), nil // which frees the memory of the file: the state may be kept for long
}

func openingWarnings(src source.Source, snapshot *source.Snapshot, opened *encryption.Opened) []source.Warning {
	var out []source.Warning
	warn := func(title, format string, args ...any) {
		out = append(out, source.Warning{Title: title, Text: src.String() + fmt.Sprintf(format, args...)})
	}
	for _, w := range snapshot.Warnings {
		warn(w.Title, ": %s", w.Text)
	}
	for _, w := range opened.Warnings {
		warn(w.Title, ": opened with %s", w.Text)
	}
	if !opened.Encrypted && opened.UsedFallback {
		warn("Unencrypted state", " is not encrypted. It was read because the fallback %q allows that.", opened.Method)
	} else if opened.UsedFallback {
		warn("Fallback used", " was opened by the fallback %s.%s", opened.Method, attempts(opened))
	}
	return out
}

func attempts(opened *encryption.Opened) string {
	if len(opened.Attempts) == 0 {
		return ""
	}
	out := " Tried before:"
	for _, a := range opened.Attempts {
		out += fmt.Sprintf("\n  - %s: %v", a.Method, a.Err)
	}
	return out
}

// acceptPins checks the state against what the user pinned. A missing state is
// refused as well: a deletion is a rollback.
func (r stateRequest) acceptPins(s *openedState) error {
	switch {
	case s.missing != nil && (r.expectedLineage != "" || r.minimumSerial != nil):
		return s.failed(stepFetch, fmt.Errorf("%w; expected_lineage or minimum_serial says that there must be one", s.missing))
	case s.missing != nil:
	case r.expectedLineage != "" && s.Lineage != r.expectedLineage:
		advice := "this is another state; check where it is read from, or expected_lineage"
		if strings.EqualFold(strings.Trim(r.expectedLineage, "{} \n"), s.Lineage) {
			advice = "this is the same one, spelled in another way; spell it as the state does"
		}
		return s.failed(stepCheck, fmt.Errorf("the state has the lineage %s, and expected_lineage says %s: %s",
			outside.Quoted(s.Lineage, maxName), outside.Quoted(r.expectedLineage, maxName), advice))
	case r.minimumSerial != nil && s.Serial < *r.minimumSerial:
		return s.failed(stepCheck, fmt.Errorf("the state has the serial %d, and minimum_serial says %d: either this is an old "+
			"copy, and the newest one must be restored, or minimum_serial is too high, and must be lowered",
			s.Serial, *r.minimumSerial))
	}
	return nil
}

func (s *openedState) failed(at step, err error) error {
	return &stepError{step: at, source: s.source, err: err}
}

// about says of a missing state which workspace is missing, and whether credentials were
// sent.
func (r stateRequest) about(m *source.MissingError) error {
	workspace := ""
	switch name := r.source.Workspace; {
	case m.Mistaken:
		return m
	case !r.kind.Workspaces, r.object != nil:
	case name == "default":
		workspace = `. This is the place of the workspace "default"; for another, set workspace`
	default:
		workspace = fmt.Sprintf(". This is the place of the workspace %q; \"terraform workspace list\", in the configuration that writes it, "+
			"prints the names", name)
	}
	return fmt.Errorf("%w%s", r.sent(m), workspace)
}

// sent says whether credentials were sent, on sources that have any.
func (r stateRequest) sent(m *source.MissingError) error {
	switch {
	case m.Listed:
	case m.CredentialsSent:
		return fmt.Errorf("%w. Credentials were sent; some servers give the same answer when they do not allow access", m)
	case r.kind.Credentials.Name != "":
		return fact.With(fmt.Errorf("%w. No credentials were sent; some servers give the same answer when they need some", m),
			fact.NoCredentials{})
	}
	return m
}
