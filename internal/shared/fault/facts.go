package fault

// Fact is knowledge beside a reason: a value of one of the types here.
type Fact interface {
	// advice has the words for programs that have none of their own; "" for none.
	advice() string
}

// Advice is an advice in words that are the same for everybody, apart from placeholders.
type Advice string

func (a Advice) advice() string { return string(a) }

// These are about settings.
type (
	// Suspect is a setting that was probably meant otherwise.
	Suspect struct {
		Setting string // such as "the passphrase of key_provider.pbkdf2.main"
		What    string // its peculiarity, such as "ends with a line break"
	}

	// NoCredentials were sent to a server that may require some.
	NoCredentials struct{}

	// OnlyEnvironment means that a variable alone names a command, which is not run.
	OnlyEnvironment struct{}

	// NoIdentity means that there are recipients, and nothing that opens files.
	NoIdentity struct{}

	// Lasting means that no variable corrects the mistake.
	Lasting struct{}

	// NoValue is a variable of the settings that has no value.
	NoValue struct {
		Name string // "" for a name that is not that of a variable
	}

	// NoBlock is a block that is missing.
	NoBlock struct {
		Path      string   // names of blocks from the outside in, such as credentials.git
		Arguments []string // of the innermost block, such as "username = var.git_username"
	}

	// NotConfigured is the address of a method or a key provider that is not configured.
	NotConfigured struct {
		Address string
		Alone   bool // no configured address could be meant
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

	// NoState means that there is no state where one is required.
	NoState struct{ Block string } // that says where; "" if that is right

	// Workspace is the workspace of a state that does not exist.
	Workspace struct{ Name string }

	// Plaintext means that a file is not encrypted.
	Plaintext struct{ Plan bool }

	// NoThen means that a method decrypted a file that is encrypted twice, and has no then.
	NoThen struct{ Method string } // for the inner layer; "" for an envelope of OpenTofu, which several are for
)

// These are about keys: why the one that was tried may be the wrong one.
type (
	// NoKeyProvider means that the settings lack all key providers that the file's metadata names.
	NoKeyProvider struct {
		Stored string // names in the metadata, as text that follows a noun; "" for none
		OfAge  bool   // it is of the kind age, whatever it is called
	}

	// KeyElsewhere is a configured key provider of which the file stores something, and
	// that the method does not use.
	KeyElsewhere struct {
		Address  string
		Stored   string // its name in the file
		Selected bool   // a selected method before this one uses it
		Tried    bool   // the key of the method was tried in its place
	}

	// Chained is a name in the metadata, beside that of the key provider, that the settings lack.
	Chained struct{ Name string }

	// Untried is a configured key provider that no selected method uses.
	Untried struct{ Address string }
)
