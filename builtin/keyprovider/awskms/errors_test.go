package awskms_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
)

// What KMS answers decides whether the next method is tried.
func TestAnswers(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	for _, c := range []struct {
		code   string
		status int
		times  int // how often it is asked
		noKey  bool
		text   string
	}{
		{"AccessDeniedException", 400, 1, true, "kms:Decrypt"},
		{"NotFoundException", 400, 1, true, "no such key"},
		{"DisabledException", 400, 1, true, "disabled"},
		{"KMSInvalidStateException", 400, 1, true, "state"},
		{"InvalidCiphertextException", 400, 1, true, "not encrypted with this key"},
		{"IncorrectKeyException", 400, 1, true, "another key"},
		{"InvalidKeyUsageException", 400, 1, false, "symmetric"},
		{"ValidationException", 400, 1, false, "kms_key_id"},
		{"InvalidArnException", 400, 1, false, "kms_key_id"},
		{"UnrecognizedClientException", 400, 1, false, "not valid"},
		{"InvalidSignatureException", 400, 1, false, "clock"},
		{"ExpiredTokenException", 400, 1, false, "expired"},
		{"OptInRequired", 403, 1, false, "not enabled"},
		{"ThrottlingException", 400, 2, false, "too many requests"},
		{"RequestLimitExceeded", 400, 1, false, "too many requests"},
		{"KMSInternalException", 500, 2, false, "out of order"},
		{"DependencyTimeoutException", 503, 1, false, "out of order"},
		{"KeyUnavailableException", 500, 1, false, "out of order"},
		{"What<is>\u202ethis" + strings.Repeat("x", 100), 400, 1, false, "the request failed (What<is>"},
	} {
		for range c.times {
			server.Fail(c.status, c.code)
		}
		_, err := hasty(t, static().With("max_retries", c.times)).Key(t.Context(), nil, stored)
		if err == nil || errors.Is(err, encryption.ErrNoKey) != c.noKey || !strings.Contains(err.Error(), c.text) ||
			!strings.Contains(err.Error(), keyARN) || len(err.Error()) > 500 || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("%s: got %v", c.code, err)
		}
		clean(t, err)
		if n := len(server.Requests()); n != c.times {
			t.Errorf("%s: asked %d times", c.code, n)
		}
	}
}

// The same from keys that are in such a state.
func TestKeys(t *testing.T) {
	server := startKMS(t,
		awskmstest.Key{ID: keyARN, Master: master(1)},
		awskmstest.Key{ID: "other", Master: master(2)},
		awskmstest.Key{ID: "disabled", Master: master(1), State: awskmstest.Disabled},
		awskmstest.Key{ID: "dying", Master: master(1), State: awskmstest.PendingDeletion},
		awskmstest.Key{ID: "denied", Master: master(1), State: awskmstest.Denied},
		awskmstest.Key{ID: "particular", Master: master(1), Context: map[string]string{"env": "prod"}},
	)
	_, stored := wrapped(t, server, static())
	for id, code := range map[string]string{
		"other":      "IncorrectKeyException",
		"disabled":   "DisabledException",
		"dying":      "KMSInvalidStateException",
		"denied":     "AccessDeniedException",
		"particular": "AccessDeniedException",
		"missing":    "NotFoundException",
		"arn:aws:kms:us-east-1:111122223333:key/x": "the ARN is of us-east-1, and the request went to eu-west-1 (NotFoundException)",
	} {
		_, err := provider(t, static().With("kms_key_id", id)).Key(t.Context(), nil, stored)
		if !errors.Is(err, encryption.ErrNoKey) || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: got %v", id, err)
		}
		clean(t, err)
	}
}

func TestSealingIsDenied(t *testing.T) {
	standard(t)
	maker, ok := provider(t, static()).(encryption.KeyMaker)
	if !ok {
		t.Fatal("it makes no keys")
	}
	_, _, err := maker.NewKey(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "kms:GenerateDataKey") {
		t.Errorf("got %v", err)
	}
	clean(t, err)
}

// A service that is busy for a moment is asked again.
func TestRetry(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	for _, mode := range []string{"standard", "adaptive"} {
		server.Fail(400, "ThrottlingException")
		if _, err := hasty(t, static().With("retry_mode", mode)).Key(t.Context(), nil, stored); err != nil {
			t.Error(err)
		}
		if n := len(server.Requests()); n != 2 {
			t.Errorf("asked %d times", n)
		}
	}
}

// Nothing that a file holds reaches KMS when KMS would refuse it anyway.
func TestHostileMetadata(t *testing.T) {
	server := standard(t)
	for _, c := range []struct {
		stored string
		noKey  bool
	}{
		{`{}`, true},
		{`{"ciphertext_blob":""}`, true},
		{`{"ciphertext_blob":"` + strings.Repeat("A", 8196) + `"}`, false},
		{`{"ciphertext_blob":"AAAA","encryption_context":{"k":"` + strings.Repeat("v", 8192) + `"}}`, false},
		{`{"ciphertext_blob":"AAAA","encryption_context":{"k":1}}`, false},
		{`{"ciphertext_blob":"canary"}`, false},
		{`canary`, false},
	} {
		_, err := provider(t, static()).Key(t.Context(), nil, []byte(c.stored))
		if err == nil || errors.Is(err, encryption.ErrNoKey) != c.noKey {
			t.Errorf("%.50s: got %v", c.stored, err)
		}
		clean(t, err)
	}
	if _, err := provider(t, static()).Key(t.Context(), nil, nil); !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("nothing stored: %v", err)
	}
	if got := server.Requests(); len(got) != 0 {
		t.Errorf("got requests %+v", got)
	}
}

// A service that does not answer, or answers nonsense, is not a service that
// has no key.
func TestBrokenService(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	for text, answer := range map[string]string{
		"a key of 0 bytes":                        `{}`,
		"a key of 2000 bytes":                     fmt.Sprintf(`{"Plaintext":%q}`, strings.Repeat("AAAA", 2000/3)+"AAA="),
		"(HTTP status 200)":                       `canary`,
		"(HTTP status 500)":                       "",
		netfail.BrokeOff:                          "breaks off",
		"connection refused":                      "closed",
		"the host kms.invalid" + netfail.NotFound: "unknown host",
	} {
		broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if answer == "" {
				w.WriteHeader(500)
				fmt.Fprint(w, "canary")
				return
			}
			if answer == "breaks off" {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			fmt.Fprint(w, answer)
		}))
		t.Setenv("AWS_ENDPOINT_URL_KMS", broken.URL)
		switch answer {
		case "closed":
			broken.Close()
		case "unknown host":
			t.Setenv("AWS_ENDPOINT_URL_KMS", "http://kms.invalid")
		}
		_, err := provider(t, static().With("max_retries", 1)).Key(t.Context(), nil, stored)
		if err == nil || errors.Is(err, encryption.ErrNoKey) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v", text, err)
		}
		clean(t, err)
		broken.Close()
	}
}

// A caller that gives up is not kept waiting, and does not spoil the provider
// for others.
func TestCancellation(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
			server.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	t.Setenv("AWS_ENDPOINT_URL_KMS", silent.URL)
	p := provider(t, static())

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := p.Key(ctx, nil, stored)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, encryption.ErrNoKey) || !strings.Contains(err.Error(), "in time") ||
		time.Since(start) > 20*time.Second {
		t.Errorf("a deadline: %v after %v", err, time.Since(start))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Key(gone, nil, stored); !errors.Is(err, context.Canceled) || errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("cancelled: %v", err)
	}
	close(release)
	if _, err := p.Key(t.Context(), nil, stored); err != nil {
		t.Errorf("after others gave up: %v", err)
	}
}
