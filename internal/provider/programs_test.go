package provider

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"filippo.io/age/plugin"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
)

// settings is a provider block with these settings.
func settings(body ...string) string {
	return "provider \"statecrypt\" {\n" + strings.Join(body, "\n") + "\n}\n"
}

// entry is a block inside key_provider or method.
func entry(what, kind, name string, arguments ...string) string {
	return fmt.Sprintf("%s {\n%s {\nname = %q\n%s\n}\n}\n", what, kind, name, strings.Join(arguments, "\n"))
}

// programs are files that OpenTofu wrote with programs of its external key
// provider or method, and the settings that it had, as blocks.
var programs = map[string]struct{ dir, blocks string }{
	"key provider": {"../../conformance/cases/external_key_provider",
		entry("key_provider", "external", "e", `command = ["sh", "./kp.sh"]`) +
			entry("method", "aes_gcm", "m", `keys = "key_provider.external.e"`) + staticDefault},
	"method": {"../../conformance/cases/external_method_no_keys",
		entry("method", "external", "x", `encrypt_command = ["false"]`, `decrypt_command = ["sh", "./method.sh", "decrypt", "-"]`) +
			"default {\nmethod = \"method.external.x\"\n}\n"},
	"method with keys": {"../../conformance/cases/external_method_with_keys",
		entry("key_provider", "external", "e", `command = ["sh", "./kp.sh"]`) +
			entry("method", "external", "x", `keys = "key_provider.external.e"`, `encrypt_command = ["false"]`,
				`decrypt_command = ["sh", "./method.sh", "decrypt", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]`) +
			"default {\nmethod = \"method.external.x\"\n}\n"},
}

// programOutputs are in the files that OpenTofu wrote with programs.
var programOutputs = map[string]cty.Value{"all": cty.ObjectVal(map[string]cty.Value{
	"who":   cty.StringVal("public"),
	"count": cty.NumberIntVal(42),
	"obj": cty.ObjectVal(map[string]cty.Value{
		"list": cty.ListVal([]cty.Value{cty.StringVal("a"), cty.StringVal("public")}),
		"n":    cty.NullVal(cty.DynamicPseudoType),
		"t":    cty.True,
	}),
})}

func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are scripts for sh")
	}
}

// Programs that were written for OpenTofu, started from where the CLI runs.
func TestPrograms(t *testing.T) {
	needShell(t)
	golden := openMistakes(t, "program of the environment")
	for name, c := range programs {
		text, err := os.ReadFile(filepath.Join(c.dir, "config.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		reader := strings.Replace(string(text), "state {", "remote_state_data_sources {\ndefault {", 1) + "}\n"
		for how, r := range map[string]struct {
			provider, environment string
			refused               bool
		}{
			"blocks":                   {provider: settings(c.blocks)},
			"text":                     {provider: textProvider(string(text))},
			"environment":              {environment: reader, refused: true},
			"environment, allowed":     {provider: settings("allow_external = true"), environment: reader},
			"environment and text":     {provider: textProvider(string(text)), environment: reader},
			"environment, not allowed": {provider: settings("allow_external = false"), environment: reader, refused: true},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Chdir(c.dir)
				t.Setenv("TF_ENCRYPTION", r.environment)
				e := evaluate(t, r.provider, reads("s", fromFile("state.tfstate.enc")), output("all", "data.statecrypt_remote_state.s.outputs"))
				if r.refused {
					e.wantMistake(golden, name+": "+how)
				} else {
					e.wantOutputs(programOutputs)
				}
			})
		}
	}
}

// A plugin of age runs for an identity of the configuration, and for one of the
// environment, or in a file that the environment names, if that is allowed.
func TestPluginsOfAge(t *testing.T) {
	needShell(t)
	dir := t.TempDir()
	// It keeps the keys that it encrypts in the file, as they are.
	const script = `#!/bin/sh
while read -r line && [ "$line" != '-> done' ]; do
	case $line in '-> wrap-file-key' | '-> recipient-stanza 0 plain') read -r key ;; esac
done
command='file-key 0'
[ "$1" = --age-plugin=identity-v1 ] || command='recipient-stanza 0 plain'
printf -- '-> %s\n%s\n-> done\n\n' "$command" "$key"
`
	if err := os.WriteFile(filepath.Join(dir, "age-plugin-plain"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	identity := plugin.EncodeIdentity("plain", []byte("canary"))
	text := fmt.Sprintf("method \"age\" \"m\" { identities = [%q] }\n", identity)
	ofFile := fmt.Sprintf("method \"age\" \"m\" { identity_files = [%q] }\n", writeTemp(t, "identity", []byte(identity)))
	blocks := entry("method", "age", "m", fmt.Sprintf("identities = [%q]", identity)) + "default {\nmethod = \"method.age.m\"\n}\n"
	remote := func(text string) string {
		return text + "remote_state_data_sources {\ndefault {\nmethod = method.age.m\n}\n}\n"
	}
	file := fromFile(writeTemp(t, "state", sealedAs(t, strings.Replace(text, "identities", "recipients", 1)+
		"state { method = method.age.m }\n", argumentsState)))
	golden := openMistakes(t, "plugin of the environment")
	for name, c := range map[string]struct {
		provider, environment string
		refused               bool
	}{
		"block":                    {provider: settings(blocks)},
		"block, no environment":    {provider: settings("use_environment = false", blocks)},
		"text":                     {provider: textProvider(remote(text))},
		"environment":              {environment: remote(text), refused: true},
		"environment, a file":      {environment: remote(ofFile), refused: true},
		"environment, allowed":     {provider: settings("allow_external = true"), environment: remote(text)},
		"a file, allowed":          {provider: settings("allow_external = true"), environment: remote(ofFile)},
		"environment and text":     {provider: textProvider(remote(ofFile)), environment: remote(ofFile)},
		"environment, not allowed": {provider: settings("allow_external = false"), environment: remote(text), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TF_ENCRYPTION", c.environment)
			e := evaluate(t, c.provider, reads("s", file), output("serial", "data.statecrypt_remote_state.s.serial"))
			if c.refused {
				e.wantMistake(golden, name)
			} else {
				e.wantOutputs(map[string]cty.Value{"serial": cty.NumberIntVal(7)})
			}
		})
	}
}

func TestAccPrograms(t *testing.T) {
	needAcceptance(t)
	needShell(t)
	for name, c := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"main.tf": configuration(settings(c.blocks), reads("s", fromFile("state.tfstate.enc")),
				output("all", "data.statecrypt_remote_state.s.outputs"))}
			for _, file := range []string{"kp.sh", "method.sh", "state.tfstate.enc"} {
				if data, err := os.ReadFile(filepath.Join(c.dir, file)); err == nil {
					files[file] = string(data)
				}
			}
			newProject(t, files).wantOutputs(programOutputs)
		})
	}
}

// The program's complaint is what the user needs to see.
func TestProgramFails(t *testing.T) {
	needShell(t)
	t.Parallel()
	file := fromFile(writeTemp(t, "state", sealed(t, argumentsState)))
	with := func(script string) string {
		return settings(entry("key_provider", "external", "e", fmt.Sprintf("command = [\"sh\", %s]",
			quote(writeTemp(t, "kp.sh", []byte(script))))) +
			entry("method", "aes_gcm", "m", `keys = "key_provider.external.e"`) + staticDefault)
	}
	const header = `printf '%s\n' '{"magic":"OpenTofu-External-Key-Provider","version":1}'` + "\n"
	golden := openMistakes(t, "program fails")
	for name, c := range map[string]struct {
		script string
	}{
		"failure":      {header + "echo 'the vault is \033[31mclosed' >&2\nexit 3"},
		"other header": {`echo '{"magic":"OpenTofu-External-Encryption-Method","version":1}'`},
		"no answer":    {header + "echo '{\"keys\":{}}'"},
		"other fields": {header + "echo '{\"kyes\":{}}'"},
	} {
		t.Run(name, func(t *testing.T) {
			evaluate(t, with(c.script), reads("s", file)).wantMistake(golden, name)
		})
	}
}

var transitKey = []byte("the master key of a transit fake")

// transit is a transit engine that only decrypts, with a state that it holds
// the key of.
func transit(t *testing.T) (server *openbaotest.Server, state []byte) {
	t.Helper()
	maker := openbaotest.New(t, transitKey)
	maker.MakesKeys = true
	state = sealedAs(t, fmt.Sprintf("key_provider \"openbao\" \"b\" {\nkey_name = \"k\"\ntoken = \"t\"\naddress = %q\n}\nmethod "+
		"\"aes_gcm\" \"m\" { keys = key_provider.openbao.b }\n%s", maker.URL, stateTarget), argumentsState)
	server = openbaotest.New(t, transitKey)
	server.Token = "t"
	return server, state
}

func openbaoBlock(name, address string, more ...string) string {
	return entry("key_provider", "openbao", name, slices.Concat([]string{`key_name = "k"`, fmt.Sprintf("address = %q", address)}, more)...)
}

// A fallback is for what the key service says of the key. When it says nothing
// of it, a fallback would only hide that.
func TestTransitFallback(t *testing.T) {
	t.Parallel()
	golden := openMistakes(t, "transit")
	for name, c := range map[string]struct {
		answer   func(http.ResponseWriter, *http.Request) bool
		fallback bool
	}{
		"denied":    {answers(403, "permission denied"), true},
		"no key":    {answers(400, "encryption key not found"), true},
		"wrong key": {answers(400, "cipher: message authentication failed"), true},
		"no engine": {answers(404, "no handler for route"), true},
		"failure":   {answers(500, "internal error"), false},
		"sealed":    {answers(503, "Vault is sealed"), false},
		"too often": {answers(429, "slow down"), false},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good, state := transit(t)
			bad := openbaotest.New(t, transitKey)
			bad.Fault = c.answer
			timeout := "1m"
			if name == "hangs" {
				timeout = "1s"
			}
			e := evaluate(t,
				settings(
					openbaoBlock("b", bad.URL, `token = "t"`, "max_retries = 0", fmt.Sprintf("client_timeout = %q", timeout)),
					openbaoBlock("old", good.URL, `token = "t"`, `encrypted_metadata_alias = "key_provider.openbao.b"`),
					entry("method", "aes_gcm", "m", `keys = "key_provider.openbao.b"`),
					entry("method", "aes_gcm", "old", `keys = "key_provider.openbao.old"`),
					targetBlock("method.aes_gcm.m", "method.aes_gcm.old")),
				reads("s", fromFile(writeTemp(t, "state", state))),
				output("fallback", "data.statecrypt_remote_state.s.used_fallback"))
			if c.fallback {
				golden.Check(t, name, placeless(shownText(e.succeeds().warnings)))
				e.wantOutputs(map[string]cty.Value{"fallback": cty.True})
				return
			}
			e.wantMistake(golden, name)
			if asked := good.Requests(); len(asked) > 0 {
				t.Errorf("the fallback was asked for %q", asked)
			}
		})
	}
}

func answers(status int, text string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"errors":[%q]}`, text)
		return true
	}
}

// A key of two halves, from two key providers.
func TestXor(t *testing.T) {
	t.Parallel()
	const otherKey = "ffffffffffffffffffffffffffffffff00000000000000000000000000000000"
	text := fmt.Sprintf("key_provider \"static\" \"a\" { key = %q }\nkey_provider \"static\" \"b\" { key = %q }\n", staticKey, otherKey) +
		"key_provider \"xor\" \"x\" {\na = key_provider.static.a\nb = key_provider.static.b\n}\nmethod \"aes_gcm\" \"m\" { keys = " +
		"key_provider.xor.x }\n" + stateTarget
	blocks := func(b string) string {
		return settings(
			entry("key_provider", "static", "a", fmt.Sprintf("key = %q", staticKey)),
			entry("key_provider", "static", "b", fmt.Sprintf("key = %q", otherKey)),
			entry("key_provider", "xor", "x", `a = "key_provider.static.a"`, fmt.Sprintf("b = %q", b)),
			entry("method", "aes_gcm", "m", `keys = "key_provider.xor.x"`), staticDefault)
	}
	file := fromFile(writeTemp(t, "state", sealedAs(t, text, argumentsState)))
	serial := map[string]cty.Value{"serial": cty.NumberIntVal(7)}
	read := reads("s", file) + output("serial", "data.statecrypt_remote_state.s.serial")
	golden := openMistakes(t, "xor")
	evaluate(t, textProvider(text), read).wantOutputs(serial)
	evaluate(t, blocks("key_provider.static.b"), read).wantOutputs(serial)
	evaluate(t, textProvider(staticText), read).wantMistake(golden, "half of it")
	evaluate(t, blocks("key_provider.static.a"), read).wantMistake(golden, "twice the same")
	evaluate(t, blocks("key_provider.xor.x"), read).wantMistake(golden, "a circle")
}
