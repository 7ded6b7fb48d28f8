package azurerm

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	azuresource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

func TestMain(m *testing.M) {
	nettest.ForgetMachine("ARM_", "AZURE_")
	os.Exit(m.Run())
}

const containerOf = "states"

type attrs map[string]cty.Value

// with returns a copy with more texts; a nil takes away.
func (a attrs) with(kv ...any) attrs {
	out := maps.Clone(a)
	for i := 0; i < len(kv); i += 2 {
		name, _ := kv[i].(string)
		switch v := kv[i+1].(type) {
		case string:
			out[name] = cty.StringVal(v)
		case bool:
			out[name] = cty.BoolVal(v)
		case nil:
			delete(out, name)
		}
	}
	return out
}

// block leads to an account, with its key.
func block() attrs {
	return attrs{}.with("storage_account_name", azuretest.Account, "container_name", containerOf, "key", "net/prod",
		"access_key", azuretest.Key)
}

func openStore(t *testing.T, b attrs, n azuresource.Network) (store.Store, error) {
	t.Helper()
	n.RetryDelay = time.Millisecond
	kind := KindOver(n)
	v, err := unstable.NewEntry("backend.azurerm", kind.Table, b).Decode(kind.Table, nil)
	if err != nil {
		return nil, err
	}
	return kind.Open(store.Settings{Values: v, Limit: 1 << 30})
}

func at(t *testing.T, b attrs, n azuresource.Network) store.State {
	t.Helper()
	s, err := openStore(t, b, n)
	must(t, err)
	state, err := s.State(b["key"].AsString())
	must(t, err)
	return state
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// administer sends a request with the account's key to an emulator.
func administer(t *testing.T, method, address string, body []byte, headers ...string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	must(t, err)
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("x-ms-version", "2023-11-03")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Header.Set("Authorization", "SharedKey "+azuretest.Account+":"+azuretest.Sign(r))
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s\n%s", method, address, answer.Status, text)
	}
}

// places are containers of an emulator at an address.
func places(address string, with func(attrs) attrs) storetest.Places {
	n := 0
	return func(t *testing.T, name string) storetest.Place {
		t.Helper()
		n++
		own, key := containerOf+string(rune('a'+n/26))+string(rune('a'+n%26)), "net/"+name
		administer(t, http.MethodPut, address+"/"+own+"?restype=container", nil)
		blob, b := address+"/"+own+"/"+url.PathEscape(key), with(block().with("blob_endpoint", address, "container_name", own, "key", key))
		return storetest.Place{
			Open: func(t *testing.T) store.State { t.Helper(); return at(t, b, azuresource.Network{}) },
			Put: func(t *testing.T, data []byte) {
				t.Helper()
				administer(t, http.MethodPut, blob, data, "x-ms-blob-type", "BlockBlob")
			},
			Lose: func(t *testing.T) {
				t.Helper()
				administer(t, http.MethodPut, blob+"?comp=lease", nil, "x-ms-lease-action", "break")
			},
			Secrets: []string{azuretest.Key},
		}
	}
}
