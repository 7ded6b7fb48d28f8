package vectors_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// better are the files on which the tools fail by a quirk that a reader need not repeat.
var better = map[string]string{
	"err_chain_same_alias":            "renamed key providers are found by the shape of their metadata",
	"err_fallback_same_provider":      "primary and fallback may share a key provider",
	"err_fallback_setup_aborts":       "a program that is not there has no key for the file, so the fallback is tried",
	"err_json_method_template":        "in JSON, a reference may also be a template",
	"err_literal_key_unused":          "the length of a literal key that is not used does not matter",
	"err_merge_without_method":        "a layer may set enforced alone",
	"err_method_quoted":               "a reference may also be a text",
	"err_plan_without_method":         "a target that is not used may be without a method",
	"err_static_provider_unavailable": "the key provider static exists",
	"err_unencrypted_no_version":      "a state in plaintext need not say who wrote it",
	"err_wrong_provider_name":         "a renamed key provider is found by the shape of its metadata",
}

// stricter are the files that the tools open and we refuse.
var stricter = map[string]string{"tbg_aes_plain": "plaintext is read only if a method says so"}

// sample are slow files that are read with -short, too.
var sample = []string{"fallback_two_levels", "merge_code_and_env", "err_wrong_passphrase", "err_bad_base64"}

// TestVectors reads all vectors. A file that cannot be read for another reason than that of its case would show
// nothing, so the golden has what we say of each.
//
// Promise: Earlier releases
func TestVectors(t *testing.T) {
	files, programs := testkit.OpenGolden(t, "testdata/mistakes.txt", "file"), (*testkit.Golden)(nil)
	if runtime.GOOS != "windows" {
		programs = testkit.OpenGolden(t, "testdata/mistakes.txt", "program")
	}
	for _, v := range conformance.All() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && v.Slow() && !slices.Contains(sample, v.Name) {
				t.Skip("deriving its key takes long")
			}
			if len(v.Programs) > 0 && runtime.GOOS == "windows" {
				t.Skip("the programs are scripts for sh")
			}
			says := files
			if len(v.Programs) > 0 {
				says = programs
			}
			if len(v.Selection) > 0 {
				for _, s := range v.Selection {
					check(t, says, v, s.Name, s.Expect == "ok")
				}
				return
			}
			check(t, says, v, "", stricter[v.Name] == "" && (v.Expect == "ok" || better[v.Name] != ""))
		})
	}
}

func check(t *testing.T, says *testkit.Golden, v conformance.Case, remoteState string, expectOK bool) {
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
		says.Error(t, strings.TrimSpace(v.Name+" "+remoteState), err)
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
	var layers []encryption.Layer
	for _, text := range []string{v.CodeConfig(), v.Config(), own} {
		for _, program := range v.Programs { // which are beside the file
			text = strings.ReplaceAll(text, "./"+program, absolute(t, filepath.Join("../../../conformance/cases", v.Name, program)))
		}
		layers = append(layers, encryption.Code(text, v.Name))
	}
	layers = append(layers, encryption.Environment(func(name string) (string, bool) {
		value, ok := v.BackendEnv[name]
		return value, ok
	}))
	enc, err := encryption.Load(registry, layers...)
	if err != nil {
		return encryption.Target{}, err
	}
	switch {
	case remoteState != "":
		return enc.RemoteState(remoteState), nil
	case method != "":
		return enc.Use(method)
	case v.Kind == "opentofu_plan":
		return enc.Plan(), nil
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

// read opens a state, or a plan, which has no outputs.
func read(target encryption.Target, file []byte) (*tfstate.State, error) {
	opened, err := target.Decrypt(context.Background(), file)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(opened.Data, []byte("PK")) {
		return &tfstate.State{}, nil
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

// The file whose passphrase is too short was encrypted with it, so that whoever accepts
// such a passphrase opens it.
func TestShortPassphrase(t *testing.T) {
	t.Parallel()
	var envelope struct {
		Meta map[string][]byte
		Data []byte `json:"encrypted_data"`
	}
	var stored struct {
		Salt       []byte
		Iterations int
	}
	if err := json.Unmarshal(conformance.Get("err_short_passphrase").State(), &envelope); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(envelope.Meta["key_provider.pbkdf2.k"], &stored); err != nil {
		t.Fatal(err)
	}
	key, err := pbkdf2.Key(sha256.New, "fifteen-chars!!", stored.Salt, stored.Iterations, 32)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	opener, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := opener.Open(nil, nil, envelope.Data, nil)
	if err != nil || !json.Valid(plain) {
		t.Errorf("got %v, %s", err, plain)
	}
}
