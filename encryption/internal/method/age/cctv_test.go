package age_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	agetest "c2sp.org/CCTV/age"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/age"
)

// TestCCTV: the files of https://c2sp.org/CCTV/age, which all programs of age share,
// open or fail as they must, and only a file for someone else lets the next method try.
func TestCCTV(t *testing.T) {
	t.Parallel()
	files, err := fs.ReadDir(agetest.Vectors, ".")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(file.Name(), func(t *testing.T) {
			t.Parallel()
			content, err := fs.ReadFile(agetest.Vectors, file.Name())
			if err != nil {
				t.Fatal(err)
			}
			checkCCTV(t, content)
		})
	}
}

func checkCCTV(t *testing.T, content []byte) {
	t.Helper()
	header, file, _ := bytes.Cut(content, []byte("\n\n"))
	said := map[string][]string{}
	for line := range strings.Lines(string(header)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		said[name] = append(said[name], value)
	}
	if said["compressed"] != nil {
		file = inflate(t, file)
	}
	var settings []any
	if said["identity"] != nil {
		settings = append(settings, "identities", said["identity"])
	}
	if said["passphrase"] != nil {
		settings = append(settings, "passphrase", said["passphrase"][0])
	}
	if len(settings) == 0 {
		settings = []any{"passphrase", "of nobody"}
	}
	plain, err := encryptiontest.Build(t, age.Block(), attrs(settings...)).Decrypt(t.Context(), nil, file)
	switch expect := said["expect"][0]; {
	case expect == "success":
		sum := sha256.Sum256(plain)
		if err != nil || hex.EncodeToString(sum[:]) != said["payload"][0] {
			t.Errorf("got %d bytes, %v", len(plain), err)
		}
	case err == nil || plain != nil:
		t.Errorf("it opens, and must not: %s", expect)
	case errors.Is(err, driver.ErrNoKey) != (expect == "no match"):
		t.Errorf("%s: got %v", expect, err)
	}
}

func inflate(t *testing.T, data []byte) []byte {
	t.Helper()
	reader, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	inflated, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return inflated
}
