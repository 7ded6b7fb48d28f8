package provider

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// reader words errors for the person who reads them: the author of the configuration.
type reader struct {
	*configured      // the checked provider block
	as          role // the kind of block that reads; empty if the error is not about a read
}

// readerOf returns the reader for a configuration. c is nil if there is no provider block.
func readerOf(c *configured) reader {
	if c == nil {
		c = &configured{}
	}
	return reader{configured: c}
}

// environment is the reason why TF_ENCRYPTION was not used.
type environment int

// The reasons why TF_ENCRYPTION was not used.
const (
	heard      environment = iota // there is no reason, because settings were read
	unset                         // TF_ENCRYPTION is not set
	notWanted                     // use_environment is false
	noText                        // encryption_variables is set, but there is no text that could use them
	besideText                    // TF_ENCRYPTION is set, but the settings are in blocks
)

func (e environment) String() string {
	switch e {
	case unset:
		return "TF_ENCRYPTION is not set, or is empty."
	case notWanted:
		return "TF_ENCRYPTION is not read, because use_environment is false."
	case noText:
		return "encryption_variables is set, but only the text in encryption or TF_ENCRYPTION can use these variables, and neither is set."
	case besideText:
		return "TF_ENCRYPTION is set but not read, because the provider block has encryption blocks. To use TF_ENCRYPTION, remove the " +
			"key_provider, method and default blocks, or replace them with text in the argument encryption. TF_ENCRYPTION is then merged over " +
			"that text."
	}
	return ""
}

// say returns the provider's own wording for a fact, to follow the reason in an error message. It returns an
// empty string if the default wording applies.
func (r reader) say(f fault.Fact) string {
	switch f := f.(type) {
	case fault.OnlyEnvironment:
		return ", or set allow_external = true"
	case fault.NoValue:
		if f.Name == "" {
			return "set the values of var.* in encryption_variables, in the provider block"
		}
		return fmt.Sprintf("set it in the provider block with encryption_variables = { %s = var.%[1]s }", f.Name)
	case fault.NotConfigured:
		if f.IsUnencrypted() && !r.inText {
			return fmt.Sprintf("write %q instead, because plaintext requires no block", syntax.Unencrypted)
		}
	case fault.NoMethod:
		return r.method(f)
	}
	return ""
}

// tell returns the message for an error: the reasons with their advice, and the next step.
func (r reader) tell(err error) string {
	text := fault.Voice{Words: map[string]string{"settings": "the provider block"}, Say: r.say}.Text(err)
	if meter.IsTooLarge(err) {
		text += "; if that is expected, increase max_size"
	}
	paragraphs := []string{sentence(text), r.next(err)}
	lacking, noMethod := fault.Find[fault.NoMethod](err)
	lacks := r.unread != heard && (noMethod || fault.Has[fault.NotConfigured](err))
	if r.empty && (lacks || lacksCredentials(err)) {
		paragraphs = append(paragraphs, "The provider block that was used is empty, or there is no provider block without an alias. If the "+
			"settings are in a block with an alias, choose it with provider = statecrypt.ALIAS. To pass it to a module, write providers = { "+
			"statecrypt = statecrypt.ALIAS } in the module block.")
	}
	if noMethod && len(lacking.Selected) == 0 && len(r.names) > 0 {
		paragraphs = append(paragraphs, fmt.Sprintf("The encryption text selects methods for states by name. To use them, set name = "+
			"\"%s\" here.", strings.Join(r.names, `" or "`)))
	}
	if noMethod && lacking.Format == "" && len(lacking.KeyProviders) == 0 && r.text {
		paragraphs = append(paragraphs, "The text of the argument encryption has no key provider. Write the key provider there, or remove the "+
			"argument to use blocks instead.")
	}
	if lacks || r.unread == besideText && errors.Is(err, encryption.ErrNoKey) {
		paragraphs = append(paragraphs, r.unread.String())
	}
	return strings.Join(slices.DeleteFunc(paragraphs, func(text string) bool { return text == "" }), "\n\n")
}

func lacksCredentials(err error) bool {
	block, lacks := fault.Find[fault.NoBlock](err)
	return fault.Has[fault.NoCredentials](err) || lacks && strings.HasPrefix(block.Path, "credentials.")
}

// next returns the next step, for errors that do not contain advice already.
func (r reader) next(err error) string {
	if e, ok := errors.AsType[*attr.Error](err); ok && e.Unknown {
		if r.as == ephemeralResource { // Terraform opens it during plan, whatever it depends on
			return "The value depends on something that does not exist before apply. Apply that resource first, for example with -target."
		}
		return "The value depends on something that does not exist before apply. Add depends_on with that resource to this " +
			"data source, so that it is read during apply."
	}
	// The other attempts come with their own advice: external programs, key providers without a key, and
	// suspicious settings.
	isOther := func(a encryption.Attempt) bool {
		return !strings.HasPrefix(a.Method, "method.external.") && !fault.Has[fault.NoKeyProvider](a.Err) && !fault.Has[fault.Suspect](a.Err)
	}
	failed, ok := errors.AsType[*encryption.Error](err)
	if !ok || failed.Step != encryption.StepDecrypt || !errors.Is(err, encryption.ErrNoKey) || !slices.ContainsFunc(failed.Attempts, isOther) {
		return ""
	}
	settings := ""
	if slices.ContainsFunc(failed.Attempts, func(a encryption.Attempt) bool { return a.Method == "sops" }) {
		settings = " To set options of sops, add a method block of the kind sops, and select method.sops.main instead of sops."
	}
	return "Check the passphrase or key, and that this is the right file. If the key has changed since the file was written, " +
		"add the old key as a fallback. If the key is right, restore an older version of the file." + settings
}

// method returns advice on how to select or configure the method that a file needs.
func (r reader) method(e fault.NoMethod) string {
	choice := syntax.Or(e.Methods, strconv.Quote)
	switch {
	case r.inText:
		return notOfFiles(e) + e.InText() + ". The settings are the text in TF_ENCRYPTION or in the argument encryption of the provider block"
	case len(e.Methods) > 0 && len(e.Selected) == 1:
		return fmt.Sprintf("set method = %[2]s instead of %[1]q, on the data source or in the default block. If a default block has that "+
			"method already, remove the argument method from the data source", e.Selected[0], choice)
	case len(e.Methods) > 0 && len(e.Selected) > 0:
		return fmt.Sprintf("set method = %s on the data source or in the default block, or add a fallback with that method", choice)
	case len(e.Methods) > 0:
		return "add to the provider block: " + syntax.Or(e.Methods, func(method string) string {
			return fmt.Sprintf("default { method = %q }", method)
		})
	case e.ByKind:
		return fmt.Sprintf("%sset method = %q on the data source. If the method requires settings, set method = \"method.%[2]s.main\" "+
			"instead, and add this block to the provider block%s", notOfFiles(e), e.Format, inLines(aBlock("method."+e.Format)))
	case e.Format != "":
		return fmt.Sprintf("%sset method = \"method.%s.main\" on the data source, and add this block, with your settings, to the "+
			"provider block%s", notOfFiles(e), e.Format, inLines(aBlock("method."+e.Format)))
	case len(e.KeyProviders) == 0:
		return keyProvider(e)
	}
	others := ""
	for _, k := range e.KeyProviders[1:] {
		others += fmt.Sprintf(", or a method with keys = %q", k)
	}
	return fmt.Sprintf("%sadd this method to the provider block%s%s", instead(e), others,
		inLines(fault.NoBlock{Path: "method.aes_gcm", Arguments: []string{fmt.Sprintf("keys = %q", e.KeyProviders[0])}}))
}

// instead returns the advice to select the method of a new block. It returns an empty string if no method is selected,
// because the only method need not be selected.
func instead(e fault.NoMethod) string {
	if len(e.Selected) == 0 {
		return ""
	}
	return fmt.Sprintf("set method = \"method.aes_gcm.main\" on the data source instead of %s, and ", strings.Join(e.Selected, " or "))
}

// notOfFiles returns a note that an age key provider is not meant for files in age's own format. It returns
// an empty string if there is no such key provider.
func notOfFiles(e fault.NoMethod) string {
	for _, address := range e.KeyProviders {
		if strings.HasPrefix(address, "key_provider.age.") {
			return fmt.Sprintf("move the identities of %s to a method, because that key provider is only for files in OpenTofu's format. Then ",
				address)
		}
	}
	return ""
}

// keyProvider returns advice to add the key provider that the file's metadata names. If no method is
// selected, adding its block is enough. The metadata is untrusted, and an alias in it does not name a kind.
func keyProvider(e fault.NoMethod) string {
	const place = " to the provider block"
	one, first, method := aBlock("key_provider."+e.StoredKind), instead(e), ""
	if one.Arguments == nil {
		one = aBlock(aKeyProvider)
	}
	blocks := inLines(one)
	if first != "" {
		method = " and this method"
		blocks += fault.NoBlock{Path: aMethod}.Lines()
	}
	if e.StoredKind == "age" { // OpenTofu uses an external program for age, so there the kind has another name
		return ". An age identity can open the file; " + first + "add this key provider of the kind age" + method + place + blocks
	}
	return first + "add this key provider, with your settings," + method + place + blocks
}

// inLines returns the lines of a block, to append to an error message.
func inLines(b fault.NoBlock) string { return ":\n" + b.Lines() }

// sentence turns an error text into a sentence: it capitalizes the first word and adds a full stop. It adds
// no full stop after a block. An address or path at the start stays as it is, so an error must not begin with
// a name that looks like a word.
func sentence(s string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	if first, _, more := strings.Cut(s, " "); more && strings.Trim(first, letters) == "" {
		s = strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):]
	}
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".?!") || strings.HasSuffix(s, "\n  }") {
		return s
	}
	return s + "."
}
