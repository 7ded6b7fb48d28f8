package states

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Recipients returns the number of age recipients of a file, or of the data key in it. It returns 0 if the file uses no
// age recipients or the number is unknown.
func Recipients(file []byte) (n int) {
	if n = stanzas(file); n > 0 {
		return n
	}
	picked, err := jsonwalk.Pick(file, func(name string, _ []byte) bool { return name == "meta" })
	var envelope struct{ Meta map[string][]byte }
	if err != nil || json.Unmarshal(picked, &envelope) != nil {
		return 0
	}
	for _, document := range envelope.Meta {
		var stored struct {
			External struct {
				Key []byte `json:"statecrypt_age_key"` // the key provider writes this field under the same name
			} `json:"external_data"`
		}
		if json.Unmarshal(document, &stored) == nil {
			n += stanzas(stored.External.Key)
		}
	}
	return n
}

// stanzas returns the number of recipient stanzas in the header of an age file. It does not count the stanzas without a
// recipient (grease) that some programs add.
func stanzas(file []byte) (n int) {
	header, _, _ := bytes.Cut(file, []byte("\n---"))
	if !bytes.HasPrefix(header, []byte("age-encryption.org/")) {
		return 0
	}
	for line := range bytes.Lines(header) {
		kind, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("-> ")), []byte(" "))
		if bytes.HasPrefix(line, []byte("-> ")) && !bytes.HasSuffix(bytes.TrimSpace(kind), []byte("-grease")) {
			n++
		}
	}
	return n
}

// NoteRecipients returns a warning if the number of age recipients differs from before. It returns an empty string if
// the number is the same, or if either number is unknown. With an outdated recipient list, a person may lose access, or
// a person whose access was removed may get it again.
func NoteRecipients(before int, after []byte) string {
	n := Recipients(after)
	if before == 0 || n == 0 || before == n {
		return ""
	}
	return fmt.Sprintf("the number of its age recipients changed from %d to %d; check that the list of recipients is up to date", before, n)
}

// CheckReplaced returns an error if the existing file is not an older version of the file that would replace it. A
// mistyped name may be the name of a settings file, a key file, or another state. Both descriptions, there for the
// existing file and by for the new file, come from [Describe].
func CheckReplaced(there, by encryption.Info) error {
	was, is := content(there), content(by)
	switch {
	case there.Kind == encryption.KindEmpty:
		return nil
	case was == "":
		return errors.New("the existing file is neither a state nor a plan; choose another file name, or delete that file first")
	case is != "" && was != is:
		return fmt.Errorf("the existing file contains a %s, but the input is a %s; choose another file name, or delete that file first",
			was, is)
	case there.Lineage != "" && by.Lineage != "" && there.Lineage != by.Lineage:
		return fmt.Errorf("the existing file contains a state with another lineage (%s); choose another file name, or delete that file first",
			outside.Quoted(there.Lineage, 100))
	case there.Lineage != "" && by.Lineage != "" && there.Serial != nil && by.Serial != nil && *there.Serial > *by.Serial:
		return fmt.Errorf("the existing file contains a newer version of this state (serial %d, but the input has serial %d); choose "+
			"another file name, or delete that file first", *there.Serial, *by.Serial)
	}
	return nil
}

// content returns "state" or "plan" for a file, encrypted or not, or an empty string if unknown. The envelope of a
// state has a label; the envelope of a plan has none.
func content(i encryption.Info) string {
	switch {
	case i.Kind == encryption.KindState, i.Kind == encryption.KindEncrypted && (i.Serial != nil || i.Lineage != ""):
		return "state"
	case i.Kind == encryption.KindPlan, i.Kind == encryption.KindEncrypted:
		return "plan"
	}
	return ""
}

// Describe returns the result of [encryption.Inspect], with the serial and lineage filled in for a plaintext state too.
func Describe(file []byte) (encryption.Info, error) {
	info, err := encryption.Inspect(file)
	if info.Kind == encryption.KindState {
		info.Serial, info.Lineage, _ = store.Label(file)
	}
	return info, err
}

// newLineage returns a random UUID of version 4 (RFC 9562). Anyone who can read the store can see it.
func newLineage() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// withLineage returns the state with the given lineage. If the serial is absent, null or 0, it becomes 1, as in the
// first write by Terraform or OpenTofu.
func withLineage(state []byte, lineage string) ([]byte, error) {
	text, err := json.Marshal(lineage)
	if err != nil {
		return nil, err
	}
	made := map[string]string{"lineage": string(text), "serial": "1"}
	var out bytes.Buffer
	write := func(name string, value []byte) {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		quoted, _ := json.Marshal(name) // a string always encodes
		out.Write(append(append(quoted, ':'), value...))
	}
	out.WriteByte('{')
	err = jsonwalk.Members(state, func(name string, value []byte) (bool, error) {
		switch field := jsonwalk.Fold(name); {
		case field == "lineage", field == "serial" && (string(value) == "0" || string(value) == "null"):
			name, value = field, []byte(made[field])
			delete(made, field)
		case field == "serial":
			delete(made, field)
		}
		write(name, value)
		return true, nil
	})
	for _, name := range []string{"lineage", "serial"} {
		if value, absent := made[name]; absent {
			write(name, []byte(value))
		}
	}
	out.WriteByte('}')
	return out.Bytes(), err
}
