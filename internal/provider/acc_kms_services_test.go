package provider

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/awskms/awskmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// keyService is a key service that the provider finds at its own name, by the
// environment, and that refuses everything but decryption. It has a key called
// good, which five states were sealed with, and others that are no good.
type keyService struct {
	secrets

	kind     string              // of key provider
	named    string              // the argument that names a key, up to the key's own name
	settings string              // further arguments
	noKey    map[string][]string // :: key → what is said of it when the next method may be tried
	final    map[string]finalError
	hosts    []string // that may be asked
	cloud    *cloudtest.Internet
	env      []string // credentials
	states   []string // with the serials 0 to 4; what is stored of the key is the same in all

	mu    sync.Mutex
	asked []string // "decrypt good"
}

// finalError is one after which no other method is tried.
type finalError struct {
	key      string
	settings string // in the place of those of the service
	words    []string
}

var keyServices = map[string]func(*testing.T) *keyService{
	"aws_kms": newAWS, "gcp_kms": newGoogle, "azure_vault": newAzure, "openbao": newTransit,
}

// arguments of the key provider for this key, in blocks and in text.
func (k *keyService) arguments(key string) string {
	return fmt.Sprintf("%s%s\"\n%s", k.named, key, k.settings)
}

// block is a key provider with a method, both called name. It finds in a file
// what the key provider good stored.
func (k *keyService) block(name, arguments string) string {
	alias := fmt.Sprintf("encrypted_metadata_alias = \"key_provider.%s.good\"", k.kind)
	return entry("key_provider", k.kind, name, arguments, alias) +
		entry("method", "aes_gcm", name, fmt.Sprintf("keys = \"key_provider.%s.%s\"", k.kind, name))
}

// text is OpenTofu's text for the key good, as it sealed the states.
func (k *keyService) text(target string) string {
	return fmt.Sprintf("key_provider %q \"good\" {\n%s}\nmethod \"aes_gcm\" \"m\" { keys = key_provider.%[1]s.good }\n%[3]s\n", k.kind,
		k.arguments("good"), target)
}

// project is a root module in whose folder the states are, as state0 to state4,
// and the text that they were sealed by.
func (k *keyService) project(t *testing.T, config ...string) *project {
	t.Helper()
	files := map[string]string{"main.tf": configuration(config...), "encryption.hcl": k.text(stateTarget)}
	for i, state := range k.states {
		files[fmt.Sprint("state", i)] = state
	}
	p := newProject(t, files)
	p.env = append(k.cloud.Environ(p.env), k.env...)
	// It does not ask for a password, but clients bring theirs.
	proxy := "HTTPS_PROXY=" + strings.Replace(k.cloud.Proxy, "//", "//"+url.UserPassword("ci", k.add("password of the proxy")).String()+"@", 1)
	p.setenv(proxy, strings.ToLower(proxy[:11])+proxy[11:])
	p.setenv("GOOGLE_SDK_GO_LOGGING_LEVEL=debug") // with which Google's SDK would log keys
	return p
}

func (k *keyService) note(operation, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, strings.ToLower(operation)+" "+key)
}

// take returns what the service was asked, and forgets it.
func (k *keyService) take() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.asked
	k.asked = nil
	return out
}

// seal makes the states, by a key provider that may do more than the
// provider's.
func (k *keyService) seal(t *testing.T, block driver.Block[driver.KeyProvider], settings string) {
	t.Helper()
	made := &madeKey{}
	build := block.Build
	block.Build = func(v attr.Values) (driver.KeyProvider, error) {
		p, err := build(v)
		return sealsAlike{p, made}, err
	}
	registry := encryption.Registry{
		KeyProviders: []driver.Block[driver.KeyProvider]{block},
		Methods:      []driver.Block[driver.Method]{lighttest.Method("aes_gcm")},
	}
	original := k.settings
	k.settings += settings
	enc := library(t, registry, k.text(stateTarget))
	k.settings = original
	for i := range 5 {
		state := strings.Replace(argumentsState, `"serial":7`, fmt.Sprintf(`"serial":%d`, i), 1)
		file, err := enc.State().Encrypt(t.Context(), []byte(state))
		if err != nil {
			t.Fatal(err)
		}
		k.states = append(k.states, string(file))
	}
	k.keep("data key", string(made.key))
}

type madeKey struct {
	key    []byte
	stored json.RawMessage
}

// sealsAlike seals all files with one key.
type sealsAlike struct {
	driver.KeyProvider
	made *madeKey
}

func (s sealsAlike) NewKey(ctx context.Context, keys driver.Keys) (key []byte, stored json.RawMessage, err error) {
	if s.made.key == nil {
		s.made.key, s.made.stored, err = s.KeyProvider.(driver.KeyMaker).NewKey(ctx, keys)
	}
	return bytes.Clone(s.made.key), bytes.Clone(s.made.stored), err
}

// breaksOff is a service that closes the connection when it is asked.
func breaksOff(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func newAWS(t *testing.T) *keyService {
	t.Helper()
	key := func(name string, state awskmstest.State) awskmstest.Key {
		return awskmstest.Key{ID: "alias/" + name, Master: bytes.Repeat([]byte(name[:1]), 32), State: state}
	}
	good := key("good", awskmstest.Enabled)
	server := awskmstest.New(t, good, key("other", awskmstest.Enabled), key("denied", awskmstest.Denied),
		key("disabled", awskmstest.Disabled), key("pending", awskmstest.PendingDeletion))
	sealer := awskmstest.New(t, good)
	sealer.Allow("GenerateDataKey")
	fails := func(status int, code string) http.Handler {
		broken := awskmstest.New(t)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			broken.Fail(status, code)
			broken.ServeHTTP(w, r)
		})
	}
	settings := func(region string) string {
		return fmt.Sprintf("key_spec = \"AES_256\"\nregion = %q\nmax_retries = 1\n", region)
	}
	k := &keyService{
		kind: "aws_kms", named: `kms_key_id = "alias/`, settings: settings("eu-west-1"),
		hosts: []string{"kms.eu-west-1.amazonaws.com"},
		noKey: map[string][]string{
			"other": {"(IncorrectKeyException)"}, "denied": {"(AccessDeniedException)"},
			"disabled": {"(DisabledException)"}, "pending": {"(KMSInvalidStateException)"}, "gone": {"(NotFoundException)"},
		},
		final: map[string]finalError{
			"unreachable": {"good", settings("us-west-2"), []string{netfail.Invalid}},
			"broken":      {"good", settings("us-east-1"), []string{"us-east-1"}},
			"timeout":     {"good", settings("eu-north-1"), []string{"(DependencyTimeoutException)"}},
			"busy":        {"good", settings("eu-west-2"), []string{"(ThrottlingException)"}},
			"credentials": {"good", settings("eu-west-3"), []string{"(UnrecognizedClientException)"}},
		},
	}
	k.env = []string{"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=" + k.add("AWS_SECRET_ACCESS_KEY"), "AWS_SESSION_TOKEN=" +
		k.add("AWS_SESSION_TOKEN")}
	k.keep("what the service answered", awskmstest.Leak)
	k.cloud = cloudtest.New(t, map[string]http.Handler{
		"kms.eu-west-1.amazonaws.com": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server.ServeHTTP(w, r)
			for _, request := range server.Requests() {
				k.note(request.Operation, path.Base(request.KeyID))
			}
		}),
		"kms.us-east-1.amazonaws.com":  http.HandlerFunc(breaksOff),
		"kms.eu-north-1.amazonaws.com": fails(500, "DependencyTimeoutException"),
		"kms.eu-west-2.amazonaws.com":  fails(400, "ThrottlingException"),
		"kms.eu-west-3.amazonaws.com":  fails(400, "UnrecognizedClientException"),
	})
	sealing := cloudtest.New(t, map[string]http.Handler{"kms.eu-west-1.amazonaws.com": sealer})
	k.seal(t, awskms.Block(), fmt.Sprintf("access_key = \"AKIASEAL\"\nsecret_key = \"s\"\nhttps_proxy = %q\ncustom_ca_bundle = %q\n",
		sealing.Proxy, sealing.CAFile))
	return k
}

const googleKeys = "projects/p/locations/global/keyRings/r/cryptoKeys/"

func newGoogle(t *testing.T) *keyService {
	t.Helper()
	account := cloudtest.NewServiceAccount(t)
	k := &keyService{
		kind: "gcp_kms", named: `kms_encryption_key = "` + googleKeys, settings: "key_length = 32\n",
		hosts: []string{"cloudkms.googleapis.com"}, // the account signs its tokens itself
		env:   []string{"GOOGLE_CREDENTIALS=" + account.JSON},
		noKey: map[string][]string{
			"other": {googleKeys + "other"}, "denied": {googleKeys + "denied"},
			"disabled": {googleKeys + "disabled"}, "gone": {googleKeys + "gone"},
		},
	}
	k.final = map[string]finalError{
		"quota":  {"quota", k.settings, []string{"Cloud KMS"}},
		"broken": {"broken", k.settings, []string{googleKeys + "broken"}},
		"credentials": {"good", k.settings + fmt.Sprintf("access_token = %q\n", k.add("access_token")),
			[]string{"Cloud KMS"}},
		"unreachable": {"good", k.settings + "impersonate_service_account = \"i@p.iam.gserviceaccount.com\"\n",
			[]string{"Google"}},
	}
	var document struct {
		PrivateKey string `json:"private_key"`
	}
	if err := json.Unmarshal([]byte(account.JSON), &document); err != nil {
		t.Fatal(err)
	}
	k.keep("private key", strings.Split(document.PrivateKey, "\n")[2])
	k.keep("signed token", base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","`)))
	keys := map[string][]byte{googleKeys + "good": bytes.Repeat([]byte{1}, 32), googleKeys + "other": bytes.Repeat([]byte{2}, 32)}
	service := &gcpkmstest.Service{Keys: keys, Before: func(_ context.Context, call, key string) *gcpkmstest.Failure {
		k.note(call, path.Base(key))
		status := map[string]string{
			"denied": "PERMISSION_DENIED", "disabled": "FAILED_PRECONDITION", "quota": "RESOURCE_EXHAUSTED", "broken": "UNIMPLEMENTED",
		}[path.Base(key)]
		if status == "" {
			return nil
		}
		return &gcpkmstest.Failure{Status: status, Message: k.keep("what the service answered", "canary: the service says too much")}
	}}
	k.cloud = cloudtest.New(t, map[string]http.Handler{gcpkmstest.Host: gcpkmstest.CloudKMS(t, service, account)})
	sealer := &gcpkmstest.Service{Keys: keys, AllowEncrypt: true}
	k.seal(t, gcpkms.BlockWith(gcpkms.Options{Transport: sealer.Start(t)}), fmt.Sprintf("access_token = %q\n", gcpkmstest.Token))
	return k
}

func newAzure(t *testing.T) *keyService {
	t.Helper()
	keys := map[string]*rsa.PrivateKey{}
	for _, name := range []string{"good", "other"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = key
	}
	settings := func(vault string) string {
		return fmt.Sprintf("key_length = 32\nvault_uri = \"https://%s.vault.azure.net\"\n", vault)
	}
	k := &keyService{
		kind: "azure_vault", named: `vault_key_name = "`, settings: settings("acceptance"),
		hosts: []string{"acceptance.vault.azure.net", "login.microsoftonline.com"},
		noKey: map[string][]string{
			"other": {"other of https://acceptance.vault.azure.net"}, "denied": {"denied of https://acceptance.vault.azure.net"},
			"disabled": {"disabled of https://acceptance.vault.azure.net"}, "gone": {"gone of https://acceptance.vault.azure.net"},
		},
	}
	k.final = map[string]finalError{
		"unreachable": {"good", settings("nowhere"), []string{"https://nowhere.vault.azure.net"}},
		"broken":      {"good", settings("broken"), []string{"https://broken.vault.azure.net"}},
		"busy":        {"busy", k.settings, []string{"https://acceptance.vault.azure.net"}},
		"network":     {"walled", k.settings, []string{"network", "https://acceptance.vault.azure.net"}},
		"credentials": {"good", k.settings + fmt.Sprintf("client_secret = %q\n", k.add("client_secret")),
			[]string{"Azure"}},
	}
	secret := k.add("ARM_CLIENT_SECRET")
	k.keep("access token", azurevaulttest.Token)
	k.keep("what the service answered", "canary: ")
	k.env = []string{"ARM_TENANT_ID=" + azurevaulttest.Tenant, "ARM_CLIENT_ID=" + azurevaulttest.ClientID, "ARM_CLIENT_SECRET=" + secret}
	service := &azurevaulttest.Service{
		RSA:    keys,
		SignIn: func(form url.Values) bool { return form.Get("client_secret") == secret },
		Before: func(w http.ResponseWriter, r *http.Request) bool {
			parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // keys, name, version, operation
			k.note(parts[len(parts)-1], parts[1])
			switch parts[1] {
			case "denied":
				azurevaulttest.Fail(w, 403, "Forbidden", "ForbiddenByPolicy")
			case "disabled":
				azurevaulttest.Fail(w, 403, "Forbidden", "KeyDisabled")
			case "walled":
				azurevaulttest.Fail(w, 403, "Forbidden", "ForbiddenByFirewall")
			case "busy":
				azurevaulttest.Fail(w, 429, "Throttled", "")
			default:
				return false
			}
			return true
		},
	}
	k.cloud = cloudtest.New(t, map[string]http.Handler{
		"acceptance.vault.azure.net": service, "login.microsoftonline.com": service, "broken.vault.azure.net": http.HandlerFunc(breaksOff),
	})
	sealer := &azurevaulttest.Service{RSA: keys, AllowEncrypt: true}
	k.seal(t, azurevault.BlockWith(azurevault.Options{Transport: sealer.Start(t)}),
		fmt.Sprintf("tenant_id = %q\nclient_id = %q\nclient_secret = %q\n", azurevaulttest.Tenant, azurevaulttest.ClientID,
			azurevaulttest.Secret))
	return k
}

func newTransit(t *testing.T) *keyService {
	t.Helper()
	sealer := openbaotest.New(t, transitKey)
	sealer.MakesKeys = true
	server := openbaotest.New(t, transitKey)
	k := &keyService{
		kind: "openbao", named: `key_name = "`,
		noKey: map[string][]string{
			"other": nil, "denied": {"(status 403)"}, "gone": nil,
		},
		final: map[string]finalError{
			"unreachable": {"good", fmt.Sprintf("address = \"http://%s\"\nmax_retries = 0\n", nettest.Dead(t)), []string{"connection refused"}},
			"sealed":      {"sealed", "max_retries = 0\n", []string{"(status 503)"}},
			"busy":        {"busy", "max_retries = 0\n", []string{"(status 429)"}},
			"timeout":     {"hanging", "max_retries = 0\nclient_timeout = \"1s\"\n", []string{"1s"}},
		},
	}
	server.Token = k.add("BAO_TOKEN")
	server.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		k.note(path.Base(path.Dir(r.URL.Path)), path.Base(r.URL.Path))
		switch path.Base(r.URL.Path) {
		case "denied":
			return answers(403, "canary: permission denied")(w, r)
		case "gone":
			return answers(400, "encryption key not found")(w, r)
		case "sealed":
			return answers(503, "Vault is sealed")(w, r)
		case "busy":
			return answers(429, "slow down")(w, r)
		case "hanging":
			<-r.Context().Done()
			return true
		}
		return false
	}
	k.cloud = cloudtest.New(t, nil)
	k.env = []string{"BAO_ADDR=" + server.URL, "BAO_TOKEN=" + server.Token}
	k.seal(t, openbao.Block(), fmt.Sprintf("address = %q\ntoken = \"t\"\n", sealer.URL))
	return k
}
