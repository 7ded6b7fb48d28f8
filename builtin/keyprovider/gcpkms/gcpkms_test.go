package gcpkms_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

const (
	keyA   = "projects/p/locations/global/keyRings/r/cryptoKeys/a"
	keyB   = "projects/p/locations/global/keyRings/r/cryptoKeys/b"
	canary = "canary"
)

type attrs = testkit.Attrs

func working() attrs {
	return attrs{}.With("kms_encryption_key", keyA, "key_length", 32, "access_token", gcpkmstest.Token)
}

func service() *gcpkmstest.Service {
	return &gcpkmstest.Service{
		Keys:         map[string][]byte{keyA: make([]byte, 32), keyB: []byte(strings.Repeat("b", 32))},
		AllowEncrypt: true,
	}
}

func build(t *testing.T, transport http.RoundTripper, a attrs) driver.KeyProvider {
	t.Helper()
	return buildWith(t, transport, a, os.LookupEnv)
}

// buildWith switches the environment off where lookup is nil.
func buildWith(t *testing.T, transport http.RoundTripper, a attrs, lookup attr.LookupEnv) driver.KeyProvider {
	t.Helper()
	return kindtest.Build(t, gcpkms.BlockWith(gcpkms.Options{Transport: transport}), a, lookup)
}

func TestSuite(t *testing.T) {
	t.Parallel()
	long := base64.StdEncoding.EncodeToString(make([]byte, 64*1024+1))
	suite := encryptiontest.KeyProvider{
		Block: gcpkms.BlockWith(gcpkms.Options{Transport: service().Start(t)}),
		Attrs: working().With("additional_authenticated_data", "YWFk"),
		Other: working().With("kms_encryption_key", keyB),
		Bad: []map[string]cty.Value{
			attrs{},
			working().With("kms_encryption_key", nil),
			working().With("kms_encryption_key", ""),
			working().With("kms_encryption_key", "a"),
			working().With("kms_encryption_key", keyA+"/cryptoKeyVersions/1"),
			working().With("kms_encryption_key", keyA+"\n"),
			working().With("kms_encryption_key", "projects/../locations/global/keyRings/r/cryptoKeys/a"),
			working().With("kms_encryption_key", "projects/p/locations/global/keyRings/./cryptoKeys/a"),
			working().With("key_length", nil),
			working().With("key_length", 0),
			working().With("key_length", -1),
			working().With("key_length", 1025),
			working().With("key_length", 1.5),
			working().With("additional_authenticated_data", "canary!"),
			working().With("additional_authenticated_data", long),
		},
		Secrets: []string{gcpkmstest.Token, canary},
	}
	suite.Run(t)
	kindtest.Settings(t, kindtest.OpenMistakes(t, "gcp_kms", suite.Secrets...), suite.Block, suite.Bad)
}

// A read is one Decrypt, with a service that denies everything else.
func TestOneDecrypt(t *testing.T) {
	t.Parallel()
	s := service()
	transport := s.Start(t)
	key, stored := kindtest.NewKey(t, build(t, transport, working()))
	readOnly := service()
	readOnly.AllowEncrypt = false
	p := build(t, readOnly.Start(t), working())
	got, err := p.Key(t.Context(), nil, stored)
	if err != nil || string(got) != string(key) {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	if calls := readOnly.Calls(); !slices.Equal(calls, []string{"Decrypt"}) {
		t.Errorf("calls: %v", calls)
	}
	_, _, err = p.(driver.KeyMaker).NewKey(t.Context(), nil)
	if kindtest.OpenMistakes(t, "gcp_kms, sealing").Error(t, "denied", err); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("sealing with a service that only decrypts: %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		next  bool // the next method may be tried
		calls int
	}{
		"NOT_FOUND":           {true, 1},
		"PERMISSION_DENIED":   {true, 1},
		"FAILED_PRECONDITION": {true, 1},
		"INVALID_ARGUMENT":    {true, 1},
		"UNAUTHENTICATED":     {false, 1},
		"RESOURCE_EXHAUSTED":  {false, 2},
		"UNAVAILABLE":         {false, 2},
		"DEADLINE_EXCEEDED":   {false, 2},
		"INTERNAL":            {false, 2},
		"UNKNOWN":             {false, 2},
		"UNIMPLEMENTED":       {false, 1},
		"CANCELLED":           {false, 1},
	}
	says := kindtest.OpenMistakes(t, "gcp_kms, answers", gcpkmstest.Token)
	for code, want := range cases {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := service()
			transport := s.Start(t)
			_, stored := kindtest.NewKey(t, build(t, transport, working()))
			s = service()
			s.Before = func(context.Context, string, string) *gcpkmstest.Failure {
				return &gcpkmstest.Failure{Status: code, Message: "canary: the service says too much"}
			}
			p := build(t, s.Start(t), working())
			gcpkms.SetPatience(p, time.Minute)
			_, err := p.Key(t.Context(), nil, stored)
			if says.Error(t, code, err); errors.Is(err, driver.ErrNoKey) != want.next {
				t.Fatalf("got %v", err)
			}
			if calls := len(s.Calls()); calls != want.calls {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

func TestUnavailableOnce(t *testing.T) {
	t.Parallel()
	s := service()
	transport := s.Start(t)
	key, stored := kindtest.NewKey(t, build(t, transport, working()))
	failed := false
	s.Before = func(context.Context, string, string) *gcpkmstest.Failure {
		if !failed {
			failed = true
			return &gcpkmstest.Failure{Status: "UNAVAILABLE", Message: "try again"}
		}
		return nil
	}
	got, err := build(t, transport, working()).Key(t.Context(), nil, stored)
	if err != nil || string(got) != string(key) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	s := service()
	transport := s.Start(t)
	key, stored := kindtest.NewKey(t, build(t, transport, working()))
	hang := true
	arrived := make(chan struct{}, 1)
	s.Before = func(ctx context.Context, _, _ string) *gcpkmstest.Failure {
		if !hang {
			return nil
		}
		arrived <- struct{}{}
		<-ctx.Done()
		return nil
	}
	p := build(t, transport, working())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := p.Key(ctx, nil, stored); !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrNoKey) {
		t.Errorf("got %v", err)
	}
	// Cancelled before anything was set up; and neither spoils the next reader.
	p2 := build(t, transport, working())
	if _, err := p2.Key(ctx, nil, stored); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	hang = false
	for _, p := range []driver.KeyProvider{p, p2} {
		if got, err := p.Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
			t.Errorf("afterwards: %d bytes, %v", len(got), err)
		}
	}
}

func TestAdditionalData(t *testing.T) {
	t.Parallel()
	s := service()
	transport := s.Start(t)
	bound := working().With("additional_authenticated_data", "YWFk")
	key, stored := kindtest.NewKey(t, build(t, transport, bound))
	if strings.Contains(string(stored), "YWFk") || !strings.HasPrefix(string(stored), `{"ciphertext":"`) {
		t.Errorf("stored: %s", stored)
	}
	if got, err := build(t, transport, bound).Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	for _, other := range []attrs{working(), working().With("additional_authenticated_data", "b3RoZXI=")} {
		if _, err := build(t, transport, other).Key(t.Context(), nil, stored); !errors.Is(err, driver.ErrNoKey) {
			t.Errorf("other data: %v", err)
		}
	}
}

func TestChecksums(t *testing.T) {
	t.Parallel()
	s := service()
	transport := s.Start(t)
	p := build(t, transport, working())
	_, stored := kindtest.NewKey(t, p)

	s.After = func(r *gcpkmstest.DecryptResponse) { r.Plaintext[0] ^= 1 }
	says := kindtest.OpenMistakes(t, "gcp_kms, checksums")
	_, err := p.Key(t.Context(), nil, stored)
	if says.Error(t, "a damaged answer", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("a damaged answer: %v", err)
	}
	s.After = func(r *gcpkmstest.DecryptResponse) { r.PlaintextCrc32c = nil }
	if _, err := p.Key(t.Context(), nil, stored); err != nil {
		t.Errorf("an answer without a checksum: %v", err)
	}
	for _, size := range []int{0, 1025} {
		s.After = func(r *gcpkmstest.DecryptResponse) { r.Plaintext, r.PlaintextCrc32c = make([]byte, size), nil }
		_, err = p.Key(t.Context(), nil, stored)
		says.Error(t, fmt.Sprintf("a key of %d bytes", size), err)
	}
	s.Before = func(context.Context, string, string) *gcpkmstest.Failure {
		return &gcpkmstest.Failure{
			Status: "INVALID_ARGUMENT", Message: "The checksum in field ciphertext_crc32c did not match the data in field ciphertext.",
		}
	}
	_, err = p.Key(t.Context(), nil, stored)
	if says.Error(t, "a damaged request", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("a damaged request: %v", err)
	}
	s.Before = nil
	for i, spoil := range []func(*gcpkmstest.EncryptResponse){
		func(r *gcpkmstest.EncryptResponse) { r.Ciphertext[20] ^= 1 },
		func(r *gcpkmstest.EncryptResponse) { r.CiphertextCrc32c = nil },
		func(r *gcpkmstest.EncryptResponse) { r.VerifiedPlaintextCrc32c = false },
		func(r *gcpkmstest.EncryptResponse) { r.VerifiedAdditionalAuthenticatedDataCrc32c = false },
	} {
		s.AfterEncrypt = spoil
		_, _, err = p.(driver.KeyMaker).NewKey(t.Context(), nil)
		says.Error(t, fmt.Sprintf("a damaged sealing, %d", i), err)
	}
}

func TestRecognizes(t *testing.T) {
	t.Parallel()
	p := build(t, nil, working()).(driver.Recognizer)
	for stored, want := range map[string]bool{
		`{"ciphertext":"AAAA"}`: true,
		`{"ciphertext":"` + base64.StdEncoding.EncodeToString([]byte("vault:v1:abc")) + `"}`: false, // OpenBao
		`{"ciphertext":"AAAA","key_version":"1","algo":"A256GCM"}`:                           false, // Azure
		`{"ciphertext_blob":"AAAA"}`:                                                         false, // AWS
		`{"ciphertext":""}`:                                                                  false,
	} {
		if got := p.Recognizes(json.RawMessage(stored)); got != want {
			t.Errorf("%s: %t", stored, got)
		}
	}
}

func TestDerivedKeys(t *testing.T) {
	t.Parallel()
	d := build(t, nil, working()).(driver.Deriver)
	wrapped := json.RawMessage(`{"ciphertext":"AAAA"}`)
	if got, err := d.Stored(nil, wrapped); err != nil || string(got) != string(wrapped) {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := d.Stored([]byte("0123456789abcdef"), wrapped); err == nil {
		t.Error("a salt is accepted")
	}
	for _, bad := range []json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(`{"ciphertext":1}`)} {
		if _, err := d.Stored(nil, bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestBrokenCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := service()
	transport := s.Start(t)
	_, stored := kindtest.NewKey(t, build(t, transport, working()))
	before := len(s.Calls())
	says := kindtest.OpenMistakes(t, "gcp_kms, credentials")
	for i, c := range []string{
		"canary, neither a path nor JSON", `{"type":"canary"}`, `{}`, `{"type":"service_account","private_key":"canary"}`,
		`{"type":"authorized_user"}`, dir, write("empty", ""), write("text", "canary"),
		write("large", `"`+strings.Repeat("a", 1<<20)+`"`), strings.Repeat("canary", 10_000),
	} {
		_, err := build(t, transport, working().With("access_token", nil, "credentials", c)).Key(t.Context(), nil, stored)
		if says.Error(t, fmt.Sprint(i+1), err); errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%.40s: %v", c, err)
		}
	}
	if after := len(s.Calls()); after != before {
		t.Errorf("%d calls were made", after-before)
	}
	wrong := build(t, transport, working().With("access_token", "canary"))
	_, err := wrong.Key(t.Context(), nil, stored)
	if says.Error(t, "a wrong token", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("a wrong token: %v", err)
	}
}

// What is part of the path arrives as one segment of it.
func TestSegments(t *testing.T) {
	t.Parallel()
	const odd = "projects/example.com:p/locations/l?x/keyRings/r#y/cryptoKeys/a%2Fb:encrypt"
	s := &gcpkmstest.Service{Keys: map[string][]byte{odd: make([]byte, 32)}, AllowEncrypt: true}
	p := build(t, s.Start(t), working().With("kms_encryption_key", odd))
	key, stored := kindtest.NewKey(t, p)
	if got, err := p.Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
