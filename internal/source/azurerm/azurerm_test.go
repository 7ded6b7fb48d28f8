package azurerm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

type attrs map[string]cty.Value

// with returns a copy with values added; nil takes away.
func (a attrs) with(kv ...any) attrs {
	out := attrs{}
	maps.Copy(out, a)
	for i := 0; i < len(kv); i += 2 {
		name := kv[i].(string)
		switch v := kv[i+1].(type) {
		case string:
			out[name] = cty.StringVal(v)
		case int:
			out[name] = cty.NumberIntVal(int64(v))
		case bool:
			out[name] = cty.BoolVal(v)
		case nil:
			delete(out, name)
		}
	}
	return out
}

// environment is one that a test makes up.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	v, ok := e[name]
	return v, ok
}

const canary = "canary"

// place is the blob of every test.
func place() attrs {
	return attrs{}.with("storage_account_name", azuretest.Account, "container_name", "tfstate", "key", "network.tfstate")
}

func withKey() attrs { return attrs{}.with("access_key", azuretest.Key) }

func withSecret() attrs {
	return attrs{}.with("tenant_id", azuretest.Tenant, "client_id", azuretest.ClientID, "client_secret", azuretest.Secret, "use_cli", false)
}

// settings have the environment switched off.
func settings(blocks ...attrs) source.Settings {
	s := source.Settings{Credentials: source.Credentials{Table: credentials()}}
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, unstable.NewEntry("credentials.azurerm", credentials(), b))
	}
	return s
}

func (e environment) settings(blocks ...attrs) source.Settings {
	s := settings(blocks...)
	s.LookupEnv, s.Credentials.Env = e.lookup, e.lookup
	return s
}

// kind is the kind with another way to the network, unless that is nil, and
// without much patience.
func kind(transport policy.Transporter) source.Kind {
	k := Kind()
	k.Begin = func(s source.Settings) source.Open {
		r := newRun(s)
		if r.retryDelay = time.Millisecond; transport != nil {
			r.transport = transport
		}
		return r.open
	}
	return k
}

func request(t *testing.T, a attrs, lookup attr.LookupEnv) source.Request {
	t.Helper()
	req, err := decoded(a, lookup)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func decoded(a attrs, lookup attr.LookupEnv) (source.Request, error) {
	values, err := unstable.NewEntry("data.statecrypt_remote_state.test.azurerm", table(), a).Decode(table(), lookup)
	return source.Request{Values: values, Workspace: "default", MaxSize: 1 << 20}, err
}

func open(t *testing.T, client *http.Client, s source.Settings, a attrs) (source.Source, error) {
	t.Helper()
	var transport policy.Transporter
	if client != nil {
		transport = client
	}
	req, err := decoded(a, s.LookupEnv)
	if err != nil {
		return nil, err
	}
	return kind(transport).Start(s)(req)
}

func read(t *testing.T, client *http.Client, s source.Settings, a attrs) (*source.Snapshot, error) {
	t.Helper()
	src, err := open(t, client, s, a)
	if err != nil {
		return nil, err
	}
	return src.Fetch(t.Context())
}

// account is one with the state in it.
func newAccount() *azuretest.Server {
	s := azuretest.New("tfstate")
	s.Put("tfstate", "network.tfstate", azuretest.Blob{Data: []byte(`{"version":4}`)})
	return s
}

func TestSource(t *testing.T) {
	secrets := []string{azuretest.Key, azuretest.Secret, azuretest.Token, azuretest.ManagerToken, "azuretest+signature",
		"azuretest%2Bsignature", canary}
	for name, block := range map[string]attrs{"access key": withKey(), "signature": attrs{}.with("sas_token", "?"+azuretest.SAS),
		"identity": withSecret()} {
		t.Run(name, func(t *testing.T) {
			var current http.RoundTripper
			client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) { return current.RoundTrip(r) })}
			at := func(s *azuretest.Server, block attrs, a attrs) func(t *testing.T) sourcetest.Place {
				return func(t *testing.T) sourcetest.Place {
					current = s.Client(t).Transport
					return sourcetest.Place{Attrs: a, Settings: settings(block), Secrets: secrets}
				}
			}
			hanging := newAccount()
			hanging.Before = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
			sourcetest.Run(t, sourcetest.Harness{
				EmptyIsNone: true,
				Kind:        kind(client),
				Place: func(t *testing.T, data []byte) sourcetest.Place {
					s := azuretest.New("tfstate")
					if data != nil {
						s.Put("tfstate", "network.tfstate", azuretest.Blob{Data: data})
					}
					return at(s, block, place())(t)
				},
				Bad: map[string]func(t *testing.T) sourcetest.Place{
					"no container":    at(newAccount(), block, place().with("container_name", "other")),
					"wrong key":       at(newAccount(), attrs{}.with("access_key", base64.StdEncoding.EncodeToString([]byte(canary))), place()),
					"wrong signature": at(newAccount(), attrs{}.with("sas_token", "sv=2022-11-02&sr=c&sp=r&sig="+canary), place()),
					"wrong secret":    at(newAccount(), withSecret().with("client_secret", canary), place()),
					"no such version": at(newAccount(), block, place().with("version_id", "2026-01-31T12:00:00.0000000Z")),
				},
				Stuck: at(hanging, block, place()),
			})
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A read is one GET of the blob, and what signing in needs; an account that
// allows nothing else is enough.
//
// Promise: Reading changes nothing
func TestOneRead(t *testing.T) {
	signIn := []string{
		"GET login.microsoftonline.com/common/discovery/instance",
		"GET login.microsoftonline.com/" + azuretest.Tenant + "/v2.0/.well-known/openid-configuration",
		"POST login.microsoftonline.com/" + azuretest.Tenant + "/oauth2/v2.0/token",
	}
	lookup := place().with("resource_group_name", azuretest.Group, "subscription_id", azuretest.Subscription)
	listKeys := "POST management.azure.com/subscriptions/" + azuretest.Subscription +
		"/resourceGroups/states/providers/Microsoft.Storage/storageAccounts/" + azuretest.Account + "/listKeys"
	for name, c := range map[string]struct {
		block, place attrs
		actions      []string
		other        []string
	}{
		"access key":            {withKey(), place(), nil, nil},
		"signature":             {attrs{}.with("sas_token", azuretest.SAS), place(), nil, nil},
		"identity":              {withSecret(), place(), []string{azuretest.ReadAction}, signIn},
		"identity, group known": {withSecret().with("use_azuread_auth", true), lookup, []string{azuretest.ReadAction}, signIn},
		"looked up key":         {withSecret(), lookup, []string{azuretest.KeysAction}, append(slices.Clone(signIn), listKeys)},
		"key, group known":      {withKey(), lookup, nil, nil},
		"subscription of block": {withSecret().with("subscription_id", azuretest.Subscription), lookup.with("subscription_id", nil),
			[]string{azuretest.KeysAction}, append(slices.Clone(signIn), listKeys)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAccount()
			s.Actions = c.actions
			open := kind(s.Client(t)).Start(settings(c.block))
			for range 2 { // the second one has what the first one signed in for
				src, err := open(request(t, c.place, nil))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := src.Fetch(t.Context()); err != nil || string(got.Data) != `{"version":4}` || got.Revision == "" || got.Lock != nil ||
					len(got.Warnings) > 0 {
					t.Fatalf("got %+v, %v", got, err)
				}
			}
			other := s.Other()
			slices.Sort(other)
			c.other = slices.Sorted(slices.Values(c.other))
			if got := s.Requests(); !slices.Equal(got, []string{"GET tfstate/network.tfstate", "GET tfstate/network.tfstate"}) ||
				!slices.Equal(slices.Compact(other), slices.Compact(c.other)) {
				t.Errorf("asked for %q and %q", got, other)
			}
			if n := strings.Count(strings.Join(other, " "), "POST"); n > 2 {
				t.Errorf("%d POSTs for two reads", n)
			}
		})
	}
}

func checkRefusal(t *testing.T, err error, missing bool) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if _, ok := source.IsMissing(err); ok != missing || strings.Contains(err.Error(), canary) {
		t.Errorf("got %v", err)
	}
}

// What is said of the encoding of a blob is taken as everywhere else.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for _, e := range nettest.Encodings() {
		server := azuretest.New("tfstate")
		server.Put("tfstate", "network.tfstate", azuretest.Blob{Data: e.Body([]byte("{}"))})
		server.Before = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header()["Content-Encoding"] = e.Names
			return false
		}
		snapshot, err := read(t, server.Client(t), settings(withKey()), place())
		if snapshot == nil {
			snapshot = &source.Snapshot{}
		}
		e.Check(t, []byte("{}"), snapshot.Data, err)
	}
}

// A blob that was stored packed, with the header for it, is unpacked.
func TestStoredPacked(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(`{"version":4}`))
	_ = z.Close()
	server := azuretest.New("tfstate")
	server.Put("tfstate", "network.tfstate", azuretest.Blob{Data: packed.Bytes()})
	server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("it asks for %q", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		return false
	}
	snapshot, err := read(t, server.Client(t), settings(withKey()), place())
	if err != nil || string(snapshot.Data) != `{"version":4}` {
		t.Errorf("got %+v, %v", snapshot, err)
	}
}
