package azurerm

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// accountHost is where the programs expect the account.
const accountHost = azuretest.Account + ".blob.core.windows.net"

// What the backends of OpenTofu and Terraform write, we read.
func TestInterop(t *testing.T) {
	t.Parallel()
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) {
			t.Parallel()
			s := azuretest.New("tfstate")
			s.Writes = true
			interop(t, cli, s, func(name string) []byte { return s.Get("tfstate", name) })
		})
	}
}

// The same with Azurite, which scripts/azurite.sh installs.
func TestRealAzurite(t *testing.T) {
	server := azurite(t)
	for _, cli := range clitest.All(t) {
		t.Run(cli.Name, func(t *testing.T) {
			const container = "tfstate"
			administer(t, server, http.MethodDelete, "/"+container+"?restype=container", 0)
			administer(t, server, http.MethodPut, "/"+container+"?restype=container", http.StatusCreated)
			interop(t, cli, server, func(name string) []byte {
				return administer(t, server, http.MethodGet, "/"+container+"/"+url.PathEscape(name), http.StatusOK)
			})
		})
	}
	t.Run("refusals", func(t *testing.T) { testRealRefusals(t, server) })
}

// interop has a program write states into an account, and reads them.
func interop(t *testing.T, cli clitest.CLI, account http.Handler, get func(name string) []byte) {
	internet := cloudtest.New(t, map[string]http.Handler{accountHost: account})
	const key = "live/network.tfstate"
	open := kind(internet.Client(t)).Start(settings(withKey()))
	project(t, cli, internet, key, "", "ARM_ACCESS_KEY="+azuretest.Key).RoundTrip(t, func(workspace string) []byte {
		req := request(t, place().with("key", key), nil)
		req.Workspace = workspace
		src, err := open(req)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if snapshot.Lock != nil || !strings.Contains(snapshot.Revision, "0x") {
			t.Errorf("got the lock %+v and the revision %s", snapshot.Lock, snapshot.Revision)
		}
		return snapshot.Data
	}, func(workspace string) []byte {
		if workspace == "default" {
			return get(key)
		}
		return get(key + "env:" + workspace)
	})
}

// project is a folder whose states go to the account.
func project(t *testing.T, cli clitest.CLI, internet *cloudtest.Internet, key, more string, env ...string) *clitest.Project {
	t.Helper()
	return cli.Project(t, fmt.Sprintf(`backend "azurerm" {
  storage_account_name = %q
  container_name       = "tfstate"
  key                  = %q
  %s
}`, azuretest.Account, key, more), append(internet.Environ(nil), env...)...)
}

// The identities that sign in for the backend do so here, in the same order.
func TestInteropIdentities(t *testing.T) {
	t.Parallel()
	tofu := clitest.Tofu(t)
	for name, c := range map[string]struct {
		env    []string
		more   string // of the backend
		block  attrs
		place  attrs
		action string
	}{
		"identity": {[]string{"ARM_USE_AZUREAD=true"}, "", withSecret().with("use_azuread_auth", true), place(), azuretest.ReadAction},
		"looked up key": {[]string{"ARM_SUBSCRIPTION_ID=" + azuretest.Subscription}, `resource_group_name = "` + azuretest.Group + `"`,
			withSecret().with("subscription_id", azuretest.Subscription), place().with("resource_group_name", azuretest.Group),
			azuretest.KeysAction},
		"signature": {[]string{"ARM_SAS_TOKEN=" + strings.Replace(azuretest.SAS, "sp=r", "sp=racwdl", 1)}, "",
			attrs{}.with("sas_token", azuretest.SAS), place(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := azuretest.New("tfstate")
			s.Writes, s.Actions = true, []string{c.action, azuretest.WriteAction}
			internet := cloudtest.New(t, map[string]http.Handler{accountHost: s, "login.microsoftonline.com": s, "management.azure.com": s})
			p := project(t, tofu, internet, "network.tfstate", c.more, append(c.env,
				"ARM_TENANT_ID="+azuretest.Tenant, "ARM_CLIENT_ID="+azuretest.ClientID, "ARM_CLIENT_SECRET="+azuretest.Secret)...)
			p.Apply(t, "default")
			got, err := read(t, internet.Client(t), settings(c.block), c.place)
			if err != nil {
				t.Fatal(err)
			}
			p.Check(t, "default", got.Data)
		})
	}
}

// azurite starts the program that STATECRYPT_AZURITE names. It takes the name of
// the account from the host.
func azurite(t *testing.T) *httputil.ReverseProxy {
	t.Helper()
	program, port := testkit.Program(t, "STATECRYPT_AZURITE"), nettest.Port(t)
	address := net.JoinHostPort("127.0.0.1", port)
	args := []string{"--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence", "--blobHost", "127.0.0.1",
		"--blobPort", port}
	servertest.Start(t, program, args, "AZURITE_ACCOUNTS="+azuretest.Account+":"+azuretest.Key).Await(t, func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", address, r.In.Host
	}}
}

// administer sends a request with the account's key.
func administer(t *testing.T, server http.Handler, method, path string, want int) []byte {
	t.Helper()
	internet := cloudtest.New(t, map[string]http.Handler{accountHost: server})
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+accountHost+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("x-ms-version", "2023-11-03")
	r.Header.Set("Authorization", "SharedKey "+azuretest.Account+":"+azuretest.Sign(r))
	response, err := internet.Client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || want != 0 && response.StatusCode != want {
		t.Fatalf("%s %s: %s, %v\n%s", method, path, response.Status, err, body)
	}
	return body
}

// testRealRefusals has Azurite refuse.
func testRealRefusals(t *testing.T, server http.Handler) {
	internet := cloudtest.New(t, map[string]http.Handler{accountHost: server})
	client := internet.Client(t)
	signed := func(permissions sas.ContainerPermissions, until time.Time) attrs {
		key, err := blob.NewSharedKeyCredential(azuretest.Account, azuretest.Key)
		if err != nil {
			t.Fatal(err)
		}
		values := sas.BlobSignatureValues{Protocol: sas.ProtocolHTTPSandHTTP, ExpiryTime: until, Permissions: permissions.String(),
			ContainerName: "tfstate"}
		q, err := values.SignWithSharedKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return attrs{}.with("sas_token", q.Encode())
	}
	later := time.Now().Add(time.Hour)
	if _, err := read(t, client, settings(signed(sas.ContainerPermissions{Read: true}, later)),
		place().with("key", "live/network.tfstate")); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		place, block attrs
		missing      bool
		code         string // of the server
	}{
		"no blob":      {place: place().with("key", "nothing"), block: withKey(), missing: true},
		"no container": {place: place().with("container_name", "nothing"), block: withKey()},
		"wrong key": {place: place(), block: attrs{}.with("access_key", "Y2FuYXJ5"),
			code: "403 AuthorizationFailure"}, // Azure says AuthenticationFailed
		"SAS, no blob": {place: place().with("key", "nothing"), block: signed(sas.ContainerPermissions{Read: true}, later), missing: true},
		"SAS to write": {place: place(), block: signed(sas.ContainerPermissions{Write: true}, later)},
		"old SAS": {place: place(), block: signed(sas.ContainerPermissions{Read: true}, time.Now().Add(-time.Hour)),
			code: "403 AuthorizationFailure"},
		"wrong SAS": {place: place(), block: attrs{}.with("sas_token", azuretest.SAS), code: "403 AuthorizationFailure"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, client, settings(c.block), c.place)
			if checkRefusal(t, err, c.missing); !strings.Contains(err.Error(), c.code) {
				t.Errorf("got %v, want %q in it", err, c.code)
			}
		})
	}
}
