package age_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	agekeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/age"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// The identities are those of the method age.
func testdata(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "method", "age", "testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// recipient is the public key that a comment of an identity file tells.
func recipient(tb testing.TB, name string) string {
	tb.Helper()
	_, after, _ := strings.Cut(testdata(tb, name), "# public key: ")
	key, _, ok := strings.Cut(after, "\n")
	if !ok {
		tb.Fatal("the identity file does not tell its public key")
	}
	return key
}

// team are three recipients. Age mixes no hybrid ones with others.
func team(tb testing.TB) []string {
	tb.Helper()
	return []string{recipient(tb, "x25519.key"), testdata(tb, "ssh_ed25519.pub"), testdata(tb, "ssh_rsa.pub")}
}

func attrs(pairs ...any) map[string]cty.Value { return testkit.Attrs{}.With(pairs...) }

func provider(tb testing.TB, pairs ...any) driver.KeyProvider {
	tb.Helper()
	return encryptiontest.Build(tb, agekeys.Block(), attrs(pairs...))
}

func TestSuite(t *testing.T) {
	t.Parallel()
	own, other := testdata(t, "x25519.key"), testdata(t, "other.key")
	secret := func(identity string) string { return identity[strings.Index(identity, "AGE-SECRET-KEY-"):][20:40] }
	for name, recipients := range map[string][]string{
		"x25519.key": team(t), "ssh_ed25519": team(t), "hybrid.key": {recipient(t, "hybrid.key")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			encryptiontest.KeyProvider{
				Block: agekeys.Block(),
				Attrs: attrs("identities", []string{testdata(t, name)}, "recipients", recipients),
				Other: attrs("identities", []string{other}, "recipients", []string{recipient(t, "other.key")}),
				Bad: []map[string]cty.Value{
					{},
					attrs("identities", []string{"canary"}),
					attrs("identities", []string{recipient(t, "x25519.key")}),
					attrs("identities", []string{"AGE-PLUGIN-YUBIKEY-1CANARY"}),
					attrs("identity_files", []string{"testdata/nobody"}),
					attrs("recipients", []string{own}),
					attrs("recipients", []string{"age1canary"}),
					attrs("recipients", team(t)), // which open nothing
					attrs("recipients", append(team(t), recipient(t, "hybrid.key"))),
				},
				Secrets: []string{"canary", "CANARY", secret(own), secret(other)},
			}.Run(t)
		})
	}
}

// Each of the team opens what was sealed for all, and nobody else does.
func TestTeam(t *testing.T) {
	t.Parallel()
	key, stored, err := provider(t, "recipients", team(t)).(driver.KeyMaker).NewKey(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, member := range map[string]bool{
		"x25519.key": true, "ssh_ed25519": true, "ssh_rsa": true, "other.key": false, "hybrid.key": false,
	} {
		got, err := provider(t, "identities", []string{testdata(t, name)}).Key(t.Context(), nil, stored)
		if member && !bytes.Equal(got, key) || !member && !errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = provider(t, "recipients", team(t)).Key(t.Context(), nil, stored)
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "key_provider age, one half of a key")
	if says.Error(t, "recipients alone", err); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("with recipients alone: %v", err)
	}
	_, _, err = provider(t, "identities", []string{testdata(t, "x25519.key")}).(driver.KeyMaker).NewKey(t.Context(), nil)
	says.Error(t, "identities alone", err)
}

// sealed is metadata with an age file of this plaintext.
func sealed(t *testing.T, plain string) []byte {
	t.Helper()
	to, err := age.ParseX25519Recipient(recipient(t, "x25519.key"))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := age.Encrypt(&file, to)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, plain)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return stored(file.Bytes())
}

func stored(file []byte) []byte {
	return fmt.Appendf(nil, `{"external_data":{"statecrypt_age_key":%q}}`, base64.StdEncoding.EncodeToString(file))
}

// What a file stores may be anything. Damage is the key is not the problem.
func TestStored(t *testing.T) {
	t.Parallel()
	p := provider(t, "identities", []string{testdata(t, "x25519.key")})
	right := sealed(t, strings.Repeat("k", 32))
	if key, err := p.Key(t.Context(), nil, right); err != nil || string(key) != strings.Repeat("k", 32) {
		t.Fatalf("%q, %v", key, err)
	}
	beside := strings.Replace(string(right), `{"external_data"`, `{"x":1,"external_data"`, 1)
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "key_provider age, metadata", strings.Repeat("k", 32))
	_, err := p.Key(t.Context(), nil, []byte(`{"external_data":{"key":"x"}}`))
	if says.Error(t, "of another program", err); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("of another program: %v", err)
	}
	within := strings.Replace(string(right), `{"statecrypt`, `{"x":"1","statecrypt`, 1)
	for name, document := range map[string]string{
		"short key": string(sealed(t, "k")), "long key": string(sealed(t, strings.Repeat("k", 33))), "no key": string(sealed(t, "")),
		"more": beside, "more within": within, "null": `null`, "nothing": `{}`, "no data": `{"external_data":null}`,
		"number":      `{"external_data":{"statecrypt_age_key":1}}`,
		"no age file": string(stored([]byte("hello"))), "cut": string(stored([]byte("age-encryption.org/v1\n-> X25519 "))),
		"long": string(stored(append([]byte("age-encryption.org/v1\n"), make([]byte, 1<<20)...))),
	} {
		key, err := p.Key(t.Context(), nil, []byte(document))
		if says.Error(t, name, err); key != nil || errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%s: %q, %v", name, key, err)
		}
	}
}

// More recipients than a file may store are an error of who seals.
func TestManyRecipients(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = recipient(t, "hybrid.key")
	}
	_, _, err := provider(t, "recipients", many).(driver.KeyMaker).NewKey(t.Context(), nil)
	testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "key_provider age, recipients").Error(t, "too many", err)
}

// The metadata has the name that OpenTofu's key provider external of the same name
// looks for, whatever wrote it. Found by its content, it belongs to age alone.
func TestName(t *testing.T) {
	t.Parallel()
	registry := encryption.Registry{
		KeyProviders: []driver.Block[driver.KeyProvider]{agekeys.Block(), external.Block()},
		Methods:      []driver.Block[driver.Method]{aesgcm.Block()},
	}
	load := func(kind, name, arguments string) encryption.Target {
		enc, err := encryption.Load(registry, encryption.Code(fmt.Sprintf(`key_provider %q %q {
				%s
			}
			method "aes_gcm" "m" { keys = key_provider.%[1]s.%[2]s }
			state { method = method.aes_gcm.m }`, kind, name, arguments), "test.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		return enc.State()
	}
	quotedTeam, _ := json.Marshal(team(t))
	identity, _ := json.Marshal(testdata(t, "x25519.key"))
	arguments := fmt.Sprintf("recipients = %s\nidentities = [%s]\n", quotedTeam, identity)
	const plain = `{"version":4,"serial":1,"lineage":"l"}`
	file, err := load("age", "team", arguments).Encrypt(t.Context(), []byte(plain))
	if err != nil || !bytes.Contains(file, []byte(`"meta":{"key_provider.external.team":`)) {
		t.Fatalf("%s, %v", file, err)
	}
	for _, name := range []string{"team", "another"} {
		opened, err := load("age", name, arguments).Decrypt(t.Context(), file)
		if err != nil || string(opened.Data) != plain {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, given := range map[string]bool{"team": true, "another": false} {
		input := filepath.Join(t.TempDir(), "input")
		_, err := load("external", name, fmt.Sprintf(`command = ["sh", "-c", "cat >%s; exit 1"]`, input)).Decrypt(t.Context(), file)
		text, _ := os.ReadFile(input)
		if err == nil || strings.Contains(string(text), "statecrypt_age_key") != given {
			t.Errorf("external.%s: the program got %s, %v", name, text, err)
		}
	}
}

// What is set by mistake is named, and a private key is in no error.
func TestMistakenSettings(t *testing.T) {
	t.Parallel()
	secret := testdata(t, "other.key")
	_, line, _ := strings.Cut(secret, "AGE-SECRET-KEY-")
	line = "AGE-SECRET-KEY-" + strings.TrimSpace(line)
	ssh := strings.TrimSpace(testdata(t, "ssh_ed25519.pub"))
	two := ssh + "\n" + testdata(t, "ssh_rsa.pub")
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "key_provider age, settings", line[20:], "c4n4ry")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, settings := range map[string]map[string]cty.Value{
		"a file in place of its path":    attrs("identity_files", []string{secret}),
		"an identity in place of a path": attrs("identity_files", []string{line}),
		"a plugin in place of a path":    attrs("identity_files", []string{"AGE-PLUGIN-X-" + line[20:]}),
		"an SSH key in place of a path":  attrs("identity_files", []string{testdata(t, "ssh_ed25519")}),
		"part of one in place of a path": attrs("identity_files", []string{line[20:]}),
		"a path in place of an identity": attrs("identities", []string{"keys/alice.txt"}),
		"an identity that is cut off":    attrs("identities", []string{line[:30]}),
		"the same, with armor":           attrs("identities", []string{armored(t, sealedFor(t))}),
		"an identity for a recipient":    attrs("identities", []string{string(sealedFor(t))}),
		"an identity as a recipient":     attrs("recipients", []string{line}),
		"a file of an identity as one":   attrs("recipients", []string{"# created\n" + secret}),
		"a file that begins with #":      attrs("recipients", []string{"# the team\n" + two}),
		"two recipients in two lines":    attrs("recipients", []string{two}),
		"two recipients in one line":     attrs("recipients", []string{strings.ReplaceAll(two, "\n", " ")}),
		"an ECDSA key beside one":        attrs("recipients", []string{ssh + " sk-ecdsa@openssh.com AAAAInNr"}),
		"two recipients with a comma":    attrs("recipients", []string{strings.ReplaceAll(two, "\n", ",")}),
		"recipients without ours":        attrs("recipients", team(t)[:1], "identities", []string{secret}),
		"recipients, an unknown file":    attrs("recipients", team(t), "identity_files", []string{"/no/such/key.txt"}),
		"an empty line of recipients":    attrs("recipients", []string{team(t)[0], ""}),
		"a key of SSH as a recipient":    attrs("recipients", []string{testdata(t, "ssh_ed25519")}),
		"a certificate as a recipient":   attrs("recipients", []string{"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"}),
		"a path of recipients":           attrs("recipients", []string{"keys/team.txt"}),
		"an empty identity":              attrs("identities", []string{" "}),
		"a public key of SSH":            attrs("identities", []string{ssh}),
		"comments alone":                 attrs("recipients", []string{"# the team"}),
	} {
		values, err := entries.NewEntry("", agekeys.Block().Table, settings).Decode(agekeys.Block().Table, nil)
		var p driver.KeyProvider
		if err == nil {
			p, err = agekeys.Block().Build(values)
		}
		if err == nil && settings["recipients"] != cty.NilVal {
			_, _, err = p.(driver.KeyMaker).NewKey(t.Context(), nil)
		} else if err == nil {
			made := json.RawMessage(ofTheTeam(t))
			_, err = p.Key(t.Context(), nil, made)
		}
		says.Check(t, name, strings.ReplaceAll(fmt.Sprint(err), here, "/dir"))
	}
	commented := append([]string{"# the team"}, team(t)...)
	if _, _, err := provider(t, "recipients", commented).(driver.KeyMaker).NewKey(t.Context(), nil); err != nil {
		t.Errorf("with a comment: %v", err)
	}
}

// ofTheTeam is the metadata of a key for the team.
func ofTheTeam(t *testing.T) string {
	t.Helper()
	_, document, err := provider(t, "recipients", team(t)).(driver.KeyMaker).NewKey(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// sealedFor is an identity that age encrypted for a recipient.
func sealedFor(t *testing.T) []byte {
	t.Helper()
	r, err := age.ParseX25519Recipient(recipient(t, "x25519.key"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(testdata(t, "other.key"))); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func armored(t *testing.T, file []byte) string {
	t.Helper()
	var out strings.Builder
	w := armor.NewWriter(&out)
	if _, err := w.Write(file); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.String()
}
