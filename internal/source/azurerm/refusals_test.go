package azurerm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// What the account answers, and what the user is told. Only one answer means
// that there is no state.
func TestRefusals(t *testing.T) {
	t.Parallel()
	sas := attrs{}.with("sas_token", azuretest.SAS)
	says := sourcetest.OpenMistakes(t, "azurerm, answers", "evil.test")
	for name, c := range map[string]struct {
		status int
		code   string
		block  attrs
	}{
		"no container":        {404, "ContainerNotFound", withKey()},
		"container goes":      {409, "ContainerBeingDeleted", withKey()},
		"no account":          {404, "ResourceNotFound", withKey()},
		"404 of someone else": {404, "", withKey()},
		"unknown code":        {404, "canaryNotFound", withKey()},
		"code of another 404": {403, "BlobNotFound", withKey()},
		"no role":             {403, "AuthorizationPermissionMismatch", withSecret()},
		"no permission":       {403, "AuthorizationPermissionMismatch", sas},
		"wrong key":           {403, "AuthenticationFailed", withKey()},
		"wrong signature":     {403, "AuthenticationFailed", sas},
		"wrong token":         {403, "AuthenticationFailed", withSecret()},
		"wrong tenant":        {401, "InvalidAuthenticationInfo", withSecret()},
		"firewall":            {403, "AuthorizationFailure", withKey()},
		"no keys allowed":     {403, "KeyBasedAuthenticationNotPermitted", withKey()},
		"address":             {403, "AuthorizationSourceIPMismatch", sas},
		"other service":       {403, "AuthorizationServiceMismatch", sas},
		"anonymous":           {409, "PublicAccessNotPermitted", sas},
		"disabled":            {403, "AccountIsDisabled", withKey()},
		"archive":             {409, "BlobArchived", withKey()},
		"customer's key":      {409, "BlobUsesCustomerSpecifiedEncryption", withKey()},
		"no customer's key":   {409, "BlobDoesNotUseCustomerSpecifiedEncryption", withKey()},
		"version":             {400, "InvalidQueryParameterValue", withKey()},
		"busy":                {503, "ServerBusy", withKey()},
		"broken":              {500, "InternalError", withKey()},
		"teapot":              {418, "", withKey()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAccount()
			s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="https://evil.test" resource_id="https://vault.azure.net"`)
				azuretest.Fail(w, c.status, c.code)
				return true
			}
			_, err := read(t, s.Client(t), settings(c.block), place())
			says.Error(t, name, err)
			checkRefusal(t, err, false)
			retried := c.status >= 500
			if n := len(s.Requests()); (n > 1) != retried {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	says := sourcetest.OpenMistakes(t, "azurerm, missing")
	_, err := read(t, newAccount().Client(t), settings(withKey()), place().with("key", "other"))
	says.Error(t, "no such blob", err)
	checkRefusal(t, err, true)
	if m, _ := source.IsMissing(err); !m.CredentialsSent {
		t.Error("credentials were sent")
	}
	_, err = read(t, newAccount().Client(t), settings(withKey()), place().with("key", "/other"))
	says.Error(t, "a slash", err)
	checkRefusal(t, err, true)
}

// The one other request, which looks up the access key, is refused.
func TestLookupRefusals(t *testing.T) {
	t.Parallel()
	lookup := place().with("resource_group_name", azuretest.Group, "subscription_id", azuretest.Subscription)
	says := sourcetest.OpenMistakes(t, "azurerm, the access key")
	for name, c := range map[string]struct {
		actions []string
		place   attrs
		answer  int // in place of the manager's own; 0 for that
	}{
		"denied":          {nil, lookup, 0},
		"no such group":   {[]string{azuretest.KeysAction}, lookup.with("resource_group_name", "other"), 0},
		"token":           {nil, lookup, 401},
		"locked":          {nil, lookup, 409},
		"broken":          {nil, lookup, 500},
		"no keys":         {nil, lookup, 200},
		"no subscription": {nil, lookup.with("subscription_id", nil), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAccount()
			s.Actions = c.actions
			s.Before = func(w http.ResponseWriter, r *http.Request) bool {
				if c.answer == 0 || !strings.HasPrefix(r.Host, "management.") {
					return false
				}
				w.WriteHeader(c.answer)
				_, _ = w.Write([]byte(`{"canary":[]}`))
				return true
			}
			_, err := read(t, s.Client(t), settings(withSecret()), c.place)
			says.Error(t, name, err)
			checkRefusal(t, err, false)
			if got := s.Requests(); len(got) > 0 {
				t.Errorf("the account was asked for %q", got)
			}
		})
	}
}

// No host is no account, and says nothing of states.
func TestNoSuchHost(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true}}
	})}
	_, err := read(t, client, settings(withKey()), place())
	checkRefusal(t, err, false)
	sourcetest.OpenMistakes(t, "azurerm, no host").Error(t, "of this name", err)
}

// An error of the network quotes the URL, with the signature in it. Ours do not.
func TestSecretsInNetworkErrors(t *testing.T) {
	t.Parallel()
	block := attrs{}.with("sas_token", azuretest.SAS, "customer_provided_key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
		"blob_endpoint", "http://"+nettest.Dead(t)+"/"+azuretest.Account)
	_, err := read(t, nil, settings(block), place())
	if checkRefusal(t, err, false); !strings.Contains(err.Error(), netfail.NotReached+": dial tcp") {
		t.Errorf("got %v", err)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if text := fmt.Sprintf("%v %#v", e, e); strings.Contains(text, "signature") || strings.Contains(text, "AAECAw") {
			t.Errorf("the error holds a secret: %s", text)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	says := sourcetest.OpenMistakes(t, "azurerm, no such version")
	const older, current = "2026-01-31T12:00:00.0000000Z", "2026-02-01T12:00:00.0000000Z"
	for name, block := range map[string]attrs{"access key": withKey(), "signature": attrs{}.with("sas_token", azuretest.SAS),
		"identity": withSecret()} {
		s := newAccount()
		s.Put("tfstate", "network.tfstate", azuretest.Blob{Data: []byte("new"), Version: current,
			Versions: map[string][]byte{older: []byte("old")}})
		client := s.Client(t)
		for version, want := range map[string]string{"": "new", current: "new", older: "old"} {
			a := place()
			if version != "" {
				a = a.with("version_id", version)
			}
			got, err := read(t, client, settings(block), a)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if revision := version; string(got.Data) != want || revision != "" && got.Revision != revision || got.Revision == "" {
				t.Errorf("%s: got %q, %q", name, got.Data, got.Revision)
			}
		}
		_, err := read(t, client, settings(block), place().with("version_id", "2020-01-31T12:00:00.0000000Z"))
		checkRefusal(t, err, false)
		says.Error(t, name, err)
	}
}

func TestCustomerProvidedKey(t *testing.T) {
	t.Parallel()
	const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	s := newAccount()
	s.CustomerKey = key
	client := s.Client(t)
	if got, err := read(t, client, settings(withKey().with("customer_provided_key", key)), place()); err != nil || len(got.Data) == 0 {
		t.Errorf("got %v", err)
	}
	_, err := read(t, client, settings(withKey()), place())
	checkRefusal(t, err, false)
	says := sourcetest.OpenMistakes(t, "azurerm, customer_provided_key")
	says.Error(t, "none", err)
	_, err = read(t, client, settings(withKey().with("customer_provided_key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh4=")), place())
	checkRefusal(t, err, false)
	says.Error(t, "another", err)
}

// A blob that someone else made, without a content type and the like, is one.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	s := newAccount()
	s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		h := w.Header()
		h.Set("x-ms-blob-type", "BlockBlob")
		h.Set("x-ms-version-id", "\u202e::set-output "+strings.Repeat("x", 5000))
		h.Set("x-ms-lease-status", "locked")
		h["x-ms-meta-TerraformLockID"] = []string{"not base64"}
		_, _ = w.Write([]byte("{}"))
		return true
	}
	got, err := read(t, s.Client(t), settings(withKey()), place())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Revision) > 300 || strings.Contains(got.Revision, "::") || strings.Contains(got.Revision, "\u202e") || got.Lock == nil ||
		*got.Lock != (source.Lock{}) {
		t.Errorf("got %+v", got)
	}
}

// late gives answers that end when nobody waits for them any more, as net/http
// may.
type late struct {
	policy.Transporter
	giveUp func(*http.Request)
}

func (l late) Do(r *http.Request) (*http.Response, error) {
	resp, err := l.Transporter.Do(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), ending(func() { l.giveUp(r) })))
	return resp, err
}

// ending is an end, and what happens there.
type ending func()

func (e ending) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}

func TestLateAnswers(t *testing.T) {
	t.Parallel()
	says := sourcetest.OpenMistakes(t, "azurerm, late answers", azuretest.Key)
	for _, blob := range []string{"network.tfstate", "none.tfstate"} {
		ctx, cancel := context.WithCancel(t.Context())
		src, err := kind(late{newAccount().Client(t), func(*http.Request) { cancel() }}).Start(settings(withKey()))(request(t,
			place().with("key", blob), nil))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := src.Fetch(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %+v, %v", blob, got, err)
		}

		patient := newRun(settings(withKey()).For(Kind()))
		patient.transport = late{newAccount().Client(t), func(r *http.Request) { <-r.Context().Done() }}
		if src, err = patient.open(request(t, place().with("key", blob), nil)); err != nil {
			t.Fatal(err)
		}
		src.(*location).timeout = 200 * time.Millisecond
		_, err = src.Fetch(t.Context())
		checkRefusal(t, err, false)
		says.Error(t, blob, err)
	}
}

// Ctrl-C does not wait for the next try.
func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := newAccount()
	s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "60")
		azuretest.Fail(w, 503, "ServerBusy")
		time.AfterFunc(100*time.Millisecond, cancel)
		return true
	}
	src, err := open(t, s.Client(t), settings(withKey()), place())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if got, err := src.Fetch(ctx); !errors.Is(err, context.Canceled) || time.Since(begin) > 45*time.Second {
		t.Errorf("got %+v, %v after %s", got, err, time.Since(begin))
	}
}
