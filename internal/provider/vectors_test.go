package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
)

// readsVector is a data source that reads a vector, and outputs for all its
// outputs. Their names begin with prefix.
func readsVector(t *testing.T, prefix string, v conformance.Case, arguments ...string) string {
	t.Helper()
	name := prefix + "s"
	arguments = append(arguments, fromFile(writeTemp(t, "state", v.State())), "store_sensitive = true")
	return reads(name, arguments...) + output(prefix+"all", "data.statecrypt_remote_state."+name+".outputs") +
		sensitiveOutput(prefix+"sensitive", "data.statecrypt_remote_state."+name+".sensitive_outputs") +
		output(prefix+"fallback", "data.statecrypt_remote_state."+name+".used_fallback")
}

func evaluateVector(t *testing.T, v conformance.Case, provider string, arguments ...string) *evaluation {
	t.Helper()
	if testing.Short() && v.Slow() && v.Name != "fallback_two_levels" {
		t.Skip("deriving its key takes long")
	}
	return patient(builtinKinds()).evaluate(t, provider, readsVector(t, "", v, arguments...))
}

func outputsOf(t *testing.T, v conformance.Case) map[string]cty.Value {
	t.Helper()
	open, sensitive := expected(t, v)
	return map[string]cty.Value{"all": open, "sensitive": sensitive}
}

// One vector for each feature of the text, given in the argument encryption.
func TestVectorText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"aes_gcm_aad", "alpha_no_serial_lineage", "config_function_call", "config_json_template_refs", "config_literal_keys",
		"enforced_ok", "envelope_extra_keys", "fallback_old_key", "fallback_primary_unencrypted", "fallback_two_levels",
		"http_backend_compact", "metadata_alias", "no_outputs", "output_zoo", "pbkdf2_chain_pbkdf2_alias", "pbkdf2_metadata_wins",
		"pbkdf2_sha256_key16", "pbkdf2_unicode_passphrase", "unencrypted_state_primary", "unencrypted_state_with_fallback",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := conformance.Get(name)
			want := outputsOf(t, v)
			want["fallback"] = cty.BoolVal(strings.Contains(name, "fallback"))
			evaluateVector(t, v, textProvider(v.Config())).wantOutputs(want)
		})
	}
}

// pbkdf2Blocks are a key provider and a method, both called name.
func pbkdf2Blocks(name, passphrase string) string {
	return entry("key_provider", "pbkdf2", name, fmt.Sprintf("passphrase = %q", passphrase)) +
		entry("method", "aes_gcm", name, fmt.Sprintf("keys = \"key_provider.pbkdf2.%s\"", name))
}

func targetBlock(methods ...string) string {
	text := fmt.Sprintf("default {\nmethod = %q\n", methods[0])
	for _, m := range methods[1:] {
		text += fmt.Sprintf("fallback {\nmethod = %q\n}\n", m)
	}
	return text + "}\n"
}

// The same settings as blocks.
func TestVectorBlocks(t *testing.T) {
	t.Parallel()
	method := func(keys string, more ...string) string {
		return entry("method", "aes_gcm", "m", append(more, fmt.Sprintf("keys = %q", "key_provider."+keys))...) + staticDefault
	}
	for name, blocks := range map[string]string{
		"pbkdf2_defaults":            pbkdf2Blocks("k", "correct-horse-battery-staple") + targetBlock("method.aes_gcm.k"),
		"pbkdf2_sha512_key24_salt64": pbkdf2Blocks("k", "second throwaway passphrase") + targetBlock("method.aes_gcm.k"),
		"pbkdf2_sha256_key32_salt1":  pbkdf2Blocks("k", "second throwaway passphrase") + targetBlock("method.aes_gcm.k"),
		"pbkdf2_chain_pbkdf2_alias": entry("key_provider", "pbkdf2", "a", `passphrase = "chain-throwaway-passphrase"`,
			`encrypted_metadata_alias = "upstream"`) +
			entry("key_provider", "pbkdf2", "b", `chain = "key_provider.pbkdf2.a"`, `encrypted_metadata_alias = "downstream"`) +
			method("pbkdf2.b"),
		"aes_gcm_aad": entry("key_provider", "pbkdf2", "k", `passphrase = "correct-horse-battery-staple"`) +
			method("pbkdf2.k", "aad = [112, 117, 98, 108, 105, 99, 45, 97, 97, 100]"),
		// Sealed with the key itself, which is what static gives.
		"config_literal_keys": entry("key_provider", "static", "k", fmt.Sprintf("key = %q", staticKey)) + method("static.k"),
		"enforced_ok":         pbkdf2Blocks("k", "correct-horse-battery-staple") + targetBlock("method.aes_gcm.k") + "enforced = true\n",
		"fallback_two_levels": pbkdf2Blocks("new", "new-throwaway-passphrase") + pbkdf2Blocks("mid", "mid-throwaway-passphrase-x") +
			pbkdf2Blocks("old", "old-throwaway-passphrase") + targetBlock("method.aes_gcm.new", "method.aes_gcm.mid", "method.aes_gcm.old"),
		// Which has names of its own for all of them.
		"gitlab_auto_encryption":    pbkdf2Blocks("k", "a throwaway passphrase of a pipeline") + targetBlock("method.aes_gcm.k"),
		"unencrypted_state_primary": targetBlock("unencrypted"),
		"unencrypted_state_with_fallback": pbkdf2Blocks("k", "correct-horse-battery-staple") + entry("method", "unencrypted", "u") +
			targetBlock("method.aes_gcm.k", "method.unencrypted.u"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := conformance.Get(name)
			evaluateVector(t, v, settings(blocks)).wantOutputs(outputsOf(t, v))
		})
	}
}

// TF_ENCRYPTION alone, as a tofu run hands it to every provider.
func TestVectorEnvironment(t *testing.T) {
	golden := openMistakes(t, "no environment")
	for _, name := range []string{"pbkdf2_defaults", "config_json"} {
		t.Run(name, func(t *testing.T) {
			v := conformance.Get(name)
			t.Setenv("TF_ENCRYPTION", v.Config())
			evaluateVector(t, v, "").wantOutputs(outputsOf(t, v))
			evaluateVector(t, v, settings("use_environment = false")).wantMistake(golden, name)
		})
	}
}

func TestVectorNamedTarget(t *testing.T) {
	t.Parallel()
	v := conformance.Get("remote_state_selection")
	open, _ := expected(t, v)
	file, provider := fromFile(writeTemp(t, "state", v.State())), textProvider(v.Config())
	config, want := []string{provider}, map[string]cty.Value{}
	for i, s := range v.Selection {
		if s.Expect == "ok" {
			name := fmt.Sprintf("s%d", i)
			config = append(config, reads(name, file, "name = "+quote(s.Name)), output(name, "data.statecrypt_remote_state."+name+".outputs"))
			want[name] = open
		}
	}
	patient(builtinKinds()).evaluate(t, config...).wantOutputs(want)
	// OpenTofu would take the default; here it is a mistake.
	evaluateVector(t, v, provider, `name = "cnt[0]"`).wantError(`remote_state_data_source "cnt[0]"`)
	evaluateVector(t, v, provider).wantError("Step: decrypting the file", "method.aes_gcm.bad")
}

// On a real CLI: plaintext states of all versions and types, settings as text and
// as blocks, and TF_ENCRYPTION over the code, in one configuration.
func TestAccVectors(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	config, want := []string{}, map[string]cty.Value{}
	add := func(name string, arguments ...string) conformance.Case {
		v := conformance.Get(name)
		config = append(config, readsVector(t, v.Name+"_", v, arguments...))
		for name, value := range outputsOf(t, v) {
			want[v.Name+"_"+name] = value
		}
		return v
	}
	for _, v := range conformance.All() {
		if v.Kind == "plain_state" && v.Expect == "ok" {
			add(v.Name, "provider = statecrypt.blocks", `method = "unencrypted"`)
		}
	}
	if len(config) < 7 {
		t.Fatalf("%d vectors", len(config))
	}
	second := func(name, settings string) string {
		return fmt.Sprintf("provider \"statecrypt\" {\nalias = %q\nuse_environment = false\n%s\n}\n", name, settings)
	}
	zoo := add("output_zoo", "provider = statecrypt.text")
	add("pbkdf2_sha256_key32_salt1", "provider = statecrypt.blocks")
	merged := add("merge_code_and_env")
	config = append(config, textProvider(merged.CodeConfig()), second("text", "encryption = "+quote(zoo.Config())),
		second("blocks", pbkdf2Blocks("k", "second throwaway passphrase")+targetBlock("method.aes_gcm.k")))
	if isTofu() { // it reads the same variable, which is not complete without the code
		config = append(config, "terraform {\nencryption {\n"+merged.CodeConfig()+"\n}\n}\n")
	}
	p := newProject(t, map[string]string{"main.tf": configuration(config...)})
	p.setenv("TF_ENCRYPTION=" + merged.Config())
	p.wantOutputs(want)
}

func TestVectorErrors(t *testing.T) {
	t.Parallel()
	golden := openMistakes(t, "vector")
	for _, name := range []string{
		"err_wrong_passphrase", "err_wrong_aad", "err_bitflip", "err_empty_data", "err_truncated", "err_bad_base64",
		"err_version", "err_meta_missing", "err_meta_not_json", "err_meta_bad_hash", "err_meta_bad_key_length",
		"err_low_iterations", "err_short_passphrase", "err_undeclared_method", "err_target_without_method",
		"err_enforced_unencrypted", "err_unencrypted_not_allowed", "err_serial_mismatch", "err_lineage_mismatch",
		"err_not_json", "err_not_a_state", "err_no_config", "err_plain_bad_type", "err_plain_extra_attr",
		"err_plain_no_type", "err_plain_tuple_length", "err_plain_version0", "err_plain_version5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := conformance.Get(name)
			arguments := []string{}
			if v.Kind == "plain_state" {
				arguments = append(arguments, `method = "unencrypted"`)
			}
			provider := ""
			if v.ConfigFile != "" {
				provider = textProvider(v.Config())
			}
			evaluateVector(t, v, provider, arguments...).wantMistake(golden, name)
		})
	}
}

// Files that OpenTofu cannot open for reasons that a reader need not share.
func TestVectorBetterThanOpenTofu(t *testing.T) {
	t.Parallel()
	for name, like := range map[string]string{
		"err_fallback_same_provider":      "",
		"err_fallback_setup_aborts":       "",
		"err_wrong_provider_name":         "",
		"err_static_provider_unavailable": "config_literal_keys", // the file was never written; this one has the same key
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := conformance.Get(name)
			provider := textProvider(v.Config())
			if like == "" {
				evaluateVector(t, v, provider).succeeds()
				return
			}
			v = conformance.Get(like)
			evaluateVector(t, v, provider).wantOutputs(outputsOf(t, v))
		})
	}
}
