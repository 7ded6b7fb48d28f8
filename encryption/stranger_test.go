package encryption_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestStrangers: what people have in place of a state is named.
func TestStrangers(t *testing.T) {
	t.Parallel()
	target, says := newEncryption(t, lighttest.Registry(), keys).State(), golden(t, "strangers")
	for _, file := range []string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
		"$ANSIBLE_VAULT;1.1;AES256\n3132\n",
		"\xef\xbb\xbf{}",
		"\xff\xfe{\x00}\x00",
		"\xfe\xff\x00{\x00}",
		"<!DOCTYPE html><title>Sign in</title>",
		"<html lang=en>",
		"<?xml version=\"1.0\"?><Error/>",
		"\x1f\x8b\x08\x00\x00\x00\x00\x00",
		"{\n<<<<<<< HEAD\n  \"serial\": 1,\n=======\n  \"serial\": 2,\n>>>>>>> theirs\n}",
		"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> theirs\n",
		"\x8a\x01\xff" + strings.Repeat("x", 40),
		"-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n",
		"H4sIAAAAAAAA/wEAAP//",
		"eyJ2ZXJzaW9uIjo0fQ==",
		"eyJ",
		"ewogICJ2ZXJzaW9uIjogNAp9",
		"version: 4\nserial: 1\n",
		"creation_rules:\n  - age: age1x\n",
		"---\nversion: 4\n",
		"# created: 2026\nAGE-SECRET-KEY-1C4N4RY\n",
		"# serial 1\nAGE-PLUGIN-YUBIKEY-1C4N4RY\n",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nc4n4ry\n",
		"# keys\nkey_provider \"pbkdf2\" \"main\" {\n  x = 1\n}\n",
		"terraform {\n}\n",
		"region = \"eu\"\n",
		"[]",
		`"state"`,
		strings.Repeat("s^!OXxj4Csaj", 5),
		strings.Repeat("word ", 20),
		`{"ID":"1","Operation":"OperationTypeApply","Info":"","Who":"a@b","Version":"1.11.4","Created":"","Path":"s"}`,
		`{"x":{"sensitive":false,"type":"string","value":"c4n4ry"}}`,
		`{"format_version":"1.0","terraform_version":"1.9.0","values":{}}`,
		`{"format_version":"1.2","planned_values":{}}`,
		`{"x":{"sensitive":false,"type":"string"}}`,
		`{"format_version":"1.0","provider_schemas":{}}`,
		"\x00GITCRYPT\x00\x8f\x01",
		"Salted__\x8f\x01\xff",
		"U2FsdGVkX18B\nAAAA\n",
		"vault:v1:jwFOa+Ds3tnQi5S8VFNdWQ6X",
		"\x28\xb5\x2f\xfd\x00",
		"\xfd7zXZ\x00\x00",
		"BZh91AY&SY\xff",
		"1a2;chunk-signature=" + strings.Repeat("0f", 32) + "\r\n{}\r\n0;chunk-signature=",

		"network.tfstate" + strings.Repeat("\x00", 242) + "ustar\x0000",
		"PK\x03\x04\x14\x00",
		"\x85\x01\x0c\x03\xff",

		"apiVersion: v1\nkind: Secret\n",

		`{"apiVersion":"v1","kind":"Secret","data":{"tfstate":"H4s"}}`,
		`{"content":"e30=","encoding":"base64","path":"x","sha":"0"}`,
		`{"content":"e30=","encoding":"base64","file_path":"x"}`,
		`{"data":{"id":"sv-1","type":"state-versions"}}`,
		`{"version":3,"deployment":{}}`,
		`{"version":1,"projects":{}}`,
		`{"errors":["not found"]}`,

		"Acquiring state lock.\n{\"version\":4}\n",
		"\x1b[0mInitializing\n{\n}\n",
		"{\"version\":4}\n{\"version\":4}\n",
		`"{\"version\":4}"`,
		"#!/bin/sh\n",
		"7z\xbc\xaf\x27\x1c",
		"SQLite format 3\x00",
		"\x7fELF",
		"-----BEGIN PUBLIC KEY-----\n",
		"export AWS_PROFILE=x\n",
		"ssh-ed25519 AAAA alice\n",
		"-----BEGIN CERTIFICATE-----\n",

		"null\n",
		"\x1b[31mError: x",
		"Error: x",
		`{"message":"Not found"}`,
		`{"version":"4","lineage":"x"}`,
		`{"version":"ENC[AES256_GCM,data:x]","outputs":{}}`,
		`{"values":{}}`,
		`{}`,
		"   ",
		`{"version":4,"terraform_ver`,
		"not a state",
	} {
		_, err := target.Decrypt(t.Context(), []byte(file))
		if says.Error(t, fmt.Sprintf("%.100q", file), err); !errors.Is(err, encryption.ErrDamaged) {
			t.Errorf("%.20q: got %v", file, err)
		}
	}
}
