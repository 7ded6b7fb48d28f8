package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// problem is a mistake in a block, with its place.
type problem struct {
	path path.Path
	err  error
}

// findings are all mistakes in a block, and what of it is not known yet.
type findings struct {
	problems []problem
	unknown  error // the first
}

func (f *findings) fail(p path.Path, format string, args ...any) {
	f.failAt(p, fmt.Errorf(format, args...))
}

func (f *findings) failAt(p path.Path, err error) { f.problems = append(f.problems, problem{p, err}) }

func (f *findings) notKnown(what string) {
	if f.unknown == nil {
		f.unknown = unknownError(what)
	}
}

func unknownError(what string) error {
	return &attr.Error{Unknown: true, Err: fmt.Errorf("%s of the provider configuration is not known yet", what)}
}
