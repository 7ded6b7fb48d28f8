package lighttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/probe"
)

// Vector is the path of a folder, such as one in conformance/cases. The folder contains a state
// that OpenTofu encrypted, the configuration it used, and the plaintext state.
type Vector string

// Name returns the name of the folder.
func (v Vector) Name() string { return path.Base(string(v)) }

// Target returns the target in the vector's own configuration, whose programs are in the vector's
// folder.
func (v Vector) Target(t *testing.T, registry encryption.Registry, env attr.LookupEnv) encryption.Target {
	t.Helper()
	settings := strings.ReplaceAll(string(v.Read(t, "config.hcl")), "./", string(v)+"/")
	enc, err := encryption.Load(registry, encryption.Code(settings, "config.hcl"), encryption.Environment(env))
	if err != nil {
		t.Fatal(err)
	}
	return enc.State()
}

// Sealed returns the encrypted state.
func (v Vector) Sealed(t *testing.T) []byte {
	t.Helper()
	return v.Read(t, "state.tfstate.enc")
}

// Read returns a file of the vector.
func (v Vector) Read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(string(v), name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Opens checks that target opens the vector and returns the state that was encrypted. It ignores
// white space between JSON tokens, because OpenTofu prints a state with other white space than in
// the encrypted file.
func (v Vector) Opens(t *testing.T, target encryption.Target) *encryption.Opened {
	t.Helper()
	opened, err := target.Decrypt(t.Context(), v.Sealed(t))
	if err != nil {
		t.Error(err)
		return new(encryption.Opened)
	}
	var got, want bytes.Buffer
	err = errors.Join(json.Compact(&got, opened.Data), json.Compact(&want, v.Read(t, "plain_state.json")))
	if err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("got %s, %v, want %s", opened.Data, err, want.Bytes())
	}
	return opened
}

// DamageEnvelope damages an encrypted state in every way that is one truncation or one flipped bit.
// If target still opens a damaged state, the damage must be outside the encrypted data. Counts has
// the expected numbers of such states: without the line end at the end, with damaged metadata, with
// damaged names of other members, and with damage in unused bits of base64.
func DamageEnvelope(t *testing.T, file []byte, counts [4]int, target encryption.Target) {
	t.Helper()
	part := func(name string, begin, end byte) [2]int {
		start := bytes.Index(file, []byte(name))
		if start < 0 {
			t.Fatalf("the file has no %s", name)
		}
		start += len(name)
		start += bytes.IndexByte(file[start:], begin) + 1
		return [2]int{start, start + bytes.IndexByte(file[start:], end)}
	}
	metadata, data := part(`"meta":`, '{', '}'), part(`"encrypted_data":`, '"', '"')
	in := func(d probe.Case, part [2]int) bool { return !d.Cut && d.At >= part[0] && d.At < part[1] }
	probe.Every(t, file, func(file []byte) (string, error) {
		opened, err := target.Decrypt(t.Context(), file)
		if err != nil {
			return "", err
		}
		return string(opened.Data), nil
	}, probe.Harmless{
		Why: "the line end at the end is missing", Count: counts[0],
		Is: func(d probe.Case) bool { return d.Cut && len(bytes.TrimSpace(file[d.At:])) == 0 },
	}, probe.Harmless{
		Why: "the metadata has another name, and its key provider knows it by its shape; or what differs in it does not " +
			"matter, such as the case of a letter in a name",
		Count: counts[1],
		Is:    func(d probe.Case) bool { return in(d, metadata) },
	}, probe.Harmless{
		Why: "a name differs in the case of a letter, or there is no copy of the serial or lineage any more, as early " +
			"versions wrote none",
		Count: counts[2],
		Is:    func(d probe.Case) bool { return !d.Cut && !in(d, metadata) && !in(d, data) },
	}, probe.Harmless{
		Why: "these bits of the last digit of base64 hold nothing", Count: counts[3],
		Is: func(d probe.Case) bool { return in(d, data) && d.At >= data[1]-4 },
	})
}
