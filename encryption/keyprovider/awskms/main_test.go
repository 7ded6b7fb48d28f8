package awskms_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/awskms/awskmstest"
)

const (
	keyARN = "arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"
	alias  = "alias/tf-state"
)

// TestMain keeps the settings of the machine out of the tests.
func TestMain(m *testing.M) {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "AWS_") || strings.HasSuffix(strings.ToLower(name), "_proxy") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
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

type attrs map[string]cty.Value

// with returns a with more attributes: a string, a list of strings, or a value.
func (a attrs) with(name string, value any) attrs {
	out := attrs{name: cty.NilVal}
	for k, v := range a {
		out[k] = v
	}
	switch v := value.(type) {
	case string:
		out[name] = cty.StringVal(v)
	case []string:
		out[name] = list(v...)
	case int:
		out[name] = cty.NumberIntVal(int64(v))
	case bool:
		out[name] = cty.BoolVal(v)
	case attrs:
		out[name] = cty.ObjectVal(v)
	case nil:
		delete(out, name)
	}
	return out
}

func list(texts ...string) cty.Value {
	var out []cty.Value
	for _, s := range texts {
		out = append(out, cty.StringVal(s))
	}
	return cty.ListVal(out)
}

func pairs(kv ...string) cty.Value {
	out := map[string]cty.Value{}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = cty.StringVal(kv[i+1])
	}
	return cty.MapVal(out)
}

// anonymous is a configuration that leaves the credentials to the SDK.
func anonymous() attrs {
	return attrs{}.with("kms_key_id", keyARN).with("key_spec", "AES_256").with("region", "eu-west-1").with("max_retries", 2)
}

func static() attrs {
	return anonymous().with("access_key", "AKIASTATIC").with("secret_key", "canary-secret")
}

func build(t *testing.T, a attrs, env attr.LookupEnv) (encryption.KeyProvider, error) {
	t.Helper()
	block := awskms.Block()
	values, err := attr.NewEntry("key_provider.aws_kms.x", block.Table, a).Decode(block.Table, env)
	if err != nil {
		return nil, err
	}
	return block.Build(values)
}

func provider(t *testing.T, a attrs) encryption.KeyProvider {
	t.Helper()
	p, err := build(t, placed(a), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// placed has the endpoints of the test as arguments, beside a secret of the
// code, which takes none from the environment.
func placed(a attrs) attrs {
	table := awskms.Block().Table
	if v, err := attr.NewEntry("key_provider.aws_kms.x", table, a).Decode(table, nil); err == nil && v.HoldsSecret() {
		endpoints := attrs{}
		if a["endpoints"] != cty.NilVal {
			endpoints = a["endpoints"].AsValueMap()
		}
		for _, name := range []string{"kms", "sts"} {
			if url := os.Getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(name)); url != "" && endpoints[name] == cty.NilVal {
				endpoints = endpoints.with(name, url)
			}
		}
		a = a.with("endpoints", endpoints)
	}
	return a
}

// wrapped makes a key and what a file stores of it.
func wrapped(t *testing.T, server *awskmstest.Server, a attrs) (key, stored []byte) {
	t.Helper()
	server.Allow("GenerateDataKey")
	maker, ok := provider(t, a).(encryption.KeyMaker)
	if !ok {
		t.Fatal("it makes no keys")
	}
	key, stored, err := maker.NewKey(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
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
