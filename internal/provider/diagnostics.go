package provider

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// All errors become diagnostics in this file. They are escaped with [outside.Text], because they may quote
// untrusted input.

func errorDiagnostic(summary, detail string) *tfprotov6.Diagnostic {
	return &tfprotov6.Diagnostic{
		Severity: tfprotov6.DiagnosticSeverityError, Summary: outside.Text(summary), Detail: outside.Text(detail)}
}

// diagnostics is a list of diagnostics without duplicates.
type diagnostics []*tfprotov6.Diagnostic

func (all *diagnostics) add(d *tfprotov6.Diagnostic) {
	if !slices.ContainsFunc(*all, func(o *tfprotov6.Diagnostic) bool { return reflect.DeepEqual(o, d) }) {
		*all = append(*all, d)
	}
}

const maxName = 100 // the maximum size in bytes of an untrusted name in an error message

// step names the step at which a read failed.
type step string

const (
	stepConfiguration = step(encryption.StepConfiguration)
	stepFetch         = step("fetch")
	stepEnvelope      = step(encryption.StepEnvelope)
	stepKey           = step(encryption.StepKey)
	stepDecrypt       = step(encryption.StepDecrypt)
	stepParse         = step("parse")
	stepCheck         = step("check")
	stepResource      = step("resource")
	stepDerive        = step("derive")
)

// words returns the headline for errors in this step, and a phrase that describes the step.
func (s step) words() (summary, doing string) {
	switch s {
	case stepFetch:
		return "Cannot fetch the state", "fetching the file"
	case stepEnvelope:
		return "Cannot use the state file", "recognizing the file"
	case stepKey:
		return "Cannot get the key of the state", "getting the key"
	case stepDecrypt:
		return "Cannot decrypt the state", "decrypting the file"
	case stepParse:
		return "Cannot use the content of the state", "reading the decrypted state"
	case stepCheck:
		return "The state is not the expected one", "checking the state"
	case stepResource:
		return "Cannot read the resource", "finding the resource"
	case stepDerive:
		return "Cannot derive the key", "deriving the key"
	}
	return "Cannot read a state with this configuration", "reading the configuration"
}

// stepError is a read error, with the step that failed.
type stepError struct {
	step   step
	source source.Source // nil if the read failed before it had a source
	err    error
}

func (e *stepError) Error() string {
	if e.source == nil {
		return fmt.Sprintf("%s: %v", e.step, e.err)
	}
	return fmt.Sprintf("%s: %s: %v", e.source, e.step, e.err)
}

func (e *stepError) Unwrap() error { return e.err }

// stepOf returns the step in an error from package encryption, or stepDecrypt for other errors.
func stepOf(err error) step {
	if e, ok := errors.AsType[*encryption.Error](err); ok {
		return step(e.Step)
	}
	return stepDecrypt
}

// readDiagnostics explains why a block of the kind as could not be read. c is nil if the provider is not
// configured.
func readDiagnostics(as role, err error, c *configured) diagnostics {
	failed, ok := errors.AsType[*stepError](err)
	if !ok {
		failed = &stepError{step: stepFetch, err: err}
	}
	summary, doing := failed.step.words()
	from := ""
	if failed.source != nil {
		from = fmt.Sprintf("Source: %s\n", failed.source)
	}
	reader := readerOf(c)
	reader.as = as
	detail := fmt.Sprintf("%sStep: %s\n\n%s", from, doing, reader.tell(failed.err))
	return diagnostics{errorDiagnostic(summary, detail)}
}

func warningDiagnostics(warnings []source.Warning) diagnostics {
	var out diagnostics
	for _, w := range warnings {
		d := errorDiagnostic(w.Title, w.Text)
		d.Severity = tfprotov6.DiagnosticSeverityWarning
		out.add(d)
	}
	return out
}

const invalidConfiguration = "Invalid configuration"

// problemDiagnostics returns a diagnostic for each mistake in a block, with its path.
func problemDiagnostics(problems []problem) diagnostics {
	var out diagnostics
	for _, p := range problems {
		err := p.err
		if len(p.path.Steps()) > 0 { // for a deep path, some CLI versions print only the path of the whole block
			err = fmt.Errorf("%s: %w", strings.ReplaceAll(p.path.String(), "[0]", ""), err)
		}
		d := errorDiagnostic(invalidConfiguration, readerOf(nil).tell(err))
		d.Attribute = attributePath(beforeBlock(p.path))
		out.add(d)
	}
	return out
}

// beforeBlock returns the path that a diagnostic may show. It returns the path of an argument unchanged, but
// the parent of a block's path. Given the path of a block, Terraform prints the block's first line, and a
// block with a single argument, which may be a secret, fits on that line.
func beforeBlock(p path.Path) path.Path {
	steps := p.Steps()
	if last := len(steps) - 1; last > 0 {
		if _, isBlock := steps[last].(path.PathStepElementKeyInt); isBlock {
			return p.ParentPath().ParentPath()
		}
	}
	return p
}

// attributePath converts a path to its protocol form. It returns nil for an empty path.
func attributePath(p path.Path) *tftypes.AttributePath {
	var out *tftypes.AttributePath
	for _, step := range p.Steps() {
		switch step := step.(type) {
		case path.PathStepAttributeName:
			out = out.WithAttributeName(string(step))
		case path.PathStepElementKeyInt:
			out = out.WithElementKeyInt(int(step))
		}
	}
	return out
}
