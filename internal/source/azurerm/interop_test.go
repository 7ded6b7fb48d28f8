package azurerm

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"         //nolint:depguard // what OpenTofu has sealed is opened here, too
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin" //nolint:depguard // see above
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// accountHost is where the programs expect the account.
const accountHost = azuretest.Account + ".blob.core.windows.net"

const sealing = `key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
  enforced = true
}
`

// What the backends of OpenTofu and Terraform write, we read.
func TestInterop(t *testing.T) {
	t.Parallel()
	writers(t, true, func(t *testing.T, write writer) {
		s := azuretest.New("tfstate")
		s.Writes = true
		write(t, s, func(name string) []byte { return s.Get("tfstate", name) })
	})
}

// The same with Azurite, which scripts/azurite.sh installs.
func TestRealAzurite(t *testing.T) {
	server := azurite(t)
	writers(t, false, func(t *testing.T, write writer) {
		container := "tfstate"
		administer(t, server, http.MethodDelete, "/"+container+"?restype=container", 0)
		administer(t, server, http.MethodPut, "/"+container+"?restype=container", http.StatusCreated)
		write(t, server, func(name string) []byte {
			return administer(t, server, http.MethodGet, "/"+container+"/"+url.PathEscape(name), http.StatusOK)
		})
	})
	t.Run("refusals", func(t *testing.T) { testRealRefusals(t, server) })
}

// writer lets a program write states into an account, and reads them.
type writer func(t *testing.T, account http.Handler, get func(name string) []byte)

// writers are the programs that there are.
func writers(t *testing.T, parallel bool, run func(*testing.T, writer)) {
	type program struct{ path, sealing string }
	programs := map[string]program{}
	if tofu := os.Getenv("STATECRYPT_TOFU"); tofu != "" {
		programs["OpenTofu"], programs["OpenTofu, encrypted"] = program{path: tofu}, program{tofu, sealing}
	}
	if terraform, err := exec.LookPath("terraform"); err == nil {
		programs["Terraform"] = program{path: terraform}
	}
	if len(programs) == 0 {
		t.Skip("neither STATECRYPT_TOFU nor terraform is there")
	}
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			if parallel {
				t.Parallel()
			}
			run(t, func(t *testing.T, account http.Handler, get func(string) []byte) {
				interop(t, p.path, p.sealing, account, get)
			})
		})
	}
}

func interop(t *testing.T, program, sealing string, account http.Handler, get func(string) []byte) {
	internet := cloudtest.New(t, map[string]http.Handler{accountHost: account})
	env := slices.Concat(internet.Environ(gittest.Environ(t.TempDir())), []string{"ARM_ACCESS_KEY=" + azuretest.Key, "CHECKPOINT_DISABLE=1", "TF_INPUT=0"})
	if sealing != "" {
		env = append(env, "TF_ENCRYPTION="+sealing)
	}
	apply(t, program, env, "live/network.tfstate", "", "init", "apply -auto-approve", "workspace new prod-1", "apply -auto-approve")
	open := kind(through(t, internet)).Start(settings(withKey()))
	for workspace, name := range map[string]string{"default": "live/network.tfstate", "prod-1": "live/network.tfstateenv:prod-1"} {
		req := request(t, place().with("key", "live/network.tfstate"), nil)
		req.Workspace = workspace
		src, err := open(req)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := get(name); !bytes.Equal(snapshot.Data, want) || len(want) == 0 {
			t.Errorf("%s: got %d bytes, want %d", name, len(snapshot.Data), len(want))
		}
		if snapshot.Lock != nil || !strings.Contains(snapshot.Revision, "0x") {
			t.Errorf("got %+v", snapshot)
		}
		checkOutputs(t, snapshot.Data, sealing, workspace)
	}
}

// apply runs a program with the backend and two outputs.
func apply(t *testing.T, program string, env []string, key, more string, commands ...string) {
	t.Helper()
	dir := t.TempDir()
	module := fmt.Sprintf(`terraform {
  backend "azurerm" {
    storage_account_name = %q
    container_name       = "tfstate"
    key                  = %q
    %s
  }
}
output "workspace" { value = terraform.workspace }
output "text" { value = "héllo" }
`, azuretest.Account, key, more)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range commands {
		cmd := exec.CommandContext(t.Context(), program, strings.Fields(args)...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
}

// The identities that sign in for the backend do so here, in the same order.
func TestInteropIdentities(t *testing.T) {
	t.Parallel()
	tofu := os.Getenv("STATECRYPT_TOFU")
	if tofu == "" {
		t.Skip("STATECRYPT_TOFU is not set")
	}
	for name, c := range map[string]struct {
		env    []string
		more   string // of the backend
		block  attrs
		place  attrs
		action string
	}{
		"identity": {[]string{"ARM_USE_AZUREAD=true"}, "", withSecret().with("use_azuread_auth", true), place(), azuretest.ReadAction},
		"looked up key": {[]string{"ARM_SUBSCRIPTION_ID=" + azuretest.Subscription}, `resource_group_name = "` + azuretest.Group + `"`,
			withSecret().with("subscription_id", azuretest.Subscription), place().with("resource_group_name", azuretest.Group), azuretest.KeysAction},
		"signature": {[]string{"ARM_SAS_TOKEN=" + strings.Replace(azuretest.SAS, "sp=r", "sp=racwdl", 1)}, "", attrs{}.with("sas_token", azuretest.SAS), place(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := azuretest.New("tfstate")
			s.Writes, s.Actions = true, []string{c.action}
			internet := cloudtest.New(t, map[string]http.Handler{accountHost: s, "login.microsoftonline.com": s, "management.azure.com": s})
			env := slices.Concat(internet.Environ(gittest.Environ(t.TempDir())), c.env, []string{
				"ARM_TENANT_ID=" + azuretest.Tenant, "ARM_CLIENT_ID=" + azuretest.ClientID, "ARM_CLIENT_SECRET=" + azuretest.Secret, "CHECKPOINT_DISABLE=1", "TF_INPUT=0",
			})
			apply(t, tofu, env, "network.tfstate", c.more, "init", "apply -auto-approve")
			got, err := read(t, through(t, internet), settings(c.block), c.place)
			if err != nil {
				t.Fatal(err)
			}
			checkOutputs(t, got.Data, "", "default")
		})
	}
}

func checkOutputs(t *testing.T, data []byte, sealing, workspace string) {
	t.Helper()
	if sealing != "" {
		if bytes.Contains(data, []byte("llo")) {
			t.Error("the state is not encrypted")
		}
		registry := builtin.Registry()
		cfg, err := config.Parse(sealing, "TF_ENCRYPTION", registry.Options(cty.NilVal))
		if err != nil {
			t.Fatal(err)
		}
		library, err := encryption.New(registry, cfg)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := library.State().Decrypt(t.Context(), data)
		if err != nil || !opened.Encrypted {
			t.Fatal(err)
		}
		data = opened.Data
	}
	var state struct {
		Outputs map[string]struct{ Value string }
	}
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	if o := state.Outputs; len(o) != 2 || o["text"].Value != "héllo" || o["workspace"].Value != workspace {
		t.Errorf("got the outputs %v", o)
	}
}

// through is a client that reaches a made up internet.
func through(t *testing.T, internet *cloudtest.Internet) *http.Client {
	t.Helper()
	text, err := os.ReadFile(internet.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	proxy, err := url.Parse(internet.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// azurite starts the program that STATECRYPT_AZURITE names. It takes the name of
// the account from the host.
func azurite(t *testing.T) *httputil.ReverseProxy {
	t.Helper()
	path := os.Getenv("STATECRYPT_AZURITE")
	if path == "" {
		t.Skip("STATECRYPT_AZURITE is not set; scripts/azurite.sh makes .tools/bin/azurite, whose path it is to be")
	}
	address := cloudtest.Dead(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence", "--blobHost", host, "--blobPort", port)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "AZURITE_ACCOUNTS="+azuretest.Account+":"+azuretest.Key)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for tick := time.Tick(50 * time.Millisecond); ; {
		if c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil {
			_ = c.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("Azurite ended: %v\n%s", err, log.String())
		case <-tick:
		}
	}
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
	response, err := through(t, internet).Do(r)
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
	client := through(t, internet)
	signed := func(permissions sas.ContainerPermissions, until time.Time) attrs {
		key, err := blob.NewSharedKeyCredential(azuretest.Account, azuretest.Key)
		if err != nil {
			t.Fatal(err)
		}
		values := sas.BlobSignatureValues{Protocol: sas.ProtocolHTTPSandHTTP, ExpiryTime: until, Permissions: permissions.String(), ContainerName: "tfstate"}
		q, err := values.SignWithSharedKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return attrs{}.with("sas_token", q.Encode())
	}
	later := time.Now().Add(time.Hour)
	if _, err := read(t, client, settings(signed(sas.ContainerPermissions{Read: true}, later)), place().with("key", "live/network.tfstate")); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		place, block attrs
		missing      bool
		want         string
	}{
		"no blob":      {place().with("key", "nothing"), withKey(), true, "holds no blob"},
		"no container": {place().with("container_name", "nothing"), withKey(), false, "there is no container nothing"},
		"wrong key":    {place(), attrs{}.with("access_key", "Y2FuYXJ5"), false, "403 AuthorizationFailure"}, // Azure says AuthenticationFailed
		"SAS, no blob": {place().with("key", "nothing"), signed(sas.ContainerPermissions{Read: true}, later), true, "holds no blob"},
		"SAS to write": {place(), signed(sas.ContainerPermissions{Write: true}, later), false, "with the permission r"},
		"old SAS":      {place(), signed(sas.ContainerPermissions{Read: true}, time.Now().Add(-time.Hour)), false, "403 AuthorizationFailure"},
		"wrong SAS":    {place(), attrs{}.with("sas_token", azuretest.SAS), false, "403 AuthorizationFailure"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, client, settings(c.block), c.place)
			checkRefusal(t, err, c.missing, c.want)
		})
	}
}
