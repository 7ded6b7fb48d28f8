package vectors_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
)

// better are the files on which OpenTofu fails by a quirk that a reader need
// not repeat.
var better = map[string]string{
	"err_fallback_same_provider": "primary and fallback may share a key provider",
	"err_fallback_setup_aborts":  "a program that is not there has no key for the file, so the fallback is tried",
	"err_wrong_provider_name":    "a renamed key provider is found by the shape of its metadata",
}

// sample are slow files that are read with -short, too.
var sample = []string{"fallback_two_levels", "merge_code_and_env", "err_wrong_passphrase", "err_short_passphrase", "err_bad_base64"}

func TestVectors(t *testing.T) {
	for _, v := range conformance.All() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && v.Slow() && !slices.Contains(sample, v.Name) {
				t.Skip("deriving its key takes long")
			}
			if len(v.Selection) > 0 {
				for _, s := range v.Selection {
					check(t, v, s.Name, s.Expect == "ok")
				}
				return
			}
			check(t, v, "", v.Expect == "ok" || better[v.Name] != "")
		})
	}
}

func check(t *testing.T, v conformance.Case, remoteState string, expectOK bool) {
	t.Helper()
	state, err := open(t, v, remoteState)
	switch {
	case err != nil && expectOK:
		t.Errorf("%s %s: %v", v.Name, remoteState, err)
	case err == nil && !expectOK:
		t.Errorf("%s %s: this must fail, and gave %d outputs", v.Name, remoteState, len(state.Outputs))
	case err == nil && v.OutputsFile != "":
		compare(t, state, v.Outputs())
	case err != nil:
		t.Log(err)
	}
}

// open does what the provider does with a vector: configuration text, target,
// decryption, outputs.
func open(t *testing.T, v conformance.Case, remoteState string) (*tfstate.State, error) {
	t.Helper()
	target, err := targetOf(t, v, remoteState)
	if err != nil {
		return nil, err
	}
	return read(target, v.State())
}

func targetOf(t *testing.T, v conformance.Case, remoteState string) (encryption.Target, error) {
	t.Helper()
	return targetWith(t, patient(), v, remoteState)
}

func targetWith(t *testing.T, registry encryption.Registry, v conformance.Case, remoteState string) (encryption.Target, error) {
	t.Helper()
	own, method := methodOf(v)
	var layers []*config.Config
	for _, text := range []string{v.CodeConfig(), v.Config(), own} {
		layer, err := config.Parse(text, v.Name, registry.Options(cty.NilVal))
		if err != nil {
			return encryption.Target{}, err
		}
		layers = append(layers, layer)
	}
	merged := config.Merge(layers...)
	if merged != nil {
		merged.LookupEnv = func(name string) (string, bool) {
			value, ok := v.BackendEnv[name]
			return value, ok
		}
	}
	enc, err := encryption.New(registry, merged)
	if err != nil {
		return encryption.Target{}, err
	}
	switch {
	case remoteState != "":
		target, err := enc.RemoteState(remoteState)
		if err != nil {
			return enc.RemoteState("") // as OpenTofu does
		}
		return target, nil
	case method != "":
		return enc.Use(method)
	}
	return enc.State(), nil
}

// methodOf is the method for a file that is not OpenTofu's, with its text. Where
// there is a configuration as well, the file was encrypted twice.
func methodOf(v conformance.Case) (text, address string) {
	kind, attrs := "", ""
	switch {
	case v.Kind == "kubeform_module":
		kind, attrs = "kubeform", fmt.Sprintf("key = %q\n", v.SecretKey)
	case v.Kind == "terraform_backend_git" && len(v.BackendEnv) > 0:
		kind = "terraform_backend_git"
	case v.Kind == "sops":
		kind, attrs = "sops", "use_gpg = false\n"
		for name, file := range map[string]string{"age_identities": "age_identity.txt", "pgp_private_keys": "pgp_private.asc"} {
			if key := v.Secret(file); key != "" {
				attrs += fmt.Sprintf("%s = [%q]\n", name, key)
			}
		}
	default:
		return "", ""
	}
	if v.ConfigFile != "" {
		attrs += "then = method.aes_gcm.m\n"
	}
	return fmt.Sprintf("method %q \"m\" {\n%s}\n", kind, attrs), "method." + kind + ".m"
}

func read(target encryption.Target, file []byte) (*tfstate.State, error) {
	opened, err := target.Decrypt(context.Background(), file)
	if err != nil {
		return nil, err
	}
	state, err := tfstate.Parse(opened.Data)
	if err != nil {
		return nil, err
	}
	for name, output := range state.Outputs {
		if _, err := output.Value(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return state, nil
}

func compare(t *testing.T, state *tfstate.State, want map[string]conformance.Output) {
	t.Helper()
	if err := conformance.SameOutputs(state, want); err != nil {
		t.Error(err)
	}
}

// The static key provider is not part of OpenTofu's own binary, which fails on
// any configuration that names it. Here it is there, and opens what was sealed
// with the same key.
func TestStaticKeyProvider(t *testing.T) {
	static := conformance.Get("err_static_provider_unavailable")
	sealed := conformance.Get("config_literal_keys")
	registry := builtin.Registry()
	cfg, err := config.Parse(static.Config(), "static", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := enc.State().Decrypt(context.Background(), sealed.State())
	if err != nil {
		t.Fatal(err)
	}
	state, err := tfstate.Parse(opened.Data)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, state, sealed.Outputs())
}
