// Package azureauth signs in to Azure. Its settings, and their order of precedence, are those shared by
// Terraform's azurerm backend and OpenTofu's azure_vault key provider. It does not read the environment if
// that is switched off.
package azureauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Access holds the settings for signing in. Use [New] to create one.
type Access struct {
	Transport  policy.Transporter // for all requests; nil for the client from [HTTPClient]
	RetryDelay time.Duration      // the delay before the second attempt; 0 for the SDK's default
	Cloud      Cloud              // zero if a metadata host describes the cloud; see [Access.FindCloud]
	Pipeline   string             // the Azure Pipelines service connection that issues tokens; may be empty

	values attr.Values // the values of the attributes in [Attrs]
	world  world.World // for clients that receive no secret of the configuration
}

// Open returns the credential for the first configured way to sign in, in OpenTofu's order. It returns an
// error if the settings for that way are incomplete.
func (a Access) Open(ctx context.Context) (azcore.TokenCredential, error) {
	var err error
	if a.Cloud, err = a.FindCloud(ctx); err != nil {
		return nil, err
	}
	for _, way := range a.ways() {
		if way.set {
			// These variables choose where the client library signs in, for all kinds of credentials.
			secret := a.values.Hands("client_secret", "client_certificate", "client_certificate_password", "oidc_token", "oidc_request_token")
			if err := a.world.Beside(secret).Refuse(world.AzureSignIn); err != nil {
				return nil, err
			}
			return way.make()
		}
	}
	if half := a.half(); half != "" {
		return nil, errors.New(half)
	}
	return nil, fault.Known(errors.New("no way to sign in to Azure is configured; set tenant_id and client_id with client_secret or "+
		"client_certificate, or set use_oidc, use_msi, use_aks_workload_identity or use_cli"), fault.NoCredentials{})
}

type way struct {
	set  bool
	make func() (azcore.TokenCredential, error)
}

// ways returns the ways to sign in, in order of precedence. The Azure CLI comes last.
func (a Access) ways() []way {
	useOIDC := a.values.Bool("use_oidc")
	return []way{
		{a.principal() && a.hasOneOf("client_certificate", "client_certificate_path"), a.asClient(a.withCertificate)},
		{a.principal() && a.hasOneOf("client_secret", "client_secret_file_path"), a.asClient(a.withSecret)},
		{useOIDC, a.asClient(a.withOIDC)},
		{a.values.Bool("use_msi"), a.withManagedIdentity},
		{a.values.Bool("use_aks_workload_identity"), a.withWorkloadIdentity},
		{a.values.Bool("use_cli"), a.withCLI},
	}
}

// half returns an error text if a service principal has a secret or certificate, but its tenant or client ID
// is missing. Otherwise it returns an empty string.
func (a Access) half() string {
	for _, name := range []string{"client_secret", "client_secret_file_path", "client_certificate", "client_certificate_path"} {
		switch {
		case a.values.String(name) == "":
		case !a.hasOneOf("tenant_id"):
			return name + " is set, but tenant_id is not; set tenant_id and client_id, either as arguments or as ARM_… variables"
		case !a.hasOneOf("client_id", "client_id_file_path"):
			return name + " is set, but client_id is not; set client_id and tenant_id, either as arguments or as ARM_… variables"
		}
	}
	return ""
}

func (a Access) hasOneOf(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return a.values.String(name) != "" })
}

// asClient returns a function that calls with(tenant, id) with the configured tenant and client IDs.
func (a Access) asClient(with func(tenant, id string) (azcore.TokenCredential, error)) func() (azcore.TokenCredential, error) {
	return func() (azcore.TokenCredential, error) {
		id, err := a.either("client_id", a.values.String("client_id"), "client_id_file_path")
		if err != nil {
			return nil, err
		}
		return with(a.values.String("tenant_id"), id)
	}
}

// UsesCLI reports whether the Azure CLI is the only configured way to sign in.
func (a Access) UsesCLI() bool {
	ways := a.ways()
	return a.values.Bool("use_cli") && !slices.ContainsFunc(ways[:len(ways)-1], func(w way) bool { return w.set })
}

// principal reports whether a service principal is configured.
func (a Access) principal() bool {
	return a.hasOneOf("tenant_id") && a.hasOneOf("client_id", "client_id_file_path")
}

func (a Access) withCertificate(tenant, id string) (azcore.TokenCredential, error) {
	direct, err := base64.StdEncoding.DecodeString(a.values.String("client_certificate"))
	if err != nil {
		return nil, errors.New("client_certificate: this is not standard base64; use filebase64(…) to encode a file")
	}
	bundle, err := a.either("client_certificate", string(direct), "client_certificate_path")
	if err != nil {
		return nil, err
	}
	chain, key, err := azidentity.ParseCertificates([]byte(bundle), []byte(a.values.String("client_certificate_password")))
	if err != nil {
		return nil, errors.New("client_certificate: this is not a PKCS#12 bundle with a certificate and its private key, or " +
			"client_certificate_password is wrong; check the bundle and the password")
	}
	return credential(azidentity.NewClientCertificateCredential(tenant, id, chain, key, &azidentity.ClientCertificateCredentialOptions{
		ClientOptions: a.ClientOptions(), DisableInstanceDiscovery: a.hasOneOf("metadata_host"),
	}))
}

func (a Access) withSecret(tenant, id string) (azcore.TokenCredential, error) {
	secret, err := a.either("client_secret", a.values.String("client_secret"), "client_secret_file_path")
	if err != nil {
		return nil, err
	}
	return credential(azidentity.NewClientSecretCredential(tenant, id, secret, &azidentity.ClientSecretCredentialOptions{
		ClientOptions: a.ClientOptions(), DisableInstanceDiscovery: a.hasOneOf("metadata_host"),
	}))
}

func (a Access) withOIDC(tenant, id string) (azcore.TokenCredential, error) {
	if !a.principal() {
		return nil, errors.New("use_oidc is set, but tenant_id or client_id is not; set both")
	}
	direct := a.Pipeline == "" && a.hasOneOf("oidc_token", "oidc_token_file_path")
	if !direct && !(a.hasOneOf("oidc_request_url") && a.hasOneOf("oidc_request_token")) {
		return nil, errors.New("use_oidc is set, but no token is; set oidc_token, oidc_token_file_path, or both oidc_request_url and " +
			"oidc_request_token. With ado_service_connection_id, set SYSTEM_OIDCREQUESTURI and SYSTEM_ACCESSTOKEN")
	}
	assertion := func(ctx context.Context) (string, error) {
		if direct {
			return a.either("oidc_token", a.values.String("oidc_token"), "oidc_token_file_path")
		}
		return a.requestOIDC(ctx)
	}
	return credential(azidentity.NewClientAssertionCredential(tenant, id, assertion, &azidentity.ClientAssertionCredentialOptions{
		ClientOptions: a.ClientOptions(), DisableInstanceDiscovery: a.hasOneOf("metadata_host"),
	}))
}

// withManagedIdentity returns the credential of the managed identity. The SDK detects which Azure service
// it runs on. On a virtual machine, msi_endpoint replaces the default address.
func (a Access) withManagedIdentity() (azcore.TokenCredential, error) {
	// See https://learn.microsoft.com/azure/app-service/overview-managed-identity.
	if err := a.world.Refuse(world.AzureIdentity); err != nil {
		return nil, err
	}
	options := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: a.ClientOptions()}
	if endpoint := a.values.String("msi_endpoint"); endpoint != "" {
		options.Transport = identityTransport{options.Transport, endpoint}
	}
	if id := a.values.String("client_id"); id != "" {
		options.ID = azidentity.ClientID(id)
	}
	return credential(azidentity.NewManagedIdentityCredential(options))
}

func (a Access) withWorkloadIdentity() (azcore.TokenCredential, error) {
	if !a.world.ReadsEnvironment() {
		return nil, errors.New("use_aks_workload_identity needs environment variables, but the environment must not be used; set " +
			"use_oidc with tenant_id, client_id and oidc_token_file_path")
	}
	c, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
		ClientOptions: a.ClientOptions(), DisableInstanceDiscovery: a.hasOneOf("metadata_host"),
	})
	if err != nil {
		return nil, errors.New("use_aks_workload_identity needs the environment variables AZURE_CLIENT_ID, " +
			"AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE; check the workload identity of the pod")
	}
	return c, nil
}

// credential returns c. It replaces errors from the SDK, because they may quote settings.
func credential[T azcore.TokenCredential](c T, err error) (azcore.TokenCredential, error) {
	if err != nil {
		return nil, errors.New("the settings for signing in to Azure are not valid; check tenant_id, client_id and the cloud")
	}
	return c, nil
}

// either returns the setting called name, which is either direct or the content of the file that the
// attribute file names. If both are set, they must be equal.
func (a Access) either(name, direct, file string) (string, error) {
	path := a.values.String(file)
	if path == "" {
		return direct, nil
	}
	b, err := keyfile.ReadText(path)
	content := string(b)
	switch {
	case err != nil:
		return "", a.values.Errorf(file, "%w", err)
	case content == "":
		return "", fmt.Errorf("the file for %s is empty; check the path", name)
	case direct != "" && direct != content:
		return "", fmt.Errorf("%s and the content of its file differ; set only one of them", name)
	}
	return content, nil
}

// identityTransport redirects requests from the fixed address of a virtual machine's managed identity to
// endpoint.
type identityTransport struct {
	policy.Transporter
	endpoint string
}

const identityHost = "169.254.169.254"

func (t identityTransport) Do(request *http.Request) (*http.Response, error) {
	if request.URL.Host != identityHost {
		return t.Transporter.Do(request)
	}
	moved, err := http.NewRequestWithContext(request.Context(), request.Method, t.endpoint, request.Body)
	if err != nil {
		return nil, err
	}
	query := moved.URL.Query()
	maps.Copy(query, request.URL.Query())
	moved.URL.RawQuery = query.Encode()
	moved.Header = request.Header.Clone()
	return t.Transporter.Do(moved)
}

// requestOIDC requests a token for Azure from the CI service. See
// https://docs.github.com/actions/reference/security/oidc and
// https://learn.microsoft.com/rest/api/azure/devops/distributedtask/oidctoken/create.
func (a Access) requestOIDC(ctx context.Context) (string, error) {
	u, err := url.Parse(a.values.String("oidc_request_url"))
	if err != nil {
		return "", errors.New("oidc_request_url: this is not a usable address")
	}
	method, query := http.MethodGet, u.Query()
	header := http.Header{
		"Authorization": {"Bearer " + a.values.String("oidc_request_token")},
		"Accept":        {"application/json; api-version=2.0"},
		"Content-Type":  {"application/json"},
	}
	switch {
	case a.Pipeline != "":
		method = http.MethodPost
		query.Set("api-version", "7.1")
		query.Set("serviceConnectionId", a.Pipeline)
		header.Set("Accept", "application/json")
		header.Set("X-Tfs-Fedauthredirect", "Suppress") // asks for an error instead of a sign-in page
	case !u.Query().Has("audience"):
		query.Set("audience", audience(a.Cloud.Configuration))
	}
	u.RawQuery = query.Encode()
	var answer struct {
		GitHub    string `json:"value"`
		Pipelines string `json:"oidcToken"`
	}
	if err := a.ask(ctx, method, u.String(), header, &answer); err != nil {
		return "", fmt.Errorf("oidc_request_url: %w", err)
	}
	token := cmp.Or(answer.GitHub, answer.Pipelines)
	if token == "" {
		return "", errors.New("oidc_request_url: the answer has no token")
	}
	return token, nil
}

// audience returns the audience of a token. The national clouds have separate audiences; see
// https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations.
func audience(c cloud.Configuration) string {
	switch c.ActiveDirectoryAuthorityHost {
	case cloud.AzureChina.ActiveDirectoryAuthorityHost:
		return "api://AzureADTokenExchangeChina"
	case cloud.AzureGovernment.ActiveDirectoryAuthorityHost:
		return "api://AzureADTokenExchangeUSGov"
	}
	return "api://AzureADTokenExchange"
}

// ask sends a request and decodes the JSON response into answer. Any status other than 200 is an error.
func (a Access) ask(ctx context.Context, method, address string, header http.Header, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return errors.New("this is not a usable address")
	}
	if header != nil {
		request.Header = header
	}
	response, err := a.ClientOptions().Transport.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("no answer: " + netfail.Reason(err, ""))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return errors.New("the answer is incomplete; try again")
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the answer has the HTTP status %d", response.StatusCode)
	case json.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), answer) != nil:
		return errors.New("the answer is not the expected JSON")
	}
	return nil
}
