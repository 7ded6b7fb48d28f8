package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mistakenChoices are what a file is to be decrypted with and cannot be.
func (p *mistakenPlace) mistakenChoices() []mistake {
	good := textProvider(staticText)
	read := p.in("sealed")
	derived := p.in("derived")
	key := keyBlock("static {\nkey = \"" + staticKey + "\"\n}")
	keys := keyBlock("static {\nname = \"new\"\nkey = \"" + staticKey + "\"\n}\nstatic {\nname = \"old\"\nkey = \"" + staticKey + "\"\n}")
	aliased := settings(`alias = "states"`, keyBlock("pbkdf2 {\npassphrase = \"a passphrase of 16 bytes\"\n}"))
	private := reads("s", fromGit(p.git.URL, "main", "s"))
	const otherIdentity = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
	const identity = "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSV9CL0J"
	kubeform := settings(methodBlock("kubeform {\nkey = \"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"\n}"))
	ageMethod := settings(methodBlock("age {\nidentities = [\"" + identity + "\"]\n}"))
	ageKeys := settings(keyBlock("age {\nidentities = [\"" + identity + "\"]\n}"))
	return []mistake{
		{name: "sops file, only aes_gcm", provider: settings(key), body: p.in("sops")},
		{name: "sops file, nothing", cli: true, body: p.in("sops")},
		{name: "sops file, sops not selected", provider: settings(key + methodBlock("aes_gcm {}\nsops {}") +
			defaultBlock(`method = "method.aes_gcm.main"`)),
			body: p.in("sops")},
		{name: "sops file, no key", body: p.in("sops", `method = "sops"`)},
		{name: "sops file, age without settings", body: p.in("sops", `method = "age"`)},
		{name: "encrypted, key of another key provider of the kind", body: derived,
			provider: settings(keyBlock("pbkdf2 {\nname = \"new\"\npassphrase = \"another passphrase of 16 bytes\"\n}"))},
		{name: "encrypted, sops beside a key provider", body: read,
			provider: settings(key + methodBlock("sops {}"))},
		{name: "age file, only aes_gcm", provider: settings(key), body: p.in("age")},
		{name: "encrypted, sops of the data source in place of the text", provider: textProvider(staticText + "\nmethod \"sops\" \"main\" {}"),
			body: p.in("sealed", `method = "method.sops.main"`)},
		{name: "age file, and text, method of the data source", provider: settings("encryption = " + quote(mainText)),
			body: p.in("age", `method = "method.aes_gcm.main"`)},
		{name: "age file, and text", provider: settings("encryption = " + quote(mainText)), body: p.in("age")},
		{name: "age file, and methods of the data source", provider: settings(key),
			body: p.in("age", `method = "method.aes_gcm.main"`, "fallback {\nmethod = \"sops\"\n}")},
		{name: "age without settings", body: p.in("age", `method = "age"`)},
		{name: "encrypted, nothing configured", body: derived},
		{name: "encrypted, two key providers", provider: settings(keys), body: read},
		{name: "encrypted, two methods", provider: settings(key + methodBlock("aes_gcm {}\naes_gcm {\nname = \"b\"\n}")), body: read},
		{name: "encrypted, only unencrypted", body: p.in("sealed", `method = "unencrypted"`)},
		{name: "encrypted, unencrypted in place of the default", provider: good, body: p.in("sealed", `method = "unencrypted"`)},
		{name: "encrypted, sops in place of the default", provider: good, body: p.in("sealed", `method = "sops"`)},
		{name: "encrypted, of two key providers the second", body: read, provider: settings(keyBlock("static {\nname = \"b\"\nkey = \"" +
			staticKey + "\"\n}\nstatic {\nname = \"k\"\nkey = \"" + staticKey + "\"\n}"))},
		{name: "encrypted, a kind with settings", body: p.in("sealed", `method = "aes_gcm"`)},
		{name: "plaintext, nothing configured", body: p.in("plain")},
		{name: "plaintext, aes_gcm", provider: settings(key), body: p.in("plain")},
		{name: "plaintext, enforced", provider: settings("enforced = true"), body: p.in("plain", `method = "unencrypted"`)},
		{name: "alias that is not chosen", cli: true, provider: aliased, body: derived},
		{name: "alias that is not chosen, with a method", provider: aliased, body: p.in("derived", `method = "method.aes_gcm.main"`)},
		{name: "alias that is not chosen, credentials", provider: aliased, body: private},
		{name: "age, an identity in place of a path", provider: settings(methodBlock("age {\nidentity_files = [\"AGE-SECRET-KEY-1CANARY\"]\n}")),
			body: p.in("age")},
		{name: "age, key file of nobody", provider: settings(methodBlock("age {\nidentity_files = [\"/no/such/keys.txt\"]\n}")),
			body: p.in("age")},
		{name: "age, public key", provider: settings(methodBlock(
			"age {\nidentities = [\"age1ggeqwag8mf99ez98xzw9evgzl33w86vc6e8uu2lr4uldhumphdnqd4df3c\"]\n}")),
			body: p.in("age")},
		{name: "age, recipient of a plugin, cut off", provider: settings(methodBlock(
			"age {\npassphrase = \"correct-horse-battery-staple\"\nrecipients = [\"age1yubikey1qfn44rsw0xvmez3gky9nlm3x\"]\n}")),
			body: p.in("age")},
		{name: "sops, identity of someone else", provider: settings(methodBlock("sops {\nage_identities = [\""+otherIdentity+
			"\"]\nuse_gpg = false\n}") + defaultBlock(`method = "method.sops.main"`)), body: p.in("sops")},
		{name: "age, public SSH key", body: p.in("age"), provider: settings(methodBlock(
			"age {\nidentities = [\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN alice\"]\n}"))},
		{name: "sops, file of the environment", env: "SOPS_AGE_KEY_FILE=" + p.dir + "/identities.txt", body: p.in("sops", `method = "sops"`),
			provider: settings()},
		{name: "sops, path as a key", env: "SOPS_AGE_KEY=" + p.dir + "/identities.txt", body: p.in("sops", `method = "sops"`), provider: good},
		{name: "sops, key in quotation marks", env: `SOPS_AGE_KEY="AGE-SECRET-KEY-1C4N4RY"`, body: p.in("sops", `method = "sops"`), provider: good},
		{name: "age file, key provider", body: p.in("age"), provider: ageKeys},
		{name: "sops file, key provider of age", body: p.in("sops"), provider: ageKeys},
		{name: "encrypted, method of age", body: read, provider: ageMethod},
		{name: "encrypted, key provider age beside age method", body: p.in("team"), provider: ageMethod},
		{name: "encrypted, terraform_backend_git", body: read,
			provider: settings(methodBlock("terraform_backend_git {\npassphrase = \"correct horse battery\"\n}"))},
		{name: "encrypted, kubeform", body: read, provider: kubeform},
		{name: "age, public key as an identity", body: p.in("age"), provider: settings(methodBlock("age {\nidentities = [\"age1qyqsz\"]\n}"))},
	}
}

// mistakenKeys are keys and passphrases, and where they come from.
func (p *mistakenPlace) mistakenKeys() []mistake {
	good := textProvider(staticText)
	read := p.in("sealed")
	derived := p.in("derived")
	keyArgument := "key = \"" + staticKey + "\""
	static := func(arguments string) string { return settings(keyBlock("static {\n" + arguments + "\n}")) }
	const noBundle = "AWS_CA_BUNDLE=" // which would be an error of its own beside a secret
	exportable := settings(keyBlock("pbkdf2 {\npassphrase = \"a passphrase of 16 bytes\"\nexportable = true\n}"))
	derive := func(arguments string) string {
		return "ephemeral \"statecrypt_derived_key\" \"k\" {\nkey_provider = \"key_provider.pbkdf2.main\"\ninfo = \"backup\"\n" +
			arguments + "\n}"
	}
	program := filepath.Join(p.dir, "key.sh")
	_ = os.WriteFile(program, []byte("#!/bin/sh\necho '{\"magic\":\"OpenTofu-External-Key-Provider\",\"version\":1}'\nread x\n"+
		"echo '{\"keys\":{\"encryption_key\":\"zz0102\",\"decryption_key\":\"zz0102\"}}'\n"), 0o700) //nolint:gosec // it is to be run
	external := func(words ...string) string {
		return settings("allow_external = true\n" + keyBlock(fmt.Sprintf("external {\ncommand = [%s]\n}", strings.Join(words, ", "))))
	}
	return []mistake{
		// Keys and passphrases.
		{name: "wrong passphrase", cli: true, provider: passphrase("this is not the passphrase"), body: derived},
		{name: "wrong key", provider: settings(keyBlock("static {\nkey = \"" + strings.Repeat("ab", 32) + "\"\n}")), body: read},
		{name: "passphrase with a line break", provider: passphrase("this is not the passphrase\n"), body: derived},
		{name: "key of another kind", provider: good, body: derived},
		{name: "short passphrase", provider: passphrase("short"), body: read},
		{name: "empty passphrase", provider: passphrase(""), body: read},
		{name: "no passphrase", provider: settings(keyBlock("pbkdf2 {}")), body: read},
		{name: "passphrase and chain", provider: settings(keyBlock("pbkdf2 {\npassphrase = \"0123456789abcdef\"\nchain = " +
			"\"key_provider.static.k\"\n}")),
			body: read},
		{name: "few iterations", provider: settings(keyBlock("pbkdf2 {\npassphrase = \"0123456789abcdef\"\niterations = 1000\n}")), body: read},
		{name: "key that is no hexadecimal", provider: settings(keyBlock("static {\nkey = \"xyz\"\n}")), body: read},
		{name: "hash function", provider: settings(keyBlock("pbkdf2 {\npassphrase = \"0123456789abcdef\"\nhash_function = \"md5\"\n}")),
			body: read},
		{name: "key in base64", provider: static(`key = "bXkgc2VjcmV0IGtleSBvZiAzMiBieXRlcyBsb25nISE="`), body: read},
		{name: "key with a line break", provider: static(`key = "` + staticKey + `\n"`), body: read},
		{name: "key with 0x", provider: static(`key = "0x` + staticKey + `"`), body: read},
		{name: "key of an odd number of digits", provider: static(`key = "` + staticKey[1:] + `"`), body: read},
		{name: "key of another length", provider: static(`key = "` + staticKey[:20] + `"`), body: read},
		{name: "key_base64 for URLs", provider: static(`key_base64 = "xx-` + staticKey + `"`), body: read},
		{name: "key, empty", provider: static(`key = ""`), body: read},
		{name: "key and key_base64", provider: static(keyArgument + "\nkey_base64 = \"AAAA\""), body: read},
		{name: "key_file of nobody", provider: static(`key_file = "/no/such/key"`), body: read},
		{name: "key_file is text", provider: static(`key_file = "` + p.dir + `/text"`), body: read},
		{name: "passphrase with a Windows line end", provider: passphrase("this is not the passphrase\r\n"), body: derived},
		{name: "passphrase is a variable of the shell", provider: passphrase("$STATE_PASSPHRASE of the team"), body: derived},
		{name: "file of the key provider age", provider: settings(methodBlock("age {\nidentity_files = [\"/no/such/keys.txt\"]\n}")),
			body: p.in("team")},
		{name: "passphrase in quotes", provider: passphrase(`"this is not the passphrase"`), body: derived},
		{name: "passphrase with a space at its end", provider: passphrase("this is not the passphrase "), body: derived},
		{name: "passphrase is the name of a file", provider: passphrase("/etc/keys/states.txt"), body: derived},
		{name: "iterations, a word", provider: settings(keyBlock("pbkdf2 {\npassphrase = \"0123456789abcdef\"\niterations = \"many\"\n}")),
			body: read},
		{name: "file of the key provider age, pbkdf2", provider: passphrase("a passphrase of 16 bytes"), body: p.in("team")},
		{name: "key provider whose name the file has, unused", body: derived, provider: settings(keyBlock(
			"pbkdf2 {\nname = \"k\"\npassphrase = \"a passphrase of 16 bytes\"\n}\npbkdf2 {\nname = \"other\"\npassphrase = "+
				"\"a passphrase of 16 bytes\"\n}") + methodBlock("aes_gcm {\nkeys = \"key_provider.pbkdf2.other\"\n}"))},
		{name: "pbkdf2, fewer iterations than the file has", body: derived, provider: settings(keyBlock(
			"pbkdf2 {\npassphrase = \"this is not the passphrase\"\nmax_iterations = 200000\n}"))},
		{name: "passphrase in base64", provider: passphrase("Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ=="), body: derived},
		{name: "passphrase with a byte order mark", provider: passphrase("\ufeffthis is not the passphrase"), body: derived},
		{name: "passphrase is an address", provider: passphrase("op://team/states/passphrase"), body: derived},
		{name: "passphrase is masked", provider: passphrase("********************"), body: derived},
		{name: "key_base64 is hexadecimal", body: read, provider: settings(keyBlock("static {\nkey_base64 = \"" + staticKey + "\"\n}"))},
		{name: "file of a chain, without it", body: p.in("chained"), provider: settings(keyBlock(
			"pbkdf2 {\nencrypted_metadata_alias = \"downstream\"\npassphrase = \"chain-throwaway-passphrase\"\n}"))},
		{name: "passphrase, JSON", provider: pbkdf2(`jsonencode({ passphrase = "correct horse" })`), body: derived},
		{name: "passphrase, reference", provider: pbkdf2(`"op://infra/tofu/password"`), body: derived},
		{name: "passphrase, carriage return", provider: pbkdf2(`"correct horse battery staple\r"`), body: derived},
		{name: "passphrase, placeholder", provider: pbkdf2(`"<your passphrase here>"`), body: derived},
		{name: "passphrase, a line of a file", provider: pbkdf2(`"passphrase = \"correct horse\""`), body: derived},
		{name: "passphrase, variable of PowerShell", provider: pbkdf2(`"$env:STATE_PASSPHRASE"`), body: derived},
		{name: "passphrase, error of a program", provider: pbkdf2(`"An error occurred (AccessDenied)"`), body: derived},
		{name: "passphrase, NAME=VALUE", body: derived, provider: pbkdf2(`"STATE_PASSPHRASE=correct"`)},
		{name: "passphrase of several lines", body: derived,
			provider: settings(keyBlock("pbkdf2 {\npassphrase = \"correct horse\\nbattery staple\\n\"\n}"))},
		{name: "key_base64 is hexadecimal with 0x", body: read, provider: settings(keyBlock(`static {
key_base64 = "0x` + staticKey + `"
}`))},
		// Services and programs.
		{name: "openbao, for a file of pbkdf2", body: derived,
			provider: settings("key_provider {\nopenbao {\nkey_name = \"k\"\ntoken = \"t\"\n}\n}")},
		{name: "aws_kms without a region", provider: settings("use_environment = false\n" +
			keyBlock("aws_kms {\nkms_key_id = \"alias/states\"\nkey_spec = \"AES_256\"\n}")), body: derived},
		{name: "aws_kms, key_spec", provider: settings(keyBlock(
			"aws_kms {\nkms_key_id = \"alias/states\"\nkey_spec = \"AES-256\"\nregion = \"eu-west-1\"\n}")), body: derived},
		{name: "azure_vault, key_length beside variables", cli: true, body: read, provider: settings(keyBlock("azure_vault {\n" +
			"vault_uri = \"https://states.vault.azure.net\"\nvault_key_name = \"k\"\nkey_length = 0\n}"))},
		{name: "aws_kms, duration in a block", body: read, provider: settings(keyBlock("aws_kms {\nkms_key_id = \"alias/states\"\n" +
			"key_spec = \"AES_256\"\nassume_role_with_web_identity {\nduration = \"13h\"\n}\n}"))},
		{name: "gcp_kms, name of the key", provider: settings(keyBlock(
			"gcp_kms {\nkms_encryption_key = \"states\"\nkey_length = 32\n}")), body: derived},
		{name: "openbao, address", provider: settings("use_environment = false\n" + keyBlock(
			"openbao {\nkey_name = \"states\"\ntoken = \"t\"\naddress = \"vault.example.com\"\n}")), body: derived},
		{name: "method external, program of nobody", body: derived, provider: settings(methodBlock(
			"external {\nencrypt_command = [\"/no/such/program\"]\ndecrypt_command = [\"/no/such/program\"]\n}"))},
		{name: "openbao, address of the API", body: read, provider: settings(keyBlock(
			"openbao {\nkey_name = \"k\"\ntoken = \"t\"\naddress = \"https://127.0.0.1:1/v1\"\n}"))},
		{name: "openbao, path of the key", body: read, provider: settings(keyBlock(
			"openbao {\nkey_name = \"transit/keys/k\"\ntoken = \"t\"\naddress = \"https://127.0.0.1:1\"\n}"))},
		{name: "external, line of a shell", cli: true, provider: external(quote("pass show key | head -1")), body: derived},
		{name: "external, key in hexadecimal", provider: external(quote(program)), body: derived},
		{name: "openbao, page for people", body: read, provider: settings(keyBlock("openbao {\nkey_name = \"k\"\ntoken = \"t\"\n" +
			"address = \"https://bao.example.com/ui\"\n}"))},
		{name: "openbao, version in the path", body: read, provider: settings(keyBlock("openbao {\nkey_name = \"k\"\ntoken = \"t\"\n" +
			"address = \"https://bao.example.com\"\ntransit_engine_path = \"/v1/transit\"\n}"))},
		{name: "aws_kms, ARN of a secret", body: read, env: noBundle, provider: settings(keyBlock("aws_kms {\nregion = \"eu-west-1\"\n" +
			"kms_key_id = \"arn:aws:secretsmanager:eu-west-1:1:secret:x\"\nkey_spec = \"AES_256\"\n}"))},
		{name: "openbao, line break in the token of the environment", body: read, env: "VAULT_TOKEN=hvs.c4n4ry\n",
			provider: settings(keyBlock("openbao {\nkey_name = \"k\"\naddress = \"" + p.server.URL + "\"\n}"))},
		// Derived keys.
		{name: "derived key, no salt", provider: exportable, body: derive("")},
		{name: "derived key, salt that is text", provider: exportable, body: derive(`salt = "the salt of the backup"`)},
		{name: "derived key, wrapped_key in base64", provider: exportable, body: derive(`wrapped_key = "eyJzYWx0IjoiQUFBQSJ9"`)},
		{name: "derived key, key that is set", provider: exportable, body: derive(`key_hex = "00"`)},
		{name: "derived key, salt in hexadecimal", cli: true, provider: exportable, body: "ephemeral " +
			"\"statecrypt_derived_key\" \"k\" {\n" +
			"key_provider = \"key_provider.pbkdf2.main\"\ninfo = \"backup\"\nsalt = \"000102030405060708090a0b0c0d0e0f\"\n}"},
		{name: "derived key, bits", provider: textProvider(derivingText), body: derives("k", "static.root", "info = \"backup\"\nlength = 256")},
		{name: "derived key, address without its kind", provider: textProvider(derivingText),
			body: strings.Replace(derives("k", "static.root", "info = \"backup\""), "key_provider.static", "static", 1)},
		{name: "derived key, a file as wrapped_key", provider: textProvider(derivingText),
			body: derives("k", "static.root", "info = \"backup\"\n"+`wrapped_key = "{\"meta\":{},\"encrypted_data\":\"\"}"`)},
		{name: "derived key, method", provider: good,
			body: strings.Replace(derives("k", "static.root", "info = \"backup\""), "key_provider.static.root", "method.aes_gcm.m", 1)},
	}
}
