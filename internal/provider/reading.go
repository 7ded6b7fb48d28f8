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
	name, doc string

	// request reads the arguments. If some are unknown, as in a validation, the request is incomplete, and the
	// problems concern only the known arguments.
	request func(c kinds, arguments cty.Value, env attr.LookupEnv) (request, []problem)
}

// request is a read that a block of the user describes.
type request interface {
	read(ctx context.Context, provider *configured) (*result, error)
}

// result holds the attributes of a data source or an ephemeral resource.
type result struct {
	attributes map[string]cty.Value // values by the name of the read-only attribute; absent ones are null
	warnings   []source.Warning
}

// role is the kind of block that users write for a reading.
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

// sensitiveFields returns the fields of the sensitive part of a result. A data source fills that part only on
// request, because Terraform stores the attributes of a data source.
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

// validate returns the mistakes in those arguments that are known, and checks them also against the provider block if
// that is complete. It does not require arguments for which a variable is set, although it is not known yet whether
// the provider may read variables.
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

// read returns the arguments with the read-only attributes filled, or else only errors.
func (r reading) read(
	ctx context.Context, provider *configured, arguments cty.Value,
) (*tfprotov6.DynamicValue, diagnostics) {
	switch {
	case provider == nil:
		return nil, readDiagnostics(&stepError{step: stepConfiguration, err: errNotConfigured}, nil)
	case !arguments.IsWhollyKnown():
		return nil, readDiagnostics(&stepError{step: stepConfiguration, err: errUnknown}, nil)
	case len(provider.broken) > 0:
		return nil, problemDiagnostics(provider.broken)
	}
	req, problems := r.request(r.kinds, arguments, provider.env)
	if len(problems) > 0 {
		return nil, problemDiagnostics(problems)
	}
	got, err := req.read(ctx, provider)
	if err != nil {
		return nil, readDiagnostics(err, provider)
	}
	value, err := r.encode(arguments, got.attributes)
	if err != nil {
		return nil, readDiagnostics(&stepError{step: stepParse, err: err}, nil)
	}
	return value, warningDiagnostics(got.warnings)
}
