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
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// This file is the one place that turns errors into diagnostics, and so the only
// exit for what strangers wrote: it goes through [outside.Text] here.

func errorDiagnostic(summary, detail string) *tfprotov6.Diagnostic {
	return &tfprotov6.Diagnostic{
		Severity: tfprotov6.DiagnosticSeverityError, Summary: outside.Text(summary), Detail: outside.Text(detail)}
}

// diagnostics has each diagnostic once.
type diagnostics []*tfprotov6.Diagnostic

func (all *diagnostics) add(d *tfprotov6.Diagnostic) {
	if !slices.ContainsFunc(*all, func(o *tfprotov6.Diagnostic) bool { return reflect.DeepEqual(o, d) }) {
		*all = append(*all, d)
	}
}

const maxName = 100 // bytes of a name from outside that are shown

// step is where a read failed.
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

// words are the headline of the step's errors, and what was being done.
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
		return "Cannot use what the state holds", "reading the decrypted state"
	case stepCheck:
		return "The state is not what it should be", "checking the state"
	case stepResource:
		return "Cannot read the resource", "finding the resource"
	case stepDerive:
		return "Cannot derive the key", "deriving the key"
	}
	return "Cannot read a state with this configuration", "reading the configuration"
}

// stepError says at which step the read of a source failed.
type stepError struct {
	step   step
	source source.Source // nil before there is one
	err    error
}

func (e *stepError) Error() string {
	if e.source == nil {
		return fmt.Sprintf("%s: %v", e.step, e.err)
	}
	return fmt.Sprintf("%s: %s: %v", e.source, e.step, e.err)
}

func (e *stepError) Unwrap() error { return e.err }

// stepOf returns the step of an error of package encryption.
func stepOf(err error) step {
	if e, ok := errors.AsType[*encryption.Error](err); ok {
		return step(e.Step)
	}
	return stepDecrypt
}

// readDiagnostics explains a read that failed.
func readDiagnostics(err error) diagnostics {
	failed, ok := errors.AsType[*stepError](err)
	if !ok {
		failed = &stepError{step: stepFetch, err: err}
	}
	summary, doing := failed.step.words()
	var b strings.Builder
	if failed.source != nil {
		fmt.Fprintf(&b, "Source: %s\n", failed.source)
	}
	fmt.Fprintf(&b, "Step: %s\n\n%s", doing, sentence(failed.err))
	if advice := advise(failed); advice != "" {
		fmt.Fprintf(&b, "\n\n%s", advice)
	}
	return diagnostics{errorDiagnostic(summary, b.String())}
}

// advise says what to do next if the error itself does not.
func advise(e *stepError) string {
	if c, ok := errors.AsType[*attr.Error](e.err); ok && c.Unknown {
		if e.step == stepDerive {
			return "The value comes from something that does not exist before apply. " +
				"Keys can be derived only from what is known when planning."
		}
		return "The value comes from something that does not exist before apply. Add depends_on to this data source, " +
			"naming what the value comes from, so that it is read during apply."
	}
	if errors.Is(e.err, encryption.ErrNoKey) && e.step == stepDecrypt { // a key provider that gave no key says why itself
		return adviseKey(e.err)
	}
	return ""
}

// adviseKey names what may be wrong with the methods that were tried. It says nothing if
// all of them say it themselves: a program that gave no plaintext, settings for another
// file, and settings that are odd.
func adviseKey(err error) string {
	what, settings := "the passphrase or key", ""
	if failed, ok := errors.AsType[*encryption.Error](err); ok {
		tried := func(kind string) func(encryption.Attempt) bool {
			return func(a encryption.Attempt) bool {
				return a.Method == kind || strings.HasPrefix(a.Method, "method."+kind+".")
			}
		}
		isProgram := tried("external")
		isOther := func(a encryption.Attempt) bool {
			return !isProgram(a) && !syntax.IsHinted(a.Err) && !strings.Contains(a.Err.Error(), "; the settings lack the key provider")
		}
		switch {
		case !slices.ContainsFunc(failed.Attempts, isOther):
			return ""
		case slices.ContainsFunc(failed.Attempts, tried("aes_gcm")):
			what += ", the aad,"
		case slices.ContainsFunc(failed.Attempts, tried("sops")):
			what = "that one of the keys that the file names can be used here,"
		}
		if slices.ContainsFunc(failed.Attempts, func(a encryption.Attempt) bool { return a.Method == "sops" }) {
			settings = " To give sops settings, configure method.sops.main, and name it in place of sops."
		}
	}
	return "Check " + what + " and whether this is the right file. " +
		"If the key was changed after the file was written, add the old one as a fallback." + settings
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

// problemDiagnostics reports mistakes in blocks at their places.
func problemDiagnostics(problems []problem) diagnostics {
	var out diagnostics
	for _, p := range problems {
		err := p.err
		at := attributePath(p.path)
		if at != nil { // some versions print a deep path as that of the whole block
			err = fmt.Errorf("%s: %w", strings.ReplaceAll(p.path.String(), "[0]", ""), err)
		}
		d := errorDiagnostic(invalidConfiguration, sentence(err))
		d.Attribute = at
		out.add(d)
	}
	return out
}

// attributePath is a path as the protocol has it, nil for an empty one.
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

// sentence is the error as a reader expects it: Go's errors begin in lowercase and have
// no full stop; a remedy gets none. An address or a path at the start stays as it is; an
// error must not begin with a name that looks like a word.
func sentence(err error) string {
	s := advised(err)
	const letters = "abcdefghijklmnopqrstuvwxyz"
	if first, _, more := strings.Cut(s, " "); more && strings.Trim(first, letters) == "" {
		s = strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):]
	}
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".?!") || syntax.EndsInRemedy(s) {
		return s
	}
	return s + "."
}
