package provider

import "strings"

// latest are those in which two things are mixed up that look alike.
func (p *mistakenPlace) latest() []mistake {
	from := func(kind, arguments string) string { return reads("s", kind+" {\n"+arguments+"\n}") }
	credentials := func(kind, arguments string) string {
		return settings("credentials {\n" + kind + " {\n" + arguments + "\n}\n}")
	}
	in := func(name string, more ...string) string {
		return reads("s", append([]string{fromFile(p.dir + "/" + name)}, more...)...)
	}
	good := textProvider(staticText)
	read := fromSealed(p)
	const identity = "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSV9CL0J"
	kubeform := settings(methodBlock("kubeform {\nkey = \"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"\n}"))
	age := settings(methodBlock("age {\nidentities = [\"" + identity + "\"]\n}"))
	keys := settings(keyBlock("age {\nidentities = [\"" + identity + "\"]\n}"))
	object := func(kind, version, name string) string {
		return "object {\napi_version = \"modules.kubeform.com/" + version + "\"\nkind = \"" + kind + "\"\nname = \"" + name + "\"\n}"
	}
	return []mistake{
		// What to decrypt with.
		{name: "age file, key provider", body: in("age"), provider: keys},
		{name: "sops file, key provider of age", body: in("sops"), provider: keys},
		{name: "encrypted, method of age", body: read, provider: age},
		{name: "encrypted, key provider age beside age method", body: in("team"), provider: age},
		{name: "encrypted, terraform_backend_git", body: read,
			provider: settings(methodBlock("terraform_backend_git {\npassphrase = \"correct horse battery\"\n}"))},
		{name: "encrypted, environment with only unencrypted", body: read,
			env: "TF_ENCRYPTION=method \"unencrypted\" \"m\" {}\nstate {\n  method = method.unencrypted.m\n}"},
		{name: "encrypted, kubeform", body: read, provider: kubeform},
		{name: "kubeform, hexadecimal key", body: in("kubeform"), provider: settings(methodBlock("kubeform {\nkey = \"" + staticKey + "\"\n}"))},
		{name: "kubeform, key of 32 characters", body: in("kubeform"),
			provider: settings(methodBlock("kubeform {\nkey = \"01234567890123456789012345678901\"\n}"))},
		{name: "manifest without object", body: in("manifest"), provider: kubeform},
		{name: "manifest in YAML without object", body: in("yaml"), provider: kubeform},
		{name: "manifest without object, aes_gcm", body: in("yaml"), provider: good},
		{name: "manifest, kind in lowercase", body: in("yaml", object("vpc", "v1alpha1", "network")),
			provider: kubeform},
		{name: "manifest, another name", body: in("yaml", object("VPC", "v1alpha1", "net")),
			provider: kubeform},
		{name: "manifest, another version", body: in("yaml", object("VPC", "v1", "network")),
			provider: kubeform},
		{name: "manifest without a status", body: in("bare", object("VPC", "v1alpha1", "network")),
			provider: kubeform},
		{name: "age, public key as an identity", body: in("age"), provider: settings(methodBlock("age {\nidentities = [\"age1qyqsz\"]\n}"))},
		{name: "passphrase of several lines", body: in("derived"),
			provider: settings(keyBlock("pbkdf2 {\npassphrase = \"correct horse\\nbattery staple\\n\"\n}"))},
		{name: "openbao, line break in the token of the environment", body: read, env: "VAULT_TOKEN=hvs.c4n4ry\n",
			provider: settings(keyBlock("openbao {\nkey_name = \"k\"\naddress = \"" + p.server.URL + "\"\n}"))},
		// Sources.
		{name: "git, repository as a module names it",
			body: from("git", "path = \"s\"\nrepository = \"git::https://git.example.com/acme/infra.git//network?ref=v1\""), provider: good},
		{name: "git, path with a repository before it",
			body:     from("git", "path = \"https://git.example.com/acme/infra.git//s\"\nrepository = \"https://127.0.0.1:1/acme/infra.git\""),
			provider: good},
		{name: "git, folder of a checkout", body: from("git", "path = \"s\"\nrepository = \".\""), provider: good},
		{name: "consul, path of the API", body: from("consul", `path = "v1/kv/network/terraform.tfstate"`),
			provider: credentials("consul", "address = \""+p.server.URL+"\"")},
		{name: "consul, slash before the path", body: from("consul", `path = "/network/terraform.tfstate"`),
			provider: credentials("consul", "address = \""+p.server.URL+"\"")},
		{name: "pg, port of the environment", body: from("pg", `schema_name = "net"`), env: "PGPORT=tcp://10.0.0.1:5432", provider: good},
		{name: "pg, mode of the environment", body: from("pg", `schema_name = "net"`), env: "PGSSLMODE=true", provider: good},
		{name: "http, scheme without a colon", body: from("http", `address = "https//git.example.com/s"`), provider: good},
		{name: "http, scheme twice", body: from("http", `address = "https://https://git.example.com/s"`), provider: good},
		{name: "http, scheme with one slash", body: from("http", `address = "https:/git.example.com/s"`), provider: good},
		{name: "azurerm, token that has expired",
			body:     from("azurerm", "storage_account_name = \"acmestates\"\ncontainer_name = \"states\"\nkey = \"s\""),
			provider: credentials("azurerm", "sas_token = \"sv=2020-01-01&se=2021-01-01T00:00:00Z&sig=c4n4ry\"")},
		{name: "kubernetes, kubeconfig that is not there", body: from("kubernetes", "namespace = \"states\"\nsecret_suffix = \"net\""),
			env: "KUBECONFIG=/no/such/config", provider: good},
		{name: "remote, API instead of the host",
			body:     from("remote", "hostname = \"https://app.terraform.io/api/v2\"\norganization = \"acme\"\nworkspaces {\nname = \"n\"\n}"),
			provider: good},
		{name: "remote, workspace of the data source",
			body: reads("s", "remote {\norganization = \"acme\"\nworkspaces {\nname = \"n\"\n}\n}", `workspace = "prod"`), provider: good},
		{name: "http, an address of git", body: from("http", `address = "ssh://git@git.example.com/acme/infra.git"`), provider: good},
		// Keys and methods.
		{name: "key_base64 is hexadecimal with 0x", body: read, provider: settings(keyBlock(`static {
key_base64 = "0x` + staticKey + `"
}`))},
		{name: "text, method without its first word", body: read,
			provider: textProvider(strings.Replace(staticText, "method = method.aes_gcm.m", "method = aes_gcm.m", 1))},
		// Outputs.
		{name: "defaults in outputs", body: in("plain", `method = "unencrypted"`, `only = ["zone"]`,
			"defaults = {\noutputs = {\nzone = \"z\"\n}\n}")},
		{name: "only, address", body: in("plain", `method = "unencrypted"`, `only = ["outputs.open"]`)},
		{name: "only, with a comma", body: in("plain", `method = "unencrypted"`, `only = ["open, old"]`)},
		{name: "sensitive defaults alone", body: in("plain", `method = "unencrypted"`, "sensitive_defaults = {\ntoken = \"t\"\n}")},
		{name: "serial of the future", body: in("plain", `method = "unencrypted"`, `minimum_serial = 1200`)},
		{name: "derived key, bits", provider: textProvider(derivingText), body: derives("k", "static.root", "info = \"backup\"\nlength = 256")},
		{name: "derived key, address without its kind", provider: textProvider(derivingText),
			body: strings.Replace(derives("k", "static.root", "info = \"backup\""), "key_provider.static", "static", 1)},
		{name: "derived key, a file as wrapped_key", provider: textProvider(derivingText),
			body: derives("k", "static.root", "info = \"backup\"\n"+`wrapped_key = "{\"meta\":{},\"encrypted_data\":\"\"}"`)},
		{name: "derived key, method", provider: textProvider(staticText),
			body: strings.Replace(derives("k", "static.root", "info = \"backup\""), "key_provider.static.root", "method.aes_gcm.m", 1)},
	}
}
