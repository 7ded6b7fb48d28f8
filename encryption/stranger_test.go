package encryption_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestStrangers: what people have in place of a state is named.
func TestStrangers(t *testing.T) {
	t.Parallel()
	target := newEncryption(t, lighttest.Registry(), keys).State()
	for file, want := range map[string]string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n": "git lfs pull",
		"$ANSIBLE_VAULT;1.1;AES256\n3132\n":                                   "ansible-vault",
		"\xef\xbb\xbf{}":                                                      "byte order mark",
		"\xff\xfe{\x00}\x00":                                                  "PowerShell",
		"\xfe\xff\x00{\x00}":                                                  "PowerShell",
		"<!DOCTYPE html><title>Sign in</title>":                               "a web page",
		"<html lang=en>":                                                      "a web page",
		"<?xml version=\"1.0\"?><Error/>":                                     "XML",
		"\x1f\x8b\x08\x00\x00\x00\x00\x00":                                    "gzip",
		"{\n<<<<<<< HEAD\n  \"serial\": 1,\n=======\n  \"serial\": 2,\n>>>>>>> theirs\n}": "conflict markers",
		"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> theirs\n":                                 "conflict markers",
		"\x8a\x01\xff" + strings.Repeat("x", 40):                                          "terraform_backend_git",
		"-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n":               "by PGP",
		"H4sIAAAAAAAA/wEAAP//":                                     "as the backend kubernetes keeps it",
		"eyJ2ZXJzaW9uIjo0fQ==":                                     "JSON in base64",
		"eyJ":                                                      "JSON in base64",
		"ewogICJ2ZXJzaW9uIjogNAp9":                                 "JSON in base64",
		"version: 4\nserial: 1\n":                                  "it is YAML",
		"creation_rules:\n  - age: age1x\n":                        "it is YAML",
		"---\nversion: 4\n":                                        "it is YAML",
		"# created: 2026\nAGE-SECRET-KEY-1C4N4RY\n":                "it is a private key",
		"# serial 1\nAGE-PLUGIN-YUBIKEY-1C4N4RY\n":                 "it is a private key",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nc4n4ry\n":            "it is a private key",
		"# keys\nkey_provider \"pbkdf2\" \"main\" {\n  x = 1\n}\n": "it is configuration in HCL",
		"terraform {\n}\n":                                         "it is configuration in HCL",
		"region = \"eu\"\n":                                        "it is HCL, such as values of variables",
		"[]":                                                       "it is JSON, but not an object",
		`"state"`:                                                  "it is JSON, but not an object",
		strings.Repeat("s^!OXxj4Csaj", 5):                          `select a method "kubeform"`,
		strings.Repeat("word ", 20):                                "not JSON from byte 1",
		`{"ID":"1","Operation":"OperationTypeApply","Info":"","Who":"a@b","Version":"1.11.4","Created":"","Path":"s"}`: "it is the lock",
		`{"x":{"sensitive":false,"type":"string","value":"c4n4ry"}}`:                                                   "terraform output -json",
		`{"format_version":"1.0","terraform_version":"1.9.0","values":{}}`:                                             "terraform show -json",
		`{"format_version":"1.2","planned_values":{}}`:                                                                 "terraform show -json",
		`{"x":{"sensitive":false,"type":"string"}}`:                                                                    "JSON of something else",
		`{"format_version":"1.0","provider_schemas":{}}`:                                                               "JSON of something else",
		"\x00GITCRYPT\x00\x8f\x01":                                                                                     "git-crypt unlock",
		"Salted__\x8f\x01\xff":                                                                                         "by openssl enc",
		"U2FsdGVkX18B\nAAAA\n":                                                                                         "by openssl enc",
		"vault:v1:jwFOa+Ds3tnQi5S8VFNdWQ6X":                                                                            "transit",
		"\x28\xb5\x2f\xfd\x00":                                                                                         "compressed with zstd",
		"\xfd7zXZ\x00\x00":                                                                                             "compressed with xz",
		"BZh91AY&SY\xff":                                                                                               "compressed with bzip2",

		"network.tfstate" + strings.Repeat("\x00", 242) + "ustar\x0000": "it is a tar archive",
		"PK\x03\x04\x14\x00":   "it is a zip archive",
		"\x85\x01\x0c\x03\xff": "such as gpg",

		"apiVersion: v1\nkind: Secret\n": "with the source kubernetes",

		`{"apiVersion":"v1","kind":"Secret","data":{"tfstate":"H4s"}}`: "with the source kubernetes",
		`{"content":"e30=","encoding":"base64","path":"x","sha":"0"}`:  "the API of GitHub",
		`{"content":"e30=","encoding":"base64","file_path":"x"}`:       "the API of GitLab",
		`{"data":{"id":"sv-1","type":"state-versions"}}`:               "hosted-state-download-url",
		`{"version":3,"deployment":{}}`:                                "a stack of Pulumi",
		`{"version":1,"projects":{}}`:                                  "JSON of something else",
		`{"errors":["not found"]}`:                                     "it is the error of a server",

		"Acquiring state lock.\n{\"version\":4}\n": "text before its JSON, which begins at byte 23",
		"\x1b[0mInitializing\n{\n}\n":              "text before its JSON",
		"{\"version\":4}\n{\"version\":4}\n":       "something follows its JSON, which ends at byte 13",
		`"{\"version\":4}"`:                        "encoded twice",
		"#!/bin/sh\n":                              "it is a script",
		"export AWS_PROFILE=x\n":                   "sets variables of the environment",
		"ssh-ed25519 AAAA alice\n":                 "it is a public key",
		"-----BEGIN CERTIFICATE-----\n":            "it is a certificate",

		"null\n":                        "the command for that is statecrypt key-provider age",
		"\x1b[31mError: x":              "it is what a program printed",
		"Error: x":                      "it is what a program printed",
		`{"message":"Not found"}`:       "it is the error of a server",
		`{"version":"4","lineage":"x"}`: `its "version" is a text`,
		`{"version":"ENC[AES256_GCM,data:x]","outputs":{}}`: `its member "sops" is missing`,
		`{"values":{}}`:               "JSON of something else",
		`{}`:                          "JSON of something else",
		"   ":                         "not JSON from byte 3",
		`{"version":4,"terraform_ver`: "it is JSON that ends in the middle",
		"not a state":                 "not JSON from byte 2",
	} {
		_, err := target.Decrypt(t.Context(), []byte(file))
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, encryption.ErrDamaged) {
			t.Errorf("%.20q: got %v, want %s", file, err, want)
		}
	}
}

// TestAnotherKind: that a file is a plan comes before that it is not encrypted.
func TestAnotherKind(t *testing.T) {
	t.Parallel()
	enc := newEncryption(t, lighttest.Registry(), keys)
	_, err := enc.State().Decrypt(t.Context(), []byte(plan))
	if err == nil || !strings.Contains(err.Error(), "this is a plan, and a state is required here") {
		t.Errorf("a plan as a state: got %v", err)
	}
}
