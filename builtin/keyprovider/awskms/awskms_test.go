package awskms_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

func TestSuite(t *testing.T) {
	server := startKMS(t,
		awskmstest.Key{ID: keyARN, Names: []string{alias}, Master: master(1)},
		awskmstest.Key{ID: "alias/other", Master: master(2)},
	)
	server.Allow("GenerateDataKey")
	role := attrs{}.With("role_arn", "arn:aws:iam::111122223333:role/reader")
	suite := encryptiontest.KeyProvider{
		Block: awskms.Block(),
		Attrs: static().With("shared_config_files", []string{endpoints(t, server.URL)}),
		Other: static().With("shared_config_files", []string{endpoints(t, server.URL)}).With("kms_key_id", "alias/other"),
		Bad: []map[string]cty.Value{
			{},
			static().With("kms_key_id", nil),
			static().With("kms_key_id", ""),
			static().With("key_spec", nil),
			static().With("key_spec", "AES_192"),
			static().With("key_spec", "aes_256"),
			static().With("region", nil),
			static().With("region", ""),
			static().With("secret_key", nil),
			static().With("access_key", nil),
			anonymous().With("token", "canary-token"),
			static().With("allowed_account_ids", []string{"1"}).With("forbidden_account_ids", []string{"2"}),
			static().With("max_retries", -1),
			static().With("max_retries", 1001),
			static().With("retry_mode", "canary"),
			static().With("http_proxy", "http://u:canary@[::1"),
			static().With("https_proxy", "http://u:canary@:3128"),
			static().With("ec2_metadata_service_endpoint_mode", "IPv5"),
			static().With("custom_ca_bundle", filepath.Join(t.TempDir(), "missing")),
			static().With("assume_role", attrs{}.With("session_name", "x")),
			static().With("assume_role", role.With("duration", "14m")),
			static().With("assume_role", role.With("duration", "13h")),
			static().With("assume_role", role.With("duration", "canary")),
			static().With("assume_role", role.With("policy_arns", []string{"canary"})),
			static().With("assume_role", role.With("policy_arns", []string{"arn:aws:iam::aws:role/x"})),
			anonymous().With("assume_role_with_web_identity", role),
			anonymous().With("assume_role_with_web_identity", attrs{}.With("web_identity_token", "canary")),
			withContext(static(), "k", strings.Repeat("v", 8192)),
		},
		Secrets: []string{"canary"},
	}
	suite.Run(t)
	kindtest.Settings(t, kindtest.OpenMistakes(t, "aws_kms", suite.Secrets...), suite.Block, suite.Bad)
}

func withContext(a attrs, kv ...string) attrs {
	out := a.With("encryption_context", nil)
	out["encryption_context"] = pairs(kv...)
	return out
}

// TestVectors opens files that real OpenTofu wrote with a fake. Reading one is one
// Decrypt, which is all that the fake allows.
func TestVectors(t *testing.T) {
	for _, v := range []lighttest.Vector{
		"testdata/aws_kms_aes256", "testdata/aws_kms_aes128_alias", "testdata/aws_kms_encryption_context",
	} {
		t.Run(v.Name(), func(t *testing.T) {
			var vector struct{ Env map[string]string }
			if err := json.Unmarshal(v.Read(t, "case.json"), &vector); err != nil {
				t.Fatal(err)
			}
			server := awskmstest.New(t,
				awskmstest.Key{ID: "arn:aws:kms:eu-central-1:000000000000:key/11111111-2222-3333-4444-555555555555", Master: master(0x11)},
				awskmstest.Key{ID: "alias/throwaway", Master: master(0x11)},
			)
			for name, value := range vector.Env {
				t.Setenv(name, strings.ReplaceAll(value, "${FAKE_URL}", server.URL))
			}
			target := v.Target(t, kindtest.Registry(awskms.Block()), os.LookupEnv)
			for range 20 {
				v.Opens(t, target)
			}
			got := server.Requests()
			if len(got) != 1 || got[0].Operation != "Decrypt" || got[0].AccessKey != "AKIATHROWAWAYTEST000" || got[0].Region != "eu-central-1" {
				t.Errorf("got requests %+v", got)
			}
		})
	}
}

func parse(t *testing.T, text string) encryption.Target {
	t.Helper()
	return kindtest.Target(t, kindtest.Registry(awskms.Block()), text, os.LookupEnv)
}

// The metadata is what OpenTofu reads: these names, and no context where none
// is configured.
func TestMetadata(t *testing.T) {
	server := standard(t)
	for _, c := range []struct {
		attrs attrs
		names int
		size  int
	}{
		{static(), 1, 32},
		{static().With("key_spec", "AES_128"), 1, 16},
		{withContext(static(), "env", "prod"), 2, 32},
	} {
		key, stored := wrapped(t, server, c.attrs)
		var members map[string]any
		if err := json.Unmarshal(stored, &members); err != nil {
			t.Fatal(err)
		}
		if _, ok := members["ciphertext_blob"].(string); !ok || len(members) != c.names || len(key) != c.size {
			t.Errorf("a key of %d bytes, and stored %s", len(key), stored)
		}
	}
}

// A file is read with the context that it was sealed with, whatever the
// configuration says by now.
func TestStoredContextCounts(t *testing.T) {
	server := standard(t)
	key, stored := wrapped(t, server, withContext(static(), "env", "prod", "<&>", "é"))
	for _, a := range []attrs{static(), withContext(static(), "env", "test")} {
		got, err := provider(t, a).Key(t.Context(), nil, stored)
		if err != nil || !bytes.Equal(got, key) {
			t.Errorf("the key did not come back: %v", err)
		}
	}
	for _, r := range server.Requests() {
		if r.Operation != "Decrypt" || r.Context["env"] != "prod" || r.Context["<&>"] != "é" {
			t.Errorf("got request %+v", r)
		}
	}
	_, err := provider(t, static()).Key(t.Context(), nil, bytes.ReplaceAll(stored, []byte("prod"), []byte("test")))
	if !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("another context: %v", err)
	}
}

func TestFallbackAfterKMSHasNoKey(t *testing.T) {
	server := startKMS(t,
		awskmstest.Key{ID: "alias/off", Master: master(2), State: awskmstest.Disabled},
		awskmstest.Key{ID: keyARN, Master: master(1)},
	)
	server.Allow("GenerateDataKey")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIA")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	t.Setenv("AWS_REGION", "eu-west-1")
	const entries = `
key_provider "aws_kms" "off" {
  kms_key_id = "alias/off"
  key_spec = "AES_256"
}
key_provider "aws_kms" "on" {
  kms_key_id = "` + keyARN + `"
  key_spec = "AES_256"
  encrypted_metadata_alias = "shared"
}
method "aes_gcm" "off" { keys = key_provider.aws_kms.off }
method "aes_gcm" "on" { keys = key_provider.aws_kms.on }
`
	sealed, err := parse(t, entries+`state { method = method.aes_gcm.on }`).Encrypt(t.Context(),
		[]byte(`{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	sealed = bytes.ReplaceAll(sealed, []byte(`"shared"`), []byte(`"key_provider.aws_kms.off"`))
	opened, err := parse(t, strings.ReplaceAll(entries, `"shared"`, `"key_provider.aws_kms.off"`)+`state {
  method = method.aes_gcm.off
  fallback { method = method.aes_gcm.on }
}`).Decrypt(t.Context(), sealed)
	if err != nil || !opened.UsedFallback {
		t.Errorf("got %+v, %v", opened, err)
	}
}

func TestStored(t *testing.T) {
	server := standard(t)
	key, stored := wrapped(t, server, withContext(static(), "env", "prod"))
	p := provider(t, static())
	deriver, ok := p.(driver.Deriver)
	if !ok {
		t.Fatal("it serves no derived keys")
	}
	again, err := deriver.Stored(nil, stored)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Key(t.Context(), nil, again); err != nil || !bytes.Equal(got, key) {
		t.Errorf("the key did not come back: %v", err)
	}
	for _, c := range []struct {
		salt    []byte
		wrapped json.RawMessage
	}{{nil, nil}, {[]byte("sixteen bytes or more"), nil}, {[]byte("sixteen bytes or more"), stored}, {nil, json.RawMessage(`{}`)},
		{nil, json.RawMessage(`x`)}} {
		if _, err := deriver.Stored(c.salt, c.wrapped); err == nil {
			t.Errorf("%q and %q are accepted", c.salt, c.wrapped)
		}
	}
}

// Many readers at once share the client and the credentials.
func TestAtOnce(t *testing.T) {
	server, sts := standard(t), awskmstest.NewSTS(t)
	key, stored := wrapped(t, server, static())
	p := provider(t, static().With("endpoints", attrs{}.With("sts", sts.URL)).With("assume_role",
		attrs{}.With("role_arn", "arn:aws:iam::111122223333:role/reader")))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := p.Key(t.Context(), nil, stored); err != nil || !bytes.Equal(got, key) {
				t.Errorf("the key did not come back: %v", err)
			}
		})
	}
	wg.Wait()
	if calls := sts.Requests(); len(calls) != 1 {
		t.Errorf("the role was assumed %d times", len(calls))
	}
}
