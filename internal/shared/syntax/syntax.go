// Package syntax parses names, addresses and byte lists as they appear in OpenTofu settings.
package syntax

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// These patterns match the names that OpenTofu allows for key providers and methods, and their addresses.
var (
	namePattern          = lazyregexp.New(`^[A-Za-z0-9_-]+$`)
	keyAddressPattern    = lazyregexp.New(`^key_provider\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	methodAddressPattern = lazyregexp.New(`^method\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
)

var (
	label  = lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	domain = lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// IsLabel reports whether s is a valid host name label in lowercase. Names in Kubernetes must be labels. So
// must names that become part of a host that receives signed requests, such as bucket names: any module can
// set them, and another text could select another host.
func IsLabel(s string) bool { return len(s) <= 63 && label.MatchString(s) }

// IsDomain reports whether s consists of labels separated by dots, like host names and most object names in
// Kubernetes.
func IsDomain(s string) bool { return len(s) <= 253 && domain.MatchString(s) }

// IsName reports whether s is a valid name for a key provider or method.
func IsName(s string) bool { return namePattern.MatchString(s) }

// Unencrypted is the address of the built-in method for plaintext, and the kind of methods that do the same
// under another name.
const Unencrypted = "unencrypted"

// IsMethodAddress reports whether s has the form of a method address, such as "method.aes_gcm.main", or is
// [Unencrypted].
func IsMethodAddress(s string) bool { return s == Unencrypted || methodAddressPattern.MatchString(s) }

// IsMethod reports whether s can refer to a method in an argument, by its address or, if it needs no
// settings, by its kind.
func IsMethod(s string) bool { return IsMethodAddress(s) || IsName(s) }

// IsKeyProviderAddress reports whether s has the form of a key provider address, such as
// "key_provider.pbkdf2.main".
func IsKeyProviderAddress(s string) bool { return keyAddressPattern.MatchString(s) }

// ErrMethodRequired means that the value of an attribute should be the address of a method, but is not.
var ErrMethodRequired = errors.New("this is not the address of a method; write an address like method.aes_gcm.main")

// Suggest returns ". Did you mean …?" with the candidate most similar to name, or an empty string if none is
// similar.
func Suggest(name string, candidates []string) string {
	nearest := Nearest(name, candidates)
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(". Did you mean %q?", nearest) // %q, because a candidate may come from a file
}

// Configured returns the text to append to "… is not configured": the suggestion from [Suggest], or a list of
// the addresses.
func Configured(address string, addresses []string) string {
	other := swapped(address)
	switch suggestion := Suggest(address, addresses); {
	case slices.Contains(addresses, other):
		return fmt.Sprintf(", but %s is; write the kind before the name", other)
	case suggestion != "":
		return suggestion
	case len(addresses) == 0:
		return ", and there are no others"
	}
	const most = 10
	return "; choose one of: " + List(addresses, most, func(address string) string { return address })
}

// List returns a list of the first most items, each as formatted by show, followed by the number of remaining
// items. It calls show only for the items in the list, so that a long list from a file costs little.
func List(all []string, most int, show func(string) string) string {
	var shown []string
	for _, one := range all[:min(most, len(all))] {
		shown = append(shown, show(one))
	}
	if more := len(all) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, ", ")
}

// swapped returns an address with its kind and name exchanged, or an empty string if the address does not
// have three parts.
func swapped(address string) string {
	parts := strings.Split(address, ".")
	if len(parts) != 3 {
		return ""
	}
	return strings.Join([]string{parts[0], parts[2], parts[1]}, ".")
}

// Or returns the choices, each as formatted by text, joined with "or".
func Or(choices []string, text func(string) string) string {
	out := make([]string, len(choices))
	for i, choice := range choices {
		out[i] = text(choice)
	}
	return strings.Join(out, " or ")
}

// Nearest returns the candidate that name is probably a misspelling of, or an empty string if there is none.
func Nearest(name string, candidates []string) string {
	nearest, best := "", 3
	for _, c := range candidates {
		// Two changes to a short name would leave few of its letters.
		if d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(c), nil); d < best && 2*d <= len(name) {
			nearest, best = c, d
		}
	}
	return nearest
}

// LowerFirst returns s with its first letter in lowercase, for use inside a sentence. It leaves s unchanged
// if s begins with an abbreviation.
func LowerFirst(s string) string {
	first, second := min(1, len(s)), min(2, len(s))
	if s[first:second] != strings.ToLower(s[first:second]) {
		return s
	}
	return strings.ToLower(s[:first]) + s[first:]
}

var markdownLink = lazyregexp.New(`\[([^\]]*)\]\([^)]*\)`)

// FirstSentence returns the first sentence of a Markdown text, as plain text without the full stop.
func FirstSentence(markdown string) string {
	plain := strings.ReplaceAll(markdownLink.ReplaceAllString(markdown, "$1"), "`", "")
	sentence, _, _ := strings.Cut(plain, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// Bytes converts a list of numbers from 0 to 255, which is how OpenTofu writes bytes, to a byte slice. It
// returns false for any other value.
func Bytes(list cty.Value) ([]byte, bool) {
	if !list.CanIterateElements() || !list.Type().IsListType() && !list.Type().IsTupleType() && !list.Type().IsSetType() {
		return nil, false
	}
	b := make([]byte, 0, list.LengthInt())
	for _, e := range list.AsValueSlice() {
		if e.IsNull() || e.Type() != cty.Number {
			return nil, false
		}
		n, acc := e.AsBigFloat().Int64()
		if acc != big.Exact || n < 0 || n > 255 {
			return nil, false
		}
		b = append(b, byte(n))
	}
	return b, true
}
