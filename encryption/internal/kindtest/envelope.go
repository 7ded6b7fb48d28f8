package kindtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
)

// StoredIn returns the metadata that the envelope at path holds under name, or
// the only one when name is empty.
func StoredIn(tb testing.TB, path, name string) string {
	tb.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var envelope struct {
		Meta map[string][]byte `json:"meta"`
	}
	err = json.Unmarshal(file, &envelope)
	if err == nil && name == "" && len(envelope.Meta) != 1 {
		err = errors.New("there is not one entry")
	}
	for key, stored := range envelope.Meta {
		if err == nil && (name == "" || name == key) {
			return string(stored)
		}
	}
	tb.Fatalf("%s: the metadata %q: %v", path, name, err)
	return ""
}

// DamageEnvelope damages an encrypted state, with [encryptiontest.Damage], in every way that is
// one truncation or one flipped bit. What target still opens is damaged
// outside of the encrypted data; counts says how many mutants do: for a line end
// that is missing at the end, in the metadata, in the names of other members, and
// in bits of base64 that hold nothing.
func DamageEnvelope(t *testing.T, file []byte, counts [4]int, target encryption.Target) {
	t.Helper()
	part := func(name string, end byte) [2]int {
		start := bytes.Index(file, []byte(name))
		if start < 0 {
			t.Fatalf("the file has no %s", name)
		}
		start += len(name)
		return [2]int{start, start + bytes.IndexByte(file[start:], end)}
	}
	metadata, data := part(`"meta": {`, '}'), part(`"encrypted_data": "`, '"')
	in := func(d encryptiontest.Damaged, part [2]int) bool { return !d.Cut && d.At >= part[0] && d.At < part[1] }
	encryptiontest.Damage(t, file, func(file []byte) (string, error) {
		opened, err := target.Decrypt(t.Context(), file)
		if err != nil {
			return "", err
		}
		return string(opened.Data), nil
	}, encryptiontest.Harmless{
		Why: "the line end at the end is missing", Count: counts[0],
		Is: func(d encryptiontest.Damaged) bool { return d.Cut && len(bytes.TrimSpace(file[d.At:])) == 0 },
	}, encryptiontest.Harmless{
		Why: "the metadata has another name, and its key provider knows it by its shape; or what differs in it does not " +
			"matter, such as the case of a letter in a name",
		Count: counts[1],
		Is:    func(d encryptiontest.Damaged) bool { return in(d, metadata) },
	}, encryptiontest.Harmless{
		Why: "a name differs in the case of a letter, or there is no copy of the serial or lineage any more, as early " +
			"versions wrote none",
		Count: counts[2],
		Is:    func(d encryptiontest.Damaged) bool { return !d.Cut && !in(d, metadata) && !in(d, data) },
	}, encryptiontest.Harmless{
		Why: "these bits of the last digit of base64 hold nothing", Count: counts[3],
		Is: func(d encryptiontest.Damaged) bool { return in(d, data) && d.At >= data[1]-4 },
	})
}
