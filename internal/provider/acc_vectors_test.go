package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/vectors"
)

// vectorProject is a root module that reads a vector with these settings of
// the provider, and gives all its outputs.
func vectorProject(t *testing.T, v vectors.Vector, provider string, arguments ...string) *project {
	t.Helper()
	needAcceptance(t)
	t.Parallel()
	arguments = append(arguments, fromFile(writeTemp(t, "state", v.State(t))), "store_sensitive = true")
	return newProject(t, map[string]string{"main.tf": configuration(provider, reads("s", arguments...),
		output("all", "data.statecrypt_remote_state.s.outputs"),
		sensitiveOutput("sensitive", "data.statecrypt_remote_state.s.sensitive_outputs"),
		output("fallback", "data.statecrypt_remote_state.s.used_fallback"))})
}

func outputsOf(t *testing.T, v vectors.Vector) map[string]cty.Value {
	t.Helper()
	open, sensitive := expected(t, v)
	return map[string]cty.Value{"all": open, "sensitive": sensitive}
}

// One vector for each feature of the text, given in the argument encryption.
func TestAccVectorText(t *testing.T) {
	for _, name := range []string{
		"aes_gcm_aad", "alpha_no_serial_lineage", "config_function_call", "config_json_template_refs", "config_literal_keys",
		"enforced_ok", "envelope_extra_keys", "fallback_old_key", "fallback_primary_unencrypted", "fallback_two_levels",
		"http_backend_compact", "metadata_alias", "no_outputs", "output_zoo", "pbkdf2_chain_pbkdf2_alias", "pbkdf2_metadata_wins",
		"pbkdf2_sha256_key16", "pbkdf2_unicode_passphrase", "unencrypted_state_primary", "unencrypted_state_with_fallback",
	} {
		t.Run(name, func(t *testing.T) {
			v := vectors.Get(t, name)
			want := outputsOf(t, v)
			want["fallback"] = cty.BoolVal(strings.Contains(name, "fallback"))
			vectorProject(t, v, textProvider(v.Config(t))).wantOutputs(want)
		})
	}
}

// The same settings as blocks.
func TestAccVectorBlocks(t *testing.T) {
	pbkdf2 := func(name, more string) string {
		return fmt.Sprintf("key_provider {\npbkdf2 {\nname = %q\n%s\n}\n}\n", name, more)
	}
	method := func(name, keys, more string) string {
		return fmt.Sprintf("method {\naes_gcm {\nname = %q\nkeys = %q\n%s\n}\n}\n", name, keys, more)
	}
	target := func(methods ...string) string {
		text := fmt.Sprintf("default {\nmethod = %q\n", methods[0])
		for _, m := range methods[1:] {
			text += fmt.Sprintf("fallback {\nmethod = %q\n}\n", m)
		}
		return text + "}\n"
	}
	both := func(name, passphrase string) string {
		return pbkdf2(name, fmt.Sprintf("passphrase = %q", passphrase)) + method(name, "key_provider.pbkdf2."+name, "")
	}
	static := fmt.Sprintf("key_provider {\nstatic {\nname = \"k\"\nkey = %q\n}\n}\n", staticKey) + method("m", "key_provider.static.k", "")
	for name, settings := range map[string]string{
		"pbkdf2_defaults":            both("k", "correct-horse-battery-staple") + target("method.aes_gcm.k"),
		"pbkdf2_sha512_key24_salt64": both("k", "second throwaway passphrase") + target("method.aes_gcm.k"),
		"pbkdf2_sha256_key32_salt1":  both("k", "second throwaway passphrase") + target("method.aes_gcm.k"),
		"pbkdf2_chain_pbkdf2_alias": pbkdf2("a", "passphrase = \"chain-throwaway-passphrase\"\nencrypted_metadata_alias = \"upstream\"") +
			pbkdf2("b", "chain = \"key_provider.pbkdf2.a\"\nencrypted_metadata_alias = \"downstream\"") + method("m", "key_provider.pbkdf2.b", "") +
			target("method.aes_gcm.m"),
		"aes_gcm_aad": pbkdf2("k", `passphrase = "correct-horse-battery-staple"`) +
			method("m", "key_provider.pbkdf2.k", "aad = [112, 117, 98, 108, 105, 99, 45, 97, 97, 100]") + target("method.aes_gcm.m"),
		"config_literal_keys": static + target("method.aes_gcm.m"), // sealed with the key itself, which is what static gives
		"enforced_ok":         both("k", "correct-horse-battery-staple") + target("method.aes_gcm.k") + "enforced = true\n",
		"fallback_two_levels": both("new", "new-throwaway-passphrase") + both("mid", "mid-throwaway-passphrase-x") +
			both("old", "old-throwaway-passphrase") +
			target("method.aes_gcm.new", "method.aes_gcm.mid", "method.aes_gcm.old"),
		"unencrypted_state_primary": target("unencrypted"),
		"unencrypted_state_with_fallback": both("k", "correct-horse-battery-staple") + "method {\nunencrypted {\nname = \"u\"\n}\n}\n" +
			target("method.aes_gcm.k", "method.unencrypted.u"),
	} {
		t.Run(name, func(t *testing.T) {
			v := vectors.Get(t, name)
			vectorProject(t, v, "provider \"statecrypt\" {\n"+settings+"}\n").wantOutputs(outputsOf(t, v))
		})
	}
}

// TF_ENCRYPTION alone, as a tofu run hands it to every provider.
func TestAccVectorEnvironment(t *testing.T) {
	for _, name := range []string{"pbkdf2_defaults", "config_json"} {
		t.Run(name, func(t *testing.T) {
			if name == "config_json" && isTofu() && cliMinor() <= 10 {
				t.Skip("OpenTofu up to 1.10 reads TF_ENCRYPTION too, and stops at the references of this JSON")
			}
			v := vectors.Get(t, name)
			p := vectorProject(t, v, "")
			p.setenv("TF_ENCRYPTION=" + v.Config(t))
			p.wantOutputs(outputsOf(t, v))
		})
	}
	t.Run("not wanted", func(t *testing.T) {
		v := vectors.Get(t, "pbkdf2_defaults")
		p := vectorProject(t, v, "provider \"statecrypt\" {\nuse_environment = false\n}\n")
		p.setenv("TF_ENCRYPTION=" + v.Config(t))
		p.wantError("no method for encrypted data is configured")
	})
	t.Run("merged over the code", func(t *testing.T) {
		v := vectors.Get(t, "merge_code_and_env")
		own := ""
		if isTofu() { // it reads the same variable, which is not complete without the code
			own = "terraform {\nencryption {\n" + v.CodeConfig(t) + "\n}\n}\n"
		}
		p := vectorProject(t, v, own+textProvider(v.CodeConfig(t)))
		p.setenv("TF_ENCRYPTION=" + v.Config(t))
		p.wantOutputs(outputsOf(t, v))
	})
}

func TestAccVectorNamedTarget(t *testing.T) {
	v := vectors.Get(t, "remote_state_selection")
	open, _ := expected(t, v)
	file, provider := fromFile(writeTemp(t, "state", v.State(t))), textProvider(v.Config(t))
	config, want := []string{provider}, map[string]cty.Value{}
	for i, s := range v.Selection {
		if s.Expect == "ok" {
			name := fmt.Sprintf("s%d", i)
			config = append(config, reads(name, file, "name = "+quote(s.Name)), output(name, "data.statecrypt_remote_state."+name+".outputs"))
			want[name] = open
		}
	}
	t.Run("configured", func(t *testing.T) {
		needAcceptance(t)
		t.Parallel()
		newProject(t, map[string]string{"main.tf": configuration(config...)}).wantOutputs(want)
	})
	t.Run("not configured", func(t *testing.T) { // OpenTofu would take the default; here it is a mistake
		vectorProject(t, v, provider, `name = "cnt[0]"`).wantError(`there is no remote_state_data_source "cnt[0]"`)
	})
	t.Run("without a name", func(t *testing.T) {
		vectorProject(t, v, provider).wantError("Step: getting the key", "method.aes_gcm.bad")
	})
}

// Plaintext states of all versions and types, in one configuration.
func TestAccVectorPlain(t *testing.T) {
	config := []string{}
	want := map[string]cty.Value{}
	for _, v := range vectors.All(t) {
		if v.Kind != "plain_state" || v.Expect != "ok" {
			continue
		}
		open, sensitive := expected(t, v)
		want[v.Name], want[v.Name+"_sensitive"] = open, sensitive
		config = append(config,
			reads(v.Name, `method = "unencrypted"`, "store_sensitive = true", fromFile(writeTemp(t, "state", v.State(t)))),
			output(v.Name, "data.statecrypt_remote_state."+v.Name+".outputs"),
			sensitiveOutput(v.Name+"_sensitive", "data.statecrypt_remote_state."+v.Name+".sensitive_outputs"))
	}
	if len(config) < 8 {
		t.Fatalf("%d vectors", len(config))
	}
	runParallel(t, applies(configuration(config...), want))
}

func TestAccVectorErrors(t *testing.T) {
	for name, words := range map[string][]string{
		"err_wrong_passphrase": {"Cannot decrypt the state", "Step: decrypting the file", "no method in effect has the key for this file",
			"method.aes_gcm.m", "Check the passphrase or key"},
		"err_wrong_aad": {"Step: decrypting the file", "no method in effect has the key for this file",
			"the key or the aad is another one"},
		"err_bitflip":                 {"Step: decrypting the file", "no method in effect has the key for this file", "or the file was changed"},
		"err_empty_data":              {"Step: decrypting the file", "the encrypted data is 0 bytes long", "the file may be cut off"},
		"err_truncated":               {"Step: decrypting the file", "the encrypted data is 5 bytes long", "the file may be cut off"},
		"err_bad_base64":              {"Step: recognizing the file", "the encrypted file is damaged: a value is not base64"},
		"err_version":                 {"Step: recognizing the file", "encryption_version", "is not known here"},
		"err_meta_missing":            {"Step: getting the key", "no method in effect has the key for this file"},
		"err_meta_not_json":           {"Step:", "this is not a matter of the wrong key"},
		"err_meta_bad_hash":           {"Step:", "this is not a matter of the wrong key", "hash"},
		"err_meta_bad_key_length":     {"Step:", "this is not a matter of the wrong key"},
		"err_low_iterations":          {"200000"},
		"err_short_passphrase":        {"16 bytes"},
		"err_undeclared_method":       {"method.aes_gcm.nope is not configured"},
		"err_target_without_method":   {"no method is set"},
		"err_enforced_unencrypted":    {"method.unencrypted.u reads unencrypted data, which enforced = true forbids"},
		"err_unencrypted_not_allowed": {"Step: recognizing the file", "the file is a plaintext state", "(only method.aes_gcm.m)"},
		"err_serial_mismatch":         {"the serial beside the encrypted data (2) is not the one inside (1)"},
		"err_lineage_mismatch":        {"the lineage beside the encrypted data is not the one inside"},
		"err_not_json":                {"Step: recognizing the file", "neither an encrypted state nor a plaintext one"},
		"err_not_a_state":             {"Step: recognizing the file", "neither an encrypted state nor a plaintext one"},
		"err_no_config": {"Step: recognizing the file", `the file is encrypted (its metadata names "key_provider.pbkdf2.k")`,
			"no method for encrypted data is configured"},
		"err_plain_bad_type":     {"Step: reading the decrypted state"},
		"err_plain_extra_attr":   {"Step: reading the decrypted state"},
		"err_plain_no_type":      {"Step: reading the decrypted state", "type"},
		"err_plain_tuple_length": {"Step: reading the decrypted state"},
		"err_plain_version0":     {"version"},
		"err_plain_version5":     {"Step: reading the decrypted state", "version"},
	} {
		t.Run(name, func(t *testing.T) {
			v := vectors.Get(t, name)
			arguments := []string{}
			if v.Kind == "plain_state" {
				arguments = append(arguments, `method = "unencrypted"`)
			}
			provider := ""
			if v.ConfigFile != "" {
				provider = textProvider(v.Config(t))
			}
			vectorProject(t, v, provider, arguments...).wantError(words...)
		})
	}
}

// Files that OpenTofu cannot open for reasons that a reader need not share.
func TestAccVectorBetterThanOpenTofu(t *testing.T) {
	for name, like := range map[string]string{
		"err_fallback_same_provider":      "",
		"err_fallback_setup_aborts":       "",
		"err_wrong_provider_name":         "",
		"err_static_provider_unavailable": "config_literal_keys", // the file was never written; this one has the same key
	} {
		t.Run(name, func(t *testing.T) {
			v := vectors.Get(t, name)
			provider := textProvider(v.Config(t))
			if like != "" {
				v = vectors.Get(t, like)
				vectorProject(t, v, provider).wantOutputs(outputsOf(t, v))
				return
			}
			vectorProject(t, v, provider).wantOutputs(nil)
		})
	}
}
