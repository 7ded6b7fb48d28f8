package recognize_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestFile: what people have in place of a state is named, and nothing else.
func TestFile(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "file")
	tar := "network.tfstate" + strings.Repeat("\x00", 242)
	for _, file := range []string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
		"$ANSIBLE_VAULT;1.1;AES256\n3132\n",
		"\xef\xbb\xbf{}",
		"\xff\xfe{\x00}\x00",
		"\xfe\xff\x00{\x00}",
		"<!DOCTYPE html><title>Sign in</title>",
		"<html lang=en>",
		"<html",
		"<htm",
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
		strings.Repeat("#", 97) + "\nregion = 1\n",
		strings.Repeat("\x00", 4096),
		strings.Repeat("\x00", 3),
		" \r\n\t",
		"{\"version\":4}" + strings.Repeat("\x00", 20),
		"{\"version\":4}\n\x00\n",
		"{\"version\":4}\x00{",
		"{\"version\":4,\"lin" + strings.Repeat("\x00", 20),
		strings.Repeat("\x00", 60) + "{\"version\":4}",
		"[]",
		`"state"`,
		strings.Repeat("s^!OXxj4Csaj", 5),
		strings.Repeat("s", 48),
		strings.Repeat("s", 49),
		"[" + strings.Repeat("s", 50),
		strings.Repeat("s", 999) + " s",
		strings.Repeat("s", 1000) + " s",
		strings.Repeat("word ", 20),
		`{"ID":"1","Operation":"OperationTypeApply","Info":"","Who":"a@b","Version":"1.11.4","Created":"","Path":"s"}`,
		`{"x":{"sensitive":false,"type":"string","value":"c4n4ry"}}`,
		`{"format_version":"1.0","terraform_version":"1.9.0","values":{}}`,
		`{"format_version":"1.2","planned_values":{}}`,
		`{"x":{"sensitive":false,"type":"string"}}`,
		`{"x":{"sensitive":false,"value":"x"}}`,
		`{"x":{"type":"string","value":"x"}}`,
		`{"x":1}`,
		`{"format_version":"1.0","provider_schemas":{}}`,
		"\x00{\x00}\x00\n",
		"\n-----BEGIN PGP MESSAGE-----\n",
		"ssh-keygen: command not found\n",
		"ew0KICAidmVyc2lvbiI6IDQNCn0=",
		"1A2;chunk-signature=0f;x=y\r\n{}\r\n0\r\n",
		"\x00GITCRYPT\x00\x8f\x01",
		"Salted__\x8f\x01\xff",
		"U2FsdGVkX18B\nAAAA\n",
		"vault:v1:jwFOa+Ds3tnQi5S8VFNdWQ6X",
		"\x28\xb5\x2f\xfd\x00",
		"\xfd7zXZ\x00\x00",
		"BZh91AY&SY\xff",
		"1a2;chunk-signature=" + strings.Repeat("0f", 32) + "\r\n{}\r\n0;chunk-signature=",
		"f\r\n{\"version\":4}\n\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n",
		"\n <!-- c --><html>",
		"\ufeff<!DOCTYPE html>",
		"vault:version",
		tar + "ustar\x0000",
		tar + "ustar",
		tar,
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
		"\n{\"version\":4}",
		"\n{\"version\":4",
		"{\n{\"version\":4}",
		"{\"version\":4}\n{\"version\":4}\n",
		"{\"version\":4}\n→ done\n",
		`"{\"version\":4}"`,
		`"version"`,
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
		`{"version":"4"}`,
		`{"version":4,"lineage":"x"}`,
		`{"version":"ENC[AES256_GCM,data:x]","outputs":{}}`,
		`{"version":"ENC[AES256_GCM,data:x]","sops":{}}`,
		`{"values":{}}`,
		`{}`,
		"",
		"   ",
		`{"version":4,"terraform_ver`,
		"not a state",
	} {
		is := recognize.File([]byte(file))
		if is == nil {
			is = errors.New("nothing known")
		}
		says.Check(t, fmt.Sprintf("%.100q, %d bytes", file, len(file)), fault.Voice{}.Text(is))
	}
	if is := recognize.File([]byte(strings.Repeat("# \n", 1366) + "terraform {\n}\n")); is != nil {
		t.Errorf("behind the beginning: %v", is)
	}
}

// TestText: all that is said of a text, wherever it stands.
func TestText(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "text")
	for _, text := range []string{
		"", "x", "states",
		// What is around it.
		"states\n", "states\nmore", "states\nmore\n", "\n", "\nstates ", "states\r", "states\r\n", "\ufeffstates", " states", "states ", "  ",
		`"states"`, "'states'", `"states'`, `"`, "sta\x00tes",
		// What stands in the place of it.
		"[MASKED]", "***", "(known after apply)", "<states>", "change-me", "your-passphrase", "your secret is safe with me",
		"${{ secrets.X }}", "$(cat file)", "`cat file`", "var.states", "module.a.b", "$STATES_KEY", "$STATES_KEY/x", "%STATES_KEY%",
		"vault://secret/x", "env:KEY", "ENC[AES256_GCM,data:x]", "key_provider.pbkdf2.main", "random_password.x.result",
		"data.aws_x.y.z", "data.external.pass.result.x", "@Microsoft.KeyVault(VaultName=x)", "ssm:/x/y", "1password://x/y", "data.x",
		"data.driven.decisions.win",
		"fatal: no such secret", "Error: secret not found", "Access denied.", "random_password.x[0].result", "ephemeral.random_password.x.result",
		"var.states.eu", "your-passphrase\n", `"var.states"`, " (known after apply)", "\ufeff***", "${var.states}", "vault:v1:jwFOa+Ds3tnQ", "@/run/secrets/states", "age1" + strings.Repeat("q", 58), "ssh-ed25519 AAAAC3Nz me@a",
		"your-db-password-here", "your password here", "<YOUR_PASSPHRASE>", "changeme123", "replace-with-your-key", "my-key…",
		// Files.
		"recognize_test.go", "@recognize_test.go", "keys/ca.pem", "~/keys/k", "/vault/secrets/passphrase", "./passphrase", "/no/such/folder",
		// What holds it.
		`{"passphrase":"x"}`, `{"passphrase":`, "[]", "export KEY=x", `key = "x"`, "KEY=x", "AWS_KEY=x",
		"dGhlIHBhc3NwaHJhc2U=", "dGhlIHBhc3NwaA==", "dGhlIHBhc3NwaHJhcwE=", "dGhlIHBhc3NwaHJhcwo=", "dGhlIHBhc3NwaHL/",
		"the%20passphrase", "the %20passphrase", "the – passphrase", strings.Repeat("0f", 32), strings.Repeat("0f", 31),
		// Tokens, and what is in PEM.
		"Bearer states", "token states", "Basic states", "Bearer", "ZXlKhbGciOi", "LS0tLS1CRUdJTiBD",
		"-----BEGIN CERTIFICATE-----", "-----BEGIN KEY",
		// Beginnings and ends, identities, paths of other systems, and settings.
		"\r\n", "\n\r", "states\n\n", "states\r\n\r\n", "states\n\r\n", "states\tmore\n",
		"\"states\nmore\"", "\ufeffstates\nmore", " states\nmore", `"states" = "x"`, `"states": 'x"`,
		"# team\nage1x", "age1x", "ecdsa-sha2-nistp256 AAAA", "age-secret-key-1x", `C:\keys\k.hcl`, `@C:\keys\k`, "@keys.hcl", "@keys",
		"/builds/x.tmp/KEY", "c:/keys", "C:keys", `C:\key"s`,
		"TF_KEY=key {\n}", "export TF_KEY = x", "$env:TF_KEY='x'", "set TF_KEY=x", "tf_key=x", "c3RhdGUge30NCg==", "c3RhdGVzIHt9AQ==",
		"$STATES_KEY/x\ny",
	} {
		var whats, lines []string
		places := map[string][]string{} // where it is said
		for i, name := range []string{"value", "word", "secret", "token", "passphrase", "identity", "settings", "content"} {
			is := recognize.Text(text, recognize.Value<<i)
			if name == "passphrase" && is.Sure > recognize.Perhaps {
				name = []string{"surely no passphrase", "no secret"}[is.Sure-1]
			}
			for _, variable := range []string{"", "variable"} {
				what := is.Said(variable)
				if !slices.Contains(whats, what) {
					whats = append(whats, what)
				}
				if variable == "" || what != is.Said("") {
					places[what] = append(places[what], strings.TrimSpace(name+" "+variable))
				}
			}
		}
		for _, what := range slices.DeleteFunc(whats, func(what string) bool { return what == "" }) {
			lines = append(lines, strings.Join(places[what], ", ")+": "+what)
		}
		says.Check(t, fmt.Sprintf("%q", text), strings.Join(lines, "\n"))
	}
}

// TestChosen: what someone may have chosen for a passphrase is taken, although it begins as
// something else does.
func TestChosen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"changement-climatique-Zx81!kq", "$UPERSTRONGWORD2024", "your name is not my name!", "your secret garden: 7 lilies & 3 roses",
		"your-brown-horse-key-battery-7Zq", "Es war einmal ein König…", "once upon a time, in the west…", "unauthorized-badger-lunch-19",
		"Error: id10t behind keyboard 44", "access denied 9 times by 7 dwarfs!", "<K9f!aQz7pLm2Xr4tVb8>", "<K9faQz7pLm2Xr4tVb8>", "%K9faQz7pLm%",
		"age1sJustANumber", "ssh-my-secret!", "data.driven.decisions.win", "local hero", "replace the old oak!", "fatal attraction 1987",
	} {
		if is := recognize.Text(text, recognize.Passphrase); is.Sure == recognize.NoSecret {
			t.Errorf("%q: %s", text, is.Said(""))
		}
	}
}

// TestKinds: texts that are a path, what belongs in a file, or a format.
func TestKinds(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "kinds")
	long := strings.Repeat("n", recognize.MaxName)
	for _, text := range []string{
		"name", long, long + "n", long + "/" + long, "na\x01me", "name\n", "'name'", `na"me`, "na{me", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY", " AGE-SECRET-KEY-1Q",
		"x=age-secret-key-1q", "AGE-PLUGIN-YUBIKEY-1Q", "age-plugin-yubikey", "out{1}.json", "{a",
		"recognize_test.go", "testdata", `{"x"`, `{ "x"`, ` {"`, "a\nb", "a\nb\n", "a\nb\nc", "x\n-----BEGIN RSA PRIVATE KEY",
		"-----BEGIN AGE ENCRYPTED FILE", "\n-----BEGIN AGE ", "age-encryption.org/v1", "-----BEGIN X", "---- BEGIN", "[MASKED]",
		"", "\xff\xfe", "\xfe\xff", "\xff", "a\x00b\x00", "\x00a\x00b", "\x00a\x00b\x00", "a\x00b", "a\x00bc", "a\x00", "ab\x00\x00",
		"-----BEGIN AGE ENCRYPTED FILE-----", "\n-----BEGIN AGE ENCRYPTED FILE-----\n", "age1x", "ssh-ed25519 A",
		"vault:v1:x", "apiVersion: v1", "YXBpVmVyc2lvbjog",
		strings.Repeat("a\x00", 8) + "bb", strings.Repeat("a\x00", 7) + "bb", "PK\x03\x04", "\x1f\x8b", "\x00a", "é",
	} {
		var all []string
		for _, kind := range []struct {
			name string
			is   bool
		}{
			{"content", recognize.IsContent(text)}, {"document", recognize.IsDocument(text)},
			{"private key", recognize.HoldsPrivateKey(text)}, {"PEM", recognize.IsPEM(text)}, {"age", recognize.IsAge([]byte(text))},
			{"recipient", recognize.IsRecipient(text)}, {"transit", recognize.IsTransit([]byte(text))},
			{"kubeconfig", recognize.IsKubeconfig(text)},
			{"UTF-16", recognize.IsUTF16([]byte(text))}, {recognize.NotText([]byte(text)), true},
		} {
			if kind.is && kind.name != "" {
				all = append(all, kind.name)
			}
		}
		says.Check(t, fmt.Sprintf("%.60q, %d bytes", text, len(text)), strings.Join(all, "\n"))
	}
}

// TestChallenge: the easiest of the schemes that a server asks for, of which a header may name
// several.
func TestChallenge(t *testing.T) {
	t.Parallel()
	for want, headers := range map[string][][]string{
		"":                    {nil, {""}, {"Custom"}, {`Custom realm="basic"`}},
		"bearer":              {{"Bearer"}, {`bearer realm="x"`}, {`Basic realm="x"`, "Bearer"}, {"Digest qop=auth,Bearer"}},
		"basic":               {{`BASIC realm="x"`}, {`Digest realm="x", Basic realm="x"`}, {"Negotiate", "Basic"}},
		recognize.Unsupported: {{"Negotiate"}, {"NTLM"}, {`Negotiate realm="basic"`}, {`Digest realm="x", nonce="y"`}, {"NTLM", "digest"}},
	} {
		for _, header := range headers {
			if got := recognize.Challenge(header); got != want {
				t.Errorf("%q: got %q, want %q", header, got, want)
			}
		}
	}
}

// TestNoSSHKey: what is in the place of a private key of ssh.
func TestNoSSHKey(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "no key of ssh")
	for _, text := range []string{
		"", " \n", "PuTTY-User-Key-File-3: ssh-ed25519", "# created\nAGE-SECRET-KEY-1", "key", "-----BEGIN X", "\n-----BEGIN X",
	} {
		says.Check(t, fmt.Sprintf("%q", text), recognize.NoSSHKey([]byte(text)))
	}
}

// TestCheckPEM: an empty text is none that could be wrong, and what is in the place of PEM is said.
func TestCheckPEM(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "-----BEGIN X", "x -----BEGIN X"} {
		if err := recognize.CheckPEM(text); err != nil {
			t.Errorf("%q: got %v", text, err)
		}
	}
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "no PEM")
	for name, text := range map[string]string{"text": "x", "path": "~/key.pem"} {
		says.Error(t, name, recognize.CheckPEM(text))
	}
}

func TestIsWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"token": true, "two words": true, "": true, "a\n": false, "a\r\n\r\n": false, "a\tb": false} {
		if got := recognize.IsWord(text); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}
