package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// again are rows of a newcomer: half of a pair that belongs together, a default that
// nobody set, a path in the words of a shell, and what a pipeline makes of a variable.
func (p *mistakenPlace) again() []mistake {
	in := func(name string, more ...string) string { return reads("s", append(more, fromFile(p.dir+"/"+name))...) }
	read, good := in("sealed"), textProvider(staticText)
	path := func(text string) string { return reads("s", "file {\npath = "+quote(text)+"\n}") }
	from := func(kind, arguments string) string { return reads("s", kind+" {\n"+arguments+"\n}") }
	credentials := func(kind, arguments string) string {
		return settings("credentials {\n" + kind + " {\n" + arguments + "\n}\n}")
	}
	passphrase := keyBlock("pbkdf2 {\npassphrase = \"a passphrase of 16 bytes\"\nexportable = true\n}")
	s3 := from("s3", "bucket = \"acme-states\"\nkey = \"s\"\nregion = \"eu-west-1\"")
	gcs, pg := from("gcs", `bucket = "acme-states"`), from("pg", "")
	blob := from("azurerm", "storage_account_name = \"acmestates\"\ncontainer_name = \"states\"\nkey = \"s\"")
	const noBundle = "AWS_CA_BUNDLE="
	program := filepath.Join(p.dir, "key.sh")
	_ = os.WriteFile(program, []byte("#!/bin/sh\necho '{\"magic\":\"OpenTofu-External-Key-Provider\",\"version\":1}'\nread x\n"+
		"echo '{\"keys\":{\"encryption_key\":\"zz0102\",\"decryption_key\":\"zz0102\"}}'\n"), 0o700) //nolint:gosec // it is to be run
	external := func(words ...string) string {
		return settings("allow_external = true\n" + keyBlock(fmt.Sprintf("external {\ncommand = [%s]\n}", strings.Join(words, ", "))))
	}
	return []mistake{
		// Half of what belongs together.
		{name: "s3, half of a key in the environment", env: "AWS_ACCESS_KEY_ID=AKIA", body: s3,
			provider: credentials("s3", "skip_metadata_api_check = true")},
		{name: "s3, nothing to sign in with", env: noBundle, body: s3, provider: credentials("s3", "skip_metadata_api_check = true")},
		{name: "s3, profile of the environment", env: "AWS_PROFILE=prod", body: s3,
			provider: credentials("s3", "skip_metadata_api_check = true")},
		{name: "azurerm, secret without a tenant", cli: true, body: blob, provider: credentials("azurerm",
			"client_id = \"11111111-1111-1111-1111-111111111111\"\nclient_secret = \"s\"")},
		{name: "azurerm, secret without a client", body: blob, provider: credentials("azurerm",
			"tenant_id = \"11111111-1111-1111-1111-111111111111\"\nclient_secret = \"s\"")},
		{name: "gcs, key without a private key", body: gcs, provider: credentials("gcs",
			`credentials = jsonencode({ type = "service_account", client_email = "a@b" })`)},
		{name: "gcs, user without a secret", body: gcs, provider: credentials("gcs",
			`credentials = jsonencode({ type = "authorized_user", client_id = "c" })`)},
		{name: "gcs, key in base64", body: gcs, provider: credentials("gcs", `credentials = "eyJ0eXBlIjoic2VydmljZV9hY2NvdW50In0="`)},
		{name: "gcs, name of an account", body: gcs, provider: credentials("gcs", "access_token = \"t\"\nimpersonate_service_account "+
			"= \"reader\"")},
		{name: "consul, password without a user", cli: true, body: from("consul", `path = "s"`),
			provider: credentials("consul", `http_auth = "p"`)},
		{name: "consul, address without a port", body: from("consul", `path = "s"`),
			provider: credentials("consul", `address = "127.0.0.1"`)},
		{name: "pg, port that is a word", body: pg, provider: credentials("pg", `conn_str = "postgres://u:p@127.0.0.1:port/t"`)},
		{name: "pg, login of another kind", body: pg, provider: credentials("pg", `conn_str = "host=127.0.0.1 require_auth=any"`)},
		{name: "cos, bucket without an account", body: from("cos", "bucket = \"states\"\nregion = \"eu-frankfurt\""),
			provider: credentials("cos", "secret_id = \"a\"\nsecret_key = \"b\"")},
		// Programs.
		{name: "external, line of a shell", cli: true, provider: external(quote("pass show key | head -1")), body: in("derived")},
		{name: "external, key in hexadecimal", provider: external(quote(program)), body: in("derived")},
		// Keys.
		{name: "file of a chain, without it", body: in("chained"), provider: settings(keyBlock(
			"pbkdf2 {\nencrypted_metadata_alias = \"downstream\"\npassphrase = \"chain-throwaway-passphrase\"\n}"))},
		{name: "sops, file of the environment", env: "SOPS_AGE_KEY_FILE=" + p.dir + "/identities.txt", body: in("sops", `method = "sops"`),
			provider: settings()},
		// Paths.
		{name: "path, not of a module", provider: good, body: path("network.tfstate")},
		{name: "path, pattern", provider: good, body: path(p.dir + "/*.tfstate")},
		{name: "path, variable of Windows", provider: good, body: path("%%USERPROFILE%%/network.tfstate")},
		{name: "path, of Windows, for a key", provider: settings(keyBlock(`static {
key_file = "C:\\keys\\state.key"
}`)), body: read},
		{name: "path, standard input", cli: true, provider: good, body: path("-")},
		{name: "path, below a file", provider: good, body: path(p.dir + "/sealed/terraform.tfstate")},
		{name: "path, workspaces in a file", provider: good, body: reads("s", `workspace = "prod"`,
			"file {\npath = \"s\"\nworkspace_dir = "+quote(p.dir+"/sealed")+"\n}")},
		// What is said in another way.
		{name: "lineage in braces", provider: good, body: in("sealed", `expected_lineage = "{L-1}"`)},
		{name: "resource, address with resource", provider: settings("allow_resource_reads = true"),
			body: readsResource("s", "resource.aws_vpc.main", fromFile(p.dir+"/resources"), `method = "unencrypted"`)},
		{name: "derived key, salt in hexadecimal", cli: true, provider: settings(passphrase), body: "ephemeral " +
			"\"statecrypt_derived_key\" \"k\" {\n" +
			"key_provider = \"key_provider.pbkdf2.main\"\ninfo = \"backup\"\nsalt = \"000102030405060708090a0b0c0d0e0f\"\n}"},
		// Text.
		{name: "text in the environment, JSON with backslashes", body: read, env: `TF_ENCRYPTION={\"key_provider\":{}}`},
		{name: "text in the environment, masked", body: read, env: "TF_ENCRYPTION=[MASKED]"},
		{name: "text in the environment, path without an ending", body: read, env: "TF_ENCRYPTION=/builds/acme/x.tmp/TF_ENCRYPTION"},
		{name: "text in the environment, with its name", body: read, env: "TF_ENCRYPTION=export TF_ENCRYPTION=" + staticText},
		{name: "text in the environment, marks of a here document", body: read, env: "TF_ENCRYPTION=<<EOT\n" + staticText + "\nEOT"},
		{name: "text, fallback outside of state", provider: textProvider(staticText + "\nfallback {\n  method = " +
			"method.unencrypted.m\n}"), body: read},
		{name: "text, vault", body: read, provider: textProvider("key_provider \"vault\" \"k\" {\n  key_name = \"k\"\n}\n" +
			"method \"aes_gcm\" \"m\" {\n  keys = key_provider.vault.k\n}\nstate {\n  method = method.aes_gcm.m\n}")},
		{name: "values for no text", body: read, provider: settings(`encryption_variables = { passphrase = "x" }`)},
	}
}

// newest are those that somebody found who tried it without having built it.
func (p *mistakenPlace) newest() []mistake {
	from := func(kind, arguments string) string { return reads("s", kind+" {\n"+arguments+"\n}") }
	credentials := func(kind, arguments string) string {
		return settings("credentials {\n" + kind + " {\n" + arguments + "\n}\n}")
	}
	s3 := from("s3", "bucket = \"acme-states\"\nkey = \"s\"\nregion = \"eu-west-1\"")
	gcs, pg := from("gcs", `bucket = "acme-states"`), from("pg", `schema_name = "net"`)
	read := fromSealed(p)
	const noBundle = "AWS_CA_BUNDLE="
	text := func(passphrase string) string {
		return "TF_ENCRYPTION=key_provider \"pbkdf2\" \"main\" {\n  passphrase = " + passphrase + "\n}\nmethod \"aes_gcm\" \"main\" {\n" +
			"  keys = key_provider.pbkdf2.main\n}\nstate {\n  method = method.aes_gcm.main\n}"
	}
	derived := func(passphrase string) mistake {
		return mistake{provider: settings(keyBlock("pbkdf2 {\npassphrase = " + passphrase + "\n}")), body: reads("s", fromFile(p.dir+"/derived"))}
	}
	named := func(name string, m mistake) mistake {
		m.name = name
		return m
	}
	return []mistake{
		// Keys of services.
		{name: "s3, keys exchanged", cli: true, body: s3, provider: credentials("s3", "access_key = \"wJalrXUtnFEMI\"\nsecret_key = "+
			"\"AKIAIOSFODNN7EXAMPLE\""), env: noBundle},
		{name: "s3, temporary key without a token", body: s3, provider: credentials("s3", "access_key = \"ASIAIOSFODNN7EXAMPLE\"\n"+
			"secret_key = \"s\""), env: noBundle},
		{name: "s3, token file of the environment", env: "AWS_WEB_IDENTITY_TOKEN_FILE=/no/such/token", body: s3,
			provider: credentials("s3", "skip_metadata_api_check = true\nassume_role_with_web_identity {\nrole_arn = "+
				"\"arn:aws:iam::123456789012:role/r\"\n}")},
		{name: "s3, role of the environment alone", env: "AWS_ROLE_ARN=arn:aws:iam::123456789012:role/r", body: s3,
			provider: credentials("s3", "skip_metadata_api_check = true")},
		{name: "gcs, key of the environment that is cut off", env: `GOOGLE_CREDENTIALS={"type":"service_account", "project_id":`, body: gcs,
			provider: textProvider(staticText)},
		{name: "gcs, file of the environment", env: "GOOGLE_APPLICATION_CREDENTIALS=/no/such/key.json", body: gcs,
			provider: textProvider(staticText)},
		{name: "gcs, private key alone", body: gcs, provider: credentials("gcs", `credentials = "-----BEGIN PRIVATE KEY-----\nx\n"`)},
		{name: "pg, address of Java", cli: true, body: pg, provider: credentials("pg", `conn_str = "jdbc:postgresql://db/t?user=u"`)},
		{name: "pg, semicolons", body: pg, provider: credentials("pg", `conn_str = "Server=db;Port=5432;Database=t"`)},
		{name: "pg, slash in the password", body: pg, provider: credentials("pg", `conn_str = "postgres://u:p@ss/word@127.0.0.1/t"`)},
		{name: "pg, port after the host", body: pg, provider: credentials("pg", `conn_str = "host=127.0.0.1:5432 user=u"`)},
		{name: "git, token as a parameter", cli: true, body: from("git", "path = \"s\"\nrepository = "+
			"\"https://git.example.com/acme/infra.git?private_token=t\""), provider: textProvider(staticText)},
		{name: "git, password in an address of ssh", body: from("git", "path = \"s\"\nrepository = "+
			"\"ssh://git:p@git.example.com/acme/infra.git\""), provider: textProvider(staticText)},
		{name: "sops, path as a key", env: "SOPS_AGE_KEY=" + p.dir + "/identities.txt", body: reads("s", fromFile(p.dir+"/sops"),
			`method = "sops"`), provider: textProvider(staticText)},
		// Passphrases that are none.
		named("passphrase, JSON", derived(`jsonencode({ passphrase = "correct horse" })`)),
		named("passphrase, reference", derived(`"op://infra/tofu/password"`)),
		named("passphrase, carriage return", derived(`"correct horse battery staple\r"`)),
		named("passphrase, placeholder", derived(`"<your passphrase here>"`)),
		named("passphrase, a line of a file", derived(`"passphrase = \"correct horse\""`)),
		named("passphrase, variable of PowerShell", derived(`"$env:STATE_PASSPHRASE"`)),
		named("passphrase, error of a program", derived(`"An error occurred (AccessDenied)"`)),
		// Text.
		{name: "text, quotation mark in a passphrase", body: read, env: text(`"correct"horse"`)},
		{name: "text, dollar and brace in a passphrase", body: read, env: text(`"correct${horse"`)},
		{name: "text, percent and brace in a passphrase", body: read, env: text(`"correct%{horse}"`)},
		{name: "text, expression of a pipeline", body: read, env: text(`"${{ secrets.STATE }}"`)},
		{name: "text, path without quotation marks", body: read, env: text(`file(~/passphrase)`)},
		{name: "text, no closing parenthesis", body: read, env: text(`trimspace(file("p.txt")`)},
		{name: "text, no value", body: read, env: text("")},
		{name: "text, marks of Markdown", body: read, env: "TF_ENCRYPTION=```hcl\n" + staticText + "\n```"},
		{name: "text, here-string of PowerShell", body: read, env: "TF_ENCRYPTION=@'\n" + staticText + "\n'@"},
		{name: "text, comment that does not end", body: read, env: "TF_ENCRYPTION=/* keys\n" + staticText},
		{name: "text, quotation marks lost", body: read, env: "TF_ENCRYPTION=key_provider pbkdf2 k { passphrase = correct }"},
		{name: "text, shell in single quotes", body: read, env: "TF_ENCRYPTION=$(cat keys.hcl)"},
		{name: "text, JSON without kinds", body: read, env: `TF_ENCRYPTION={"key_provider":{"type":"pbkdf2","name":"k"}}`},
		{name: "text, method twice", body: read, env: "TF_ENCRYPTION=state {\n  method = method.aes_gcm.a\n  method = method.aes_gcm.b\n}"},
		{name: "text, argument of another program", body: read, env: "TF_ENCRYPTION=key_provider \"pbkdf2\" \"k\" {\n" +
			"  passphrase_file = \"p\"\n}"},
		{name: "text, function that fails", body: read, env: text(`jsondecode("correct horse").key`)},
		// Names.
		{name: "s3, availability zone", body: from("s3", "bucket = \"acme-states\"\nkey = \"s\"\nregion = \"eu-west-1a\""),
			provider: textProvider(staticText)},
		{name: "s3, path in the bucket", body: from("s3", "bucket = \"acme-states/network\"\nkey = \"s\"\nregion = \"eu-west-1\""),
			provider: textProvider(staticText)},
		{name: "gcs, scheme before the bucket", cli: true, body: from("gcs", `bucket = "gs://acme-states"`), provider: textProvider(staticText)},
		{name: "gcs, client of OAuth", body: gcs, provider: credentials("gcs", `credentials = jsonencode({ installed = {} })`)},
		{name: "azurerm, host of the account", body: from("azurerm", "storage_account_name = \"acmestates.blob.core.windows.net\"\n"+
			"container_name = \"states\"\nkey = \"s\""), provider: textProvider(staticText)},
		{name: "azurerm, path in the container", body: from("azurerm", "storage_account_name = \"acmestates\"\n"+
			"container_name = \"states/network\"\nkey = \"s\""), provider: textProvider(staticText)},
		{name: "remote, number of a state version", body: from("remote", "organization = \"acme\"\nstate_version = \"12\"\nworkspaces {\n"+
			"name = \"n\"\n}"), provider: textProvider(staticText)},
		{name: "http, header with its value", body: from("http", `address = "https://git.example.com/s"`), provider: credentials("http",
			"url = \"https://git.example.com/\"\nheaders = { \"PRIVATE-TOKEN: t\" = \"\" }")},
		{name: "resource, address of an attribute", body: readsResource("s", "aws_vpc.main.id", fromFile(p.dir+"/resources"),
			`method = "unencrypted"`), provider: settings("allow_resource_reads = true")},
		{name: "openbao, page for people", body: read, provider: settings(keyBlock("openbao {\nkey_name = \"k\"\ntoken = \"t\"\n" +
			"address = \"https://bao.example.com/ui\"\n}"))},
		{name: "openbao, version in the path", body: read, provider: settings(keyBlock("openbao {\nkey_name = \"k\"\ntoken = \"t\"\n" +
			"address = \"https://bao.example.com\"\ntransit_engine_path = \"/v1/transit\"\n}"))},
		{name: "aws_kms, ARN of a secret", body: read, env: noBundle, provider: settings(keyBlock("aws_kms {\nregion = \"eu-west-1\"\n" +
			"kms_key_id = \"arn:aws:secretsmanager:eu-west-1:1:secret:x\"\nkey_spec = \"AES_256\"\n}"))},
		{name: "passphrase, NAME=VALUE", body: derived(`"STATE_PASSPHRASE=correct"`).body,
			provider: derived(`"STATE_PASSPHRASE=correct"`).provider},
		{name: "sops, key in quotation marks", env: `SOPS_AGE_KEY="AGE-SECRET-KEY-1C4N4RY"`, body: reads("s", fromFile(p.dir+"/sops"),
			`method = "sops"`), provider: textProvider(staticText)},
		{name: "git, variable of the environment in quotation marks", env: `GIT_USERNAME="ci"`, body: from("git", "path = \"s\"\nrepository = "+
			"\"/no/such/repository\""), provider: textProvider(staticText)},
		// Files.
		{name: "path with backslashes", provider: settings(), body: reads("s", fromFile("network\\\\state.tfstate"))},
	}
}

func fromSealed(p *mistakenPlace) string { return reads("s", fromFile(p.dir+"/sealed")) }
