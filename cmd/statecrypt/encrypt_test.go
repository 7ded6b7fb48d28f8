package main

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
)

// TestEncryptOpensAgain: encrypt replaces nothing by a file that nobody here opens, unless the settings
// have recipients of age and no identity.
func TestEncryptOpensAgain(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are scripts of sh")
	}
	const (
		provider = `{"magic":"OpenTofu-External-Key-Provider","version":1}`
		method   = `{"magic":"OpenTofu-External-Encryption-Method","version":1}`
		selects  = "state { method = method.%[1]s.m }\nplan { method = method.%[1]s.m }\n"
	)
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	answering := func(header, answer string) string {
		return fmt.Sprintf("[\"sh\", \"-c\", %q]", fmt.Sprintf("cat > /dev/null; printf '%%s\\n' '%s' '%s'", header, answer))
	}
	external := func(answer string) string {
		return "key_provider \"external\" \"p\" { command = " + answering(provider, answer) + " }\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.external.p }\n"
	}
	age := func(settings string) string {
		return "key_provider \"age\" \"p\" { " + settings + " }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.age.p }\n"
	}
	_, recipient := identity(t, "other.key")
	own, _ := identity(t, "ssh_ed25519")
	recipients := fmt.Sprintf("recipients = [%q]", recipient)
	mistakes := openMistakes(t, "encrypt opens again")
	for name, c := range map[string]struct {
		settings string
		method   string // "" for aes_gcm
		works    bool
	}{
		"one key, and no other":     {settings: external(`{"keys":{"encryption_key":"` + key + `"},"meta":{}}`)},
		"one key, and another":      {settings: external(`{"keys":{"encryption_key":"` + key + `","decryption_key":"` + key[:42] + `E="},"meta":{}}`)},
		"no key for what it stores": {settings: external(`{"keys":{"encryption_key":"` + key + `"},"meta":{"external_data":{"x":"y"}}}`)},
		"commands that do not undo each other": {method: "external", settings: "method \"external\" \"m\" {\n  encrypt_command = " +
			answering(method, `{"payload":"eA=="}`) + "\n  decrypt_command = " + answering(method, `{"payload":"eQ=="}`) + "\n}\n"},
		"another state is opened": {method: "external", settings: "method \"external\" \"m\" {\n  encrypt_command = " +
			answering(method, `{"payload":"eA=="}`) + "\n  decrypt_command = " +
			answering(method, `{"payload":"`+base64.StdEncoding.EncodeToString([]byte(plain+" "))+`"}`) + "\n}\n"},
		"recipients, beside an identity of others": {settings: age("\n" + recipients + fmt.Sprintf("\nidentity_files = [%q]\n", own))},
		"a program that fails, beside recipients": {settings: external(`{"keys":{"encryption_key":"`+key+`"},"meta":{}}`) +
			"key_provider \"age\" \"q\" { " + recipients + " }\nmethod \"aes_gcm\" \"q\" { keys = key_provider.age.q }\n" +
			"state {\n  method = method.aes_gcm.m\n  fallback { method = method.aes_gcm.q }\n}\n", method: "none"},
		"recipients":             {settings: age(recipients), works: true},
		"recipients of a method": {settings: "method \"age\" \"m\" { " + recipients + " }\n", method: "age", works: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			settings := c.settings
			switch c.method {
			case "none":
			case "":
				settings += fmt.Sprintf(selects, "aes_gcm")
			default:
				settings += fmt.Sprintf(selects, c.method)
			}
			config, file := write(t, filepath.Join(dir, "a.hcl"), settings), write(t, filepath.Join(dir, "f"), plain)
			got := statecrypt(t, "", "", "encrypt", "-config", config, "-o", file, file)
			if is := read(t, file); (got.code == 0) != c.works || (is == plain) == c.works {
				t.Errorf("exit code %d, and the file is %s", got.code, is)
			}
			mistakes.check(t, name, got)
		})
	}
}
