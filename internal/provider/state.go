package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/kube"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/tfstate"
)

// openedState is a state that was fetched, decrypted and parsed. Every reader
// of the same state shares it, so nothing in it is ever changed.
type openedState struct {
	*tfstate.State
	source   source.Source
	missing  *source.MissingError // set when there is no state; State is nil then
	revision string
	lock     *source.Lock // nil when nobody has locked the state
	warnings []warning

	encrypted    bool
	method       string
	usedFallback bool
}

// open is the main path: everything that happens between the arguments that a
// user wrote and a state whose contents can be given. A missing state is no
// error here.
func (c *configured) open(ctx context.Context, req stateRequest) (*openedState, error) {
	if c.unknown != nil {
		return nil, &stepError{step: stepConfiguration, err: c.unknown}
	}
	if req.kind.Name == "" {
		return nil, &stepError{step: stepConfiguration, err: unknownError("the source")}
	}
	src, err := c.sources[req.kind.Name](req.source)
	if err != nil {
		return nil, &stepError{step: stepConfiguration, err: err}
	}
	target, err := c.targetFor(req.target, req.name)
	if err != nil {
		return nil, &stepError{step: stepConfiguration, source: src, err: err}
	}
	state, err := c.states.Do(ctx, req.identity(target), func(ctx context.Context) (*openedState, error) {
		return openState(ctx, src, target, req)
	})
	if err != nil {
		return nil, err
	}
	return state, req.acceptPins(state)
}

// openState fetches, decrypts and parses one state.
func openState(ctx context.Context, src source.Source, target encryption.Target, req stateRequest) (*openedState, error) {
	snapshot, err := src.Fetch(ctx)
	var file []byte
	if err == nil {
		file, err = stateFile(snapshot.Data, req.source.Object)
	}
	if missing, ok := source.IsMissing(err); ok {
		return &openedState{source: src, missing: missing, lock: missing.Lock}, nil
	}
	if err != nil {
		return nil, &stepError{step: stepFetch, source: src, err: err}
	}
	opened, err := target.Decrypt(ctx, file)
	if err != nil {
		return nil, &stepError{step: stepOf(err), source: src, err: err}
	}
	parse := tfstate.Parse
	if req.resources {
		parse = tfstate.ParseResources
	}
	state, err := parse(opened.Data)
	if err != nil {
		return nil, &stepError{step: stepParse, source: src, err: err}
	}
	return &openedState{
		State:        state,
		source:       src,
		revision:     snapshot.Revision,
		lock:         snapshot.Lock,
		warnings:     openingWarnings(src, snapshot, opened),
		encrypted:    opened.Encrypted,
		method:       opened.Method,
		usedFallback: opened.UsedFallback,
	}, nil
}

// stateFile takes the state out of a manifest, where the state is that of a
// Kubernetes object.
func stateFile(data []byte, object *kube.Object) ([]byte, error) {
	if object == nil {
		return data, nil
	}
	file, err := object.File(data)
	if errors.Is(err, kube.ErrNoState) {
		return nil, &source.MissingError{Detail: err.Error()}
	}
	return file, err
}

func openingWarnings(src source.Source, snapshot *source.Snapshot, opened *encryption.Opened) []warning {
	var out []warning
	for _, w := range snapshot.Warnings {
		out = append(out, warning{"Insecure, slow or locked source", fmt.Sprintf("%s: %s", src, w)})
	}
	for _, w := range opened.Warnings {
		out = append(out, warning{"Weak encryption", fmt.Sprintf("%s: opened with %s", src, w)})
	}
	if !opened.Encrypted {
		out = append(out, warning{"Unencrypted state", fmt.Sprintf("%s is not encrypted. It was read because %q is in effect for it.", src, opened.Method)})
	} else if opened.UsedFallback {
		tried := ""
		if len(opened.Attempts) > 0 {
			tried = " Tried before:"
		}
		for _, a := range opened.Attempts {
			tried += fmt.Sprintf("\n  - %s: %v", a.Method, a.Err)
		}
		out = append(out, warning{"Fallback used", fmt.Sprintf("%s was opened by the fallback %s.%s", src, opened.Method, tried)})
	}
	return out
}

// acceptPins checks the state against what the user pinned. A missing state is
// refused as well: a deletion is a rollback.
func (r stateRequest) acceptPins(s *openedState) error {
	pinned := r.expectedLineage != "" || r.minimumSerial != nil
	switch {
	case s.missing != nil && pinned:
		return &stepError{step: stepFetch, source: s.source, err: fmt.Errorf("%w; expected_lineage or minimum_serial says that there must be one", s.missing)}
	case s.missing != nil:
	case r.expectedLineage != "" && s.Lineage != r.expectedLineage:
		return &stepError{step: stepCheck, source: s.source, err: fmt.Errorf("the state has the lineage %s, and expected_lineage says %s: this is another state",
			outside.Quoted(s.Lineage, maxName), outside.Quoted(r.expectedLineage, maxName))}
	case r.minimumSerial != nil && s.Serial < *r.minimumSerial:
		return &stepError{step: stepCheck, source: s.source, err: fmt.Errorf("the state has the serial %d, and minimum_serial says %d: this is an old copy", s.Serial, *r.minimumSerial)}
	}
	return nil
}

// sent says whether credentials were sent, on sources that know any.
func (r stateRequest) sent(m *source.MissingError) string {
	switch {
	case m.CredentialsSent:
		return " (credentials were sent; some servers give the same answer when they do not allow access)"
	case r.kind.Credentials.Name != "":
		return " (no credentials were sent; some servers give the same answer when they need some)"
	}
	return ""
}

// headerFields are the read-only attributes that describe the state itself.
func headerFields() []field {
	return []field{
		computed("serial", cty.Number, "The serial of the state."),
		computed("lineage", cty.String, "The lineage of the state."),
		computed("terraform_version", cty.String, "The version of the program that wrote the state."),
		computed("encrypted", cty.Bool, "Whether the file was encrypted."),
		computed("decrypted_with", cty.String, "The address of the method that opened the file; null when it was not encrypted."),
		computed("used_fallback", cty.Bool, "Whether a fallback opened the file, which then wants to be written again by its owner."),
		computed("revision", cty.String, "The revision that was read: a commit, an ETag or an object version; null where the source has none."),
		computed("lock", lockType, "Who had the state locked when it was read, on sources that see locks (`git`, where terraform-backend-git writes them, `azurerm` and `remote`): an object with `id`, `who`, `operation` and `created`, each null when the lock does not tell it. Null when nobody had."),
	}
}

var lockType = cty.Object(map[string]cty.Type{"id": cty.String, "who": cty.String, "operation": cty.String, "created": cty.String})

func lockValue(l *source.Lock) cty.Value {
	if l == nil {
		return cty.NullVal(lockType)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id": orNull(l.ID), "who": orNull(l.Who), "operation": orNull(l.Operation), "created": orNull(l.Created),
	})
}

// maxRevision is in bytes. Version IDs of S3 have up to 1024, before they are
// escaped.
const maxRevision = 4096

// header returns the read-only attributes that describe the state itself.
func (s *openedState) header() map[string]cty.Value {
	out := map[string]cty.Value{
		"serial":            cty.NullVal(cty.Number),
		"lineage":           cty.NullVal(cty.String),
		"terraform_version": cty.NullVal(cty.String),
		"encrypted":         cty.NullVal(cty.Bool),
		"decrypted_with":    cty.NullVal(cty.String),
		"used_fallback":     cty.NullVal(cty.Bool),
		"revision":          orNull(outside.Value(s.revision, maxRevision)),
		"lock":              lockValue(s.lock),
	}
	if s.missing != nil {
		return out
	}
	out["serial"] = cty.NumberIntVal(s.Serial)
	out["lineage"] = orNull(s.Lineage)
	out["terraform_version"] = orNull(s.TerraformVersion)
	out["encrypted"] = cty.BoolVal(s.encrypted)
	out["used_fallback"] = cty.BoolVal(s.usedFallback)
	if s.encrypted {
		out["decrypted_with"] = cty.StringVal(s.method)
	}
	return out
}

func orNull(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
}

// result is what a data source or an ephemeral resource gives.
type result struct {
	attributes map[string]cty.Value // :: read-only attribute → value
	warnings   []warning
}

// fill returns the arguments with the read-only attributes filled.
func (r *result) fill(raw tftypes.Value) (tftypes.Value, diag.Diagnostics) {
	diags := warningDiagnostics(r.warnings)
	filled, err := withResults(raw, r.attributes)
	if err != nil {
		diags.AddError("Cannot return the result", err.Error())
	}
	return filled, diags
}

func (r *result) warn(summary, format string, args ...any) {
	r.warnings = append(r.warnings, warning{summary, fmt.Sprintf(format, args...)})
}
