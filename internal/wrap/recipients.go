package wrap

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// Recipients is for how many a file is encrypted by age, or its key is: 0 if it is not, or
// nobody knows.
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
				Key []byte `json:"statecrypt_age_key"` // the encoder of its key provider has the same name
			} `json:"external_data"`
		}
		if json.Unmarshal(document, &stored) == nil {
			n += stanzas(stored.External.Key)
		}
	}
	return n
}

// stanzas counts those in the header of a file of age, one for each recipient. Some programs
// add one that is for nobody.
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

// NoteRecipients says that a file is encrypted for more recipients of age than before, or for
// fewer, "" if it is not: a list of recipients that is not the newest shuts somebody out, or
// lets in again who has left.
func NoteRecipients(before int, after []byte) string {
	n := Recipients(after)
	if before == 0 || n == 0 || before == n {
		return ""
	}
	return fmt.Sprintf("the number of its recipients of age was %d, and is now %d; check that the list of recipients is the newest", before, n)
}
