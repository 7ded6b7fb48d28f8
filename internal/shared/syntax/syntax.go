// Package syntax reads names, addresses and bytes as OpenTofu writes them in
// settings, for the packages that read settings.
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

// IsLabel reports whether s can be one label of a host name. Names in Kubernetes must be labels,
// and also names that become a part of the host that receives signed requests, such as the name
// of a bucket: every module can write them, and another text could choose another host.
func IsLabel(s string) bool { return len(s) <= 63 && label.MatchString(s) }

// IsDomain reports whether s is made of labels with dots between them, as the names of hosts
// and of most objects of Kubernetes are.
func IsDomain(s string) bool { return len(s) <= 253 && domain.MatchString(s) }

// IsName reports whether s may be the name of a key provider or method.
func IsName(s string) bool { return namePattern.MatchString(s) }

// Unencrypted is the address of the built-in method that reads plaintext, and
// the kind of the methods that do so under another name.
const Unencrypted = "unencrypted"

// IsMethodAddress reports whether s has the shape of a method's address, such
// as "method.aes_gcm.main", or is the built-in [Unencrypted].
func IsMethodAddress(s string) bool { return s == Unencrypted || methodAddressPattern.MatchString(s) }

// IsMethod reports whether s may name a method in an argument: by its address
// or, if it has no settings, by its kind.
func IsMethod(s string) bool { return IsMethodAddress(s) || IsName(s) }

// IsKeyProviderAddress reports whether s has the shape of a key provider's
// address, such as "key_provider.pbkdf2.main".
func IsKeyProviderAddress(s string) bool { return keyAddressPattern.MatchString(s) }

// ErrMethodRequired is the error for an attribute that must name a method, and whose value is not
// the address of one.
var ErrMethodRequired = errors.New("a method is required, such as method.aes_gcm.main")

// Suggest returns ". Did you mean …?" with the candidate nearest to name, and
// "" when none is near.
func Suggest(name string, candidates []string) string {
	nearest := Nearest(name, candidates)
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(". Did you mean %q?", nearest) // a candidate may come from a file
}

// Configured returns the text after "… is not configured": the suggestion of [Suggest], or the
// list of addresses.
func Configured(address string, addresses []string) string {
	other := swapped(address)
	switch suggestion := Suggest(address, addresses); {
	case slices.Contains(addresses, other):
		return fmt.Sprintf(", but %s is: the kind comes before the name", other)
	case suggestion != "":
		return suggestion
	case len(addresses) == 0:
		return ", nor is any other"
	}
	const most = 10
	return "; there are: " + List(addresses, most, func(address string) string { return address })
}

// List returns a list of the first most texts, each as show returns it, with the number of the
// others at its end. It calls show only for the texts in the list, so that a long list from a file
// costs little.
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

// swapped returns an address with its kind and its name exchanged, and "" if it does not have both.
func swapped(address string) string {
	parts := strings.Split(address, ".")
	if len(parts) != 3 {
		return ""
	}
	return strings.Join([]string{parts[0], parts[2], parts[1]}, ".")
}

// Or returns the choices, each as text returns it, with "or" between them.
func Or(choices []string, text func(string) string) string {
	out := make([]string, len(choices))
	for i, choice := range choices {
		out[i] = text(choice)
	}
	return strings.Join(out, " or ")
}

// Nearest returns the candidate that name is probably a misspelling of, and "" if none is near.
func Nearest(name string, candidates []string) string {
	nearest, best := "", 3
	for _, c := range candidates {
		// In a short name, two changes would leave few letters.
		if d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(c), nil); d < best && 2*d <= len(name) {
			nearest, best = c, d
		}
	}
	return nearest
}

// LowerFirst returns s with its first letter in lowercase, as in the middle of a
// sentence, unless it begins with an abbreviation.
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

// Bytes returns a list of numbers from 0 to 255 as bytes, and false for anything
// else. This is how OpenTofu writes bytes.
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
