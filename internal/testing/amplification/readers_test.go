package amplification

import (
	"fmt"
	"strings"
	"testing"
)

// readers are all ways in. What packages_test.go lists points here.
func readers(tb testing.TB, b *bench) []reader {
	tb.Helper()
	s := newSopsFiles(tb)
	method := func(kind, attributes string) string {
		return fmt.Sprintf("method %q \"m\" {\n%s\n}\nremote_state_data_sources {\n  default {\n    method = method.%s.m\n  }\n}\n",
			kind, attributes, kind)
	}
	sops := func(more string) string { return method("sops", "  allow_unencrypted_values = true\n"+more) }
	identity := fmt.Sprintf("  age_identities = [%q]\n  use_gpg = false", s.identity)
	other := newSopsFiles(tb).identity
	keys := fmt.Sprintf("  age_identities = [%q]\n  use_gpg = false\n  pgp_private_keys = [%q]\n  pgp_passphrase = \"p\"",
		other, lockedKey(tb))
	program := b.program(tb)
	running := fmt.Sprintf("  age_identity_command = [%q]\n  gpg_command = %q\n  use_gpg = true", program, program)
	crossplane := fmt.Sprintf(crossplaneObject, "null")
	declared := fmt.Sprintf(crossplaneObject, `{"b.c":"spec.forProvider.b[*].c"}`)
	return []reader{
		{name: "outputs", times: 160, grammars: states()},
		{name: "outputs, sparse", times: 320, grammars: sparse()},
		{name: "resource", times: 180, resource: true, grammars: resources()},
		{name: "Crossplane", times: 160, object: crossplane, resource: true, grammars: crossplanes()},
		{name: "Crossplane, declared", times: 160, object: declared, resource: true, grammars: crossplanes()[:1]},
		{name: "Crossplane, of the cluster", times: 160, resource: true, grammars: []Grammar{ofTheCluster()},
			object: strings.ReplaceAll(crossplane, `"namespace":"x",`, "")},
		{name: "Kubeform", times: 180, object: kubeformObject, resource: true, grammars: kubeforms()},
		{name: "manifest in YAML", fails: true, times: 160, object: kubeformObject, resource: true,
			grammars: append(yamls(""), documents())},
		{name: "Kubeform module", times: 40, object: moduleObject, seal: moduleManifest, grammars: states()[:1]},
		{name: "sops, JSON", fails: true, times: 80, methods: sops(identity), grammars: s.own()},
		{name: "sops, states", times: 180, methods: sops(identity), seal: s.seal,
			grammars: []Grammar{states()[1], objects(), dynamic(), manyOutputs(), deepMarks()}},
		{name: "sops, YAML", fails: true, times: 80, methods: sops(identity), grammars: yamls(s.yamlHead())},
		{name: "sops, programs", fails: true, times: 160, methods: sops(running),
			grammars: s.own()[:1], programs: 20},
		{name: "sops, keys", fails: true, times: 160, methods: sops(keys),
			grammars: []Grammar{s.recipients(), encryptedKeys()}},
		{name: "envelope", fails: true, times: 40, methods: method("aes_gcm", "  keys = key_provider.static.k") +
			"key_provider \"static\" \"k\" {\n  key = \"000102030405060708090a0b0c0d0e0f\"\n}\n", grammars: envelopes()},
		{name: "age", fails: true, times: 20,
			methods: method("age", fmt.Sprintf("  identities = [%q]", s.identity)), grammars: ageFiles()},
		{name: "age, keys", fails: true, times: 40,
			methods: method("aes_gcm", "  keys = key_provider.age.k") + fmt.Sprintf("key_provider \"age\" \"k\" {\n  identities = [%q]\n}\n",
				s.identity),
			grammars: ageFiles(), seal: ageKey},
		{name: "terraform_backend_git", fails: true, times: 20,
			methods: method("terraform_backend_git", "  passphrase = \"p\""), grammars: states()[:1],
			seal: func(file string) string { return "\xff" + file }},
		{name: "kubeform", fails: true, times: 20, methods: method("kubeform", "  key = \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\""),
			grammars: []Grammar{{"base91", unlimited("length"), func(n Counts) string { return word(n["length"]) }}}},
		{name: "gzip", fails: true, times: 300, encoding: "gzip", grammars: packed()},
	}
}
