package provider

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// reading is a data source or an ephemeral resource.
type reading struct {
	codec
	name, doc string

	// request reads the arguments. If some are unknown, as in a validation, the
	// request is of no use, and the problems are those of the rest.
	request func(arguments cty.Value, env attr.LookupEnv) (request, []problem)
}

// request is what a user asks for.
type request interface {
	read(ctx context.Context, provider *configured) (*result, error)
}

// result is what a data source or an ephemeral resource gives.
type result struct {
	attributes map[string]cty.Value // :: read-only attribute → value
	warnings   []warning
}

func (r *result) warn(summary, format string, args ...any) {
	r.warnings = append(r.warnings, warning{summary, fmt.Sprintf(format, args...)})
}

// validate checks the arguments as far as they are known.
func (r reading) validate(arguments cty.Value) diag.Diagnostics {
	_, problems := r.request(arguments, os.LookupEnv)
	return diagnostics(problems)
}

// read returns the arguments with the read-only attributes filled, or nothing
// but errors.
func (r reading) read(
	ctx context.Context, provider *configured, arguments cty.Value,
) (*tfprotov6.DynamicValue, diag.Diagnostics) {
	switch {
	case provider == nil:
		return nil, readDiagnostics(&stepError{step: stepConfiguration, err: errNotConfigured})
	case !arguments.IsWhollyKnown():
		return nil, readDiagnostics(&stepError{step: stepConfiguration, err: errUnknown})
	}
	req, problems := r.request(arguments, provider.env)
	if len(problems) > 0 {
		return nil, diagnostics(problems)
	}
	got, err := req.read(ctx, provider)
	if err != nil {
		return nil, readDiagnostics(err)
	}
	value, err := r.encode(arguments, got.attributes)
	if err != nil {
		return nil, readDiagnostics(&stepError{step: stepParse, err: err})
	}
	return value, warningDiagnostics(got.warnings)
}
