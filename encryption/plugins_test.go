//go:build unix

package encryption_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"filippo.io/age/plugin"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// agePlugins puts plugins of age in front of PATH, each a script of what it says by
// name. Ran returns those that ran since it was called last.
func agePlugins(t *testing.T, scripts map[string]string) (ran func() string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		text := fmt.Sprintf(`#!/bin/sh
echo %s $* >>'%s/ran'
while read -r line && [ "$line" != '-> done' ]; do
	case $line in '-> wrap-file-key' | '-> recipient-stanza 0 plain') read -r key ;; esac
done
%s
`, name, dir, script)
		if err := os.WriteFile(filepath.Join(dir, "age-plugin-"+name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "ran"))
		_ = os.Remove(filepath.Join(dir, "ran"))
		return string(text)
	}
}

const (
	hasNone = `printf -- '-> done\n\n'` // of the keys of a file

	// One without secrecy: its stanza holds the key.
	plainPlugin = `case $1$key in
*recipient*) printf -- '-> recipient-stanza 0 plain\n%s\n-> done\n\n' "$key" ;;
*identity-v1) printf -- '-> done\n\n' ;;
*) printf -- '-> file-key 0\n%s\n-> done\n\n' "$key" ;;
esac`
)

// identityOf is an identity of the plugin called name, with a canary in it.
func identityOf(name string) string {
	return plugin.EncodeIdentity(name, []byte("the canary of an identity"))
}

func newIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// throughAge are settings with these arguments of age, by both ways to use it.
func throughAge(arguments string) map[string]string {
	return map[string]string{
		"key provider": "key_provider \"age\" \"main\" {\n" + arguments +
			"\n}\nmethod \"aes_gcm\" \"main\" { keys = key_provider.age.main }\nstate { method = method.aes_gcm.main }\n",
		"method": "method \"age\" \"main\" {\n" + arguments + "\n}\nstate { method = method.age.main }\n",
	}
}

// through opens file with these settings, or seals a state if there is no file.
func through(t *testing.T, file []byte, layers ...encryption.Layer) ([]byte, error) {
	t.Helper()
	enc, err := encryption.Load(lighttest.Registry(), layers...)
	if err != nil {
		t.Fatal(err)
	}
	if file == nil {
		return enc.State().Encrypt(t.Context(), []byte(state))
	}
	opened, err := enc.State().Decrypt(t.Context(), file)
	if err != nil {
		if strings.Contains(err.Error(), identityOf("x")[len("AGE-PLUGIN-X-1"):][:30]) {
			t.Errorf("the error holds the identity: %v", err)
		}
		return nil, err
	}
	return opened.Data, nil
}

// strange is a recipient whose stanzas look like those of plugins.
type strange struct{}

func (strange) Wrap([]byte) ([]*age.Stanza, error) {
	return []*age.Stanza{
		{Type: "mark", Args: []string{"AGE-PLUGIN-MARK-1"}}, {Type: "age-plugin-mark"}, {Type: "yubikey", Args: []string{"age1mark1"}},
		{Type: plugin.EncodeIdentity("mark", nil), Args: []string{"--age-plugin=identity-v1", "../age-plugin-mark"}},
	}, nil
}

// TestFilesRunNoPlugin: whatever is in a file, only the settings choose a program.
//
// Promise: Files of age
func TestFilesRunNoPlugin(t *testing.T) {
	ran := agePlugins(t, map[string]string{"mark": hasNone, "yubikey": hasNone, "asked": hasNone})
	key := newIdentity(t)
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, key.Recipient(), strange{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Write([]byte(state)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	inside := bytes.Clone(sealed.Bytes())
	sealed.Reset()
	w, _ = age.Encrypt(&sealed, key.Recipient(), strange{})
	if _, err = w.Write(bytes.Repeat([]byte("k"), 32)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"method": inside, "key provider": fmt.Appendf(nil,
		`{"meta":{"key_provider.external.main":%q},"encrypted_data":"AAAA","encryption_version":"v0","serial":1,"lineage":"l"}`,
		base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"external_data":{"statecrypt_age_key":%q}}`,
			base64.StdEncoding.EncodeToString(sealed.Bytes()))))}
	for identity, c := range map[string]struct{ ran, opens string }{
		key.String():                              {"", "method"},
		newIdentity(t).String():                   {"", ""},
		identityOf("asked"):                       {"asked --age-plugin=identity-v1\n", ""},
		key.String() + `\n` + identityOf("asked"): {"", "method"}, // one that needs nobody comes first
		newIdentity(t).String() + `", "# a comment\n` + identityOf("asked"): {"asked --age-plugin=identity-v1\n", ""},
	} {
		for how, text := range throughAge(`identities = ["` + identity + `"]`) {
			opened, err := through(t, files[how], encryption.Code(text, "test"))
			if got := ran(); got != c.ran {
				t.Errorf("%s: %q ran, want %q", how, got, c.ran)
			}
			switch {
			case how == c.opens:
				if err != nil || string(opened) != state {
					t.Errorf("%s: %v", how, err)
				}
			case c.opens == "" && !errors.Is(err, encryption.ErrNoKey):
				t.Errorf("%s: %v", how, err)
			}
		}
	}
}

// TestEnvironmentRunsNoPlugin: an identity or a recipient that only the environment
// names runs a plugin as little as a command does.
//
// Promise: TF_ENCRYPTION
func TestEnvironmentRunsNoPlugin(t *testing.T) {
	ran := agePlugins(t, map[string]string{"mark": hasNone})
	key := newIdentity(t)
	file := filepath.Join(t.TempDir(), "identity")
	sealed := filepath.Join(t.TempDir(), "sealed")
	recipient, err := age.NewScryptRecipient("canary")
	if err != nil {
		t.Fatal(err)
	}
	recipient.SetWorkFactor(2)
	var text bytes.Buffer
	w, _ := age.Encrypt(&text, recipient)
	if _, err := w.Write([]byte(identityOf("mark"))); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file, []byte("# "+identityOf("mark")+"\n"+identityOf("mark")), 0o600),
		os.WriteFile(sealed, text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	to := `recipients = ["` + key.Recipient().String() + `"]` + "\n"
	for name, arguments := range map[string]string{
		"identities":          to + `identities = ["` + identityOf("mark") + `"]`,
		"among others":        to + `identities = ["` + key.String() + `", "` + identityOf("mark") + `"]`,
		"identity files":      to + `identity_files = ["` + file + `"]`,
		"sealed":              to + `identity_files = ["` + sealed + "\"]\nidentity_passphrase = \"canary\"",
		"recipients":          `recipients = ["` + plugin.EncodeRecipient("mark", []byte("x")) + `"]`,
		"identity encrypting": `recipients = ["` + identityOf("mark") + `"]`,
	} {
		for how, text := range throughAge(arguments) {
			file, err := through(t, nil, encryption.Code(throughAge(to)[how], "test"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(arguments, "recipients = [\"age1mark") || strings.HasPrefix(arguments, "recipients = [\"AGE") {
				file = nil
			}
			environment := encryption.Environment(variables("TF_ENCRYPTION", text))
			allowed := encryption.Environment(variables("TF_ENCRYPTION", text), encryption.AllowCommands())
			for when, c := range map[string]struct {
				layers  []encryption.Layer
				refused bool
			}{
				"code":             {layers: []encryption.Layer{encryption.Code(text, "test")}},
				"environment":      {layers: []encryption.Layer{environment}, refused: true},
				"over other code":  {layers: []encryption.Layer{encryption.Code(throughAge(to)[how], "test"), environment}, refused: true},
				"repeats the code": {layers: []encryption.Layer{encryption.Code(text, "test"), environment}},
				"allowed":          {layers: []encryption.Layer{allowed}},
			} {
				ran()
				_, err := through(t, file, c.layers...)
				if got := ran(); (got == "") != c.refused && name != "among others" || c.refused && got != "" {
					t.Errorf("%s, %s, %s: %q ran; %v", how, name, when, got, err)
				}
				if errors.Is(err, entries.ErrCommand) != c.refused || c.refused && errors.Is(err, encryption.ErrNoKey) {
					t.Errorf("%s, %s, %s: %v", how, name, when, err)
				}
			}
		}
	}
}

// TestPluginFails: a plugin that fails, is missing or lies is not a matter of another
// key, unless another identity opens the file.
func TestPluginFails(t *testing.T) {
	ran := agePlugins(t, map[string]string{
		"none": hasNone, "fails": "echo the reason >&2; exit 1",
		"wrong":  `printf -- '-> file-key 0\nAAAAAAAAAAAAAAAAAAAAAA\n-> done\n\n'; read -r line`,
		"asks":   `printf -- '-> request-secret\nUElO\n-> done\n\n'`,
		"labels": `printf -- '-> labels alone\n\n-> recipient-stanza 0 x\n\n-> done\n\n'`,
	})
	key := newIdentity(t)
	to, says := `recipients = ["`+key.Recipient().String()+`"]`, golden(t, "plugins of age")
	for how, text := range throughAge(to) {
		file, err := through(t, nil, encryption.Code(text, "test"))
		if err != nil {
			t.Fatal(err)
		}
		for identities, noKey := range map[string]bool{
			"none": true, "fails": false, "missing": false, "wrong": false, "asks": false, "missing fails none": false,
		} {
			var list []string
			for _, name := range strings.Fields(identities) {
				list = append(list, `"`+identityOf(name)+`"`)
			}
			arguments := "identities = [" + strings.Join(list, ", ") + "]"
			_, err := through(t, bytes.Clone(file), encryption.Code(throughAge(arguments)[how], "test"))
			if says.Error(t, how+", identities: "+identities, err); errors.Is(err, encryption.ErrNoKey) != noKey {
				t.Errorf("%s, %s: %v", how, identities, err)
			}
			// With one that opens it among them, none is asked.
			ran()
			arguments = "identities = [" + strings.Join(append(list, `"`+key.String()+`"`), ", ") + "]"
			opened, err := through(t, bytes.Clone(file), encryption.Code(throughAge(arguments)[how], "test"))
			if got := ran(); err != nil || string(opened) != state || got != "" {
				t.Errorf("%s, %s and a key: %q ran, %v", how, identities, got, err)
			}
		}
		for name, recipients := range map[string]string{
			"one that is missing": plugin.EncodeRecipient("missing", nil), "one that fails": plugin.EncodeRecipient("fails", nil),
			"one that does nothing": plugin.EncodeRecipient("none", nil), "an identity that asks": identityOf("asks"),
			"one that is cut off": "age1yubikey1qqq", "one with labels": plugin.EncodeRecipient("labels", nil),
		} {
			arguments := strings.TrimSuffix(to, "]") + `, "` + recipients + `"]`
			file, err := through(t, nil, encryption.Code(throughAge(arguments)[how], "test"))
			if says.Error(t, how+", to "+name, err); errors.Is(err, encryption.ErrNoKey) {
				t.Errorf("%s, for %s: got %q, %v", how, recipients, file, err)
			}
		}
	}
}

// TestPluginNextIdentity: a key that is not plugged in does not keep another one from
// opening the file. To encrypt, no identity is asked: someone might have to touch it.
func TestPluginNextIdentity(t *testing.T) {
	ran := agePlugins(t, map[string]string{"fails": "exit 1", "asks": `printf -- '-> confirm WWVz\nUElO\n-> done\n\n'`, "plain": plainPlugin})
	for recipient, add := range map[string]string{"a recipient": plugin.EncodeRecipient("plain", nil), "an identity": identityOf("plain")} {
		for how, text := range throughAge(fmt.Sprintf("recipients = [%q]\nidentities = [%q, %q, %q]", add, identityOf("fails"),
			identityOf("asks"), identityOf("plain"))) {
			file, err := through(t, nil, encryption.Code(text, "test"))
			if got := ran(); err != nil || got != "plain --age-plugin=recipient-v1\n" {
				t.Errorf("%s, to %s: %q ran, %v", how, recipient, got, err)
			}
			opened, err := through(t, file, encryption.Code(text, "test"))
			if err != nil || string(opened) != state {
				t.Errorf("%s, to %s: %v", how, recipient, err)
			}
			if got := ran(); strings.Count(got, "identity-v1\n") != 3 || !strings.HasSuffix(got, "plain --age-plugin=identity-v1\n") {
				t.Errorf("%s, to %s: %q ran", how, recipient, got)
			}
		}
	}
}

// TestPluginOneAtATime: there may be one key in hardware, which several files are for.
func TestPluginOneAtATime(t *testing.T) {
	busy := filepath.Join(t.TempDir(), "busy")
	agePlugins(t, map[string]string{"plain": `if [ "$1" = --age-plugin=identity-v1 ]; then
	mkdir '` + busy + `' || exit 1
	n=0
	while [ $n -lt 3000 ]; do n=$((n + 1)); done
	rmdir '` + busy + `'
fi
` + plainPlugin})
	identities := filepath.Join(t.TempDir(), "identities")
	if err := os.WriteFile(identities, []byte(identityOf("plain")), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("recipients = [%q]\nidentity_files = [%q]", plugin.EncodeRecipient("plain", nil), identities)
	for how, text := range throughAge(settings) {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(text, "test"))
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for range 8 {
			file, err := enc.State().Encrypt(t.Context(), []byte(state))
			if err != nil {
				t.Fatal(err)
			}
			wait.Go(func() {
				if _, err := enc.State().Decrypt(t.Context(), file); err != nil {
					t.Errorf("%s: %v", how, err)
				}
			})
		}
		wait.Wait()
	}
}
