package fault

// Fact is information that accompanies a reason: a value of one of the types in this file.
type Fact interface {
	// advice returns the words for programs without words of their own; "" if there are none.
	advice() string
}

// Advice is advice in words that are the same for all programs, apart from placeholders.
type Advice string

func (a Advice) advice() string { return string(a) }

// These facts concern settings.
type (
	// Suspect is a setting whose value is probably a mistake.
	Suspect struct {
		Setting string // such as "the passphrase of key_provider.pbkdf2.main"
		What    string // its peculiarity, such as "ends with a line break"
	}

	// NoCredentials means that no credentials were sent to a server that may require some.
	NoCredentials struct{}

	// OnlyEnvironment means that a command is not run, because only an environment variable names it.
	OnlyEnvironment struct{}

	// NoIdentity means that the settings have nothing that opens files, such as an identity.
	NoIdentity struct{}

	// Lasting means that no environment variable can correct the mistake.
	Lasting struct{}

	// NoValue is a variable of the settings that has no value.
	NoValue struct {
		Name string // "" for an expression other than var.NAME
	}

	// NoBlock is a block that is missing.
	NoBlock struct {
		Path      string   // names of blocks from the outside in, such as credentials.git
		Arguments []string // arguments of the innermost block, such as "username = var.git_username"
	}

	// NotConfigured is the address of a method or a key provider that is not configured.
	NotConfigured struct {
		Address string
		Alone   bool // whether no configured address could be meant
	}
)

// These facts concern files that no method opens.
type (
	// NoMethod means that a file is encrypted, and that no method for it is selected.
	NoMethod struct {
		Plan         bool     // whether the target is for plans
		Format       string   // the kind of method for the file; "" for OpenTofu's envelope, which several kinds open
		ByKind       bool     // whether Format requires no settings, so it may be named in place of an address
		Methods      []string // addresses of methods for such a file that are configured, but not selected
		KeyProviders []string // addresses of all configured key providers; first the ones with metadata in the file
		Selected     []string // addresses of the methods that are selected, none of them for such a file
		In           string   // the block of the settings that selects methods; "" if a data source selects them
		StoredKind   string   // the kind of key provider that the file's metadata names; "" for none, several or an alias
	}

	// NoState means that there is no state where one is required.
	NoState struct{ Block string } // the block that tells where the state is; "" if it is right

	// Workspace is the workspace of a state that does not exist.
	Workspace struct{ Name string }

	// Plaintext means that a file is not encrypted.
	Plaintext struct{ Plan bool }

	// NoThen means that a file was encrypted twice, and that the method for the outer layer has no argument "then".
	NoThen struct{ Method string } // the method for the inner layer; "" for OpenTofu's envelope
)

// These facts tell why the key that was tried may be the wrong one.
type (
	// NoKeyProvider means that the settings lack all key providers that the file's metadata names.
	NoKeyProvider struct {
		Stored string // names in the metadata, as text that follows a noun; "" for none
		OfAge  bool   // whether the file's key provider is of the kind age
	}

	// KeyElsewhere is a configured key provider that stored metadata in the file, and that the
	// method does not use.
	KeyElsewhere struct {
		Address  string
		Stored   string // its name in the file
		Selected bool   // whether a selected method before this one uses it
		Tried    bool   // whether the key of the method was tried in its place
	}

	// Chained is a name in the metadata that no configured key provider has, beside the name of one that is configured.
	Chained struct{ Name string }

	// Untried is a configured key provider that no selected method uses.
	Untried struct{ Address string }
)
