package encryptiontest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/probe"
)

// runFiles runs the tests of a method for whole files. They cover the table, bad configurations,
// File, another key, files in other formats, round trips if the method seals files, and every
// damage of File by one bit or one truncation.
func (h Method) runFiles(t *testing.T) {
	t.Helper()
	method, other, secrets := Build(t, h.Block, h.Attrs), Build(t, h.Block, h.Other), probe.Spellings(h.Secrets)
	t.Run("table", func(t *testing.T) {
		checkTable(t, h.Block.Table)
		checkMarks(t, h.Block.Table, h.Attrs, h.Secrets)
	})
	t.Run("bad configuration", func(t *testing.T) {
		for i, attrs := range h.Bad {
			m, err := build(h.Block, attrs)
			if err == nil {
				_, err = m.Decrypt(t.Context(), nil, bytes.Clone(h.File))
			}
			if err == nil || errors.Is(err, encryption.ErrNoKey) {
				t.Errorf("configuration %d: %v", i, err)
			}
			noSecret(t, err, secrets)
		}
	})
	t.Run("its own file", func(t *testing.T) { h.opensFile(t, method, h.File) })
	t.Run("another key", func(t *testing.T) {
		opened, err := other.Decrypt(t.Context(), nil, bytes.Clone(h.File))
		if opened != nil || !errors.Is(err, encryption.ErrNoKey) {
			t.Errorf("got %q, %v", opened, err)
		}
		noSecret(t, err, secrets)
	})
	t.Run("files of others", func(t *testing.T) {
		for _, foreign := range []string{
			"", " ", "{}", "[]", "null", `{"version":4}`, "\n{\"version\":4,\"serial\":1}\n", "# a text\n- that is not encrypted\n",
			`{"meta":{},"encrypted_data":"AAAA","encryption_version":"v0"}`,
		} {
			if h.Block.OwnFormat([]byte(foreign)) {
				t.Errorf("it recognizes %q", foreign)
			}
			if opened, err := method.Decrypt(t.Context(), nil, []byte(foreign)); err == nil {
				t.Errorf("%q opens to %q", foreign, opened)
			}
		}
	})
	t.Run("round trip", func(t *testing.T) {
		encrypter, ok := method.(driver.Encrypter)
		if !ok {
			t.Skip("it does not seal")
		}
		sealed, err := encrypter.Encrypt(t.Context(), nil, bytes.Clone(h.Plain))
		if err != nil {
			t.Fatal(err)
		}
		h.opensFile(t, method, sealed)
		again, err := encrypter.Encrypt(t.Context(), nil, bytes.Clone(h.Plain))
		if err != nil || bytes.Equal(again, sealed) {
			t.Errorf("sealing twice must not give the same bytes (%v)", err)
		}
	})
	t.Run("damage", func(t *testing.T) {
		probe.Every(t, h.File, func(file []byte) (string, error) {
			opened, err := method.Decrypt(t.Context(), nil, file)
			if err != nil && opened != nil {
				t.Errorf("plaintext comes with an error: %v", err)
			}
			noSecret(t, err, secrets)
			return string(opened), err
		}, probe.Harmless{
			Why: "the harness says so", Count: -1,
			Is: func(c probe.Case) bool { return h.Harmless != nil && h.Harmless(c.File, c.At) },
		})
	})
}

func (h Method) opensFile(t *testing.T, method driver.Method, file []byte) {
	t.Helper()
	if !h.Block.OwnFormat(file) {
		t.Error("it does not recognize its own file")
	}
	opened, err := method.Decrypt(t.Context(), nil, bytes.Clone(file))
	if err != nil || !bytes.Equal(opened, h.Plain) {
		t.Errorf("got %q, %v", opened, err)
	}
	if bytes.Contains(file, h.Plain[:min(len(h.Plain), 40)]) {
		t.Error("the plaintext shows")
	}
}
