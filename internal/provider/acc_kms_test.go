package provider

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// A service that takes a request and then says nothing is waited for, but not
// for ever. The CLI waits for a minute, so it starts before this test stands back
// for those that run alone.
func TestAccKMSTimeout(t *testing.T) {
	needAcceptance(t)
	testkit.OneIsEnough(t)
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	aws, google, azure := newAWS(t), newGoogle(t), newAzure(t)
	internet := cloudtest.New(t, map[string]http.Handler{
		"kms.eu-west-1.amazonaws.com": hangs, "cloudkms.googleapis.com": hangs, "acceptance.vault.azure.net": hangs,
	})
	config := []string{}
	var env []string
	for _, k := range []*keyService{aws, google, azure} {
		alias := fmt.Sprintf("provider \"statecrypt\" {\nalias = %q\n", k.kind)
		config = append(config, alias+k.block("good", k.arguments("good"))+staticBlocks+
			"default {\nmethod = \"method.aes_gcm.good\"\nfallback {\nmethod = \"method.aes_gcm.m\"\n}\n}\n}\n",
			reads(k.kind, "provider = statecrypt."+k.kind, fromFile(writeTemp(t, "state", []byte(k.states[0])))))
		env = append(env, k.env...)
	}
	p := newProject(t, map[string]string{"main.tf": configuration(config...)})
	p.env = append(internet.Environ(p.env), env...)
	var out string
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out, err = p.run("plan")
	}()
	t.Parallel()
	<-ended
	if err == nil || strings.Count(out, "Error:") != 3 || strings.Contains(out, "method.aes_gcm.m:") {
		t.Errorf("got %v, want three errors and no fallback:\n%s", err, out)
	}
	for _, kind := range []string{"aws_kms", "gcp_kms", "azure_vault"} {
		want := []string{"key_provider." + kind + ".good:", netfail.NotInTime}
		if !says(want...).MatchString(out) {
			t.Errorf("want an error that says %q:\n%s", want, out)
		}
	}
}

// However many data sources read, and however many states share a key, the key
// service is asked for that key once in a walk, and for nothing else. Nothing
// secret is left anywhere, with every log on.
func TestAccKMSIsAskedOnce(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	many := func(name, arguments string) string {
		return reads(name, "count = 20", arguments, "file {\npath = \"state0\"\n}") +
			reads(name+"_five", "count = 5", arguments, "file {\npath = \"state${count.index}\"\n}")
	}
	sums := func(name string) string {
		return fmt.Sprintf("sum(concat(data.statecrypt_remote_state.%s[*].serial, data.statecrypt_remote_state.%[1]s_five[*].serial))", name)
	}
	for kind, start := range keyServices {
		for how, configure := range map[string]func(*keyService) (walks int, env string, config []string){
			"blocks, two configurations": func(k *keyService) (int, string, []string) {
				settings := settings(k.block("good", k.arguments("good")), "default {\nmethod = \"method.aes_gcm.good\"\n}")
				second := strings.Replace(settings, "{\n", "{\nalias = \"second\"\n", 1)
				return 2, "", []string{settings, second, many("s", ""), many("t", "provider = statecrypt.second"),
					output("sum", sums("s")+" + "+sums("t"))}
			},
			"text": func(*keyService) (int, string, []string) {
				return 1, "", []string{settings(`encryption = file("encryption.hcl")`), many("s", ""), output("sum", sums("s"))}
			},
			"environment": func(k *keyService) (int, string, []string) {
				if isTofu() { // it asks for a new key by itself for every target, needed or not
					return 1, k.text(""), []string{many("s", `method = "method.aes_gcm.m"`), output("sum", sums("s"))}
				}
				return 1, k.text(stateTarget), []string{many("s", ""), output("sum", sums("s"))}
			},
		} {
			t.Run(kind+"/"+how, func(t *testing.T) {
				t.Parallel()
				k := start(t)
				walks, text, config := configure(k)
				p := k.project(t, config...)
				p.setenv("AZURE_SDK_GO_LOGGING=all")
				if text != "" {
					p.setenv("TF_ENCRYPTION=" + text)
				}
				commands := [][]string{{"apply", "-auto-approve"}}
				if walks > 1 {
					commands = [][]string{{"plan", "-out=plan"}, {"apply", "-auto-approve"}, {"apply", "-refresh-only", "-auto-approve"}}
				}
				for _, args := range commands {
					if out, err := k.run(t, p, args...); err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
					if asked := k.take(); !slices.Equal(asked, slices.Repeat([]string{"decrypt good"}, walks)) {
						t.Errorf("%s: the service was asked for %q, want %d decryptions", args, asked, walks)
					}
				}
				p.setenv("TF_LOG=")
				p.compareOutputs(map[string]cty.Value{"sum": cty.NumberIntVal(int64(10 * walks))})
				for _, host := range k.cloud.Asked() {
					if !slices.Contains(k.hosts, host) {
						t.Errorf("%s was asked", host)
					}
				}
			})
		}
	}
}

// What a key service says of a key is no reason to give up: another method may
// have the key.
func TestAccKMSFallback(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	for kind, start := range keyServices {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := start(t)
			names := slices.Sorted(maps.Keys(k.noKey))
			all := k.block("good", k.arguments("good"))
			var sources, fallbacks, used []string
			for _, name := range names {
				all += k.block(name, k.arguments(name))
				sources = append(sources, reads(name, "file {\npath = \"state1\"\n}", fmt.Sprintf("method = \"method.aes_gcm.%s\"", name),
					"fallback {\nmethod = \"method.aes_gcm.good\"\n}"))
				fallbacks = append(fallbacks, fmt.Sprintf("fallback {\nmethod = \"method.aes_gcm.%s\"\n}", name))
				used = append(used, fmt.Sprintf("data.statecrypt_remote_state.%s.used_fallback && "+
					"data.statecrypt_remote_state.%[1]s.decrypted_with == \"method.aes_gcm.good\" && data.statecrypt_remote_state.%[1]s.serial == 1",
					name))
			}
			p := k.project(t, settings(all), strings.Join(sources, ""), output("used", strings.Join(used, " && ")))
			out, err := k.run(t, p, "apply", "-auto-approve", "-json") // else the CLI shows one warning of its kind
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out = strings.NewReplacer(`\n`, "\n", `\u003e`, ">").Replace(out)
			for _, name := range names {
				want := slices.Concat([]string{"method.aes_gcm.good",
					fmt.Sprintf("method.aes_gcm.%s: key_provider.%s.%[1]s:", name, kind)}, k.noKey[name])
				if !says(want...).MatchString(out) {
					t.Errorf("want a warning that says %q:\n%s", want, out)
				}
			}
			want := []string{"decrypt good"} // its key serves all
			for _, name := range names {
				want = append(want, "decrypt "+name)
			}
			asked := k.take()
			slices.Sort(asked)
			slices.Sort(want)
			if !slices.Equal(asked, want) {
				t.Errorf("the service was asked for %q, want %q", asked, want)
			}
			p.setenv("TF_LOG=")
			p.compareOutputs(map[string]cty.Value{"used": cty.True})

			// And when none has it, one error lists all of them, in order.
			p = k.project(t, settings(all), reads("s", "file {\npath = \"state1\"\n}", fmt.Sprintf("method = \"method.aes_gcm.%s\"", names[0]),
				strings.Join(fallbacks[1:], "\n")))
			words := headed(stepKey)
			for _, name := range names {
				words = append(append(words, fmt.Sprintf("- method.aes_gcm.%s: key_provider.%s.%[1]s:", name, kind)), k.noKey[name]...)
			}
			out, err = k.run(t, p, "plan")
			if err == nil || !says(words...).MatchString(out) || strings.Count(out, "Error:") != 1 {
				t.Errorf("got %v, want one error that says %q:\n%s", err, words, out)
			}
		})
	}
}

// A service that does not answer, or answers nothing about the key, says
// nothing of the file: a fallback would only hide that.
func TestAccKMSFinal(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	for kind, start := range keyServices {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := start(t)
			all := k.block("fallback", k.arguments("other"))
			var sources []string
			for name, final := range k.final {
				all += k.block(name, fmt.Sprintf("%s%s\"\n%s", k.named, final.key, final.settings))
				sources = append(sources, reads(name, "file {\npath = \"state1\"\n}", fmt.Sprintf("method = \"method.aes_gcm.%s\"", name),
					"fallback {\nmethod = \"method.aes_gcm.fallback\"\n}"))
			}
			p := k.project(t, settings(all), strings.Join(sources, ""))
			out, err := k.run(t, p, "plan")
			if err == nil || strings.Count(out, "Error:") != len(k.final) {
				t.Errorf("got %v, want %d errors:\n%s", err, len(k.final), out)
			}
			for name, final := range k.final {
				want := slices.Concat(headed(stepKey,
					fmt.Sprintf("- method.aes_gcm.%s: key_provider.%s.%[1]s:", name, kind)), final.words)
				if !says(want...).MatchString(out) {
					t.Errorf("want an error that says %q:\n%s", want, out)
				}
			}
			if asked := k.take(); slices.Contains(asked, "decrypt other") {
				t.Errorf("the fallback was asked: %q", asked)
			}
		})
	}
}

// A key service that this read does not use may be broken in every way, or
// there may be no way in: nobody asks it.
func TestAccKMSIsLazy(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	internet := cloudtest.New(t, map[string]http.Handler{})
	dead := nettest.Dead(t)
	none := fmt.Sprintf("%q", filepath.Join(t.TempDir(), "none"))
	var blocks, text strings.Builder
	for kind, arguments := range map[string]string{
		"aws_kms": "kms_key_id = \"alias/k\"\nkey_spec = \"AES_256\"\nregion = \"nowhere-1\"\nprofile = \"nobody\"\nshared_config_files " +
			"= [" + none + "]\n",
		"gcp_kms": "kms_encryption_key = \"" + googleKeys + "k\"\nkey_length = 32\ncredentials = " + none + "\n",
		"azure_vault": "vault_uri = \"https://nowhere.vault.azure.net\"\nvault_key_name = \"k\"\nkey_length = 32\nclient_id_file_path = " +
			none + "\ntenant_id = \"t\"\nclient_secret = \"s\"\n",
		"openbao": fmt.Sprintf("key_name = \"k\"\naddress = \"http://%s\"\n", dead),
	} {
		method := "unused_" + kind
		blocks.WriteString(entry("key_provider", kind, "unused", arguments) +
			entry("method", "aes_gcm", method, fmt.Sprintf("keys = \"key_provider.%s.unused\"", kind)))
		fmt.Fprintf(&text, "key_provider %q \"unused\" {\n%s}\nmethod \"aes_gcm\" %q { keys = key_provider.%[1]s.unused }\n", kind, arguments,
			method)
	}
	file := fromFile(writeTemp(t, "state", sealed(t, argumentsState)))
	// OpenTofu knows no static.
	const passphrase = "a passphrase for one test"
	forText := fromFile(writeTemp(t, "state", sealedAs(t, passphraseText(passphrase, stateTarget), argumentsState)))
	for name, c := range map[string]struct{ provider, text, file string }{
		"blocks":      {settings(staticBlocks, staticDefault, blocks.String()), "", file},
		"environment": {"", text.String() + passphraseText(passphrase, readerTarget), forText},
	} {
		t.Run(name, func(t *testing.T) {
			if c.text != "" && isTofu() && cliMinor() < 10 {
				t.Skip("OpenTofu before 1.10 reads TF_ENCRYPTION too, and starts every key provider in it")
			}
			p := newProject(t, map[string]string{"main.tf": configuration(c.provider, reads("s", c.file),
				output("serial", "data.statecrypt_remote_state.s.serial"))})
			p.env = internet.Environ(p.env)
			if c.text != "" {
				p.setenv("TF_ENCRYPTION=" + c.text)
			}
			p.wantOutputs(map[string]cty.Value{"serial": cty.NumberIntVal(7)})
			if asked := internet.Asked(); len(asked) > 0 {
				t.Errorf("%q were asked", asked)
			}
		})
	}
}
