package fault

// Fact is information that accompanies a reason. Its types are all in this file.
type Fact interface {
	// advice returns the default wording, for programs that have none of their own. It returns an empty
	// string if there is no default.
	advice() string
}

// Advice is advice that all programs word in the same way, apart from placeholders.
type Advice string

func (a Advice) advice() string { return string(a) }

// Facts about settings.
type (
	// Suspect is a setting whose value is probably a mistake.
	Suspect struct {
		Setting string // the name of the setting, such as "the passphrase of key_provider.pbkdf2.main"
		What    string // the peculiarity of the value, such as "ends with a line break"
	}

	// NoCredentials means that a server that may require credentials did not get any.
	NoCredentials struct{}

	// OnlyEnvironment means that a command was not run because only an environment variable names it.
	OnlyEnvironment struct{}

	// NoIdentity means that the settings contain nothing that can open files, such as an identity.
	NoIdentity struct{}

	// Lasting means that no environment variable can correct the mistake.
	Lasting struct{}

	// NoValue is a variable in the settings that has no value.
	NoValue struct {
		Name string // empty for an expression other than var.NAME
	}

	// NoBlock is a missing block.
	NoBlock struct {
		Path      string   // block names from the outermost to the innermost, such as credentials.git
		Arguments []string // arguments for the innermost block, such as "username = var.git_username"
	}

	// NotConfigured is the address of a method or a key provider that is not configured.
	NotConfigured struct {
		Address string
		Alone   bool // whether no configured address is similar
	}
)

// Facts about files that no method opens.
type (
	// NoMethod means that a file is encrypted, but that no suitable method is selected.
	NoMethod struct {
		Plan         bool     // whether a plan was expected
		Format       string   // the kind of method for the file; empty for OpenTofu's envelope
		ByKind       bool     // whether Format needs no settings, so that the kind can be used instead of an address
		Methods      []string // addresses of suitable methods that are configured but not selected
		KeyProviders []string // addresses of all configured key providers, first those with metadata in the file
		Selected     []string // addresses of the selected methods, none of which is suitable
		In           string   // the block that selects methods; empty if a data source selects them
		StoredKind   string   // the kind of key provider that the metadata names; empty for none, several or an alias
	}

	// Plaintext means that a file is not encrypted.
	Plaintext struct{ Plan bool }
)

// NoKeyProvider means that none of the key providers named in the file's metadata is configured.
type NoKeyProvider struct {
	Stored string // names in the metadata, as text to append to a noun; empty if there are none
	OfAge  bool   // whether the file's key provider is of kind age
}
