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

// This file alone turns errors into diagnostics. It escapes them with [outside.Text], because they may quote
// strangers.

func errorDiagnostic(summary, detail string) *tfprotov6.Diagnostic {
	return &tfprotov6.Diagnostic{
		Severity: tfprotov6.DiagnosticSeverityError, Summary: outside.Text(summary), Detail: outside.Text(detail)}
}

// diagnostics is a list of different diagnostics.
type diagnostics []*tfprotov6.Diagnostic

func (all *diagnostics) add(d *tfprotov6.Diagnostic) {
	if !slices.ContainsFunc(*all, func(o *tfprotov6.Diagnostic) bool { return reflect.DeepEqual(o, d) }) {
		*all = append(*all, d)
	}
}

const maxName = 100 // bytes of a foreign name that an error shows

// step is the step of a read that failed.
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

// words returns the headline of the step's errors, and a phrase for the work of the step.
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
		return "The state is not what it should be", "checking the state"
	case stepResource:
		return "Cannot read the resource", "finding the resource"
	case stepDerive:
		return "Cannot derive the key", "deriving the key"
	}
	return "Cannot read a state with this configuration", "reading the configuration"
}

// stepError is an error of a read, with the step at which it failed.
type stepError struct {
	step   step
	source source.Source // nil if it failed before there was a source
	err    error
}

func (e *stepError) Error() string {
	if e.source == nil {
		return fmt.Sprintf("%s: %v", e.step, e.err)
	}
	return fmt.Sprintf("%s: %s: %v", e.source, e.step, e.err)
}

func (e *stepError) Unwrap() error { return e.err }

// stepOf returns the step of an error of package encryption, and stepDecrypt for other errors.
func stepOf(err error) step {
	if e, ok := errors.AsType[*encryption.Error](err); ok {
		return step(e.Step)
	}
	return stepDecrypt
}

// readDiagnostics explains a failed read. Without a provider block, c is nil.
func readDiagnostics(err error, c *configured) diagnostics {
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
	reader.deriving = failed.step == stepDerive
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

// problemDiagnostics returns diagnostics for mistakes in blocks, with their paths.
func problemDiagnostics(problems []problem) diagnostics {
	var out diagnostics
	for _, p := range problems {
		err := p.err
		if len(p.path.Steps()) > 0 { // some versions print the path of the whole block for a deep path
			err = fmt.Errorf("%s: %w", strings.ReplaceAll(p.path.String(), "[0]", ""), err)
		}
		d := errorDiagnostic(invalidConfiguration, readerOf(nil).tell(err))
		d.Attribute = attributePath(beforeBlock(p.path))
		out.add(d)
	}
	return out
}

// beforeBlock returns the path of an argument, and for a block the path of its parent: Terraform prints the line
// where a block begins, and a block with a single argument, which may be a secret, fits into that line.
func beforeBlock(p path.Path) path.Path {
	steps := p.Steps()
	if last := len(steps) - 1; last > 0 {
		if _, isBlock := steps[last].(path.PathStepElementKeyInt); isBlock {
			return p.ParentPath().ParentPath()
		}
	}
	return p
}

// attributePath returns a path in the form of the protocol, nil for an empty path.
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
