package tfstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// document holds the members of every state format that this package reads. Other members are skipped.
type document struct {
	Version          *int            `json:"version"`
	TerraformVersion string          `json:"terraform_version"`
	Serial           int64           `json:"serial"`
	Lineage          string          `json:"lineage"`
	Sealed           json.RawMessage `json:"encryption_version"` // only in an encrypted state; nil otherwise
	Outputs          json.RawMessage `json:"-"`                  // JSON of format 4, a part of the file
	Modules          json.RawMessage `json:"-"`                  // JSON of formats 1 to 3, a part of the file
	Resources        json.RawMessage `json:"-"`                  // JSON of format 4, a part of the file
}

// module holds the outputs of one module in formats 1 to 3, by name.
type module struct {
	Path    []string                   `json:"path"`
	Outputs map[string]json.RawMessage `json:"outputs"`
}

// parseDocument reads the small members of the file and locates the large ones. It returns an error
// if a value has the wrong type, or if the file is not JSON.
func parseDocument(data []byte) (*document, error) {
	var doc document
	large := map[string]*json.RawMessage{"outputs": &doc.Outputs, "modules": &doc.Modules, "resources": &doc.Resources}
	return &doc, jsonwalk.Decode(data, &doc, large, "version", "terraform_version", "serial", "lineage",
		"encryption_version")
}

func errForm(key string) error {
	return edited(fmt.Errorf("the %q of the state do not match its format version", key))
}

// edited adds advice to err for a state that Terraform and OpenTofu would not write. If the state exceeds a limit of
// this package, edited returns err unchanged, because the state may be genuine.
func edited(err error) error {
	if errors.Is(err, ErrCost) || errors.Is(err, ErrDigits) || errors.Is(err, errNesting) {
		return err
	}
	return fmt.Errorf("%w, so the state was edited or damaged; restore an intact copy", err)
}

// checkVersion returns an error if the file is not a state, or if its format is too new. It ignores a decoding error
// unless that concerns the whole file or the version.
func checkVersion(doc *document, decoding error) error {
	wrong, _ := errors.AsType[*json.UnmarshalTypeError](decoding)
	switch {
	case wrong != nil && wrong.Field == "":
		return errors.New("this is not a state file: it is not a JSON object; check that this is the right file")
	case wrong != nil && wrong.Field == "version":
		return errors.New(`this is not a state file: its "version" is not a whole number; if sops encrypted it, decrypt it first. Otherwise, check ` +
			`that this is the right file`)
	case doc.Version == nil && doc.Sealed != nil:
		return errors.New("this state is encrypted, not in plaintext; decrypt it first")
	case doc.Version == nil:
		return errors.New(`this is not a state file: it has no "version"; check that this is the right file`)
	case *doc.Version < 1:
		return fmt.Errorf("this is not a state file: format version %d does not exist; check that this is the right file", *doc.Version)
	case *doc.Version > 4:
		by := ""
		if doc.TerraformVersion != "" {
			by = " (written by version " + quote(doc.TerraformVersion) + " of Terraform or OpenTofu)"
		}
		return fmt.Errorf("this state has format version %d%s, but this release reads only versions 1 to 4; install a newer "+
			"release of statecrypt", *doc.Version, by)
	}
	return nil
}

// syntaxError returns the error for data that is not valid JSON. It gives the position of the
// mistake, but not the text that encoding/json quotes.
func syntaxError(data []byte, err error) error {
	const no = "this is not a state file: "
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New(no + "it is empty")
	case nesting(data) > jsonNesting:
		return fmt.Errorf("the state is nested more than %d levels deep", jsonNesting)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Offset < int64(len(data)) {
		return fmt.Errorf(no+"it stops being JSON at byte %d", jsonwalk.Place(data, syntax))
	}
	return errors.New(no + "its JSON ends too early; fetch it again, or restore an intact copy")
}

// typeError returns an error that names the key whose value has the wrong type. The key is always
// one that this package reads.
func typeError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return edited(fmt.Errorf("%q is not %s", wrong.Field, jsonwalk.Expected(wrong)))
	}
	return errors.New("it is not a JSON object; check that this is the right file")
}
