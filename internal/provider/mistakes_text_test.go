package provider

import "strings"

// mistakenText is OpenTofu's text, in the provider block and in TF_ENCRYPTION.
func (p *mistakenPlace) mistakenText() []mistake {
	good := textProvider(staticText)
	read := p.in("sealed")
	derived := p.in("derived")
	key := keyBlock("static {\nkey = \"" + staticKey + "\"\n}")
	keyArgument := "key = \"" + staticKey + "\""
	const (
		state = "state { method = method.aes_gcm.m }"
		rest  = "method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\n" + state // after a key provider
	)
	static := func(key string) string {
		return textProvider("key_provider \"static\" \"k\" { key = " + key + " }\n" + rest)
	}
	passphraseText := func(passphrase string) string {
		return "TF_ENCRYPTION=key_provider \"pbkdf2\" \"main\" {\n  passphrase = " + passphrase + "\n}\nmethod \"aes_gcm\" \"main\" {\n" +
			"  keys = key_provider.pbkdf2.main\n}\nstate {\n  method = method.aes_gcm.main\n}"
	}
	return []mistake{
		// Its syntax, and its names.
		{name: "encrypted, text without state", provider: textProvider(strings.Split(staticText, "state {")[0]), body: read},
		{name: "text, a misspelt kind of a key provider", body: read, provider: textProvider("key_provider \"pbkfd2\" \"k\" {\n" +
			"passphrase = \"a passphrase\"\n}\nmethod \"aes_gcm\" \"m\" {\nkeys = key_provider.pbkdf2.k\n}\nstate {\nmethod = method.aes_gcm.m\n}")},
		{name: "text, a misspelt kind of a method", body: read, provider: textProvider(strings.Replace(staticText, `"aes_gcm"`, `"aes-gcm"`, 1))},
		{name: "encrypted, text with a key alone", provider: textProvider(`key_provider "static" "k" { key = "` + staticKey + `" }`), body: read},
		{name: "name of a file as settings", provider: textProvider("/etc/keys.hcl"), body: read},
		{name: "text, syntax", cli: true, provider: textProvider("state {"), body: read},
		{name: "text, argument misspelt", provider: textProvider("key_provider \"static\" \"k\" {\n  kye = \"00\"\n}\n" + rest), body: read},
		{name: "text, block misspelt", provider: textProvider("sate {}"), body: read},
		{name: "text, method misspelt", body: read,
			provider: textProvider(strings.Replace(staticText, "method = method.aes_gcm.m ", "method = method.aes_gcm.n ", 1))},
		{name: "text, no such key provider", provider: textProvider(rest), body: read},
		{name: "text, no such kind", provider: textProvider("method \"aes\" \"m\" {}\nstate { method = method.aes.m }"), body: read},
		{name: "text, no such variable", provider: static(`var.nobody`), body: read},
		{name: "text, key without quotes", provider: static(`abc`), body: read},
		{name: "text, kind as method", provider: textProvider("state { method = \"sops\" }"), body: read},
		{name: "text, two states", provider: textProvider("state {}\nstate {}"), body: read},
		{name: "text, a file without encryption", provider: textProvider("terraform {\n  required_version = \"1\"\n}"), body: read},
		{name: "text, empty", provider: textProvider(" \n"), body: read},
		{name: "text, base64", provider: textProvider("a2V5X3Byb3ZpZGVyIHt9"), body: read},
		{name: "text, JSON in single quotes", provider: textProvider("{'state': {}}"), body: read},
		{name: "text, a colon", provider: textProvider("state {\n  method: x\n}"), body: read},
		{name: "text, a provider block", provider: textProvider("provider \"statecrypt\" {\n}"), body: read},
		{name: "text, a variable block", provider: textProvider("variable \"x\" {\n}"), body: read},
		{name: "text, a backend block", provider: textProvider("backend \"http\" {\n}"), body: read},
		{name: "method of the text in quotes", provider: textProvider(strings.Replace(staticText, "method = method.aes_gcm.m ",
			`method = "method.aes_gcm.x" `, 1)), body: read},
		{name: "text, state without a method", provider: textProvider("state {}"), body: read},
		{name: "text, one label", provider: textProvider(`key_provider "static" { ` + keyArgument + " }"), body: read},
		{name: "text, key provider of no kind", provider: textProvider(`key_provider "pbkdf" "k" { passphrase = "x" }` + "\n" +
			`method "aes_gcm" "m" { keys = key_provider.pbkdf.k }` + "\n" + state), body: read},
		{name: "text, short passphrase", provider: textProvider(`key_provider "pbkdf2" "k" { passphrase = "short" }` + "\n" +
			`method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` + "\n" + state), body: read},
		{name: "text, a local", provider: static(`local.key`), body: read},
		{name: "text, a misspelt function", body: read, provider: static(`trimspce("x")`)},
		{name: "text, a function of nobody", body: read, provider: static(`env("KEY")`)},
		{name: "text, a file of nobody", body: read, provider: static(`file("/no/such/key.txt")`)},
		{name: "text, base64 that is none", body: read, provider: static(`base64decode("%%")`)},
		{name: "text, plus", body: read, provider: static(`"a" + "b"`)},
		{name: "text, no closing quotation mark", provider: textProvider("key_provider \"static\" \"k\" {\n  key = \"x\n}\n" +
			"method \"aes_gcm\" \"m\" {\n  keys = key_provider.static.k\n}\nstate {\n  method = method.aes_gcm.m\n}"), body: read},
		{name: "text, a circle", provider: textProvider(`key_provider "pbkdf2" "a" { chain = key_provider.pbkdf2.b }` + "\n" +
			`key_provider "pbkdf2" "b" { chain = key_provider.pbkdf2.a }` + "\n" +
			`method "aes_gcm" "m" { keys = key_provider.pbkdf2.a }` + "\n" + state), body: read},
		{name: "text, comments alone", cli: true, provider: textProvider("# later"), body: read},
		{name: "text, curly quotes", provider: textProvider("state {\n  method = “method.aes_gcm.m”\n}"), body: read},
		{name: "text, blocks of the provider", provider: textProvider("key_provider {\n  static {\n    key = \"00\"\n  }\n}"), body: read},
		{name: "text, keys without key_provider", body: read,
			provider: textProvider(strings.Replace(staticText, "keys = key_provider.static.k", "keys = static.k", 1))},
		{name: "text, a long dash", provider: textProvider("state {\n  method = method.aes_gcm.m–1\n}"), body: read},
		{name: "text, names in quotes", provider: textProvider("\"state\" = \"method.aes_gcm.m\""), body: read},
		{name: "text, JSON without a name", provider: textProvider(`{"key_provider":{"static":{"key":"00"}}}`), body: read},
		{name: "text, fallback outside of state", provider: textProvider(staticText + "\nfallback {\n  method = " +
			"method.unencrypted.m\n}"), body: read},
		{name: "text, vault", body: read, provider: textProvider("key_provider \"vault\" \"k\" {\n  key_name = \"k\"\n}\n" +
			"method \"aes_gcm\" \"m\" {\n  keys = key_provider.vault.k\n}\nstate {\n  method = method.aes_gcm.m\n}")},
		{name: "text, quotation mark in a passphrase", body: read, env: passphraseText(`"correct"horse"`)},
		{name: "text, dollar and brace in a passphrase", body: read, env: passphraseText(`"correct${horse"`)},
		{name: "text, percent and brace in a passphrase", body: read, env: passphraseText(`"correct%{horse}"`)},
		{name: "text, expression of a pipeline", body: read, env: passphraseText(`"${{ secrets.STATE }}"`)},
		{name: "text, path without quotation marks", body: read, env: passphraseText(`file(~/passphrase)`)},
		{name: "text, no closing parenthesis", body: read, env: passphraseText(`trimspace(file("p.txt")`)},
		{name: "text, no value", body: read, env: passphraseText("")},
		{name: "text, marks of Markdown", body: read, env: "TF_ENCRYPTION=```hcl\n" + staticText + "\n```"},
		{name: "text, here-string of PowerShell", body: read, env: "TF_ENCRYPTION=@'\n" + staticText + "\n'@"},
		{name: "text, comment that does not end", body: read, env: "TF_ENCRYPTION=/* keys\n" + staticText},
		{name: "text, quotation marks lost", body: read, env: "TF_ENCRYPTION=key_provider pbkdf2 k { passphrase = correct }"},
		{name: "text, shell in single quotes", body: read, env: "TF_ENCRYPTION=$(cat keys.hcl)"},
		{name: "text, JSON without kinds", body: read, env: `TF_ENCRYPTION={"key_provider":{"type":"pbkdf2","name":"k"}}`},
		{name: "text, method twice", body: read, env: "TF_ENCRYPTION=state {\n  method = method.aes_gcm.a\n  method = method.aes_gcm.b\n}"},
		{name: "text, argument of another program", body: read, env: "TF_ENCRYPTION=key_provider \"pbkdf2\" \"k\" {\n" +
			"  passphrase_file = \"p\"\n}"},
		{name: "text, function that fails", body: read, env: passphraseText(`jsondecode("correct horse").key`)},
		{name: "text, method without its first word", body: read,
			provider: textProvider(strings.Replace(staticText, "method = method.aes_gcm.m", "method = aes_gcm.m", 1))},
		// Beside other settings.
		{name: "text and blocks", provider: settings("encryption = \"\"\n" + key), body: read},
		{name: "encryption_variables beside blocks", provider: settings("encryption_variables = { p = \"x\" }\n" + staticBlocks), body: read},
		{name: "text, variable with another name", body: read,
			provider: settings("encryption_variables = { passphras = \"correct horse battery\" }\nencryption = <<-EOT\n" +
				`key_provider "pbkdf2" "k" { passphrase = var.passphrase }` + "\n" +
				`method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` + "\n" + state + "\nEOT")},
		{name: "values for no text", body: read, provider: settings(`encryption_variables = { passphrase = "x" }`)},
		// In the environment.
		{name: "encrypted, TF_ENCRYPTION without a method", env: `TF_ENCRYPTION=key_provider "static" "k" { key = "` + staticKey + `" }`,
			body: read},
		{name: "environment, switched off", cli: true,
			env: "TF_ENCRYPTION=key_provider \"pbkdf2\" \"k\" { passphrase = \"a passphrase of 16 bytes\" }\n" +
				"method \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\nstate { method = method.aes_gcm.m }",
			provider: settings("use_environment = false"), body: derived},
		{name: "TF_ENCRYPTION beside blocks", cli: true, env: "TF_ENCRYPTION=" +
			"key_provider \"pbkdf2\" \"main\" { passphrase = \"OpenTofu's own passphrase\" }\n" +
			"method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }\nstate { method = method.aes_gcm.main }", provider: settings(
			keyBlock("static {\nkey = \"" + strings.Repeat("ab", 32) + "\"\n}")), body: read},
		{name: "text in the environment, on one line", env: "TF_ENCRYPTION=" + `key_provider "static" "k" { ` + keyArgument + " } " + state, body: read},
		{name: "text in the environment, a JSON array", env: "TF_ENCRYPTION=[]", body: read},
		{name: "text in the environment, syntax", env: "TF_ENCRYPTION=state {", body: read},
		{name: "name of a file in the environment", env: "TF_ENCRYPTION=@keys.hcl", body: read},
		{name: "text in the environment, in quotes", env: "TF_ENCRYPTION='" + state + "'", body: read},
		{name: "text in the environment, of another project", provider: good, body: read,
			env: "TF_ENCRYPTION=key_provider \"static\" \"k\" { key = \"" + strings.Repeat("ab", 32) + "\" }"},
		{name: "text in the environment, the shell's variable", body: read, env: `TF_ENCRYPTION=key_provider "pbkdf2" "k" { ` +
			`passphrase = "${PASSPHRASE}" }` + "\n" + `method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` + "\n" + state},
		{name: "text in the environment, for states only by name", env: "TF_ENCRYPTION=" + strings.Replace(staticText, "state {",
			"remote_state_data_sources {\nremote_state_data_source \"network\" {", 1) + "}", body: read},
		{name: "text in the environment, JSON cut off", env: `TF_ENCRYPTION={"state":{"method":`, body: read},
		{name: "text in the environment, line breaks written out", body: read,
			env: `TF_ENCRYPTION=key_provider "static" "k" {\n  key = "00"\n}\nstate {\n  method = method.aes_gcm.m\n}`},
		{name: "text in the environment, a passphrase", env: "TF_ENCRYPTION=correct-horse-battery-staple", body: read},
		{name: "text in the environment, a variable of the module", body: read, env: "TF_ENCRYPTION=" +
			`key_provider "pbkdf2" "k" { passphrase = var.passphrase }` + "\n" + `method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }` +
			"\nstate { method = method.aes_gcm.m }"},
		{name: "text in the environment, JSON with backslashes", body: read, env: `TF_ENCRYPTION={\"key_provider\":{}}`},
		{name: "text in the environment, masked", body: read, env: "TF_ENCRYPTION=[MASKED]"},
		{name: "text in the environment, path without an ending", body: read, env: "TF_ENCRYPTION=/builds/acme/x.tmp/TF_ENCRYPTION"},
		{name: "text in the environment, with its name", body: read, env: "TF_ENCRYPTION=export TF_ENCRYPTION=" + staticText},
		{name: "text in the environment, marks of a here document", body: read, env: "TF_ENCRYPTION=<<EOT\n" + staticText + "\nEOT"},
		{name: "encrypted, environment with only unencrypted", body: read,
			env: "TF_ENCRYPTION=method \"unencrypted\" \"m\" {}\nstate {\n  method = method.unencrypted.m\n}"},
	}
}
