package provider

import (
	"fmt"
	"strings"
)

// later are rows of somebody who knew the others: two things that say the same, what is
// set in the wrong place, and what stands for a secret.
func (p *mistakenPlace) later() []mistake {
	in := func(name string, more ...string) string { return reads("s", append(more, fromFile(p.dir+"/"+name))...) }
	read, derived := in("sealed"), in("derived")
	good := textProvider(staticText)
	key := keyBlock("static {\nkey = \"" + staticKey + "\"\n}")
	wrong := keyBlock("static {\nkey = \"" + strings.Repeat("ab", 32) + "\"\n}")
	fallback := func(method, other string) string {
		return defaultBlock(fmt.Sprintf("method = %q\nfallback {\nmethod = %q\n}", method, other))
	}
	passphrase := func(text string) string { return settings(keyBlock("pbkdf2 {\npassphrase = " + quote(text) + "\n}")) }
	credentials := func(kind, arguments string) string {
		return settings("credentials {\n" + kind + " {\n" + arguments + "\n}\n}")
	}
	s3 := reads("s", "s3 {\nbucket = \"acme-states\"\nkey = \"s\"\nregion = \"eu-west-1\"\n}")
	git := reads("s", fromGit(p.git.URL, "main", "s"))
	private := reads("s", fromHTTP(p.server.URL+"/private"))
	reader := settings("allow_resource_reads = true")
	resource := func(address string) string {
		return readsResource("s", address, fromFile(p.dir+"/resources"), `method = "unencrypted"`)
	}
	exportable := settings(keyBlock("pbkdf2 {\npassphrase = \"a passphrase of 16 bytes\"\nexportable = true\n}"))
	derive := func(arguments string) string {
		return "ephemeral \"statecrypt_derived_key\" \"k\" {\nkey_provider = \"key_provider.pbkdf2.main\"\ninfo = \"backup\"\n" +
			arguments + "\n}"
	}
	const otherIdentity = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
	return []mistake{
		// Methods.
		{name: "file of the key provider age, pbkdf2", provider: passphrase("a passphrase of 16 bytes"), body: in("team")},
		{name: "key provider whose name the file has, unused", body: derived, provider: settings(keyBlock(
			"pbkdf2 {\nname = \"k\"\npassphrase = \"a passphrase of 16 bytes\"\n}\npbkdf2 {\nname = \"other\"\npassphrase = "+
				"\"a passphrase of 16 bytes\"\n}") + methodBlock("aes_gcm {\nkeys = \"key_provider.pbkdf2.other\"\n}"))},
		{name: "pbkdf2, fewer iterations than the file has", body: derived, provider: settings(keyBlock(
			"pbkdf2 {\npassphrase = \"this is not the passphrase\"\nmax_iterations = 200000\n}"))},
		{name: "default of a sensitive output", provider: good, body: in("sealed", `only = ["hidden"]`, `defaults = { hidden = "x" }`)},
		{name: "fallback that is the method", provider: settings(wrong + fallback("method.aes_gcm.main", "method.aes_gcm.main")), body: read},
		{name: "fallback that enforced forbids", cli: true, body: read,
			provider: settings("enforced = true\n" + key + fallback("method.aes_gcm.main", "unencrypted"))},
		{name: "method that enforced forbids, beside blocks", provider: settings("enforced = true\n" + key),
			body: in("plain", `method = "unencrypted"`)},
		{name: "method that is none, beside blocks", cli: true, provider: settings(key), body: in("plain", `method = "none"`)},
		{name: "sops, identity of somebody else", provider: settings(methodBlock("sops {\nage_identities = [\""+otherIdentity+
			"\"]\nuse_gpg = false\n}") + defaultBlock(`method = "method.sops.main"`)), body: in("sops")},
		{name: "age, public SSH key", body: in("age"), provider: settings(methodBlock(
			"age {\nidentities = [\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN alice\"]\n}"))},
		{name: "method external, program of nobody", body: in("derived"), provider: settings(methodBlock(
			"external {\nencrypt_command = [\"/no/such/program\"]\ndecrypt_command = [\"/no/such/program\"]\n}"))},
		// What is in place of a secret.
		{name: "passphrase in base64", provider: passphrase("Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ=="), body: derived},
		{name: "passphrase with a byte order mark", provider: passphrase("\ufeffthis is not the passphrase"), body: derived},
		{name: "passphrase is an address", provider: passphrase("op://team/states/passphrase"), body: derived},
		{name: "passphrase is masked", provider: passphrase("********************"), body: derived},
		{name: "key_base64 is hexadecimal", body: read, provider: settings(keyBlock("static {\nkey_base64 = \"" + staticKey + "\"\n}"))},
		{name: "http, token with Bearer", body: private,
			provider: credentials("http", fmt.Sprintf("url = %q\nbearer_token = \"Bearer t\"", p.server.URL+"/"))},
		{name: "http, token in quotes", body: private,
			provider: credentials("http", fmt.Sprintf("url = %q\nbearer_token = \"'t'\"", p.server.URL+"/"))},
		// Credentials.
		{name: "s3, two without a name", env: "AWS_CA_BUNDLE=", body: s3,
			provider: settings("credentials {\ns3 {\nprofile = \"a\"\n}\ns3 {\nprofile = \"b\"\n}\n}")},
		{name: "s3, one name twice", env: "AWS_CA_BUNDLE=", body: s3,
			provider: settings("credentials {\ns3 {\nname = \"a\"\nprofile = \"a\"\n}\ns3 {\nname = \"a\"\nprofile = \"b\"\n}\n}")},
		{name: "git, block without credentials", provider: credentials("git", fmt.Sprintf("url = %q", p.git.Origin+"/")), body: git},
		{name: "http, block without credentials", provider: credentials("http", fmt.Sprintf("url = %q", p.server.URL+"/")), body: private},
		{name: "git, an address of scp in credentials", provider: credentials("git", "url = \"git@git.example.com:acme\"\npassword = \"p\""),
			body: git},
		// Text.
		{name: "text, comments alone", cli: true, provider: textProvider("# later"), body: read},
		{name: "text, curly quotes", provider: textProvider("state {\n  method = “method.aes_gcm.m”\n}"), body: read},
		{name: "text, blocks of the provider", provider: textProvider("key_provider {\n  static {\n    key = \"00\"\n  }\n}"), body: read},
		{name: "text, keys without key_provider", body: read,
			provider: textProvider(strings.Replace(staticText, "keys = key_provider.static.k", "keys = static.k", 1))},
		{name: "text, a long dash", provider: textProvider("state {\n  method = method.aes_gcm.m–1\n}"), body: read},
		{name: "text, names in quotes", provider: textProvider("\"state\" = \"method.aes_gcm.m\""), body: read},
		{name: "text, JSON without a name", provider: textProvider(`{"key_provider":{"static":{"key":"00"}}}`), body: read},
		{name: "text in the environment, line breaks written out", body: read,
			env: `TF_ENCRYPTION=key_provider "static" "k" {\n  key = "00"\n}\nstate {\n  method = method.aes_gcm.m\n}`},
		{name: "text in the environment, a passphrase", env: "TF_ENCRYPTION=correct-horse-battery-staple", body: read},
		{name: "text in the environment, a variable of the module", body: read, env: "TF_ENCRYPTION=" +
			`key_provider "pbkdf2" "k" { passphrase = var.passphrase }` + "\n" + `method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` +
			"\nstate { method = method.aes_gcm.m }"},
		// Files.
		{name: "JSON array as a state", provider: good, body: in("array")},
		{name: "configuration as a state", provider: good, body: in("hcl")},
		{name: "lock of a state", provider: good, body: in("lock")},
		{name: "text of Kubeform, nothing for it", provider: good, body: in("kubeform")},
		{name: "values of variables as a state", provider: good, body: in("tfvars")},
		{name: "zip with a state", provider: good, body: in("zip")},
		{name: "stack of Pulumi", provider: good, body: in("pulumi", `method = "unencrypted"`)},
		{name: "state in git-crypt", provider: good, body: in("git-crypt")},
		{name: "state twice", provider: good, body: in("twice")},
		{name: "state after a log", provider: good, body: in("log")},
		{name: "secret of Kubernetes", provider: good, body: in("secret")},
		{name: "state with a serial in quotes", provider: good, body: in("edited", `method = "unencrypted"`)},
		{name: "git, address of a page", provider: good, body: reads("s", fromGit(p.server.URL+"/acme/infra/tree/main", "main", "s"))},
		{name: "git, folder after two slashes", provider: good, body: reads("s", fromGit("https://git.example.com/a.git//network", "main", "s"))},
		{name: "git, ref in the address", provider: good, body: reads("s", fromGit("https://git.example.com/a.git?ref=main", "main", "s"))},
		{name: "git, colon after ssh", cli: true, provider: good, body: reads("s", fromGit("ssh://git@git.example.com:acme/a.git", "main", "s"))},
		{name: "git, placeholder", provider: good, body: reads("s", fromGit("https://git.example.com/<GROUP>/a.git", "main", "s"))},
		{name: "git, number of a pull request", provider: good, body: reads("s", fromGit(p.repo.FileURL(), "#12", "s"))},
		{name: "git, full name of a branch", provider: good, body: reads("s", fromGit(p.repo.FileURL(), "refs/heads/mian", "s"))},
		{name: "git, name of the repository in path", provider: good, body: reads("s", fromGit(p.repo.FileURL(), "main",
			"infra/network/terraform.tfstate"))},
		{name: "git, pattern", provider: good, body: reads("s", fromGit(p.repo.FileURL(), "main", "network/*.tfstate"))},
		{name: "http, page of a file", provider: good, body: reads("s", fromHTTP(p.server.URL+"/acme/infra/blob/main/s"))},
		{name: "http, placeholder", cli: true, provider: good, body: reads("s", fromHTTP("https://gitlab.com/api/v4/projects/<ID>/s"))},
		{name: "http, 400", provider: good, body: reads("s", fromHTTP(p.server.URL+"/bad"))},
		{name: "git, path is an address", provider: good, body: reads("s", fromGit(p.repo.FileURL(), "main", "https://git.example.com/s"))},
		{name: "kubernetes, no such context", body: reads("s", "kubernetes {\nsecret_suffix = \"network\"\n}"),
			provider: credentials("kubernetes", "config_path = \""+p.dir+"/kubeconfig\"\nconfig_context = \"prod\"")},
		{name: "kubernetes, a kubeconfig in the place of its path", env: "KUBECONFIG=apiVersion: v1\nkind: Config\n",
			body: reads("s", "kubernetes {\nsecret_suffix = \"network\"\n}")},
		{name: "kubernetes, authority in base64", body: reads("s", "kubernetes {\nsecret_suffix = \"network\"\n}"),
			provider: credentials("kubernetes", "host = \"https://127.0.0.1:1\"\ncluster_ca_certificate = "+
				"\"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t\"")},
		{name: "s3, key is a URL", env: "AWS_CA_BUNDLE=", body: strings.Replace(s3, "key = \"s\"", "key = \"s3://acme-states/s\"", 1)},
		{name: "s3, name of a role", env: "AWS_CA_BUNDLE=", body: s3, provider: credentials("s3", "assume_role {\nrole_arn = \"reader\"\n}")},
		{name: "oss, region with oss-", body: reads("s", "oss {\nbucket = \"acme-states\"\nregion = \"oss-eu-central-1\"\n}"),
			provider: credentials("oss", "access_key = \"a\"\nsecret_key = \"s\"")},
		{name: "pg, misspelt setting", body: reads("s", "pg {}"), provider: credentials("pg", `conn_str = "host=127.0.0.1 user=u pasword=p"`)},
		{name: "azurerm, connection string", body: reads("s", "azurerm {\nstorage_account_name = \"acmestates\"\ncontainer_name = \"states\"\n"+
			"key = \"s\"\n}"), provider: credentials("azurerm", `access_key = "AccountName=acmestates;AccountKey=AA=="`)},
		// Arguments.
		{name: "path is what is in the file", cli: true, provider: good,
			body: reads("s", "file {\npath = "+quote(`{"version":4,"outputs":{"p":{"value":"c4n4ry"}}}`)+"\n}")},
		{name: "openbao, address of the API", body: read, provider: settings(keyBlock(
			"openbao {\nkey_name = \"k\"\ntoken = \"t\"\naddress = \"https://127.0.0.1:1/v1\"\n}"))},
		{name: "openbao, path of the key", body: read, provider: settings(keyBlock(
			"openbao {\nkey_name = \"transit/keys/k\"\ntoken = \"t\"\naddress = \"https://127.0.0.1:1\"\n}"))},
		{name: "s3, content of the shared file", env: "AWS_CA_BUNDLE=", body: s3,
			provider: credentials("s3", "shared_credentials_files = [\"[default]\\naws_access_key_id = A\\n\"]")},
		{name: "path is null", cli: true, provider: good, body: reads("s", "file {\npath = null\n}")},
		{name: "url of credentials is null", provider: credentials("git", "url = null"), body: read},
		{name: "lineage is set", cli: true, provider: good, body: in("sealed", `lineage = "l-1"`)},
		{name: "serial is set", provider: good, body: in("sealed", `serial = 7`)},
		{name: "outputs are set", provider: good, body: in("sealed", `outputs = ["open"]`)},
		{name: "only, with outputs before it", provider: good, body: in("sealed", `only = ["outputs.open"]`)},
		{name: "only, an element of an output", provider: good, body: in("sealed", `only = ["list[0]"]`)},
		{name: "only, the address of a resource", provider: good, body: in("sealed", `only = ["aws_vpc.main"]`)},
		{name: "resource, type is set", provider: reader, body: readsResource("s", "aws_vpc.main", fromFile(p.dir+"/resources"),
			`type = "aws_vpc"`)},
		{name: "resource, data without data", provider: reader, body: resource("aws_caller_identity.me")},
		{name: "resource, index after a dot", provider: reader, body: resource("aws_instance.web.0")},
		{name: "resource, empty address", provider: reader, body: resource("")},
		// Derived keys.
		{name: "derived key, no salt", provider: exportable, body: derive("")},
		{name: "derived key, salt that is text", provider: exportable, body: derive(`salt = "the salt of the backup"`)},
		{name: "derived key, wrapped_key in base64", provider: exportable, body: derive(`wrapped_key = "eyJzYWx0IjoiQUFBQSJ9"`)},
		{name: "derived key, key that is set", provider: exportable, body: derive(`key_hex = "00"`)},
	}
}
