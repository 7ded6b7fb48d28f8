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
)

// sopsFiles writes files as sops does, for a recipient that anybody may know.
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

// seal adds the metadata to an object whose values stay in clear.
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

// own are the forms of sops's own metadata and values.
func (s sopsFiles) own() []Grammar {
	const ruled = `"mac":"ENC[x]","encrypted_regex":%q`
	return []Grammar{
		{"recipients", []Production{{"age", 60}, {"pgp", 60}}, func(n Counts) string {
			return s.join(`{"a":"b"}`, fmt.Sprintf(ruled, "^never$"), n["age"], n["pgp"])
		}},
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
	}}}
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
