package provider

import (
	"fmt"
	"strings"
)

// mistakenSettings are blocks of the provider, and arguments that all sources have.
func (p *mistakenPlace) mistakenSettings() []mistake {
	good := textProvider(staticText)
	read := p.in("sealed")
	key := keyBlock("static {\nkey = \"" + staticKey + "\"\n}")
	keyArgument := "key = \"" + staticKey + "\""
	keys := keyBlock("static {\nname = \"new\"\nkey = \"" + staticKey + "\"\n}\nstatic {\nname = \"old\"\nkey = \"" + staticKey + "\"\n}")
	wrong := keyBlock("static {\nkey = \"" + strings.Repeat("ab", 32) + "\"\n}")
	fallback := func(method, other string) string {
		return defaultBlock(fmt.Sprintf("method = %q\nfallback {\nmethod = %q\n}", method, other))
	}
	resource := func(file, address string) string {
		return readsResource("s", address, fromFile(p.dir+"/"+file), `method = "unencrypted"`)
	}
	reader := settings("allow_resource_reads = true")
	const state = "state { method = method.aes_gcm.m }"
	return []mistake{
		// Blocks of the provider.
		{name: "argument, misspelt", cli: true, provider: settings(keyBlock("pbkdf2 {\npassphrse = \"x\"\n}")), body: read},
		{name: "block, misspelt", cli: true, provider: settings("metod {}"), body: read},
		{name: "kind of a key provider, misspelt", provider: settings(keyBlock("pbkdf {}")), body: read},
		{name: "default.method, misspelt", provider: settings(key + defaultBlock(`method = "method.aes_gcm.mian"`)), body: read},
		{name: "fallback of default, misspelt", provider: settings(key + defaultBlock("fallback {\nmethod = \"method.aes_gcm.old\"\n}")),
			body: read},
		{name: "default.method, no address", provider: settings(key + defaultBlock(`method = "aes_gcm.main"`)), body: read},
		{name: "default.method, a kind with settings", provider: settings(key + defaultBlock(`method = "aes_gcm"`)), body: read},
		{name: "default without method, of two", provider: settings(keys + "default {}"), body: read},
		{name: "two defaults", cli: true, provider: settings(key + "default {}\ndefault {}"), body: read},
		{name: "keys, misspelt", provider: settings(key + methodBlock("aes_gcm {\nkeys = \"key_provider.static.mian\"\n}")), body: read},
		{name: "keys, no address", provider: settings(key + methodBlock("aes_gcm {\nkeys = \"static.main\"\n}")), body: read},
		{name: "keys, of two", provider: settings(keys + methodBlock("aes_gcm {}")), body: read},
		{name: "keys, of none", provider: settings(methodBlock("aes_gcm {}")), body: read},
		{name: "key_provider in place of keys", provider: settings(key +
			methodBlock("aes_gcm {\nkey_provider = \"key_provider.static.main\"\n}")),
			body: read},
		{name: "chain, misspelt", provider: settings(keyBlock("pbkdf2 {\nchain = \"key_provider.static.mian\"\n}")), body: read},
		{name: "two entries without a name", provider: settings(key + key), body: read},
		{name: "name with a space", provider: settings(keyBlock("static {\nname = \"a b\"\nkey = \"00\"\n}")), body: read},
		{name: "then that leads nowhere", provider: settings(methodBlock("age {\npassphrase = \"p\"\nthen = \"method.aes_gcm.main\"\n}")),
			body: p.in("age")},
		{name: "empty method", provider: settings(key + "method {}"), body: read},
		{name: "empty key_provider", provider: settings("key_provider {}"), body: read},
		{name: "empty credentials", provider: settings("credentials {}"), body: read},
		{name: "empty default", provider: settings("default {}"), body: read},
		{name: "fallback without method", provider: good, body: p.in("sealed", "fallback {\nmethod = \"unencrypted\"\n}")},
		{name: "fallback, misspelt", provider: settings(key), body: p.in("sealed", `method = "method.aes_gcm.main"`,
			"fallback {\nmethod = \"method.aes_gcm.od\"\n}")},
		{name: "key_provider with labels", cli: true, provider: settings("key_provider \"static\" \"k\" {\n" + keyArgument + "\n}"), body: read},
		{name: "encryption as a block", provider: settings("encryption {\n" + state + "\n}"), body: read},
		{name: "state as a block", provider: settings("state {\nmethod = \"method.aes_gcm.m\"\n}"), body: read},
		{name: "fallback that is the method", provider: settings(wrong + fallback("method.aes_gcm.main", "method.aes_gcm.main")), body: read},
		{name: "fallback that enforced forbids", cli: true, body: read,
			provider: settings("enforced = true\n" + key + fallback("method.aes_gcm.main", "unencrypted"))},
		// The data source.
		{name: "no source", provider: good, body: reads("s")},
		{name: "two sources", cli: true, provider: good, body: reads("s", fromFile("a"), fromHTTP("https://state.example.com/"))},
		{name: "two mistakes in a source", cli: true, provider: good, body: reads("s", "http {\naddress = \"https://state.example.com/\"\n"+
			"retry_max = -1\nretry_wait_min = -1\n}")},
		{name: "two blocks of a source", provider: good, body: reads("s", fromFile("a"), fromFile("b"))},
		{name: "method, no address", provider: good, body: p.in("sealed", `method = "aes_gcm.m"`)},
		{name: "method, address of a key provider", provider: good, body: p.in("sealed", `method = "key_provider.static.main"`)},
		{name: "method, space at its end", provider: good, body: p.in("sealed", `method = "unencrypted "`)},
		{name: "method, line break at its end", provider: good, body: p.in("sealed", `method = "method.aes_gcm.m\n"`)},
		{name: "method, empty", provider: good, body: p.in("sealed", `method = ""`)},
		{name: "method, misspelt", cli: true, provider: settings(key), body: p.in("sealed", `method = "method.aes_gcm.mian"`)},
		{name: "name and method", provider: good, body: p.in("sealed", `name = "x"`, `method = "unencrypted"`)},
		{name: "name of nobody", provider: good, body: p.in("sealed", `name = "x"`)},
		{name: "name, misspelt", provider: textProvider(staticText + "remote_state_data_sources {\nremote_state_data_source \"network\" {\n" +
			"method = method.aes_gcm.m\n}\n}"), body: p.in("sealed", `name = "netwrk"`)},
		{name: "name beside blocks", provider: settings(key), body: p.in("sealed", `name = "x"`)},
		{name: "on_missing, misspelt", provider: good, body: p.in("sealed", `on_missing = "default"`)},
		{name: "expected_lineage, empty", provider: good, body: p.in("sealed", `expected_lineage = ""`)},
		{name: "expected_lineage, another", provider: good, body: p.in("sealed", `expected_lineage = "l-2"`)},
		{name: "minimum_serial, later", provider: good, body: p.in("sealed", "minimum_serial = 8")},
		{name: "minimum_serial, a fraction", provider: good, body: p.in("sealed", "minimum_serial = 6.5")},
		{name: "max_size, zero", provider: good, body: p.in("sealed", "max_size = 0")},
		{name: "max_size, too small", provider: good, body: p.in("sealed", "max_size = 100")},
		{name: "workspace, empty", provider: good, body: p.in("sealed", `workspace = ""`)},
		{name: "workspace, climbs", provider: good, body: p.in("sealed", `workspace = "../x"`)},
		{name: "workspace, another", provider: good, body: reads("s", fmt.Sprintf(
			"file {\npath = \"x\"\nworkspace_dir = %q\n}\nworkspace = \"prod\"", p.dir))},
		{name: "workspace, of http", provider: good, body: reads("s", fromHTTP("https://state.example.com/"), `workspace = "x"`)},
		{name: "backend, as of terraform_remote_state", body: reads("s", `backend = "s3"`, "config = {\nbucket = \"acme\"\n}")},
		{name: "argument of another source", body: from("file", `key = "network.tfstate"`), provider: good},
		{name: "method that enforced forbids, beside blocks", provider: settings("enforced = true\n" + key),
			body: p.in("plain", `method = "unencrypted"`)},
		{name: "method that is none, beside blocks", cli: true, provider: settings(key), body: p.in("plain", `method = "none"`)},
		{name: "lineage is set", cli: true, provider: good, body: p.in("sealed", `lineage = "l-1"`)},
		{name: "serial is set", provider: good, body: p.in("sealed", `serial = 7`)},
		{name: "lineage in braces", provider: good, body: p.in("sealed", `expected_lineage = "{L-1}"`)},
		{name: "serial of the future", body: p.in("plain", `method = "unencrypted"`, `minimum_serial = 1200`)},
		// Outputs.
		{name: "sensitive output in only", body: p.in("plain", `method = "unencrypted"`, `only = ["hidden"]`)},
		{name: "only, misspelt", provider: good, body: p.in("sealed", `only = ["opn"]`)},
		{name: "only, nothing like it", provider: good, body: p.in("sealed", `only = ["something_else"]`)},
		{name: "defaults, a list", provider: good, body: p.in("sealed", `defaults = ["x"]`)},
		{name: "defaults, twice", provider: good, body: p.in("sealed", `defaults = { a = 1 }`, `sensitive_defaults = { a = 1 }`)},
		{name: "only, a text", body: p.in("sealed", `only = "open"`), provider: good},
		{name: "only, a null", body: p.in("sealed", `only = [null]`), provider: good},
		{name: "store_sensitive, a word", body: p.in("sealed", `store_sensitive = "yes"`), provider: good},
		{name: "default of a sensitive output", provider: good, body: p.in("sealed", `only = ["hidden"]`, `defaults = { hidden = "x" }`)},
		{name: "outputs are set", provider: good, body: p.in("sealed", `outputs = ["open"]`)},
		{name: "only, with outputs before it", provider: good, body: p.in("sealed", `only = ["outputs.open"]`)},
		{name: "only, an element of an output", provider: good, body: p.in("sealed", `only = ["list[0]"]`)},
		{name: "only, the address of a resource", provider: good, body: p.in("sealed", `only = ["aws_vpc.main"]`)},
		{name: "defaults in outputs", body: p.in("plain", `method = "unencrypted"`, `only = ["zone"]`,
			"defaults = {\noutputs = {\nzone = \"z\"\n}\n}")},
		{name: "only, address", body: p.in("plain", `method = "unencrypted"`, `only = ["outputs.open"]`)},
		{name: "only, with a comma", body: p.in("plain", `method = "unencrypted"`, `only = ["open, old"]`)},
		{name: "sensitive defaults alone", body: p.in("plain", `method = "unencrypted"`, "sensitive_defaults = {\ntoken = \"t\"\n}")},
		// Resources.
		{name: "resource reads are off", provider: good, body: "data \"statecrypt_resource\" \"s\" {\naddress = \"a.b\"\n" +
			fromFile(p.dir+"/sealed") + "\n}\n"},
		{name: "resource without address", cli: true, provider: good, body: "data \"statecrypt_resource\" \"s\" {\n" + fromFile("x") + "\n}\n"},
		{name: "resource, no such", provider: reader, body: resource("plain", "aws_vpc.main")},
		{name: "resource, no address", provider: reader, body: resource("plain", "aws_vpc")},
		{name: "resource, with data in place of an address", provider: reader, body: resource("plain", "${aws_vpc.main.id}")},
		{name: "resource, type is set", provider: reader, body: readsResource("s", "aws_vpc.main", fromFile(p.dir+"/resources"),
			`type = "aws_vpc"`)},
		{name: "resource, data without data", provider: reader, body: resource("resources", "aws_caller_identity.me")},
		{name: "resource, empty address", provider: reader, body: resource("resources", "")},
		{name: "resource, address with resource", provider: reader, body: resource("resources", "resource.aws_vpc.main")},
		{name: "resource, address of an attribute", body: resource("resources", "aws_vpc.main.id"), provider: reader},
	}
}
