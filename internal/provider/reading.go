package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// reading is a data source or an ephemeral resource.
type reading struct {
	codec
	kinds     kinds
	as        role
	name, doc string

	// request checks the arguments. During validation, some may be unknown; then the request is incomplete,
	// and the problems concern only the known arguments.
	request func(c kinds, arguments cty.Value, env attr.LookupEnv) (request, []problem)
}

// request is a read that the user has described in a block.
type request interface {
	read(ctx context.Context, provider *configured) (*result, error)
}

// result holds the attributes and warnings that a read returns.
type result struct {
	attributes map[string]cty.Value // values of read-only attributes, by name; missing ones are null
	warnings   []source.Warning
}

// role is the kind of block in which users configure a reading.
type role string

const (
	dataSource        role = "data"
	ephemeralResource role = "ephemeral"
)

func (r role) doc() string {
	if r == ephemeralResource {
		return "Neither the plan nor the state stores anything of it. It never writes, locks or lists."
	}
	return "It never writes, locks or lists."
}

// sensitiveFields returns the fields for the sensitive part of a result. A data source fills that part only
// on request, because Terraform stores its attributes in the state.
func sensitiveFields(as role, what, doc string) []field {
	name := "sensitive_" + what
	if as == ephemeralResource {
		return []field{secret(computed(name, cty.DynamicPseudoType, doc))}
	}
	return []field{
		argument("store_sensitive", cty.Bool, fmt.Sprintf("Whether `%s` is filled, and so stored in plaintext in your state. The ephemeral "+
			"resource of the same name does not store it. Defaults to `false`.", name)),
		secret(computed(name, cty.DynamicPseudoType, doc+" Null unless `store_sensitive = true`.")),
	}
}

func (r *result) warn(title, format string, args ...any) {
	r.warnings = append(r.warnings, source.Warning{Title: title, Text: fmt.Sprintf(format, args...)})
}

// validate returns the mistakes in the known arguments. If provider is complete, it also checks the arguments
// against the provider block. An argument is not required if one of its environment variables is set,
// although it is not known yet whether the provider may use the environment.
func (r reading) validate(arguments cty.Value, provider *configured) diagnostics {
	req, problems := r.request(r.kinds.forgiving(world.Here().Lookup), arguments, nil)
	if decrypts, ok := req.(interface{ dangling(c *configured) []problem }); ok && provider != nil && provider.complete {
		found := findings{problems: problems}
		for _, p := range decrypts.dangling(provider) {
			if !found.hasFailed(p.path) {
				problems = append(problems, p)
			}
		}
	}
	return problemDiagnostics(problems)
}

// read returns the arguments together with the values of the read-only attributes. If it fails, it returns
// only errors.
func (r reading) read(
	ctx context.Context, provider *configured, arguments cty.Value,
) (*tfprotov6.DynamicValue, diagnostics) {
	switch {
	case provider == nil:
		return nil, readDiagnostics(r.as, &stepError{step: stepConfiguration, err: errNotConfigured}, nil)
	case !arguments.IsWhollyKnown():
		return nil, readDiagnostics(r.as, &stepError{step: stepConfiguration, err: errUnknown}, nil)
	case len(provider.broken) > 0:
		return nil, problemDiagnostics(provider.broken)
	}
	req, problems := r.request(r.kinds, arguments, provider.env)
	if len(problems) > 0 {
		return nil, problemDiagnostics(problems)
	}
	got, err := req.read(ctx, provider)
	if err != nil {
		return nil, readDiagnostics(r.as, err, provider)
	}
	value, err := r.encode(arguments, got.attributes)
	if err != nil {
		return nil, readDiagnostics(r.as, &stepError{step: stepParse, err: err}, nil)
	}
	return value, warningDiagnostics(got.warnings)
}
