package provider

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/tfstate"
)

// validate checks the arguments as far as they are known.
func (c catalog) validate(raw tftypes.Value) diag.Diagnostics {
	_, problems := c.request(raw, os.LookupEnv)
	return diagnostics(problems)
}

// readRemoteState gives the data source and the ephemeral resource their
// result: the arguments, with the read-only attributes filled.
func (c catalog) readRemoteState(ctx context.Context, provider *configured, raw tftypes.Value) (tftypes.Value, diag.Diagnostics) {
	request, problems := c.request(raw, provider.env)
	if len(problems) > 0 {
		return tftypes.Value{}, diagnostics(problems)
	}
	state, err := provider.read(ctx, request)
	if err != nil {
		return tftypes.Value{}, readDiagnostics(err)
	}
	diags := warningDiagnostics(state.warnings)
	result, err := withResults(raw, state.attributes)
	if err != nil {
		diags.AddError("Cannot return the outputs", err.Error())
	}
	return result, diags
}

// remoteState is what statecrypt_remote_state, as a data source or an
// ephemeral resource, results in.
type remoteState struct {
	attributes map[string]cty.Value // :: read-only attribute → value
	warnings   []warning
}

// openedState is a state that was fetched, decrypted and parsed. Every reader
// of the same state shares it, so nothing in it is ever changed.
type openedState struct {
	*tfstate.State
	missing  *source.MissingError // set when there is no state; State is nil then
	revision string
	warnings []warning

	encrypted    bool
	method       string
	usedFallback bool
}

// read is the main path: everything that happens between the arguments that a
// user wrote and the attributes that come back.
func (c *configured) read(ctx context.Context, req stateRequest) (*remoteState, error) {
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
		return openState(ctx, src, target)
	})
	if err != nil {
		return nil, err
	}
	if err := req.acceptMissing(state); err != nil {
		return nil, &stepError{step: stepFetch, source: src, err: err}
	}
	if err := req.acceptPins(state); err != nil {
		return nil, &stepError{step: stepCheck, source: src, err: err}
	}
	result, err := req.outputs(state)
	if err != nil {
		return nil, &stepError{step: stepParse, source: src, err: err}
	}
	result.warnings = append(slices.Clone(state.warnings), result.warnings...)
	return result, nil
}

// openState fetches, decrypts and parses one state.
func openState(ctx context.Context, src source.Source, target encryption.Target) (*openedState, error) {
	snapshot, err := src.Fetch(ctx)
	if missing, ok := source.IsMissing(err); ok {
		return &openedState{missing: missing}, nil
	}
	if err != nil {
		return nil, &stepError{step: stepFetch, source: src, err: err}
	}
	opened, err := target.Decrypt(ctx, snapshot.Data)
	if err != nil {
		return nil, &stepError{step: stepOf(err), source: src, err: err}
	}
	state, err := tfstate.Parse(opened.Data)
	if err != nil {
		return nil, &stepError{step: stepParse, source: src, err: err}
	}
	return &openedState{
		State:        state,
		revision:     snapshot.Revision,
		warnings:     openingWarnings(src, snapshot, opened),
		encrypted:    opened.Encrypted,
		method:       opened.Method,
		usedFallback: opened.UsedFallback,
	}, nil
}

func openingWarnings(src source.Source, snapshot *source.Snapshot, opened *encryption.Opened) []warning {
	var out []warning
	for _, w := range snapshot.Warnings {
		out = append(out, warning{"Insecure or slow source", fmt.Sprintf("%s: %s", src, w)})
	}
	if !opened.Encrypted {
		out = append(out, warning{"Unencrypted state", fmt.Sprintf("%s is not encrypted. It was read because %q is in effect for it.", src, opened.Method)})
	} else if opened.UsedFallback {
		var tried []string
		for _, a := range opened.Attempts {
			tried = append(tried, fmt.Sprintf("\n  - %s: %v", a.Method, a.Err))
		}
		out = append(out, warning{"Fallback used", fmt.Sprintf("%s was opened by the fallback %s. Tried before:%s", src, opened.Method, strings.Join(tried, ""))})
	}
	return out
}

// stateRequest is statecrypt_remote_state as the user wrote it.
type stateRequest struct {
	kind   source.Kind
	source source.Request
	target *config.Target // nil when the source sets no method
	name   string         // of a remote_state_data_source in the text

	only              []string // nil for all outputs
	defaults          map[string]cty.Value
	sensitiveDefaults map[string]cty.Value
	defaultsIfMissing bool

	expectedLineage string // "" when not pinned
	minimumSerial   *int64

	keepSensitive bool // whether sensitive_outputs are filled
}

// identity is equal for requests that read the same state in the same way.
func (r stateRequest) identity(target encryption.Target) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s\x00%d\x00%v\x00%q\x00", r.kind.Name, r.source.Workspace, r.source.MaxSize, target.Enforced(), target.Methods())
	b.WriteString(r.source.Values.Identity())
	return b.String()
}
