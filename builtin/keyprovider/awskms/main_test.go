package awskms_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const (
	keyARN = "arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"
	alias  = "alias/tf-state"
)

func TestMain(m *testing.M) {
	nettest.ForgetMachine("AWS_")
	os.Exit(m.Run())
}

func master(b byte) []byte {
	m := make([]byte, 32)
	for i := range m {
		m[i] = b
	}
	return m
}

// startKMS serves keys where AWS_ENDPOINT_URL_KMS says.
func startKMS(t *testing.T, keys ...awskmstest.Key) *awskmstest.Server {
	t.Helper()
	server := awskmstest.New(t, keys...)
	t.Setenv("AWS_ENDPOINT_URL_KMS", server.URL)
	return server
}

// standard has one key under two names.
func standard(t *testing.T) *awskmstest.Server {
	t.Helper()
	return startKMS(t, awskmstest.Key{ID: keyARN, Names: []string{alias}, Master: master(1)})
}

type attrs = testkit.Attrs

func pairs(kv ...string) cty.Value {
	out := map[string]cty.Value{}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = cty.StringVal(kv[i+1])
	}
	return cty.MapVal(out)
}

// anonymous is a configuration that leaves the credentials to the SDK.
func anonymous() attrs {
	return attrs{}.With("kms_key_id", keyARN).With("key_spec", "AES_256").With("region", "eu-west-1").With("max_retries", 2)
}

func static() attrs {
	return anonymous().With("access_key", "AKIASTATIC").With("secret_key", "canary-secret")
}

func build(t *testing.T, a attrs, env attr.LookupEnv) (driver.KeyProvider, error) {
	t.Helper()
	return kindtest.TryBuild(awskms.Block(), a, env)
}

func provider(t *testing.T, a attrs) driver.KeyProvider {
	t.Helper()
	p, err := build(t, placed(a), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hasty is a provider that hardly waits between attempts.
func hasty(t *testing.T, a attrs) driver.KeyProvider {
	t.Helper()
	p := provider(t, a)
	awskms.SetPatience(p, time.Minute, time.Millisecond)
	return p
}

// placed has the endpoints of the test as arguments, beside a secret of the
// code, which takes none from the environment.
func placed(a attrs) attrs {
	table := awskms.Block().Table
	if v, err := unstable.NewEntry("key_provider.aws_kms.x", table, a).Decode(table, nil); err == nil && v.Hands() {
		endpoints := attrs{}
		if a["endpoints"] != cty.NilVal {
			endpoints = a["endpoints"].AsValueMap()
		}
		for _, name := range []string{"kms", "sts"} {
			if url := os.Getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(name)); url != "" && endpoints[name] == cty.NilVal {
				endpoints = endpoints.With(name, url)
			}
		}
		a = a.With("endpoints", endpoints)
	}
	return a
}

// wrapped makes a key and what a file stores of it.
func wrapped(t *testing.T, server *awskmstest.Server, a attrs) (key, stored []byte) {
	t.Helper()
	server.Allow("GenerateDataKey")
	key, stored = kindtest.NewKey(t, provider(t, a))
	server.Requests()
	return key, stored
}

// endpoints is a shared configuration file that says where KMS is.
func endpoints(t *testing.T, url string) string {
	t.Helper()
	return write(t, "[default]\nendpoint_url = "+url+"\n")
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clean fails when an error shows a secret or what a server answered.
func clean(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), "canary") {
		t.Errorf("an error shows a secret or an answer: %v", err)
	}
}
