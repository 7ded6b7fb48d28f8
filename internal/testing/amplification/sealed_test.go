package amplification

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/s2k"
)

// sopsFiles writes files as sops does, for a recipient that anyone may know.
type sopsFiles struct {
	identity *age.X25519Identity
	dataKey  []byte
	wrapped  string
}

func newSopsFiles(tb testing.TB) sopsFiles {
	tb.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		tb.Fatal(err)
	}
	s := sopsFiles{identity: identity, dataKey: bytes.Repeat([]byte("k"), 32)}
	var wrapped bytes.Buffer
	armored := armor.NewWriter(&wrapped)
	w, err := age.Encrypt(armored, identity.Recipient())
	if err != nil {
		tb.Fatal(err)
	}
	_, _ = w.Write(s.dataKey)
	if w.Close() != nil || armored.Close() != nil {
		tb.Fatal("age does not encrypt")
	}
	s.wrapped = wrapped.String()
	return s
}

const modified = "2026-11-20T12:00:00Z"

// value encrypts a text under the names that lead to it.
func (s sopsFiles) value(plain, path string) string {
	block, _ := aes.NewCipher(s.dataKey)
	gcm, _ := cipher.NewGCMWithNonceSize(block, 32)
	iv := make([]byte, 32)
	sealed := gcm.Seal(nil, iv, []byte(plain), []byte(path))
	encode := base64.StdEncoding.EncodeToString
	end := len(sealed) - 16
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:str]", encode(sealed[:end]), encode(iv), encode(sealed[end:]))
}

// seal adds the metadata to an object whose values stay in plaintext.
func (s sopsFiles) seal(object string) string {
	hash := sha512.New()
	hashLeaves(hash, json.NewDecoder(strings.NewReader(object)))
	mac := s.value(fmt.Sprintf("%X", hash.Sum(nil)), modified)
	return s.join(object, fmt.Sprintf(`"mac":%q,"encrypted_regex":"^never$"`, mac), 1, 0)
}

// join adds metadata with a rule, the recipient and others that are not there.
func (s sopsFiles) join(object, rule string, recipients, pgp int) string {
	wrapped, _ := json.Marshal(s.wrapped)
	key := func(i int) string {
		if i+1 < recipients {
			return fmt.Sprintf(`{"recipient":"age1%d","enc":"x"}`, i)
		}
		return fmt.Sprintf(`{"recipient":"%s","enc":%s}`, s.identity.Recipient(), wrapped)
	}
	meta := fmt.Sprintf(`"sops":{"lastmodified":"%s","version":"3.9.0",%s,"age":%s,"pgp":%s}}`, modified, rule, list(recipients, key),
		list(pgp, same(`{"fp":"0","enc":"x"}`)))
	return strings.TrimSuffix(object, "}") + "," + meta
}

// hashLeaves does what the MAC of sops does, for texts and whole numbers.
func hashLeaves(hash io.Writer, d *json.Decoder) {
	d.UseNumber()
	var inObject []bool // :: depth → in an object
	name := false       // a name comes next
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		within := func() bool { return len(inObject) > 0 && inObject[len(inObject)-1] }
		switch token {
		case json.Delim('{'), json.Delim('['):
			inObject = append(inObject, token == json.Delim('{'))
			name = within()
			continue
		case json.Delim('}'), json.Delim(']'):
			inObject = inObject[:len(inObject)-1]
			name = within()
			continue
		}
		if name {
			name = false
			continue
		}
		switch v := token.(type) {
		case string:
			_, _ = io.WriteString(hash, v)
		case json.Number:
			_, _ = io.WriteString(hash, v.String())
		case bool:
			_, _ = io.WriteString(hash, map[bool]string{true: "True", false: "False"}[v])
		}
		name = within()
	}
}

// yamlHead is the metadata of sops before a YAML document.
func (s sopsFiles) yamlHead() string {
	return fmt.Sprintf("sops:\n  lastmodified: %q\n  version: 3.9.0\n  mac: ENC[x]\n  encrypted_regex: ^never$\n  age:\n"+
		"  - {recipient: %s, enc: %q}\n", modified, s.identity.Recipient(), s.wrapped)
}

// recipients are keys that are not there.
func (s sopsFiles) recipients() Grammar {
	return Grammar{"recipients", []Production{{"age", 60}, {"pgp", 60}}, func(n Counts) string {
		return s.join(`{"a":"b"}`, `"mac":"ENC[x]","encrypted_regex":"^never$"`, n["age"], n["pgp"])
	}}
}

// encryptedKeys are data keys that are each encrypted for many, and for any key.
func encryptedKeys() Grammar {
	const (
		packet    = "\xc1\x0d\x03\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x01" // RSA, for any key
		encrypted = "\xd2\x16\x01"
	)
	armored := func(text *bytes.Buffer, w io.WriteCloser, content string) string {
		_, _ = io.WriteString(w, content)
		_ = w.Close()
		quoted, _ := json.Marshal(text.String())
		return string(quoted)
	}
	message := func(n int) string {
		var text bytes.Buffer
		w, _ := pgparmor.Encode(&text, "PGP MESSAGE", nil)
		return armored(&text, w, strings.Repeat(packet, n)+encrypted+word(21))
	}
	file := func(n int) string {
		var text bytes.Buffer
		digits := strings.Repeat("C", 42) + "A\n"
		return armored(&text, armor.NewWriter(&text),
			"age-encryption.org/v1\n"+strings.Repeat("-> X25519 "+digits+digits, n)+"--- "+digits+word(16))
	}
	return Grammar{"encrypted keys", []Production{{"keys", 60}, {"packets", 1300}, {"stanzas", 200}}, func(n Counts) string {
		return fmt.Sprintf(`{"a":"b","sops":{"lastmodified":%q,"version":"3.9.0","mac":"ENC[x]","pgp":%s,"age":%s}}`, modified,
			list(n["keys"], same(`{"fp":"0","enc":`+message(n["packets"])+"}")), list(n["keys"], same(`{"recipient":"age1","enc":`+file(n["stanzas"])+"}")))
	}}
}

// lockedKey is a PGP key that takes a while to unlock, as GnuPG writes them.
func lockedKey(tb testing.TB) string {
	tb.Helper()
	config := &packet.Config{RSABits: 2048, S2KConfig: &s2k.Config{S2KCount: 1 << 20}}
	key, err := openpgp.NewEntity("a", "", "a@example.com", config)
	if err != nil {
		tb.Fatal(err)
	}
	var text bytes.Buffer
	w, err := pgparmor.Encode(&text, openpgp.PrivateKeyType, nil)
	if err == nil {
		err = key.EncryptPrivateKeys([]byte("p"), config)
	}
	if err != nil || key.SerializePrivateWithoutSigning(w, nil) != nil || w.Close() != nil {
		tb.Fatal("the key is not written")
	}
	return text.String()
}

// own are the forms of sops's own metadata and values.
func (s sopsFiles) own() []Grammar {
	const ruled = `"mac":"ENC[x]","encrypted_regex":%q`
	return []Grammar{
		s.recipients(),
		{"rules", with(unlimited("names", "length of names"), Production{"parts", 70}), func(n Counts) string {
			object := members(n["names"], func(i int) string { return fmt.Sprintf(`"%d%s":1`, i, word(n["length of names"])) })
			return s.join(object, fmt.Sprintf(ruled, strings.Repeat("(x{0,15}){15}", n["parts"])+"y"), 1, 0)
		}},
		{"leaves", with(unlimited("leaves", "length of names"), Production{"depth", 900}), func(n Counts) string {
			leaves := members(n["leaves"], func(i int) string { return fmt.Sprintf(`"%d":1`, i) })
			return s.join(nested(n["depth"], `{"`+word(n["length of names"])+`":`, leaves, "}"), fmt.Sprintf(ruled, "^never$"), 1, 0)
		}},
		{"encrypted leaves", unlimited("leaves", "length of names", "length of texts"), func(n Counts) string {
			name := word(n["length of names"])
			one := s.value(word(n["length of texts"]), name+":")
			return s.join(fmt.Sprintf(`{"%s":%s}`, name, list(n["leaves"], same(`"`+one+`"`))), `"mac":"ENC[x]"`, 1, 0)
		}},
		{"binary", unlimited("length of texts"), func(n Counts) string {
			one := s.value(word(n["length of texts"]), "data:")
			return s.join(fmt.Sprintf(`{"data":"%s"}`, one), `"mac":"ENC[x]"`, 1, 0)
		}},
		{"escapes", unlimited("escapes", "names"), func(n Counts) string {
			object := attributes(n["names"], 1, `"`+strings.Repeat(`\u0001`, n["escapes"])+`"`)
			return s.join(object, fmt.Sprintf(ruled, "^never$"), 1, 0)
		}},
	}
}

// deepMarks are in more lists than Terraform writes around them.
func deepMarks() Grammar {
	return Grammar{"deep marks", with(unlimited("marks"), Production{"depth", 900}), func(n Counts) string {
		return state4("1", `"number"`, `{"a":1}`, nested(n["depth"], "[", `{"value":`+list(n["marks"], same(`"b"`))+"}", "]"))
	}}
}

func envelopes() []Grammar {
	return []Grammar{{"envelopes", unlimited("metadata", "length of names", "length of data", "others"), func(n Counts) string {
		return fmt.Sprintf(`{"serial":1,"lineage":"l","meta":%s,"encrypted_data":"%s","encryption_version":"v0","x":%s}`,
			attributes(n["metadata"], n["length of names"], `"e30="`), strings.Repeat("AAAA", n["length of data"]), list(n["others"], same("{}")))
	}}}
}

func ageFiles() []Grammar {
	return []Grammar{{"headers", unlimited("stanzas", "length of arguments", "length of data"), func(n Counts) string {
		stanza := "-> x " + word(n["length of arguments"]) + "\n" + strings.Repeat("A", 43) + "\n"
		header := "age-encryption.org/v1\n" + strings.Repeat(stanza, n["stanzas"]) + "--- " + strings.Repeat("A", 43) + "\n"
		return header + word(n["length of data"])
	}}, {"recipients", unlimited("recipients"), func(n Counts) string {
		stanza := "-> X25519 " + strings.Repeat("B", 42) + "A\n" + strings.Repeat("A", 43) + "\n"
		return "age-encryption.org/v1\n" + strings.Repeat(stanza, n["recipients"]) + "--- " + strings.Repeat("A", 43) + "\n"
	}}}
}

// ageKey is a file whose key is sealed with age.
func ageKey(sealed string) string {
	stored := fmt.Sprintf(`{"external_data":{"statecrypt_age_key":%q}}`, base64.StdEncoding.EncodeToString([]byte(sealed)))
	return fmt.Sprintf(`{"meta":{"key_provider.external.k":%q},"encrypted_data":"AAAA","encryption_version":"v0"}`,
		base64.StdEncoding.EncodeToString([]byte(stored)))
}

// packed is what unpacks to much more, or to nothing.
func packed() []Grammar {
	member := func(plain string) string {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		_, _ = io.WriteString(w, plain)
		_ = w.Close()
		return out.String()
	}
	spaces, nothing := member(strings.Repeat(" ", 128<<10)), member("")
	return []Grammar{{"gzip", unlimited("spaces", "nothing"), func(n Counts) string {
		return strings.Repeat(spaces, n["spaces"]) + strings.Repeat(nothing, n["nothing"])
	}}}
}
