package azurerm

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Backend returns the attributes of a backend block that names the container with the states. They are the arguments
// of both CLIs' azurerm backends.
func Backend() attr.Table {
	t := attr.Table{
		Name: "azurerm", OtherNames: []string{"azure"},
		Doc: "A blob in a container of Azure Storage, as the `azurerm` backend keeps it.",
	}
	source := table().Without("version_id", "credentials_name", "subscription_id")
	for _, a := range slices.Concat(source.Attrs, credentials().Without("name").Attrs) {
		if a.Name == "customer_provided_key" {
			a.Excludes = append(slices.Clone(a.Excludes), "encryption_scope")
		}
		t.Attrs = append(t.Attrs, a)
	}
	t.Attrs = append(t.Attrs, []attr.Attr{
		{Name: "encryption_scope", Type: cty.String, Env: []string{"ARM_ENCYRPTION_SCOPE"}, //nolint:misspell // the backend spells it so
			Harmless: "It chooses a key of the same storage account.",
			Doc:      "The encryption scope of the account that the service encrypts the blob with."},
		{Name: "snapshot", Type: cty.Bool, Env: []string{"ARM_SNAPSHOT"}, Harmless: "It has the same storage account keep more.",
			Doc: "Whether the service keeps a snapshot of the state that a write replaces. Defaults to `false`."},
	}...)
	return t
}

// Network holds connection settings. The zero value uses the settings from the environment.
type Network struct {
	Transport  policy.Transporter // carries every request
	RetryDelay time.Duration      // the wait before the second attempt
}

// Server gives a program read and write access to the container of a backend block.
type Server struct {
	Account, Container string
	CustomerKey        *blob.CPKInfo // nil if there is none
	Timeout            time.Duration // the time limit for one request

	at    *location
	doors memo.Memo[string, *door]
}

// Connect returns the server for a backend block. It makes no network requests. The SDK applies the policies to each
// request before signing it.
func Connect(v attr.Values, n Network, limit int64, patience time.Duration, policies ...policy.Policy) (*Server, error) {
	r := &run{transport: n.Transport, retryDelay: n.RetryDelay, policies: policies, writes: true}
	if r.transport == nil {
		r.transport = azureauth.HTTPClient(world.For(v.Environment(), false))
	}
	l, err := r.locate(source.Request{Values: v, Workspace: "default", MaxSize: limit}, "", func() (grant, error) {
		return newGrant(source.Grant{Values: v, Found: true, Env: v.Environment()}, v.Environment())
	})
	if err != nil {
		return nil, err
	}
	l.timeout = min(l.timeout, cmp.Or(patience, l.timeout))
	return &Server{Account: l.account.name, Container: l.container, CustomerKey: l.grant.customerKey, Timeout: l.timeout, at: l}, nil
}

// Blob returns a client for a blob, or for the container if name is "".
func (s *Server) Blob(ctx context.Context, name string, query url.Values) (*blockblob.Client, error) {
	d, err := s.doors.Do(ctx, "", s.at.connect)
	if err != nil {
		return nil, err
	}
	return d.blob(name, query)
}

// Download returns the content of a blob and the response with its properties. The content must not exceed the
// server's limit.
func (s *Server) Download(ctx context.Context, client *blockblob.Client) ([]byte, blob.DownloadStreamResponse, error) {
	return s.at.download(ctx, client)
}

// DownloadPart works like [Server.Download], but with options, such as a range. It also returns the status.
func (s *Server) DownloadPart(
	ctx context.Context, client *blockblob.Client, options blob.DownloadStreamOptions,
) (status int, data []byte, answer blob.DownloadStreamResponse, err error) {
	return s.at.downloadPart(ctx, client, options)
}

const maxPage = 8 << 20 // maximum size of a list of 1,000 blobs, in bytes

// Page returns the response to a request about the container, such as a list of blobs.
func (s *Server) Page(ctx context.Context, client *blockblob.Client) ([]byte, error) {
	var raw *http.Response
	answer, err := client.DownloadStream(policy.WithCaptureResponse(ctx, &raw), nil)
	if err != nil {
		return nil, err
	}
	if raw == nil || answer.Body == nil {
		return nil, errNoStorage
	}
	defer answer.Body.Close()
	return web.Decode(answer.Body, raw.Header, raw.ContentLength, maxPage)
}

// Refusal returns the status and the error code of an error response. If err is no such response, the status is 0.
func Refusal(err error) (status int, code string) {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return 0, ""
	}
	return answer.StatusCode, codeOf(answer)
}

// Explain translates an error about a blob. The result does not repeat text from the service.
func (s *Server) Explain(ctx context.Context, name string, err error) error {
	at := *s.at
	at.blob = name
	return at.explain(ctx, err)
}

// IsAzure reports whether requests go to one of Microsoft's clouds, including private endpoints. These obey request
// conditions.
func (s *Server) IsAzure() bool {
	e := s.at.grant.endpoint
	if e == nil {
		return s.at.grant.String("metadata_host") == ""
	}
	return e.Scheme == "https" && e.Port() == "" && ofAzure.MatchString(e.Hostname())
}

// ofAzure matches the hosts of storage accounts, including accounts with a DNS zone.
var ofAzure = lazyregexp.New(`(?i)^[0-9a-z]{3,24}(-secondary)?\.((privatelink\.)?blob\.core\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)|` +
	`z\d{1,2}\.(privatelink\.)?blob\.storage\.azure\.net)$`)

// Endpoint returns the blob_endpoint of the block, or "" for Azure's default endpoint.
func (s *Server) Endpoint() string {
	if s.at.grant.endpoint == nil {
		return ""
	}
	return s.at.grant.endpoint.String()
}

// codeOf returns the service's error code. It ignores the code in the body, because a proxy may have written the body.
func codeOf(answered *azcore.ResponseError) string {
	if answered.RawResponse == nil {
		return ""
	}
	return answered.RawResponse.Header.Get("x-ms-error-code")
}
