// Package missing has the errors about what settings lack. Their texts say what it is, and
// give no advice, because only the program knows what its users write; the fields are what
// it needs to give it.
package missing

// Method is the error for a file that is encrypted if no method for it is selected.
type Method struct {
	Plan         bool     // the target is for plans
	Format       string   // the kind of method that the file is for; "" for OpenTofu's envelope, which several are for
	ByKind       bool     // Format requires no settings, so it may be named in place of an address
	Methods      []string // addresses of methods for such a file that are configured, and not selected
	KeyProviders []string // addresses of all that are configured; the file's own come first
	InText       bool     // these were written as text
	Selected     []string // addresses of the methods that are selected, none of them for such a file
	StoredKind   string   // the kind of key provider that the file's metadata names; "" for none, several or an alias

	Text   string
	Reason error // what the error wraps
}

func (e *Method) Error() string { return e.Text }

// Unwrap returns the reason.
func (e *Method) Unwrap() error { return e.Reason }

// Variable is the error for text that needs a variable without a value.
type Variable struct {
	Name string // "" if the text names something that is not a variable
	Text string
}

func (e *Variable) Error() string { return e.Text }

// Identity is what opens files of settings that have recipients alone.
type Identity struct{ Text string }

func (e *Identity) Error() string { return e.Text }
