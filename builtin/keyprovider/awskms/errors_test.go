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
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// What KMS answers decides whether the next method is tried.
func TestAnswers(t *testing.T) {
	server := standard(t)
	_, stored := wrapped(t, server, static())
	says := kindtest.OpenMistakes(t, "aws_kms, answers", "\u202e")
	for _, c := range []struct {
		code   string
		status int
		times  int // how often it is asked
		noKey  bool
	}{
		{"AccessDeniedException", 400, 1, true},
		{"NotFoundException", 400, 1, true},
		{"DisabledException", 400, 1, true},
		{"KMSInvalidStateException", 400, 1, true},
		{"InvalidCiphertextException", 400, 1, true},
		{"IncorrectKeyException", 400, 1, true},
		{"InvalidKeyUsageException", 400, 1, false},
		{"ValidationException", 400, 1, false},
		{"InvalidArnException", 400, 1, false},
		{"UnrecognizedClientException", 400, 1, false},
		{"InvalidSignatureException", 400, 1, false},
		{"ExpiredTokenException", 400, 1, false},
		{"OptInRequired", 403, 1, false},
		{"ThrottlingException", 400, 2, false},
		{"RequestLimitExceeded", 400, 1, false},
		{"KMSInternalException", 500, 2, false},
		{"DependencyTimeoutException", 503, 1, false},
		{"KeyUnavailableException", 500, 1, false},
		{"What<is>\u202ethis" + strings.Repeat("x", 100), 400, 1, false},
	} {
		for range c.times {
			server.Fail(c.status, c.code)
		}
		_, err := hasty(t, static().With("max_retries", c.times)).Key(t.Context(), nil, stored)
		if says.Error(t, fmt.Sprintf("%.40q", c.code), err); errors.Is(err, driver.ErrNoKey) != c.noKey {
			t.Errorf("%s: got %v", c.code, err)
		}
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
	says := kindtest.OpenMistakes(t, "aws_kms, keys")
	for _, id := range []string{"other", "disabled", "dying", "denied", "particular", "missing", "arn:aws:kms:us-east-1:111122223333:key/x"} {
		_, err := provider(t, static().With("kms_key_id", id)).Key(t.Context(), nil, stored)
		if says.Error(t, id, err); !errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%s: got %v", id, err)
		}
	}
}

func TestSealingIsDenied(t *testing.T) {
	standard(t)
	maker, ok := provider(t, static()).(driver.KeyMaker)
	if !ok {
		t.Fatal("it makes no keys")
	}
	_, _, err := maker.NewKey(t.Context(), nil)
	kindtest.OpenMistakes(t, "aws_kms, sealing").Error(t, "denied", err)
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
		if err == nil || errors.Is(err, driver.ErrNoKey) != c.noKey {
			t.Errorf("%.50s: got %v", c.stored, err)
		}
		clean(t, err)
	}
	if _, err := provider(t, static()).Key(t.Context(), nil, nil); !errors.Is(err, driver.ErrNoKey) {
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
	says := kindtest.OpenMistakes(t, "aws_kms, a broken service")
	for name, answer := range map[string]string{
		"an empty key": `{}`, "a long key": fmt.Sprintf(`{"Plaintext":%q}`, strings.Repeat("AAAA", 2000/3)+"AAA="),
		"no JSON": `canary`, "status 500": "", "it breaks off": "breaks off", "nobody there": "closed", "unknown host": "unknown host",
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
		if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%s: got %v", name, err)
		}
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
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrNoKey) ||
		time.Since(start) > 20*time.Second {
		t.Errorf("a deadline: %v after %v", err, time.Since(start))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Key(gone, nil, stored); !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrNoKey) {
		t.Errorf("cancelled: %v", err)
	}
	close(release)
	if _, err := p.Key(t.Context(), nil, stored); err != nil {
		t.Errorf("after others gave up: %v", err)
	}
}
