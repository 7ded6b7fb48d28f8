package attr

// Values are the decoded attributes of one entry: known values of the types in its [Table], with
// defaults and environment variables filled in. Methods panic if they are called with the name of
// an attribute that the table does not declare.
type Values interface {
	// Address returns the address of the entry, such as "key_provider.pbkdf2.main".
	Address() string

	// Environment returns the environment that absent attributes were filled from, for kinds that
	// read further variables. Build may keep it, but must not look up variables.
	//
	// The result is nil, which finds nothing, if the environment must not be read or must not
	// choose the server. A client library that reads the environment by itself must then be kept
	// from doing so.
	Environment() LookupEnv

	// Variable returns the name of the environment variable that set an attribute, or "" if the
	// settings set the attribute or it is absent.
	Variable(name string) string

	// Command returns an error if only the environment set the attribute and the environment must
	// not choose programs. Kinds call it for attributes in which only some values name a command.
	// Attributes of the form [Command] do not need it.
	Command(name string) error

	// LeadsToCommand is like Command, but for attributes that refer to a command defined elsewhere,
	// such as a profile. It refuses a value from a variable only if TF_ENCRYPTION also sets part of
	// the entry; otherwise, the user chose the value. Call it without names for an entry that
	// always leads to a command.
	LeadsToCommand(names ...string) error

	// Hands reports whether the configuration sets any of the named secrets that a client or a
	// program will receive. If so, variables and files that the client finds by itself must not
	// redirect the secret. The name of a block stands for all secrets in the block, and block.name
	// for one of them. Without names, Hands covers all secrets that are sent.
	Hands(names ...string) bool

	// Refuse returns an error if the configuration sets one of the secrets in handed; see
	// [Values.Hands]. The error says that the secret must not be combined with the thing described
	// by what, such as "the file ~/.kube/config". It tells the user to set attribute.
	Refuse(attribute, what string, handed ...string) error

	// Has reports whether the attribute has a value.
	Has(name string) bool

	// String returns a string attribute, or "" if it is absent.
	String(name string) string

	// Bool returns a bool attribute, or false if it is absent.
	Bool(name string) bool

	// Int returns a number attribute, or 0 if it is absent. Decoding refuses a number that is not
	// an integer or does not fit; [Between] narrows the range.
	Int(name string) int64

	// Strings returns a list of strings, or nil if it is absent.
	Strings(name string) []string

	// StringMap returns a map of strings, or nil if it is absent.
	StringMap(name string) map[string]string

	// Bytes returns a list of numbers from 0 to 255 as bytes, or nil if it is absent. OpenTofu
	// writes bytes in this form.
	Bytes(name string) ([]byte, error)

	// Identity returns a string that is equal for equal values of the same kind of entry. It
	// contains all values, including secrets, so it may be compared but must never be shown.
	Identity() string

	// Block returns a nested block, or false if it is absent. A block with a default is never
	// absent.
	Block(name string) (Values, bool)

	// Errorf returns an error about one attribute, or about the whole entry if attr is empty. It
	// names the environment variable if the value comes from one. The arguments must not contain a
	// value, which may be secret.
	Errorf(attr, format string, args ...any) error
}
