package explain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Provider is whoever writes a configuration with the provider in it. The zero value knows
// nothing of it.
type Provider struct {
	Deriving bool // the error is about a derived key, and not about a state

	Empty       bool        // nothing is written in the provider block, or there is none
	Text        bool        // the argument encryption is set
	InText      bool        // the methods and key providers are written as text
	Names       []string    // of the text's remote_state_data_source blocks
	Environment Environment // what became of TF_ENCRYPTION

	// Example returns what is in a block such as key_provider.pbkdf2 at least, and nil for a
	// kind that there is not.
	Example func(path string) []string
}

// Environment is what became of TF_ENCRYPTION.
type Environment int

// These are why it has no say.
const (
	Heard      Environment = iota // it has, or something else has
	Unset                         // it is not set
	NotWanted                     // because of use_environment
	NoText                        // it is not set, and there are values for its variables
	BesideText                    // the settings are in blocks
)

func (e Environment) String() string {
	switch e {
	case Unset:
		return "TF_ENCRYPTION is not set, or it is empty."
	case NotWanted:
		return "TF_ENCRYPTION is not read, because of use_environment = false."
	case NoText:
		return "encryption_variables is set, and gives values to var.* in encryption or TF_ENCRYPTION alone; neither is set."
	case BesideText:
		return "TF_ENCRYPTION is set but not read, because the provider block has its settings in blocks. If it is meant for " +
			"this provider, remove the key_provider, method and default blocks, or write their settings as text into the argument " +
			"encryption, over which it is merged."
	}
	return ""
}

func (p Provider) beside(f fact.Fact) string {
	switch f := f.(type) {
	case fact.OnlyEnvironment:
		return ", or with allow_external = true"
	case fact.NoValue:
		if f.Name == "" {
			return "; set the values of var.* in encryption_variables, in the provider block"
		}
		return fmt.Sprintf("; in the provider block, let encryption_variables have it, as in encryption_variables = { %s = var.%[1]s }, where "+
			"var.%[1]s is a variable of your configuration", f.Name)
	case fact.NotConfigured:
		if isUnencrypted(f) && !p.InText {
			return fmt.Sprintf("; plaintext requires no block: write %q in its place", syntax.Unencrypted)
		}
		return inText(f)
	case fact.NoMethod:
		return p.method(f)
	case fact.NoState:
		const none = `f no state is expected there, set on_missing = "defaults"`
		if f.Block == "" {
			return ". I" + none
		}
		return fmt.Sprintf(". Check the %s block; i", f.Block) + none
	case fact.Workspace:
		if f.Name == "default" {
			return `. This is the place of the workspace "default"; for another, set workspace`
		}
		return fmt.Sprintf(". This is the place of the workspace %q; \"terraform workspace list\", in the configuration that writes it, "+
			"prints the names", f.Name)
	}
	return ""
}

func (p Provider) whole(err error, text string) string {
	if fact.Has[fact.TooLarge](err) {
		text += "; if that is expected, raise max_size"
	}
	paragraphs := []string{sentence(text), p.next(err)}
	lacking, noMethod := fact.Find[fact.NoMethod](err)
	lacks := p.Environment != Heard && (noMethod || fact.Has[fact.NotConfigured](err))
	if p.Empty && (lacks || lacksCredentials(err)) {
		paragraphs = append(paragraphs, "The provider block that was used is empty, or there is none without an alias. If the settings are in "+
			"a block with an alias, choose it with provider = statecrypt.ALIAS. If this is in a module, pass the block on where the module is "+
			"called, with providers = { statecrypt = statecrypt.ALIAS }.")
	}
	if noMethod && len(lacking.Selected) == 0 && len(p.Names) > 0 {
		paragraphs = append(paragraphs, fmt.Sprintf("The encryption text selects methods for states by name. To use them, set name = "+
			"\"%s\" here.", strings.Join(p.Names, `" or "`)))
	}
	if noMethod && lacking.Format == "" && len(lacking.KeyProviders) == 0 && p.Text {
		paragraphs = append(paragraphs, "Such blocks take the place of the argument encryption, whose text has no key provider: remove that "+
			"argument, or write the key provider there.")
	}
	if lacks || p.Environment == BesideText && errors.Is(err, encryption.ErrNoKey) {
		paragraphs = append(paragraphs, p.Environment.String())
	}
	return strings.Join(slices.DeleteFunc(paragraphs, func(text string) bool { return text == "" }), "\n\n")
}

func lacksCredentials(err error) bool {
	block, lacks := fact.Find[fact.NoBlock](err)
	return fact.Has[fact.NoCredentials](err) || lacks && strings.HasPrefix(block.Path, "credentials.")
}

// next says what to do next if the error itself does not.
func (p Provider) next(err error) string {
	if e, ok := errors.AsType[*attr.Error](err); ok && e.Unknown {
		if p.Deriving {
			return "The value comes from something that does not exist before apply. " +
				"Keys can be derived only from what is known when planning."
		}
		return "The value comes from something that does not exist before apply. Add depends_on to this data source, " +
			"naming what the value comes from, so that it is read during apply."
	}
	if failed := noKey(err); failed != nil {
		return p.key(failed.Attempts)
	}
	return ""
}

// key names what may be wrong with the methods that were tried. It says nothing if all of
// them say it themselves: a program that gave no plaintext, settings for another file, and
// settings that are odd.
func (p Provider) key(attempts []encryption.Attempt) string {
	tried := func(kind string) func(encryption.Attempt) bool {
		return func(a encryption.Attempt) bool {
			return a.Method == kind || strings.HasPrefix(a.Method, "method."+kind+".")
		}
	}
	isOther := func(a encryption.Attempt) bool {
		return !tried("external")(a) && !fact.Has[fact.NoKeyProvider](a.Err) && !isSuspected(a.Err)
	}
	what, settings := "the passphrase or key", ""
	switch {
	case !slices.ContainsFunc(attempts, isOther):
		return ""
	case slices.ContainsFunc(attempts, tried("aes_gcm")):
		what += ", the aad,"
	case slices.ContainsFunc(attempts, tried("sops")):
		what = "that one of the keys that the file names can be used here,"
	}
	if slices.ContainsFunc(attempts, func(a encryption.Attempt) bool { return a.Method == "sops" }) {
		settings = " To give sops settings, configure method.sops.main, and name it in place of sops."
	}
	return "Check " + what + " and whether this is the right file. " +
		"If the key was changed after the file was written, add the old one as a fallback." + settings
}

// method says which method a file needs.
func (p Provider) method(e fact.NoMethod) string {
	switch {
	case len(e.Methods) > 0 && len(e.Selected) == 1:
		switch {
		case p.InText && e.In != "":
			return fmt.Sprintf("; in place of method = %s, write method = %s", e.Selected[0], strings.Join(e.Methods, " or "))
		case p.InText:
			return fmt.Sprintf("; in place of method = %q, set method = %s on the data source", e.Selected[0], join(e.Methods, strconv.Quote))
		}
		return fmt.Sprintf("; in place of method = %q, set method = %s where that stands (on the data source, or in the default block), or "+
			"remove it from the data source if there is a default block that has it",
			e.Selected[0], join(e.Methods, strconv.Quote))
	case p.InText && (len(e.Methods) > 0 || e.Format != "" || len(e.KeyProviders) > 0):
		return notOfFiles(e) + "; where the settings are (TF_ENCRYPTION, or encryption in the provider block), " +
			methodInText(e)
	case len(e.Methods) > 0 && len(e.Selected) > 0:
		return fmt.Sprintf("; where the methods are set (on the data source, or in the default block), set method = %s, or add a fallback "+
			"with it", join(e.Methods, strconv.Quote))
	case len(e.Methods) > 0:
		add := "; add to the provider block: " + join(e.Methods, func(method string) string {
			return fmt.Sprintf("default { method = %q }", method)
		})
		if len(e.Methods) > 1 {
			add += ", whichever has the key of this file"
		}
		return add
	case e.ByKind:
		return fmt.Sprintf("%s; set method = %q on the data source; if it requires settings, set method = \"method.%[2]s.main\" there, "+
			"and add its block to the provider block%s", notOfFiles(e), e.Format, block(p.example("method."+e.Format)))
	case e.Format != "":
		return fmt.Sprintf("%s; set method = \"method.%s.main\" on the data source, and add its block, with its settings, to the "+
			"provider block%s", notOfFiles(e), e.Format, block(p.example("method."+e.Format)))
	case len(e.KeyProviders) == 0 && p.InText:
		kind := p.knownKind(e.StoredKind)
		return fmt.Sprintf("; where the settings are (TF_ENCRYPTION, or encryption in the provider block), add key_provider %q \"main\" with "+
			"its settings in braces, such as %s, and method \"aes_gcm\" \"main\" { keys = key_provider.%s.main }, and let state have "+
			"method = method.aes_gcm.main", kind, strings.Join(p.example("key_provider." + kind).Arguments[:1], ""), kind)
	case len(e.KeyProviders) == 0:
		return p.keyProvider(e)
	}
	others := ""
	for _, k := range e.KeyProviders[1:] {
		others += fmt.Sprintf(", or one with keys = %q", k)
	}
	return fmt.Sprintf("; add this method to the provider block%s%s", others,
		block(fact.NoBlock{Path: "method.aes_gcm", Arguments: []string{fmt.Sprintf("keys = %q", e.KeyProviders[0])}}))
}

// example is a block of a kind, with what it cannot do without.
func (p Provider) example(path string) fact.NoBlock {
	return fact.NoBlock{Path: path, Arguments: p.Example(path)}
}

// notOfFiles says that a key provider with the name of the method is none for this file.
func notOfFiles(e fact.NoMethod) string {
	for _, address := range e.KeyProviders {
		if strings.HasPrefix(address, "key_provider.age.") {
			return fmt.Sprintf("; %s is for files in the format of OpenTofu, so the identities in it belong in a method here", address)
		}
	}
	return ""
}

// keyProvider is for a file whose metadata names one. Its block is enough, unless another
// method is selected.
func (p Provider) keyProvider(e fact.NoMethod) string {
	kind, place := p.knownKind(e.StoredKind), " to the provider block"
	if len(e.Selected) > 0 {
		place = fmt.Sprintf(" and a method to the provider block, and set method = \"method.aes_gcm.main\" on the data source, because %s is "+
			"not for this file", strings.Join(e.Selected, " or "))
	}
	with := ", with its settings,"
	if kind == "pbkdf2" {
		with = ""
	}
	blocks := block(p.example("key_provider." + kind))
	if len(e.Selected) > 0 {
		blocks += lines(fact.NoBlock{Path: "method.aes_gcm"})
	}
	if kind == "age" { // and another name in OpenTofu, which runs a program for it
		return "; a recipient of age can open it: add a key provider of the kind age" + place + blocks
	}
	return "; add its key provider" + with + place + blocks
}

// knownKind is a kind of key provider that there is: the file may come from anywhere, and
// an alias names none.
func (p Provider) knownKind(stored string) string {
	if stored != "" && p.Example("key_provider."+stored) != nil {
		return stored
	}
	return "pbkdf2"
}

// sentence is a text as a reader expects it: Go's errors begin in lowercase and have no full
// stop; a block gets none. An address or a path at the start stays as it is; an error must
// not begin with a name that looks like a word.
func sentence(s string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	if first, _, more := strings.Cut(s, " "); more && strings.Trim(first, letters) == "" {
		s = strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):]
	}
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".?!") || endsInBlock(s) {
		return s
	}
	return s + "."
}
