//go:build unix

package external_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	externalkeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/vectortest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func commands(encrypt, decrypt cty.Value) map[string]cty.Value {
	return map[string]cty.Value{"encrypt_command": encrypt, "decrypt_command": decrypt}
}

// TestMain is also the program of TestSuite, so that none has to be compiled.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != "encrypt" && os.Args[1] != "decrypt" {
		m.Run()
	} else if err := crypt(os.Args[1] == "encrypt"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// crypt seals with AES-GCM, or opens.
func crypt(seals bool) error {
	fmt.Println(`{"magic":"OpenTofu-External-Encryption-Method","version":1}`)
	var in, out struct {
		Key     []byte `json:"key,omitempty"`
		Payload []byte `json:"payload"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	block, err := aes.NewCipher(in.Key)
	if err != nil {
		return err
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	switch {
	case err != nil:
	case seals:
		out.Payload = gcm.Seal(nil, nil, in.Payload, nil)
	default:
		out.Payload, err = gcm.Open(nil, nil, in.Payload, nil)
	}
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(out))
}

func TestSuite(t *testing.T) {
	t.Parallel()
	attrs := commands(testkit.List(os.Args[0], "encrypt"), testkit.List(os.Args[0], "decrypt"))
	attrs["keys"] = cty.StringVal("key_provider.static.k")
	key := func(fill byte) driver.Keys {
		return func(context.Context, string) ([]byte, error) { return bytes.Repeat([]byte{fill}, 32), nil }
	}
	encryptiontest.Method{
		Block: external.Block(),
		Attrs: attrs,
		Bad: []map[string]cty.Value{
			{},
			{"encrypt_command": testkit.List("x")},
			{"decrypt_command": testkit.List("x")},
			commands(testkit.List(""), testkit.List("x")),
			commands(testkit.List("x"), testkit.List("")),
			commands(testkit.List(), testkit.List("x")),
			commands(testkit.List("x"), testkit.List()),
		},
		Keys:      key(1),
		OtherKeys: key(2),
	}.Run(t)
}

// answering is a method whose programs, after the header, are this script.
func answering(t *testing.T, script string, keys string) driver.Method {
	t.Helper()
	command := testkit.List("sh", "-c", `printf '{"magic":"OpenTofu-External-Encryption-Method","version":1}\n'; `+script)
	attrs := commands(command, command)
	if keys != "" {
		attrs["keys"] = cty.StringVal(keys)
	}
	return encryptiontest.Build(t, external.Block(), attrs)
}

func canaryKey(context.Context, string) ([]byte, error) { return []byte("canary key"), nil }

func TestInput(t *testing.T) {
	t.Parallel()
	echo := `printf '{"payload":"%s"}' "$(base64 -w0)"`
	for keys, want := range map[string]string{
		"":                      `{"payload":"ZGF0YQ=="}`,
		"key_provider.static.k": `{"key":"Y2FuYXJ5IGtleQ==","payload":"ZGF0YQ=="}`,
	} {
		m := answering(t, echo, keys)
		if got, err := m.Decrypt(t.Context(), canaryKey, []byte("data")); err != nil || string(got) != want {
			t.Errorf("decrypt: the program is given %s (%v), want %s", got, err, want)
		}
		if got, err := m.(driver.Encrypter).Encrypt(t.Context(), canaryKey, []byte("data")); err != nil || string(got) != want {
			t.Errorf("encrypt: the program is given %s (%v), want %s", got, err, want)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method external", "canary", "Y2FuYXJ5")
	for name, c := range map[string]struct {
		script string
		noKey  bool // the next method is tried
	}{
		"fails":         {`echo "wrong key $(sed 's/.*"key":"\([^"]*\)".*/\1/')" >&2; exit 4`, true},
		"not json":      {`echo canary`, true},
		"unknown field": {`printf '{"payload":"AAAA","canary":1}'`, true},
		"no payload":    {`printf '{}'`, true},
		"null":          {`printf null`, true},
		"endless":       {`yes | tr -d '\n'`, false},
	} {
		m := answering(t, c.script, "key_provider.static.k")
		got, err := m.Decrypt(t.Context(), canaryKey, []byte("data"))
		if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) != c.noKey || got != nil {
			t.Errorf("%s: got %.20q, %v", name, got, err)
		}
		_, err = m.(driver.Encrypter).Encrypt(t.Context(), canaryKey, []byte("data"))
		says.Error(t, name+", sealing", err)
	}
	m := answering(t, `sleep 30`, "")
	if _, err := m.Decrypt(t.Context(), nil, nil); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("no data: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Decrypt(ctx, nil, []byte("data")); !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrNoKey) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestVectors opens files that OpenTofu wrote, with the programs that it ran.
func TestVectors(t *testing.T) {
	t.Parallel()
	registry := encryption.Registry{
		KeyProviders: []driver.Block[driver.KeyProvider]{externalkeys.Block()},
		Methods:      []driver.Block[driver.Method]{external.Block()},
	}
	for _, vector := range []lighttest.Vector{vectortest.Cases + "external_method_no_keys", vectortest.Cases + "external_method_with_keys"} {
		t.Run(vector.Name(), func(t *testing.T) {
			t.Parallel()
			target := vector.Target(t, registry, nil)
			opened := vector.Opens(t, target)
			sealed, err := target.Encrypt(t.Context(), opened.Data)
			if err != nil {
				t.Fatal(err)
			}
			again, err := target.Decrypt(t.Context(), sealed)
			if err != nil || !bytes.Equal(again.Data, opened.Data) {
				t.Errorf("sealed and opened again: %v", err)
			}
		})
	}
}
