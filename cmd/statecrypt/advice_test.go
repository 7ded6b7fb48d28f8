package main

import (
	"strings"
	"testing"
)

// The command advises the text that its users write.
func TestAdvice(t *testing.T) {
	t.Parallel()
	const (
		sops = `{"version":4,"outputs":{},"sops":{"mac":"ENC[AES256_GCM,data:x]","version":"3.9.0","lastmodified":"2026-01-01T00:00:00Z"}}`
		key  = `key_provider "static" "a" { key = "` + canaryKey + `01" }` + "\n"
		none = "state { method = method.unencrypted.p }\nplan { method = method.unencrypted.p }\n" + plainText
	)
	sealed, sealedPlan := must(t, onlyOld, plain, "encrypt"), must(t, onlyOld, emptyPlan(t), "encrypt", "-plan")
	for name, c := range map[string]struct {
		settings, file string
		plan           bool
		want           string // how the error ends
	}{
		"only plaintext": {settings: none, file: sealed,
			want: `; add its key provider, such as key_provider "pbkdf2" "main" { passphrase = var.passphrase }, a method with its key, such as ` +
				`method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }, and let state have method = method.aes_gcm.main, or a fallback with it`},
		"a key": {settings: key + none, file: sealed,
			want: `; add method "aes_gcm" "main" { keys = key_provider.static.a } and let state have method = method.aes_gcm.main, or a fallback with it`},
		"a method": {settings: oldText + none, file: sealed, want: "; let state have method = method.aes_gcm.old, or a fallback with it"},
		"two methods": {settings: oldText + newText + none, file: sealed,
			want: "; let state have method = method.aes_gcm.new or method.aes_gcm.old, or a fallback with it"},
		"a plan": {settings: oldText + none, file: sealedPlan, plan: true,
			want: "; let plan have method = method.aes_gcm.old, or a fallback with it"},
		"sops": {settings: onlyOld, file: sops,
			want: `; add method "sops" "main" {}, with its settings in the braces, and let state have method = method.sops.main, or a fallback with it`},
		"method for sops": {settings: onlyOld + `method "sops" "m" {}`, file: sops,
			want: "; let state have method = method.sops.m, or a fallback with it"},
	} {
		args := []string{"decrypt"}
		if c.plan {
			args = append(args, "-plan")
		}
		got := statecrypt(t, c.settings, c.file, args...)
		if got.code != 1 || !strings.HasSuffix(got.stderr, c.want+"\n") {
			t.Errorf("%s:\n got %s\nwant %s", name, got.stderr, c.want)
		}
	}
}

// A variable of -config without a value can be set in three ways.
func TestAdviceForVariable(t *testing.T) {
	t.Parallel()
	config := write(t, "keys.hcl", strings.Replace(onlyOld, `"`+canaryKey+`01"`, "var.key", 1))
	got := statecrypt(t, "", plain, "encrypt", "-config", config)
	const want = "var.key has no value\nSet it with the environment variable TF_VAR_key, or -var or -var-file of statecrypt.\n"
	if got.code != 1 || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("%+v", got)
	}
}
