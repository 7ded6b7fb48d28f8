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

// Backend returns the table of a block that tells in which container a program keeps a state, with the arguments of
// the azurerm backends of both CLIs.
func Backend() attr.Table {
	t := attr.Table{
		Name: "azurerm",
		Doc:  "A blob in a container of Azure Storage, as the `azurerm` backend keeps it.",
	}
	for _, a := range slices.Concat(table().Without("version_id", "credentials_name", "subscription_id").Attrs, credentials().Without("name").Attrs) {
		if a.Name == "customer_provided_key" {
			a.Excludes = append(slices.Clone(a.Excludes), "encryption_scope")
		}
		t.Attrs = append(t.Attrs, a)
	}
	t.Attrs = append(t.Attrs, []attr.Attr{
		{Name: "encryption_scope", Type: cty.String, Env: []string{"ARM_ENCYRPTION_SCOPE"}, // as OpenTofu spells it
			Harmless: "It chooses a key of the same storage account.",
			Doc:      "The encryption scope of the account that the service encrypts the blob with."},
		{Name: "snapshot", Type: cty.Bool, Env: []string{"ARM_SNAPSHOT"}, Harmless: "It has the same storage account keep more.",
			Doc: "Have the service keep a snapshot of the state that a write replaces. Defaults to `false`."},
	}...)
	return t
}

// Network holds the settings of connections. The zero value uses the environment's.
type Network struct {
	Transport  policy.Transporter // carries every request
	RetryDelay time.Duration      // the wait before the second attempt
}

// Server is the container in which a backend block keeps states, for a program that writes to it.
type Server struct {
	Account, Container string
	CustomerKey        *blob.CPKInfo // nil for none

	at    *location
	doors memo.Memo[string, *door]
}

// Connect returns the container of a backend block. It contacts no server. The SDK applies the policies to each
// request before it signs it.
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
	return &Server{Account: l.account.name, Container: l.container, CustomerKey: l.grant.customerKey, at: l}, nil
}

// Timeout returns the time limit of a request.
func (s *Server) Timeout() time.Duration { return s.at.timeout }

// Blob returns a client for a blob, and for the container if name is "".
func (s *Server) Blob(ctx context.Context, name string, query url.Values) (*blockblob.Client, error) {
	d, err := s.doors.Do(ctx, "", s.at.connect)
	if err != nil {
		return nil, err
	}
	return d.blob(name, query)
}

// Download returns the content of a blob, and the answer with its properties. Its limit is that of the server.
func (s *Server) Download(ctx context.Context, client *blockblob.Client) ([]byte, blob.DownloadStreamResponse, error) {
	for try := 1; ; try++ {
		data, answer, err := s.at.download(ctx, client)
		if !errors.Is(err, errBrokeOff) || try == maxTries || ctx.Err() != nil {
			return data, answer, err
		}
	}
}

const maxPage = 8 << 20 // bytes of a list of 1,000 blobs

// Page returns the answer to a request about the container that is no blob, such as a list.
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

// Refusal returns the status and the code of an answer that is an error, and 0 if err is no such answer.
func Refusal(err error) (status int, code string) {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return 0, ""
	}
	return answer.StatusCode, codeOf(answer)
}

// Explain returns an error about a blob whose text does not repeat answers of the service.
func (s *Server) Explain(ctx context.Context, name string, err error) error {
	at := *s.at
	at.blob = name
	return at.explain(ctx, err)
}

// IsAzure reports whether requests go to one of Microsoft's own clouds, which keep the conditions of requests. Private
// endpoints belong to them.
func (s *Server) IsAzure() bool {
	e := s.at.grant.endpoint
	if e == nil {
		return s.at.grant.String("metadata_host") == ""
	}
	return e.Scheme == "https" && e.Port() == "" && ofAzure.MatchString(e.Hostname())
}

// ofAzure matches the hosts of storage accounts, also of those with a DNS zone.
var ofAzure = lazyregexp.New(`(?i)^[0-9a-z]{3,24}(-secondary)?\.((privatelink\.)?blob\.core\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)|` +
	`z\d{1,2}\.(privatelink\.)?blob\.storage\.azure\.net)$`)

// Endpoint returns the blob_endpoint of the block, and "" for Azure's own.
func (s *Server) Endpoint() string {
	if s.at.grant.endpoint == nil {
		return ""
	}
	return s.at.grant.endpoint.String()
}

// codeOf returns the code of an error of the service. The code in the body is ignored, because a proxy may have written
// it.
func codeOf(answered *azcore.ResponseError) string {
	if answered.RawResponse == nil {
		return ""
	}
	return answered.RawResponse.Header.Get("x-ms-error-code")
}
