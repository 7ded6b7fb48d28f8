package attr

// Values are the attributes of one entry, decoded against its [Table]: converted, known, with
// defaults and environment filled in. A method that is called with the name of an attribute
// that the table does not declare panics.
type Values interface {
	// Address returns the address of the entry, such as "key_provider.pbkdf2.main".
	Address() string

	// Environment returns the environment that absent attributes were filled from, for kinds
	// that read further variables. It is nil, which finds nothing, if the environment must not
	// be read, or must not decide about the server: a client library that reads the
	// environment by itself must then be kept from it. Build may keep the result, but must not
	// look up variables.
	Environment() LookupEnv

	// Variable returns the name of the environment variable that set an attribute, and "" if
	// the settings set it or it is absent.
	Variable(name string) string

	// Command returns an error if only the environment set the attribute, and must not choose
	// programs. Kinds call it for attributes of which some values name a command. Attributes
	// of the form [Command] need no call.
	Command(name string) error

	// LeadsToCommand returns an error like Command for attributes that refer to a command
	// defined elsewhere, such as a profile. A value from a variable is refused only if a layer
	// of TF_ENCRYPTION also sets part of the entry; otherwise the user chose it. Without
	// names, it judges an entry that always leads to a command.
	LeadsToCommand(names ...string) error

	// Hands reports whether the configuration sets one of the named secrets, which a client or
	// a program will receive. Variables and files that the client finds by itself must then
	// not send the secret elsewhere. The name of a block stands for all secrets in it, and
	// block.name for one of them. Without names, it covers all secrets that are sent.
	Hands(names ...string) bool

	// Refuse returns an error if the configuration sets one of the secrets in handed, see
	// [Values.Hands]. The error tells that the thing described by what, such as "the file
	// ~/.kube/config", must not be combined with the secret, and to set attribute.
	Refuse(attribute, what string, handed ...string) error

	// Has reports whether the attribute has a value.
	Has(name string) bool

	// String returns a string attribute, "" when it is absent.
	String(name string) string

	// Bool returns a bool attribute, false when it is absent.
	Bool(name string) bool

	// Int returns a number attribute, 0 when it is absent. Decoding refuses a number that is
	// not whole or does not fit; [Between] narrows the range.
	Int(name string) int64

	// Strings returns a list of strings, nil when it is absent.
	Strings(name string) []string

	// StringMap returns a map of strings, nil when it is absent.
	StringMap(name string) map[string]string

	// Bytes returns a list of numbers from 0 to 255 as bytes, nil when it is
	// absent. This is how OpenTofu writes bytes.
	Bytes(name string) ([]byte, error)

	// Identity returns a text that is equal for equal values of the same kind of entry. It
	// contains the values, secrets included: compare it, but never show it.
	Identity() string

	// Block returns a nested block, and false if it is absent. A block with a default is never
	// absent.
	Block(name string) (Values, bool)

	// Errorf makes an error about one attribute, or about the whole entry when attr is empty.
	// It names the environment variable if the value comes from one. The arguments must not
	// contain a value, which may be secret.
	Errorf(attr, format string, args ...any) error
}
