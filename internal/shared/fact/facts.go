package fact

import (
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// These are about the settings of whoever reads the error.
type (
	NoCredentials     struct{} // were sent to a server that may want some
	OnlyEnvironment   struct{} // names a command
	NotSettings       struct{} // but a text of something else
	NoIdentity        struct{} // there are recipients, and nothing that opens files
	TooLarge          struct{} // for max_size
	CircleOfKeys      struct{} // of key providers
	EnforcedPlaintext struct{} // a method reads it, and enforced forbids that

	// Suspect is a setting that is probably not what was meant.
	Suspect struct {
		Address  string // of the entry, or credentials; "" for an argument of what is used
		Attr     string
		Variable string // of the environment, that the value comes from; it is named in place of the two
		What     string // what is odd about it, such as "ends with a line break"
	}

	// NoValue is a variable of the settings that has no value.
	NoValue struct {
		Name string // "" for a name that is not that of a variable
	}

	// NoBlock is a block that would be required, or is one that could be.
	NoBlock struct {
		Path      string   // names of blocks from the outside in, such as credentials.git
		Arguments []string // what belongs into it, such as "username = var.git_username"
	}
)

// These are about files that no method opens.
type (
	// NoMethod means that a file is encrypted, and that no method for it is selected.
	NoMethod struct {
		Plan         bool     // the target is for plans
		Format       string   // the kind of method that the file is for; "" for OpenTofu's envelope, which several are for
		ByKind       bool     // Format requires no settings, so it may be named in place of an address
		Methods      []string // addresses of methods for such a file that are configured, and not selected
		KeyProviders []string // addresses of all that are configured; the file's own come first
		Selected     []string // addresses of the methods that are selected, none of them for such a file
		In           string   // the block of the settings that selects, or would; "" if somebody else does
		StoredKind   string   // the kind of key provider that the file's metadata names; "" for none, several or an alias
	}

	// NotConfigured is the address of a method or a key provider that is not configured.
	NotConfigured struct {
		Address string
		Alone   bool // nothing is that could be meant
	}

	// Workspace is that of a state that there is not.
	Workspace struct{ Name string }

	// NoState means that there is no state where one is required.
	NoState struct{ Block string } // that says where; "" if that is right

	// Stranger is a file that is neither a state nor a plan.
	Stranger struct {
		What string // such as "it is a script"
		Do   Advice // "" for one that says all
	}

	// KindAlone is a kind of method that is named without a block.
	KindAlone struct {
		Kind  string
		Never bool // it requires one
	}

	// Plaintext means that a file is not encrypted.
	Plaintext struct{ Plan bool }

	// NoThen means that a method decrypted what is encrypted as well, and has no then.
	NoThen struct{ Method string } // that may be for it; "" for an envelope of OpenTofu, which several are for
)

// These are about keys: why the one that was tried may be the wrong one.
type (
	// KeyElsewhere is a configured key provider of which the file stores something, and
	// that the method does not use.
	KeyElsewhere struct {
		Address  string
		Stored   string // its name in the file
		Selected bool   // a selected method before this one uses it
		Tried    bool   // the key of the method was tried in its place
	}

	// Namesake is a configured key provider whose key may be the one that a file calls by the name
	// of another.
	Namesake struct{ Address, Stored string }

	// NoKeyProvider means that nothing is configured of what the file's metadata names.
	NoKeyProvider struct {
		Stored Names
		OfAge  bool // it is of the kind age, whatever it is called
	}

	// Renamed means that the metadata names something, and not the key provider.
	Renamed struct{ Stored Names }

	// Chained is a name in the metadata, beside the key provider's, that the settings lack.
	Chained struct{ Name string }

	// Untried is a configured key provider that no selected method uses.
	Untried struct{ Address string }
)

// Names are those in the metadata of a file, which come from outside.
type Names []string

// MaxName is how many bytes of a name are shown.
const MaxName = 100

// String says what the names are, in brackets behind a space; it is "" for none.
func (n Names) String() string {
	const most = 5
	if len(n) == 0 {
		return ""
	}
	shown := slices.Clone(n[:min(len(n), most)])
	if len(n) > most {
		shown = append(shown, "…")
	}
	for i, name := range shown {
		shown[i] = outside.Quoted(name, MaxName)
	}
	return " (its metadata names " + strings.Join(shown, ", ") + ")"
}
