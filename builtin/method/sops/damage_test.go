package sops_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestConformance damages files that sops 3.13.3 wrote in every way that is one
// truncation or one flipped bit.
func TestConformance(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	identity := string(read("age_identity.txt"))
	other, _ := newAge(t)
	for _, name := range []string{"small.json", "small.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := read(name)
			metadata := bytes.LastIndex(file, []byte("sops"))
			encryptiontest.Method{
				Block: sops.Block(),
				Attrs: map[string]cty.Value{"age_identities": texts(identity)},
				Other: map[string]cty.Value{"age_identities": texts(other)},
				Bad: []map[string]cty.Value{
					{"age_identities": texts("AGE-SECRET-KEY-1CANARYSECRET")},
					{"age_identity_files": texts("no/such/file")},
					{"age_identities": texts(identity), "allowed_vault_addresses": texts("x")},
				},
				File: file, Plain: read("small.plain.json"),
				Harmless: func(damaged []byte, at int) bool {
					cut := len(damaged) < len(file)
					switch {
					case !cut && at > metadata: // sops authenticates nothing of its metadata but the time and the MAC
						return true
					case cut: // white space at the end means nothing
						return len(bytes.TrimSpace(file[at:])) == 0
					case isSpace(file[at]) && isSpace(damaged[at]):
						return true
					case name == "small.yaml" && damaged[at] == '!': // a mark of YAML's for a type changes nothing
						return true
					}
					return file[at+1] == '=' // base64 has spare bits before its padding
				},
				Secrets: []string{"CANARYSECRET", "canary", identity},
			}.Run(t)
		})
	}
}

func isSpace(c byte) bool { return bytes.IndexByte([]byte(" \t\r\n"), c) >= 0 }

// TestEmptyValues shows what the MAC of sops does not cover: the names of empty
// values, and whether they are there. No reader of sops can tell.
func TestEmptyValues(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	m := build(t, attrs{"age_identities": texts(identity)}, nil)
	dataKey := newDataKey()
	file := sealed{plain: `{"a":"x","b":""}`, dataKey: dataKey, groups: groupOf(ageKey(t, recipient, dataKey))}.file(t)
	opens(t, m, bytes.Replace(file, []byte(`"b"`), []byte(`"c"`), 1), `{"a":"x","c":""}`)
	kindtest.OpenMistakes(t, "sops, damage").Error(t, "a name", fails(t, m, bytes.Replace(file, []byte(`"a"`), []byte(`"c"`), 1), false))
}

// Comments in YAML are no part of what sops protects, and of what is read.
func TestComments(t *testing.T) {
	t.Parallel()
	identity, err := os.ReadFile("testdata/age_identity.txt")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("testdata/small.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile("testdata/small.plain.json")
	if err != nil {
		t.Fatal(err)
	}
	commented := "# head\n" + string(bytes.Replace(file, []byte("outputs:\n"),
		[]byte("# above\noutputs: # beside\n    #ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:comment]\n"), 1)) + "# foot\n"
	opens(t, build(t, attrs{"age_identities": texts(string(identity))}, nil), []byte(commented), string(plain))
}

// TestMutants takes pieces of files out, repeats them and overwrites them. What
// still opens is what was sealed, or lacks nothing but empty values.
func TestMutants(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	identity, err := os.ReadFile("testdata/age_identity.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"small.json", "small.yaml"} {
		original, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same mutants each time
		strict := build(t, attrs{"age_identities": texts(string(identity))}, nil)
		partial := build(t, attrs{"age_identities": texts(string(identity)), "allow_unencrypted_values": cty.True}, nil)
		for range testkit.Rounds(10_000) {
			file := original
			for range 1 + random.IntN(4) {
				at, from := random.IntN(len(file)), random.IntN(len(file))
				piece := file[from:min(len(file), from+1+random.IntN(60))]
				switch random.IntN(3) {
				case 0:
					file = slices.Concat(file[:at], file[min(len(file), at+len(piece)):])
				case 1:
					file = slices.Concat(file[:at], piece, file[at:])
				case 2:
					file = slices.Concat(file[:at], []byte{byte(random.IntN(256))}, file[at+1:])
				}
			}
			for _, m := range []driver.Method{strict, partial} {
				start := time.Now()
				got, err := m.Decrypt(t.Context(), nil, bytes.Clone(file))
				if took := time.Since(start); took > time.Minute {
					t.Errorf("it took %v: %q", took, file)
				}
				if err == nil && !bytes.Contains(got, []byte(`"value":"canary"`)) || err != nil && got != nil {
					t.Errorf("%q, %v: %q", got, err, file)
				}
			}
		}
	}
}
