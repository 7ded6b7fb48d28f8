package sops_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	getsops "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/hckms"
	"github.com/getsops/sops/v3/hcvault"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/kms"
	"github.com/getsops/sops/v3/shamir"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	gcpprovider "github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// TestMain keeps the settings of the machine out of the tests: the AWS SDK
// reads its own.
func TestMain(m *testing.M) {
	nettest.ForgetMachine("AWS_", "AZURE_", "ARM_", "GOOGLE_", "VAULT_", "BAO_", "SOPS_")
	os.Setenv("HOME", os.DevNull)
	os.Exit(m.Run())
}

const (
	arn   = "arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"
	role  = "arn:aws:iam::111122223333:role/reader"
	gcpID = "projects/p/locations/global/keyRings/r/cryptoKeys/k"
)

// made has a service make a data key, and returns it with what wraps it.
func made(t *testing.T, block driver.Block[driver.KeyProvider], a attrs, env attr.LookupEnv) (dataKey []byte,
	stored map[string]any) {
	t.Helper()
	dataKey, document := kindtest.NewKey(t, kindtest.Build(t, block, a, env))
	if err := json.Unmarshal(document, &stored); err != nil {
		t.Fatal(err)
	}
	return dataKey, stored
}

// of is the file with one key.
func of(t *testing.T, dataKey []byte, group ...keys.MasterKey) []byte {
	t.Helper()
	return sealed{plain: plainState, dataKey: dataKey, groups: []getsops.KeyGroup{group}}.file(t)
}

func vaultFile(t *testing.T, s *openbaotest.Server) []byte {
	t.Helper()
	s.MakesKeys = true
	dataKey, stored := made(t, openbao.Block(), attrs{"address": cty.StringVal(s.URL), "token": cty.StringVal(s.Token),
		"key_name": cty.StringVal("state")}, nil)
	enc, _ := base64.StdEncoding.DecodeString(stored["ciphertext"].(string))
	return of(t, dataKey, &hcvault.MasterKey{VaultAddress: s.URL, EnginePath: "transit", KeyName: "state", EncryptedKey: string(enc)})
}

func newVault(t *testing.T) *openbaotest.Server {
	t.Helper()
	s := openbaotest.New(t, make([]byte, 32))
	s.Token = "canary-token"
	return s
}

// A key service that is asked without protection is worth the same warning as if
// its key provider were configured.
func TestUnverifiedVaultWarns(t *testing.T) {
	t.Parallel()
	s := newVault(t)
	s.MakesKeys = true
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	dataKey, stored := made(t, openbao.Block(), attrs{"address": cty.StringVal(s.URL), "token": cty.StringVal(s.Token),
		"key_name": cty.StringVal("state")}, nil)
	enc, _ := base64.StdEncoding.DecodeString(stored["ciphertext"].(string))
	file := of(t, dataKey, &hcvault.MasterKey{VaultAddress: server.URL, EnginePath: "transit", KeyName: "state", EncryptedKey: string(enc)})
	m := build(t, nil, environment("VAULT_ADDR", server.URL, "VAULT_TOKEN", s.Token, "VAULT_SKIP_VERIFY", "true"), openbao.Block())
	warns := m.(driver.Warner)
	if got := warns.Warning(); got != (driver.Warning{}) {
		t.Errorf("nothing was asked, and it warns: %v", got)
	}
	opens(t, m, file, plainState)
	got := warns.Warning()
	kindtest.OpenMistakes(t, "sops, warnings").Check(t, "Vault", got.Title+"\n"+got.Text)
}

func TestVault(t *testing.T) {
	s := newVault(t)
	file := vaultFile(t, s)
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".vault-token"), []byte(s.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	asked := len(s.Requests())
	for name, m := range map[string]driver.Method{
		"attributes": build(t, attrs{"allowed_vault_addresses": texts("http://127.0.0.1:1", s.URL+"/"),
			"vault_token": cty.StringVal(s.Token)}, nil, openbao.Block()),
		"variables":                        build(t, nil, environment("VAULT_ADDR", s.URL, "VAULT_TOKEN", s.Token), openbao.Block()),
		"OpenBao's":                        build(t, nil, environment("BAO_ADDR", s.URL, "BAO_TOKEN", s.Token), openbao.Block()),
		"the saved token":                  build(t, nil, environment("VAULT_ADDR", s.URL), openbao.Block()),
		"the saved token, environment off": build(t, attrs{"allowed_vault_addresses": texts(s.URL)}, nil, openbao.Block()),
		"not another agent": build(t, nil, environment("VAULT_ADDR", s.URL, "VAULT_TOKEN", s.Token, "VAULT_AGENT_ADDR", "http://127.0.0.1:1"),
			openbao.Block()),
	} {
		t.Run(name, func(t *testing.T) {
			opens(t, m, file, plainState)
			for range 20 {
				opens(t, m, file, plainState)
			}
			if all := s.Requests()[asked:]; !slices.Equal(all, []string{"decrypt"}) {
				t.Errorf("asked for %q", all)
			}
			asked = len(s.Requests())
		})
	}
	says := kindtest.OpenMistakes(t, "sops, Vault")
	says.Error(t, "a wrong token",
		fails(t, build(t, nil, environment("VAULT_ADDR", s.URL, "VAULT_TOKEN", "wrong"), openbao.Block()), file, true))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("USERPROFILE", os.Getenv("HOME"))
	says.Error(t, "no token", fails(t, build(t, nil, environment("VAULT_ADDR", s.URL), openbao.Block()), file, true))
	says.Error(t, "no openbao", fails(t, build(t, nil, environment("VAULT_ADDR", s.URL)), file, true))
}

// TestNotAllowed: a key that is not allowed is not asked for. The listener
// counts every connection, whatever it is for.
//
// Promise: Key services
func TestNotAllowed(t *testing.T) {
	var connections atomic.Int32
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			c.Close()
		}
	}()
	address := "http://" + listener.Addr().String()
	for _, name := range []string{"AWS_ENDPOINT_URL", "HTTPS_PROXY", "HTTP_PROXY"} {
		t.Setenv(name, address)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIA")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	all := []driver.Block[driver.KeyProvider]{awskms.Block(), gcpprovider.Block(), azurevault.Block(), openbao.Block()}
	env := environment("VAULT_ADDR", "https://vault.example.com:8200", "VAULT_TOKEN", "canary", "GOOGLE_OAUTH_ACCESS_TOKEN", "canary",
		"AZURE_TENANT_ID", "t", "AZURE_CLIENT_ID", "c", "AZURE_CLIENT_SECRET", "canary", "HTTPS_PROXY", address,
		"VAULT_MAX_RETRIES", "0")
	b64, raw := base64.StdEncoding.EncodeToString(make([]byte, 60)), base64.RawURLEncoding.EncodeToString(make([]byte, 60))
	vault := func(where, engine, name string) keys.MasterKey {
		return &hcvault.MasterKey{VaultAddress: where, EnginePath: engine, KeyName: name, EncryptedKey: "vault:v1:" + b64}
	}
	aws := func(arn, role, profile string) keys.MasterKey {
		return &kms.MasterKey{Arn: arn, Role: role, AwsProfile: profile, EncryptedKey: b64}
	}
	azure := func(where string) keys.MasterKey {
		return &azkv.MasterKey{VaultURL: where, Name: "k", Version: "v", EncryptedKey: raw}
	}
	someAWS, someGCP := attrs{"allowed_aws_keys": texts(arn)}, attrs{"allowed_gcp_keys": texts(gcpID)}
	says := kindtest.OpenMistakes(t, "sops, not allowed", "\x1b")
	someVault, anyAzure := attrs{"allowed_vault_addresses": texts(address)}, attrs{"allowed_azure_vaults": texts("*")}
	for name, c := range map[string]struct {
		key   keys.MasterKey
		attrs attrs
		noKey bool
	}{
		"foreign Vault":               {vault(address, "transit", "k"), nil, false},
		"Vault with another scheme":   {vault("http://vault.example.com:8200", "transit", "k"), nil, false},
		"Vault with another port":     {vault("https://vault.example.com", "transit", "k"), nil, false},
		"Vault with a longer name":    {vault("https://vault.example.com.evil.example:8200", "transit", "k"), nil, false},
		"Vault with a user":           {vault("https://vault.example.com:8200@evil.example", "transit", "k"), nil, false},
		"Vault with a path":           {vault(address+"/x", "transit", "k"), someVault, false},
		"Vault with a fragment":       {vault(address+"#x", "transit", "k"), someVault, false},
		"no Vault":                    {vault("", "transit", "k"), nil, false},
		"engine that leads elsewhere": {vault(address, "transit/../sys/seal", ".."), someVault, false},
		"key that leads elsewhere":    {vault(address, "sys/seal", ".."), someVault, false},
		"key with a slash":            {vault(address, "transit", "a/b"), someVault, false},
		"engine with a question mark": {vault(address, "sys/seal?", "k"), someVault, false},
		"a store of secrets":          {vault(address, "secret", "x"), someVault, false},
		"the store of the token":      {vault(address, "cubbyhole/", "x"), someVault, false},
		"leases":                      {vault(address, "sys/leases/revoke-force", "x"), someVault, false},
		"an engine of others":         {vault(address, "team/transit", "x"), someVault, false},
		"another engine than the listed one": {vault(address, "transit", "x"),
			attrs{"allowed_vault_addresses": texts(address + "/v1/team/transit")}, false},
		"region that is a host":   {aws("arn:aws:kms:evil.example/x:111122223333:key/a", "", ""), nil, false},
		"region with an at sign":  {aws("arn:aws:kms:x@"+listener.Addr().String()+":111122223333:key/a", "", ""), nil, false},
		"no ARN":                  {aws("alias/x", "", ""), nil, false},
		"any AWS key":             {aws(arn, "", ""), nil, false},
		"any Google key":          {&gcpkms.MasterKey{ResourceID: gcpID, EncryptedKey: b64}, nil, false},
		"any Azure vault":         {azure("https://abc.vault.azure.net"), nil, false},
		"a server that lies":      {vault("http://evil.example:1/", "transit", "k"), nil, false},
		"a profile of many lines": {aws(arn, "", "a\nError: ##[x]\x1b[2J"), someAWS, false},
		"another AWS key":         {aws(arn+"0", "", ""), someAWS, false},
		"a role":                  {aws(arn, role, ""), someAWS, false},
		"another role": {aws(arn, role+"2", ""),
			attrs{"allowed_aws_keys": texts("*"), "allowed_aws_roles": texts(role)}, false},
		"a profile": {aws(arn, "", "admin"), someAWS, false},
		"another profile": {aws(arn, "", "admin"),
			attrs{"allowed_aws_keys": texts("*"), "allowed_aws_profiles": texts("reader")}, false},
		"no list of any profile": {aws(arn, "", "admin"),
			attrs{"allowed_aws_keys": texts("*"), "allowed_aws_profiles": texts("*")}, false},
		"another Google key":      {&gcpkms.MasterKey{ResourceID: gcpID + "2", EncryptedKey: b64}, someGCP, false},
		"no Google key":           {&gcpkms.MasterKey{ResourceID: "projects/../x", EncryptedKey: b64}, nil, false},
		"Azure at a foreign host": {azure("https://" + listener.Addr().String()), anyAzure, false},
		"Azure, a longer name":    {azure("https://a.vault.azure.net.evil.example"), anyAzure, false},
		"Azure without TLS":       {azure("http://abc.vault.azure.net"), anyAzure, false},
		"Azure with a path":       {azure("https://abc.vault.azure.net/x"), nil, false},
		"Azure, another vault": {azure("https://abc.vault.azure.net"),
			attrs{"allowed_azure_vaults": texts("https://other.vault.azure.net")}, false},
		"Huawei": {&hckms.MasterKey{KeyID: "tr-west-1:11111111-2222-3333-4444-555555555555", Region: "tr-west-1",
			KeyUUID: "11111111-2222-3333-4444-555555555555", EncryptedKey: b64}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			file := of(t, newDataKey(), c.key)
			if c.attrs == nil {
				c.attrs = attrs{}
			}
			c.attrs["use_gpg"] = cty.False
			says.Error(t, name, fails(t, build(t, c.attrs, env, all...), file, c.noKey))
		})
	}
	for name, k := range map[string]keys.MasterKey{"AWS": aws(arn, "", ""), "Google": &gcpkms.MasterKey{ResourceID: gcpID, EncryptedKey: b64},
		"Azure": azure("https://abc.vault.azure.net")} {
		t.Run("no environment, "+name, func(t *testing.T) {
			lists := attrs{"allowed_aws_keys": texts("*"), "allowed_gcp_keys": texts("*"), "allowed_azure_vaults": texts("*")}
			says.Error(t, "no environment, "+name, fails(t, build(t, lists, nil, all...), of(t, newDataKey(), k), true))
		})
	}
	t.Run("a token of the code, beside a variable that weakens its protection", func(t *testing.T) {
		own := attrs{"allowed_vault_addresses": texts(address), "vault_token": cty.StringVal("canary"), "use_gpg": cty.False}
		says.Error(t, "a variable that weakens its protection", fails(t, build(t, own, environment("VAULT_SKIP_VERIFY", "true"), all...),
			of(t, newDataKey(), vault(address, "transit", "k")), false))
	})
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	// What is allowed arrives there: the listener would have noticed.
	_, err = build(t, someVault, env, all...).Decrypt(t.Context(), nil, of(t, newDataKey(), vault(address, "transit", "k")))
	if err == nil || connections.Load() == 0 {
		t.Errorf("an allowed server was not asked: %v", err)
	}
}

func TestAWS(t *testing.T) {
	server := awskmstest.New(t, awskmstest.Key{ID: arn, Master: make([]byte, 32), Context: map[string]string{"app": "state"}})
	server.Allow("GenerateDataKey")
	t.Setenv("AWS_ENDPOINT_URL_KMS", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAAMBIENT")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	dataKey, stored := made(t, awskms.Block(), attrs{
		"kms_key_id": cty.StringVal(arn), "key_spec": cty.StringVal("AES_256"), "region": cty.StringVal("eu-west-1"),
		"encryption_context": cty.MapVal(map[string]cty.Value{"app": cty.StringVal("state")}),
	}, os.LookupEnv)
	server.Requests()
	app := "state"
	file := of(t, dataKey, &kms.MasterKey{Arn: arn, EncryptedKey: stored["ciphertext_blob"].(string),
		EncryptionContext: map[string]*string{"app": &app}})
	m := build(t, attrs{"allowed_aws_keys": texts(arn)}, os.LookupEnv, awskms.Block())
	for range 20 {
		opens(t, m, file, plainState)
	}
	want := []awskmstest.Request{{Operation: "Decrypt", KeyID: arn, Context: map[string]string{"app": "state"}, AccessKey: "AKIAAMBIENT",
		Region: "eu-west-1"}}
	if got := server.Requests(); len(got) != 1 || got[0].KeyID != arn || got[0].Region != "eu-west-1" || got[0].AccessKey != "AKIAAMBIENT" ||
		!maps.Equal(got[0].Context, want[0].Context) || got[0].Operation != "Decrypt" {
		t.Errorf("asked for %+v", got)
	}
	// A profile that is allowed is used.
	profiles := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(profiles, []byte("[profile reader]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = canary\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", profiles)
	file = of(t, dataKey, &kms.MasterKey{Arn: arn, AwsProfile: "reader", EncryptedKey: stored["ciphertext_blob"].(string),
		EncryptionContext: map[string]*string{"app": &app}})
	reads := attrs{"allowed_aws_keys": texts("*"), "allowed_aws_profiles": texts("reader")}
	opens(t, build(t, reads, os.LookupEnv, awskms.Block()), file, plainState)
	if got := server.Requests(); len(got) != 1 || got[0].AccessKey != "AKIAPROFILE" {
		t.Errorf("asked for %+v", got)
	}
	// Its program runs if the code allows the profile, and not if TF_ENCRYPTION does.
	answer := filepath.Join(t.TempDir(), "answer")
	if err := errors.Join(os.WriteFile(answer, []byte(`{"Version":1,"AccessKeyId":"AKIAPROGRAM","SecretAccessKey":"canary"}`), 0o600),
		os.WriteFile(profiles, []byte("[profile reader]\ncredential_process = cat "+answer+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, ofLayer := range []bool{false, true} {
		block := sops.Block(awskms.Block())
		entry := unstable.NewEntry("method.sops.m", block.Table, reads)
		for name, setting := range entry.Settings {
			setting.FromEnvironment = ofLayer
			entry.Settings[name] = setting
		}
		values, err := entry.Decode(block.Table, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		m, err := block.Build(values)
		if err != nil {
			t.Fatal(err)
		}
		if ofLayer {
			fails(t, m, file, false)
		} else {
			opens(t, m, file, plainState)
		}
		if got := server.Requests(); (len(got) == 0) != ofLayer {
			t.Errorf("of a layer %t: asked for %+v", ofLayer, got)
		}
	}
	// And so is a role.
	sts := awskmstest.NewSTS(t)
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	file = of(t, dataKey, &kms.MasterKey{Arn: arn, Role: role, EncryptedKey: stored["ciphertext_blob"].(string),
		EncryptionContext: map[string]*string{"app": &app}})
	opens(t, build(t, attrs{"allowed_aws_keys": texts("*"), "allowed_aws_roles": texts(role)}, os.LookupEnv, awskms.Block()), file, plainState)
	if calls := sts.Requests(); len(calls) != 1 || calls[0].Form.Get("RoleArn") != role || calls[0].AccessKey != "AKIAAMBIENT" {
		t.Errorf("STS was asked for %+v", calls)
	}
	if got := server.Requests(); len(got) != 1 || got[0].AccessKey != awskmstest.AssumedKey("AssumeRole") {
		t.Errorf("asked for %+v", got)
	}
	file = of(t, dataKey, &kms.MasterKey{Arn: arn, AwsProfile: "reader", EncryptedKey: stored["ciphertext_blob"].(string),
		EncryptionContext: map[string]*string{"app": &app}})
	server.Fail(400, "AccessDeniedException")
	kindtest.OpenMistakes(t, "sops, AWS KMS").Error(t, "denied", fails(t, build(t, reads, os.LookupEnv, awskms.Block()), file, true))
}

func TestGCP(t *testing.T) {
	t.Parallel()
	s := &gcpkmstest.Service{Keys: map[string][]byte{gcpID: make([]byte, 32)}, AllowEncrypt: true}
	block := gcpprovider.BlockWith(gcpprovider.Options{Transport: s.Start(t)})
	env := environment("GOOGLE_OAUTH_ACCESS_TOKEN", gcpkmstest.Token)
	dataKey, stored := made(t, block, attrs{"kms_encryption_key": cty.StringVal(gcpID), "key_length": cty.NumberIntVal(32)}, env)
	file := of(t, dataKey, &gcpkms.MasterKey{ResourceID: gcpID, EncryptedKey: stored["ciphertext"].(string)})
	before := len(s.Calls())
	for _, a := range []attrs{{"allowed_gcp_keys": texts("*")}, {"allowed_gcp_keys": texts(gcpID)}} {
		m := build(t, a, env, block)
		for range 5 {
			opens(t, m, file, plainState)
		}
	}
	if calls := s.Calls()[before:]; !slices.Equal(calls, []string{"Decrypt", "Decrypt"}) {
		t.Errorf("asked for %q", calls)
	}
	kindtest.OpenMistakes(t, "sops, Cloud KMS").Error(t, "a wrong token", fails(t, build(t, attrs{"allowed_gcp_keys": texts(gcpID)},
		environment("GOOGLE_OAUTH_ACCESS_TOKEN", "wrong"), block), file, false))
}

func TestAzure(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &azurevaulttest.Service{RSA: map[string]*rsa.PrivateKey{"k": key}, AllowEncrypt: true}
	block := azurevault.BlockWith(azurevault.Options{Transport: s.Start(t)})
	const vault = "https://example.vault.azure.net"
	dataKey, stored := made(t, block, attrs{
		"vault_uri": cty.StringVal(vault), "vault_key_name": cty.StringVal("k"), "key_length": cty.NumberIntVal(32),
		"tenant_id": cty.StringVal(azurevaulttest.Tenant), "client_id": cty.StringVal(azurevaulttest.ClientID),
		"client_secret": cty.StringVal(azurevaulttest.Secret),
	}, nil)
	sealedKey, err := base64.StdEncoding.DecodeString(stored["ciphertext"].(string))
	if err != nil {
		t.Fatal(err)
	}
	file := of(t, dataKey, &azkv.MasterKey{VaultURL: vault, Name: "k", Version: azurevaulttest.Version,
		EncryptedKey: base64.RawURLEncoding.EncodeToString(sealedKey)})
	before := len(s.Calls())
	env := environment("AZURE_TENANT_ID", azurevaulttest.Tenant, "AZURE_CLIENT_ID", azurevaulttest.ClientID, "AZURE_CLIENT_SECRET",
		azurevaulttest.Secret)
	m := build(t, attrs{"allowed_azure_vaults": texts("*")}, env, block)
	for range 5 {
		opens(t, m, file, plainState)
	}
	opens(t, build(t, attrs{"allowed_azure_vaults": texts(vault + "/")}, env, block), file, plainState)
	want := "decrypt k/" + azurevaulttest.Version
	if calls := s.Calls()[before:]; !slices.Equal(calls, []string{want, want}) {
		t.Errorf("asked for %q", calls)
	}
}

// TestAzureCLIOfALayer: az gets the user's variables if the code allows a vault, and only those
// that any program needs if TF_ENCRYPTION alone does.
func TestAzureCLIOfALayer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for az is a shell script")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte("#!/bin/sh\nenv >"+dir+"/env\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("AZURE_EXTENSION_DIR", "canary")
	service := &azurevaulttest.Service{AllowEncrypt: true}
	block := sops.Block(azurevault.BlockWith(azurevault.Options{Transport: service.Start(t)}))
	file := of(t, newDataKey(), &azkv.MasterKey{VaultURL: "https://example.vault.azure.net", Name: "k", Version: azurevaulttest.Version,
		EncryptedKey: "eA"})
	for _, layered := range []bool{false, true} {
		entry := unstable.NewEntry("method.sops.x", block.Table, nil)
		entry.Settings["allowed_azure_vaults"] = unstable.Setting{Value: texts("*"), FromEnvironment: layered}
		values, err := entry.Resolve(block.Table, unstable.Scope{Lookup: environment()})
		if err != nil {
			t.Fatal(err)
		}
		method, err := block.Build(values)
		if err != nil {
			t.Fatal(err)
		}
		fails(t, method, file, false)
		if got, err := os.ReadFile(filepath.Join(dir, "env")); err != nil || strings.Contains(string(got), "canary") == layered {
			t.Errorf("layered is %t: az got %s, %v", layered, got, err)
		}
	}
}

// TestReasons: where one key group cannot be asked now, the file might well be
// readable, and the next method is not tried.
func TestReasons(t *testing.T) {
	t.Parallel()
	identity, recipient := newAge(t)
	other, stranger := newAge(t)
	dataKey := newDataKey()
	parts, err := shamir.Split(dataKey, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	away := &hcvault.MasterKey{VaultAddress: "http://127.0.0.1:1", EnginePath: "transit", KeyName: "k", EncryptedKey: "vault:v1:AAAA"}
	file := sealed{plain: plainState, dataKey: dataKey, threshold: 2, groups: []getsops.KeyGroup{
		{ageKey(t, recipient, parts[0])}, {ageKey(t, stranger, parts[1])}, {away},
	}}.file(t)
	a := attrs{"age_identities": texts(identity), "vault_token": cty.StringVal("canary"),
		"allowed_vault_addresses": texts("http://127.0.0.1:1")}
	once := environment("VAULT_MAX_RETRIES", "0")
	says := kindtest.OpenMistakes(t, "sops, parts of a key")
	says.Error(t, "too few", fails(t, build(t, a, once, openbao.Block()), file, false))
	delete(a, "allowed_vault_addresses")
	says.Error(t, "too few are allowed", fails(t, build(t, a, nil, openbao.Block()), file, false))

	// Enough parts without the server, which is allowed, and not asked.
	server := newVault(t)
	a["allowed_vault_addresses"], away.VaultAddress = texts(server.URL), server.URL
	enough := sealed{plain: plainState, dataKey: dataKey, threshold: 2, groups: []getsops.KeyGroup{
		{away}, {ageKey(t, recipient, parts[0])}, {ageKey(t, recipient, parts[1])},
	}}.file(t)
	opens(t, build(t, a, nil, openbao.Block()), enough, plainState)
	if asked := server.Requests(); len(asked) > 0 {
		t.Errorf("the server was asked for %q", asked)
	}
	// So is a key of a group, and errors have the order of the file.
	opens(t, build(t, a, nil, openbao.Block()), of(t, dataKey, away, ageKey(t, recipient, dataKey)), plainState)
	if asked := server.Requests(); len(asked) > 0 {
		t.Errorf("the server was asked for %q", asked)
	}
	gone := attrs{"age_identities": texts(other), "age_identity_command": texts("no-such-program"), "use_gpg": cty.True,
		"gpg_command": cty.StringVal("no-such-gpg")}
	order := sealed{plain: plainState, dataKey: dataKey, threshold: 2, groups: []getsops.KeyGroup{
		{pgpKey("AAAA", "x")}, {ageKey(t, recipient, parts[0])}, {&hckms.MasterKey{KeyID: "k", EncryptedKey: "x"}},
	}}.file(t)
	says.Error(t, "in the order of the file", fails(t, build(t, gone, nil), order, false))
	two := of(t, dataKey, ageKey(t, recipient, dataKey), pgpKey("AAAA", "x"))
	says.Error(t, "keys of two kinds", fails(t, build(t, attrs{"age_identities": texts(other), "use_gpg": cty.True,
		"gpg_command": cty.StringVal("no-such-gpg")}, nil), two, true))
	eleven := of(t, dataKey, slices.Repeat([]keys.MasterKey{ageKey(t, recipient, dataKey)}, 11)...)
	says.Error(t, "too many programs", fails(t, build(t, attrs{"age_identity_command": texts("no-such-program")}, nil), eleven, false))
	away.VaultAddress = "http://127.0.0.1:1"
	says.Error(t, "away, without a token", fails(t, build(t, attrs{"allowed_vault_addresses": texts(away.VaultAddress)}, once,
		openbao.Block()), of(t, dataKey, away), false))
	// Parts that do not belong together.
	others, err := shamir.Split(newDataKey(), 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	mixed := sealed{plain: plainState, dataKey: dataKey, threshold: 2, groups: []getsops.KeyGroup{
		{ageKey(t, recipient, parts[0])}, {ageKey(t, recipient, others[1])},
	}}.file(t)
	says.Error(t, "mixed up", fails(t, build(t, a, nil, openbao.Block()), mixed, false))
	twice := sealed{plain: plainState, dataKey: dataKey, threshold: 2, groups: []getsops.KeyGroup{
		{ageKey(t, recipient, parts[0])}, {ageKey(t, recipient, parts[0])},
	}}.file(t)
	says.Error(t, "one twice", fails(t, build(t, a, nil, openbao.Block()), twice, false))
	short := sealed{plain: plainState, dataKey: dataKey, groups: []getsops.KeyGroup{{ageKey(t, recipient, dataKey[:16])}}}.file(t)
	says.Error(t, "a short key", fails(t, build(t, a, nil, openbao.Block()), short, false))
}

// TestBackendGitVariables: what terraform-backend-git writes with is a list of
// what may be called, for a method without lists of its own.
//
// Promise: Key services
func TestBackendGitVariables(t *testing.T) {
	server := awskmstest.New(t, awskmstest.Key{ID: arn, Master: make([]byte, 32)})
	server.Allow("GenerateDataKey")
	sts := awskmstest.NewSTS(t)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL_KMS": server.URL, "AWS_ENDPOINT_URL_STS": sts.URL,
		"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "canary"} {
		t.Setenv(name, value)
	}
	dataKey, stored := made(t, awskms.Block(), attrs{"kms_key_id": cty.StringVal(arn), "key_spec": cty.StringVal("AES_256"),
		"region": cty.StringVal("eu-west-1")}, os.LookupEnv)
	wrapped := stored["ciphertext_blob"].(string)
	plain, assumed := of(t, dataKey, &kms.MasterKey{Arn: arn, EncryptedKey: wrapped}),
		of(t, dataKey, &kms.MasterKey{Arn: arn, Role: role, EncryptedKey: wrapped})
	t.Setenv("TF_BACKEND_HTTP_SOPS_AWS_KMS_ARNS", arn+"0, "+arn)
	opens(t, build(t, nil, os.LookupEnv, awskms.Block()), plain, plainState)
	says := kindtest.OpenMistakes(t, "sops, variables of terraform-backend-git")
	says.Error(t, "a role", fails(t, build(t, nil, os.LookupEnv, awskms.Block()), assumed, false))
	says.Error(t, "another key",
		fails(t, build(t, attrs{"allowed_aws_keys": texts(arn + "0")}, os.LookupEnv, awskms.Block()), plain, false))
	t.Setenv("TF_BACKEND_HTTP_SOPS_AWS_KMS_ARNS", arn+"+"+role)
	opens(t, build(t, nil, os.LookupEnv, awskms.Block()), assumed, plainState)

	s := &gcpkmstest.Service{Keys: map[string][]byte{gcpID: make([]byte, 32)}, AllowEncrypt: true}
	google := gcpprovider.BlockWith(gcpprovider.Options{Transport: s.Start(t)})
	env := environment("GOOGLE_OAUTH_ACCESS_TOKEN", gcpkmstest.Token, "TF_BACKEND_HTTP_SOPS_GCP_KMS_KEYS", gcpID+"2,"+gcpID)
	dataKey, stored = made(t, google, attrs{"kms_encryption_key": cty.StringVal(gcpID), "key_length": cty.NumberIntVal(32)}, env)
	opens(t, build(t, nil, env, google), of(t, dataKey, &gcpkms.MasterKey{ResourceID: gcpID,
		EncryptedKey: stored["ciphertext"].(string)}), plainState)

	v := newVault(t)
	file := vaultFile(t, v)
	uris := "https://vault.example.com/v1/transit/keys/other," + v.URL + "/v1/transit/keys/state"
	opens(t, build(t, nil, environment("TF_BACKEND_HTTP_SOPS_HC_VAULT_URIS", uris, "VAULT_TOKEN", v.Token), openbao.Block()), file, plainState)
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	address := "http://" + nettest.Mute(t)
	file := of(t, newDataKey(), &hcvault.MasterKey{VaultAddress: address, EnginePath: "transit", KeyName: "k", EncryptedKey: "vault:v1:AAAA"})
	m := build(t, attrs{"allowed_vault_addresses": texts(address), "vault_token": cty.StringVal("x")}, nil, openbao.Block())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	_, err := m.Decrypt(ctx, nil, file)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrNoKey) || time.Since(start) > 45*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}
