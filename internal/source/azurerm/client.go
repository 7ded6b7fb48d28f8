package azurerm

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// looksUp reports whether the identity is used only to look up an access key, which is then used to read the blob.
func (l *location) looksUp() bool {
	return l.grant.accessKey == "" && l.grant.sas == "" && !l.grant.Bool("use_azuread_auth") && l.account.group != ""
}

// door creates clients for the blobs of a container. All clients use the same credential.
type door struct {
	container string                    // the container's URL
	key       *blob.SharedKeyCredential // if nil, sas or identity is used
	sas       string                    // if empty, identity is used
	identity  azcore.TokenCredential
	options   blockblob.ClientOptions
}

// blob returns a client for a blob, or for the container if name is "". Slashes in the name are encoded, as in the
// backend. The service accepts both forms.
func (d *door) blob(name string, query url.Values) (*blockblob.Client, error) {
	at := d.container
	if name != "" {
		at += "/" + url.PathEscape(name)
	}
	if q := strings.Trim(query.Encode()+"&"+d.sas, "&"); q != "" {
		at += "?" + q
	}
	switch {
	case d.key != nil:
		return blockblob.NewClientWithSharedKeyCredential(at, d.key, &d.options)
	case d.sas != "":
		return blockblob.NewClientWithNoCredential(at, &d.options)
	}
	return blockblob.NewClient(at, d.identity, &d.options)
}

// connect finds the container and the credential, and signs in if necessary.
func (l *location) connect(ctx context.Context) (*door, error) {
	access, err := l.access(ctx)
	if err != nil {
		return nil, err
	}
	d := &door{options: blockblob.ClientOptions{ClientOptions: access.ClientOptions()}}
	d.options.Transport, d.options.PerCallPolicies = limitedTransport{access.Transport}, l.policies
	if d.container, err = l.url(access.Cloud); err != nil {
		return nil, err
	}
	key := l.grant.accessKey
	if l.looksUp() {
		if key, err = l.lookUp(ctx, access); err != nil {
			return nil, err
		}
	}
	switch {
	case key != "":
		if d.key, err = blob.NewSharedKeyCredential(l.account.name, key); err != nil {
			return nil, web.Final("the access key is not standard base64; copy the whole key")
		}
	case l.grant.sas != "":
		d.sas = l.grant.sas
	default:
		d.identity, err = l.identity(ctx, access)
	}
	return d, err
}

// access returns the settings for signing in, including the addresses of the cloud.
func (l *location) access(ctx context.Context) (azureauth.Access, error) {
	a := l.grant.access
	a.Transport, a.RetryDelay = l.transport, l.retryDelay
	var err error
	a.Cloud, err = l.clouds.Do(ctx, l.credentials, func(ctx context.Context) (azureauth.Cloud, error) {
		if l.grant.endpoint != nil && (l.grant.accessKey != "" || l.grant.sas != "") {
			return azureauth.Cloud{}, nil // no other server is contacted
		}
		c, err := a.FindCloud(ctx)
		if err != nil {
			err = web.Final("%w", err)
		}
		return c, err
	})
	return a, err
}

// identity signs in with the credentials and returns the identity. It does this once for all sources.
func (l *location) identity(ctx context.Context, a azureauth.Access) (azcore.TokenCredential, error) {
	return l.identities.Do(ctx, l.credentials, func(ctx context.Context) (azcore.TokenCredential, error) {
		identity, err := a.Open(ctx)
		switch {
		case fault.Has[fault.NoCredentials](err):
			err = web.Final("neither access_key nor sas_token is set in an azurerm credentials block, and %w", err)
		case err != nil:
			err = web.Final("%w", err)
		}
		return identity, err
	})
}

// account identifies a storage account to the resource manager, and the credentials block to use.
type account struct{ credentials, subscription, group, name string }

// lookUp returns the account's first access key, which it gets from the resource manager.
func (l *location) lookUp(ctx context.Context, a azureauth.Access) (string, error) {
	return l.keys.Do(ctx, l.account, func(ctx context.Context) (string, error) {
		identity, err := l.identity(ctx, a)
		if err != nil {
			return "", err
		}
		if a.Cloud.ResourceManager == "" {
			return "", web.Final("metadata_host: the answer does not contain the address of the resource manager; remove " +
				"resource_group_name, or set access_key or use_azuread_auth")
		}
		of := l.account
		if of.subscription == "" {
			if of.subscription, err = a.Subscription(ctx); err != nil {
				return "", err
			}
		}
		key, err := listKeys(ctx, identity, a, of)
		if err != nil {
			return "", lookupError{err}
		}
		return key, nil
	})
}

// listKeys returns the first access key of an account. It sends a POST request, which changes nothing. All other
// requests are GETs, except for token requests.
// https://learn.microsoft.com/rest/api/storagerp/storage-accounts/list-keys
func listKeys(ctx context.Context, identity azcore.TokenCredential, a azureauth.Access, of account) (string, error) {
	options := a.ClientOptions()
	options.Transport = limitedTransport{options.Transport}
	client, err := azcore.NewClient("statecrypt", "v0.0.0", runtime.PipelineOptions{
		PerRetry: []policy.Policy{runtime.NewBearerTokenPolicy(identity, []string{a.Cloud.ResourceManagerAudience + "/.default"}, nil)},
	}, &options)
	if err != nil {
		return "", err
	}
	request, err := runtime.NewRequest(ctx, http.MethodPost, a.Cloud.ResourceManager+"/subscriptions/"+url.PathEscape(of.subscription)+
		"/resourceGroups/"+url.PathEscape(of.group)+"/providers/Microsoft.Storage/storageAccounts/"+of.name+"/listKeys?api-version=2023-05-01")
	if err != nil {
		return "", err
	}
	request.Raw().Header.Set("Accept", "application/json")
	response, err := client.Pipeline().Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if !runtime.HasStatusCode(response, http.StatusOK) {
		return "", runtime.NewResponseError(response)
	}
	body, err := runtime.Payload(response)
	var answer struct {
		Keys []struct {
			Value string `json:"value"`
		} `json:"keys"`
	}
	if err != nil || json.Unmarshal(body, &answer) != nil || len(answer.Keys) == 0 || answer.Keys[0].Value == "" {
		return "", web.Final("the resource manager's answer contains no access key")
	}
	return answer.Keys[0].Value, nil
}

// limitedTransport hides two parts of responses from the SDK. One is the challenge, which would let a server choose
// the audience of the next token. The other is the rest of an error body that is too long or too deeply nested.
// limitedTransport also keeps net/http from decompressing without a limit; see [web.Decode]. If a request has GetBody,
// each attempt gets its own body: the SDK rewinds a body that the connection of the last attempt may still read.
type limitedTransport struct{ policy.Transporter }

func (t limitedTransport) Do(request *http.Request) (*http.Response, error) {
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		request.Body = body
	}
	request.Header.Set("Accept-Encoding", "identity")
	response, err := t.Transporter.Do(request)
	if err != nil {
		return nil, err
	}
	response.Header.Del("WWW-Authenticate")
	if response.StatusCode != http.StatusOK {
		response.Body = azureauth.Refusal(response.Body)
	}
	return response, nil
}
