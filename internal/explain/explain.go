// Package explain says what to do about an error: which block, which flag, which variable.
// An error says what is so, in a line, and knows the rest as values of package fact. This
// is the one place that puts them into words, for each program in those of its users.
package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// Audience is who reads an error: [Provider], [Command] or [Wrap].
type Audience interface {
	// beside is what the audience is told of a fact, right behind the reason; "" for what
	// is told to all, or to none.
	beside(fact.Fact) string

	// whole is the text of an error, given its reasons and what was said beside them.
	whole(err error, text string) string
}

// Text is the text of an error for whoever reads it.
func Text(err error, to Audience) string { return to.whole(err, words(err, to)) }

// words puts behind each reason what is known beside it. Whatever wraps an error has its
// text as a part of its own, so what is added there is added here.
func words(err error, to Audience) string {
	text := err.Error()
	switch e := err.(type) {
	case *encryption.Error:
		text = ""
		if e.Err != nil {
			text = words(e.Err, to)
		}
		for _, a := range e.Attempts {
			text += fmt.Sprintf("\n  - %s: %s", a.Method, fact.Indented(words(a.Err, to)))
		}
		return text
	case *fact.Error:
		text = words(e.Unwrap(), to)
		for _, f := range e.Facts() {
			text += to.beside(f) + beside(f)
		}
		return text
	}
	at := 0
	for _, part := range fact.Parts(err) {
		reason := part.Error()
		if begin := strings.Index(text[at:], reason); begin >= 0 {
			full := words(part, to)
			begin += at
			text = text[:begin] + full + text[begin+len(reason):]
			at = begin + len(full)
		}
	}
	return text
}

// isSuspected reports whether something that is odd is said beside an error.
func isSuspected(err error) bool {
	if e, ok := err.(*fact.Error); ok { // what is wrapped is asked below
		for _, f := range e.Facts() {
			if _, odd := f.(fact.Suspect); odd {
				return true
			}
		}
	}
	return slices.ContainsFunc(fact.Parts(err), isSuspected)
}

// beside is what everybody is told of a fact.
func beside(f fact.Fact) string {
	switch f := f.(type) {
	case fact.CircleOfKeys:
		return "; let one of them have a key of its own"
	case fact.EnforcedPlaintext:
		return "; remove one of the two"
	case fact.Stranger:
		return beside(f.Do)
	case fact.KindAlone:
		const block = "configure a method of this kind, and name its address, such as method.%s.main"
		return map[bool]string{true: ": ", false: "; "}[f.Never] + fmt.Sprintf(block, f.Kind)
	case fact.Advice:
		if f == "" || f[0] == ',' || f[0] == ':' {
			return string(f)
		}
		return "; " + string(f)
	case fact.Suspect:
		return fmt.Sprintf("; %s %s", subject(f), f.What)
	case fact.NoBlock:
		return block(f)
	case fact.NoThen:
		if f.Method == "" {
			return `; add then = "method.…" to it, with the address of the method for the envelope`
		}
		return fmt.Sprintf("; if the file was encrypted twice, and %s is the method for what is inside, add then = %[1]q to it", f.Method)
	case fact.NoKeyProvider:
		add := "add it"
		if f.OfAge {
			add = "it is one of age: add a key provider of the kind age, with identity_files, and let keys of the method name it"
		}
		return fmt.Sprintf("; the settings lack the key provider that the file was encrypted with%s; %s", f.Stored, add)
	case fact.Chained:
		return fmt.Sprintf("; its metadata also names %s, which the settings lack: if the key was made with a chain, add that key provider "+
			"and set chain", outside.Quoted(f.Name, fact.MaxName))
	case fact.Untried:
		return fmt.Sprintf("; %s is configured as well, and no selected method uses it", f.Address)
	case fact.KeyElsewhere:
		if f.Selected {
			return fmt.Sprintf("; the file was encrypted with %s, and the key that has this name now may be another: give the old key its old "+
				"name back, or set encrypted_metadata_alias = %q beside it", f.Address, f.Stored)
		}
		if f.Tried {
			return fmt.Sprintf("; the file was encrypted with %s, which is configured: let keys of a method name it, or, if another key is called "+
				"so there, set encrypted_metadata_alias = %q beside that one", f.Address, f.Stored)
		}
		return fmt.Sprintf("; the file was encrypted with %s, which is configured: let keys of a method name it, and select that method",
			f.Address)
	case fact.Namesake:
		return fmt.Sprintf("; if the key of the file is %s, which is configured as well, set encrypted_metadata_alias = %q beside it, and let "+
			"keys of the method name it", f.Address, f.Stored)
	case fact.Renamed:
		return fmt.Sprintf("; if it was encrypted under another name, set encrypted_metadata_alias%s", f.Stored)
	}
	return ""
}

// Doubt is what is probably not meant in the key that something is sealed with.
func Doubt(f encryption.Finding) string {
	return fmt.Sprintf("%s %v", subject(fact.Suspect{Address: f.Err.Address, Attr: f.Err.Attr}), f.Err.Err)
}

// subject names the setting or the variable that is odd.
func subject(s fact.Suspect) string {
	switch {
	case s.Variable != "":
		return "the environment variable " + s.Variable
	case s.Address == "":
		return s.Attr
	case s.Address == "credentials":
		return s.Attr + " in credentials"
	}
	return fmt.Sprintf("the %s of %s", s.Attr, s.Address)
}

// noKey returns the attempts at a file whose methods had no key, nil for another error: a
// key provider that gave none says itself why.
func noKey(err error) *encryption.Error {
	failed, ok := errors.AsType[*encryption.Error](err)
	if !ok || failed.Step != encryption.StepDecrypt || !errors.Is(err, encryption.ErrNoKey) {
		return nil
	}
	return failed
}
