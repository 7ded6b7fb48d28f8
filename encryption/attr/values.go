package attr

// Values are the attributes of one entry, decoded against its [Table]:
// converted, known, with defaults and environment filled in. Asking for an
// attribute that the table does not declare is a programming error and panics.
type Values interface {
	// Address is that of the entry, such as "key_provider.pbkdf2.main".
	Address() string

	// Environment returns the environment that absent attributes were filled from,
	// for kinds that need more of it than attributes. It is nil, which finds
	// nothing, if the environment must not be read, or has no say about the server
	// that is asked: a client library that looks into the environment by itself must
	// then be kept from it. Build may keep it, but reads nothing from it.
	Environment() LookupEnv

	// Variable returns the variable that an attribute comes from, "" if the settings
	// say it or nobody does.
	Variable(name string) string

	// Command returns an error if only the environment says what the attribute is, and
	// must not choose what runs. It is for attributes of which some values name a command;
	// those of the form [Command] have been refused before.
	Command(name string) error

	// LeadsToCommand is Command for attributes whose values lead to a command that stands
	// elsewhere, such as a profile. What only a variable says counts beside a layer: it is the
	// user's own if the code has the rest. Without names, it is for a command that the entry
	// leads to whatever it says.
	LeadsToCommand(names ...string) error

	// Hands reports whether the code gives one of the secrets called names, which are those
	// that a client or a program is handed: variables and files that it finds by itself must
	// then not lead the secret elsewhere. One in a block is called block.name, and all of a
	// block by the name of the block; without names, it is any secret that is sent somewhere.
	Hands(names ...string) bool

	// Refuse returns an error if the code gives one of the secrets called handed, see
	// [Values.Hands]: what the client would follow, such as "the file ~/.kube/config", takes
	// the place of an attribute.
	Refuse(attribute, what string, handed ...string) error

	// Has reports whether the attribute has a value.
	Has(name string) bool

	// String returns a string attribute, "" when it is absent.
	String(name string) string

	// Bool returns a bool attribute, false when it is absent.
	Bool(name string) bool

	// Int returns a number attribute, which is a whole one, 0 when it is absent. Which
	// numbers it may be is [Attr.Check].
	Int(name string) int64

	// Strings returns a list of strings, nil when it is absent.
	Strings(name string) []string

	// StringMap returns a map of strings, nil when it is absent.
	StringMap(name string) map[string]string

	// Bytes returns a list of numbers from 0 to 255 as bytes, nil when it is
	// absent. This is how OpenTofu writes bytes.
	Bytes(name string) ([]byte, error)

	// Identity is equal for equal values of the same kind of entry. It contains the
	// values, secrets included: compare it, but never show it.
	Identity() string

	// Block returns a nested block, and whether the user wrote it.
	Block(name string) (Values, bool)

	// Errorf makes an error about one attribute, or about the whole entry when
	// attr is empty. It names the variable if the value comes from one. Never put a
	// value into it.
	Errorf(attr, format string, args ...any) error
}
