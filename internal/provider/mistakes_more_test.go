package provider

import (
	"fmt"
	"strings"
)

// more are the rows of the first hours: pasted from elsewhere, from another workspace,
// another region, another shell.
func (p *mistakenPlace) more() []mistake {
	sealed := p.dir + "/sealed"
	static := func(arguments string) string { return settings(keyBlock("static {\n" + arguments + "\n}")) }
	pbkdf2 := func(passphrase string) string {
		return settings(keyBlock("pbkdf2 {\npassphrase = " + quote(passphrase) + "\n}"))
	}
	derived := reads("s", fromFile(p.dir+"/derived"))
	read := reads("s", fromFile(sealed))
	readWith := func(arguments ...string) string { return reads("s", append(arguments, fromFile(sealed))...) }
	good := textProvider(staticText)
	text := textProvider
	from := func(kind, arguments string) string { return reads("s", kind+" {\n"+arguments+"\n}") }
	credentials := func(kind, arguments string) string {
		return settings("credentials {\n" + kind + " {\n" + arguments + "\n}\n}")
	}
	key := "key = \"" + staticKey + "\""
	resource := func(address string) string {
		return readsResource("s", address, fromFile(p.dir+"/plain"), `method = "unencrypted"`)
	}
	reader := settings("allow_resource_reads = true")
	gcs, s3 := from("gcs", `bucket = "acme-states"`), func(arguments string) string { return from("s3", arguments) }
	bucket := "bucket = \"acme-states\"\nkey = \"network/terraform.tfstate\"\n"
	storage := from("azurerm", "storage_account_name = \"acme\"\ncontainer_name = \"states\"\nkey = \"network.tfstate\"")
	consul, pg := from("consul", `path = "states/network"`), from("pg", "")
	kubernetes := from("kubernetes", `secret_suffix = "network"`)
	remote := func(arguments string) string { return from("remote", arguments) }
	west := bucket + "region = \"eu-west-1\""
	state := "state { method = method.aes_gcm.m }"
	const noBundle = "AWS_CA_BUNDLE=" // which would be an error of its own beside a secret
	return []mistake{
		// Pasted from OpenTofu, or from terraform_remote_state.
		{name: "key_provider with labels", cli: true, provider: settings("key_provider \"static\" \"k\" {\n" + key + "\n}"), body: read},
		{name: "backend, as of terraform_remote_state", body: reads("s", `backend = "s3"`, "config = {\nbucket = \"acme\"\n}")},
		{name: "encryption as a block", provider: settings("encryption {\n" + state + "\n}"), body: read},
		{name: "state as a block", provider: settings("state {\nmethod = \"method.aes_gcm.m\"\n}"), body: read},
		{name: "method of the text in quotes", provider: text(strings.Replace(staticText, "method = method.aes_gcm.m ",
			`method = "method.aes_gcm.x" `, 1)), body: read},
		{name: "text, state without a method", provider: text("state {}"), body: read},
		{name: "text, one label", provider: text(`key_provider "static" { ` + key + " }"), body: read},
		{name: "text, key provider of no kind", provider: text(`key_provider "pbkdf" "k" { passphrase = "x" }` + "\n" +
			`method "aes_gcm" "m" { keys = key_provider.pbkdf.k }` + "\n" + state), body: read},
		{name: "text, short passphrase", provider: text(`key_provider "pbkdf2" "k" { passphrase = "short" }` + "\n" +
			`method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` + "\n" + state), body: read},
		{name: "text, a local", provider: text(`key_provider "static" "k" { key = local.key }` + "\n" +
			`method "aes_gcm" "m" { keys = key_provider.static.k }` + "\n" + state), body: read},
		{name: "text, a misspelt function", body: read, provider: text("key_provider \"static\" \"k\" { key = trimspce(\"x\") }\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }")},
		{name: "text, a function of nobody", body: read, provider: text("key_provider \"static\" \"k\" { key = env(\"KEY\") }\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }")},
		{name: "text, a file of nobody", body: read, provider: text("key_provider \"static\" \"k\" { key = file(\"/no/such/key.txt\") }\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }")},
		{name: "text, base64 that is none", body: read, provider: text("key_provider \"static\" \"k\" { key = base64decode(\"%%\") }\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }")},
		{name: "text, plus", body: read, provider: text("key_provider \"static\" \"k\" { key = \"a\" + \"b\" }\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }")},
		{name: "text, no closing quotation mark", provider: text("key_provider \"static\" \"k\" {\n  key = \"x\n}\n" +
			"method \"aes_gcm\" \"m\" {\n  keys = key_provider.static.k\n}\nstate {\n  method = method.aes_gcm.m\n}"), body: read},
		{name: "text in the environment, on one line", env: "TF_ENCRYPTION=" + `key_provider "static" "k" { ` + key + " } " + state, body: read},
		{name: "text in the environment, a JSON array", env: "TF_ENCRYPTION=[]", body: read},
		{name: "text, a circle", provider: text(`key_provider "pbkdf2" "a" { chain = key_provider.pbkdf2.b }` + "\n" +
			`key_provider "pbkdf2" "b" { chain = key_provider.pbkdf2.a }` + "\n" +
			`method "aes_gcm" "m" { keys = key_provider.pbkdf2.a }` + "\n" + state), body: read},
		{name: "text in the environment, syntax", env: "TF_ENCRYPTION=state {", body: read},
		{name: "name of a file in the environment", env: "TF_ENCRYPTION=@keys.hcl", body: read},
		{name: "text in the environment, in quotes", env: "TF_ENCRYPTION='" + state + "'", body: read},
		{name: "text in the environment, of another project", provider: text(staticText), body: read,
			env: "TF_ENCRYPTION=key_provider \"static\" \"k\" { key = \"" + strings.Repeat("ab", 32) + "\" }"},
		{name: "text in the environment, the shell's variable", body: read, env: `TF_ENCRYPTION=key_provider "pbkdf2" "k" { ` +
			`passphrase = "${PASSPHRASE}" }` + "\n" + `method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` + "\n" + state},
		{name: "text in the environment, for states only by name", env: "TF_ENCRYPTION=" + strings.Replace(staticText, "state {",
			"remote_state_data_sources {\nremote_state_data_source \"network\" {", 1) + "}", body: read},
		{name: "encryption_variables beside blocks", provider: settings("encryption_variables = { p = \"x\" }\n" + staticBlocks), body: read},
		{name: "text, variable with another name", body: read,
			provider: settings("encryption_variables = { passphras = \"correct horse battery\" }\nencryption = <<-EOT\n" +
				`key_provider "pbkdf2" "k" { passphrase = var.passphrase }` + "\n" +
				`method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` + "\n" + state + "\nEOT")},
		{name: "text in the environment, JSON cut off", env: `TF_ENCRYPTION={"state":{"method":`, body: read},
		// Keys and passphrases.
		{name: "key in base64", provider: static(`key = "bXkgc2VjcmV0IGtleSBvZiAzMiBieXRlcyBsb25nISE="`), body: read},
		{name: "key with a line break", provider: static(`key = "` + staticKey + `\n"`), body: read},
		{name: "key with 0x", provider: static(`key = "0x` + staticKey + `"`), body: read},
		{name: "key of an odd number of digits", provider: static(`key = "` + staticKey[1:] + `"`), body: read},
		{name: "key of another length", provider: static(`key = "` + staticKey[:20] + `"`), body: read},
		{name: "key_base64 for URLs", provider: static(`key_base64 = "xx-` + staticKey + `"`), body: read},
		{name: "key, empty", provider: static(`key = ""`), body: read},
		{name: "key and key_base64", provider: static(key + "\nkey_base64 = \"AAAA\""), body: read},
		{name: "key_file of nobody", provider: static(`key_file = "/no/such/key"`), body: read},
		{name: "key_file is text", provider: static(`key_file = "` + p.dir + `/text"`), body: read},
		{name: "passphrase with a Windows line end", provider: pbkdf2("this is not the passphrase\r\n"), body: derived},
		{name: "passphrase is a variable of the shell", provider: pbkdf2("$STATE_PASSPHRASE of the team"), body: derived},
		{name: "file of the key provider age", provider: settings(methodBlock("age {\nidentity_files = [\"/no/such/keys.txt\"]\n}")),
			body: reads("s", fromFile(p.dir+"/team"))},
		{name: "credentials, an empty password", body: reads("s", fromHTTP(p.server.URL+"/private")), provider: credentials("http",
			"url = \""+p.server.URL+"\"\nusername = \"ci\"\npassword = \"\"")},
		{name: "credentials, url without a scheme", body: from("http", `address = "https://state.example.com/s"`),
			provider: credentials("http", "url = \"git@state.example.com:443/acme\"\nbearer_token = \"x\"")},
		{name: "openbao, for a file of pbkdf2", body: derived,
			provider: settings("key_provider {\nopenbao {\nkey_name = \"k\"\ntoken = \"t\"\n}\n}")},
		{name: "passphrase in quotes", provider: pbkdf2(`"this is not the passphrase"`), body: derived},
		{name: "passphrase with a space at its end", provider: pbkdf2("this is not the passphrase "), body: derived},
		{name: "passphrase is the name of a file", provider: pbkdf2("/etc/keys/states.txt"), body: derived},
		{name: "aws_kms without a region", provider: settings("use_environment = false\n" +
			keyBlock("aws_kms {\nkms_key_id = \"alias/states\"\nkey_spec = \"AES_256\"\n}")), body: derived},
		{name: "aws_kms, key_spec", provider: settings(keyBlock(
			"aws_kms {\nkms_key_id = \"alias/states\"\nkey_spec = \"AES-256\"\nregion = \"eu-west-1\"\n}")), body: derived},
		{name: "gcp_kms, name of the key", provider: settings(keyBlock(
			"gcp_kms {\nkms_encryption_key = \"states\"\nkey_length = 32\n}")), body: derived},
		{name: "openbao, address", provider: settings("use_environment = false\n" + keyBlock(
			"openbao {\nkey_name = \"states\"\ntoken = \"t\"\naddress = \"vault.example.com\"\n}")), body: derived},
		{name: "age, an identity in place of a path", provider: settings(methodBlock("age {\nidentity_files = [\"AGE-SECRET-KEY-1CANARY\"]\n}")),
			body: reads("s", fromFile(p.dir+"/age"))},
		{name: "age, key file of nobody", provider: settings(methodBlock("age {\nidentity_files = [\"/no/such/keys.txt\"]\n}")),
			body: reads("s", fromFile(p.dir+"/age"))},
		{name: "age, public key", provider: settings(methodBlock(
			"age {\nidentities = [\"age1ggeqwag8mf99ez98xzw9evgzl33w86vc6e8uu2lr4uldhumphdnqd4df3c\"]\n}")),
			body: reads("s", fromFile(p.dir+"/age"))},
		{name: "age, recipient of a plugin, cut off", provider: settings(methodBlock(
			"age {\npassphrase = \"correct-horse-battery-staple\"\nrecipients = [\"age1yubikey1qfn44rsw0xvmez3gky9nlm3x\"]\n}")),
			body: reads("s", fromFile(p.dir+"/age"))},
		// Types, and what was meant.
		{name: "only, a text", body: readWith(`only = "open"`), provider: good},
		{name: "only, a null", body: readWith(`only = [null]`), provider: good},
		{name: "store_sensitive, a word", body: readWith(`store_sensitive = "yes"`), provider: good},
		{name: "iterations, a word", provider: settings(keyBlock("pbkdf2 {\npassphrase = \"0123456789abcdef\"\niterations = \"many\"\n}")),
			body: read},
		{name: "argument of another source", body: from("file", `key = "network.tfstate"`), provider: good},
		{name: "path, empty", body: reads("s", fromFile("")), provider: good},
		{name: "path with a line break", body: reads("s", fromFile(sealed+"\n")), provider: good},
		{name: "path in quotes", body: reads("s", fromFile(`"`+sealed+`"`)), provider: good},
		{name: "path with ~", env: "HOME=" + p.dir, body: reads("s", fromFile("~/gone")), provider: good},
		{name: "path as an address", body: reads("s", fromFile("https://state.example.com/network")), provider: good},
		{name: "path as a URL", body: reads("s", fromFile("file://"+sealed)), provider: good},
		{name: "path on Windows", body: reads("s", fromFile(`C:\states\network.tfstate`)), provider: good},
		// Resources.
		{name: "resource, no such", provider: reader, body: resource("aws_vpc.main")},
		{name: "resource, no address", provider: reader, body: resource("aws_vpc")},
		{name: "resource, with data in place of an address", provider: reader, body: resource("${aws_vpc.main.id}")},
		// git.
		{name: "git, module source", body: from("git", "repository = \"git::https://git.example.com/infra.git\"\nref = \"main\"\npath = \"s\""),
			provider: good},
		{name: "git, no scheme", body: from("git", "repository = \"git.example.com/acme/infra\"\nref = \"main\"\npath = \"s\""), provider: good},
		{name: "git, origin/main", body: reads("s", fromGit(p.repo.FileURL(), "origin/main", "s")), provider: good},
		{name: "git, password in the address", body: reads("s", fromGit("https://ci:pw@git.example.com/infra.git", "main", "s")),
			provider: good},
		{name: "git, empty ref", body: reads("s", fromGit(p.repo.FileURL(), "", "s")), provider: good},
		{name: "git, empty path", body: reads("s", fromGit(p.repo.FileURL(), "main", "")), provider: good},
		{name: "git, password of the environment", env: "GIT_PASSWORD=secret", body: reads("s", fromGit(p.git.URL, "main", "s"))},
		{name: "git, username alone", provider: credentials("git", fmt.Sprintf("url = %q\nusername = \"ci\"", p.git.Origin+"/")),
			body: reads("s", fromGit(p.git.URL, "main", "s"))},
		{name: "git, ca_file of nobody", provider: credentials("git",
			fmt.Sprintf("url = %q\nca_file = %q", p.git.Origin+"/", p.dir+"/ca.pem")), body: reads("s", fromGit(p.git.URL, "main", "s"))},
		{name: "git, ssh key of nobody", provider: credentials("git", "url = \"ssh://git.example.com/\"\nssh_private_key_file = "+
			quote(p.dir+"/id_ed25519")), body: reads("s", fromGit("ssh://git@git.example.com/infra.git", "main", "s"))},
		{name: "git, one url twice", provider: settings(fmt.Sprintf("credentials {\ngit {\nurl = %[1]q\n}\ngit {\nurl = %[1]q\n}\n}",
			p.git.Origin+"/")), body: reads("s", fromGit(p.git.URL, "main", "s"))},
		// HTTP.
		{name: "http, token with a line break", provider: credentials("http",
			fmt.Sprintf("url = %q\nbearer_token = \"t\\n\"", p.server.URL+"/")), body: reads("s", fromHTTP(p.server.URL+"/private"))},
		{name: "http, password without a username", provider: credentials("http",
			fmt.Sprintf("url = %q\npassword = \"p\"", p.server.URL+"/")), body: reads("s", fromHTTP(p.server.URL+"/private"))},
		{name: "http, password with a line break", provider: credentials("http",
			fmt.Sprintf("url = %q\nusername = \"u\"\npassword = \"p\\n\"", p.server.URL+"/")), body: reads("s", fromHTTP(p.server.URL+"/private"))},
		{name: "http, credentials for another host", provider: credentials("http", "url = \"https://state.example.com/\"\nbearer_token = \"t\""),
			body: reads("s", fromHTTP(p.server.URL+"/private"))},
		{name: "http, credentials of git", provider: credentials("git",
			fmt.Sprintf("url = %q\nusername = \"u\"\npassword = \"p\"", p.server.URL+"/")),
			body: reads("s", fromHTTP(p.server.URL+"/private"))},
		{name: "http, an address of go-getter", body: reads("s", fromHTTP("git::https://example.com/infra.git")), provider: good},
		{name: "http, password of the environment", env: "TF_HTTP_PASSWORD=secret", body: reads("s", fromHTTP(p.server.URL+"/private"))},
		{name: "http, an address of S3", body: reads("s", fromHTTP("s3://acme-states/network")), provider: good},
		{name: "http, a space at the end", body: reads("s", fromHTTP(p.server.URL+"/gone ")), provider: good},
		// Clouds and services.
		{name: "s3, no region", provider: settings("use_environment = false"), body: s3(bucket)},
		{name: "s3, bucket as a URL", body: s3("bucket = \"s3://acme-states\"\nkey = \"s\"\nregion = \"eu-west-1\"")},
		{name: "s3, key with a slash at its start", body: s3("bucket = \"acme-states\"\nkey = \"/s\"\nregion = \"eu-west-1\"")},
		{name: "s3, secret key alone", env: noBundle, provider: credentials("s3", `secret_key = "s"`), body: s3(west)},
		{name: "s3, no such profile", env: noBundle,
			provider: credentials("s3", "profile = \"prod\"\nshared_config_files = [\"/no/such/config\"]\n"+
				"shared_credentials_files = [\"/no/such/credentials\"]"), body: s3(west)},
		{name: "s3, secret key with a line break", env: noBundle, body: s3(west),
			provider: credentials("s3", "access_key = \"A\"\nsecret_key = \"s\\n\"")},
		{name: "s3, bundle of nobody", env: noBundle, provider: credentials("s3", "access_key = \"A\"\nsecret_key = \"s\"\n"+
			"custom_ca_bundle = \"/no/such/ca.pem\""), body: s3(west)},
		{name: "s3, credentials_name of nobody", env: noBundle,
			provider: credentials("s3", "name = \"prod\"\naccess_key = \"A\"\nsecret_key = \"s\""),
			body:     s3(bucket + "region = \"eu-west-1\"\ncredentials_name = \"staging\"")},
		{name: "s3, credentials_name missing", env: noBundle,
			provider: credentials("s3", "name = \"prod\"\naccess_key = \"A\"\nsecret_key = \"s\""),
			body:     s3(bucket + `region = "eu-west-1"`)},
		{name: "s3, dynamodb_table", body: s3(bucket + "region = \"eu-west-1\"\ndynamodb_table = \"locks\"")},
		{name: "s3, profile in the source", body: s3(bucket + "region = \"eu-west-1\"\nprofile = \"prod\"")},
		{name: "gcs, bucket as a URL", body: from("gcs", `bucket = "gs://acme-states"`)},
		{name: "gcs, credentials of nobody", provider: credentials("gcs", `credentials = "/no/such/account.json"`), body: gcs},
		{name: "azurerm, name of the account", body: from("azurerm",
			"storage_account_name = \"Acme-States\"\ncontainer_name = \"states\"\nkey = \"s\"")},
		{name: "azurerm, certificate of nobody", provider: credentials("azurerm",
			"tenant_id = \"00000000-0000-0000-0000-000000000000\"\nclient_id = \"00000000-0000-0000-0000-000000000000\"\n"+
				"client_certificate_path = \"/no/such/cert.pfx\""), body: storage},
		{name: "azurerm, access_key in the source", body: from("azurerm",
			"storage_account_name = \"acme\"\ncontainer_name = \"states\"\nkey = \"s\"\naccess_key = \"k\"")},
		{name: "azurerm, access_key that is none", provider: credentials("azurerm", `access_key = "not base64!"`), body: storage},
		{name: "consul, ca_file of nobody", provider: credentials("consul", "address = \"https://127.0.0.1:1\"\nca_file = \"/no/such/ca.pem\""),
			body: consul},
		{name: "kubernetes, token with a line break", body: kubernetes,
			provider: credentials("kubernetes", "host = \"https://127.0.0.1:1\"\ntoken = \"t\\n\"")},
		{name: "kubernetes, config_path of nobody", provider: credentials("kubernetes", `config_path = "/no/such/config"`), body: kubernetes},
		{name: "kubernetes, authority of nobody", provider: credentials("kubernetes", `config_path = "`+p.dir+`/kubeconfig"`),
			body: kubernetes},
		{name: "kubernetes, no cluster", provider: settings("use_environment = false"), body: kubernetes},
		{name: "oci, no credentials", provider: settings("use_environment = false"),
			body: from("oci", "namespace = \"n\"\nregion = \"eu-frankfurt-1\"\n"+bucket)},
		{name: "oss, profile in no file", provider: credentials("oss", "profile = \"prod\"\nshared_credentials_file = \"/no/such/config.json\""),
			body: from("oss", "bucket = \"acme-states\"\nregion = \"eu-central-1\"")},
		{name: "pg, no address", provider: settings("use_environment = false"), body: pg},
		{name: "pg, authority of nobody", provider: credentials("pg",
			`conn_str = "postgres://u:p@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=/no/such/ca.pem"`), body: pg},
		{name: "pg, nobody there", provider: credentials("pg", `conn_str = "postgres://u:p@127.0.0.1:1/db?sslmode=disable"`), body: pg},
		{name: "pg, conn_str in the source", body: from("pg", `conn_str = "postgres://db.example.com/states"`)},
		{name: "remote, no workspace", body: remote("organization = \"acme\"\nworkspaces {}")},
		{name: "remote, name and prefix", body: remote("organization = \"acme\"\nworkspaces {\nname = \"a\"\nprefix = \"b\"\n}")},
		{name: "remote, hostname as a URL", body: remote("hostname = \"https://tfe.example.com\"\norganization = \"acme\"\n" +
			"workspaces {\nname = \"a\"\n}")},
	}
}
