package googleauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"cloud.google.com/go/auth"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// DefaultUniverse is the domain of Google's public cloud.
const DefaultUniverse = "googleapis.com"

// tokenTimeout is the time limit for a token request. The SDK's own client has the same limit.
const tokenTimeout = 30 * time.Second

// transport returns a transport for token requests, which is a copy of http.DefaultTransport. It does not
// keep connections, because tokens are valid for an hour.
func transport(w world.World) http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // a transport set by the program
	}
	t := standard.Clone()
	if w == (world.World{}) {
		t.Proxy = nil
	}
	t.TLSClientConfig = trust.Config(w, t.TLSClientConfig)
	t.DisableKeepAlives = true
	return t
}

// Bearer authenticates an account's requests with tokens.
type Bearer struct {
	access Access
	creds  *auth.Credentials
}

// Header returns the headers for an authenticated request: a token, and the project to bill, if an
// environment variable or the credentials name one. Errors do not repeat server responses.
func (b Bearer) Header(ctx context.Context) (http.Header, error) {
	token, err := b.creds.Token(ctx)
	if err != nil {
		return nil, b.access.Explain(ctx, err)
	}
	header := http.Header{"Authorization": {"Bearer " + token.Value}}
	var file struct {
		QuotaProject string `json:"quota_project_id"`
	}
	_ = json.Unmarshal(b.creds.JSON(), &file) // ignores errors, because there may be no JSON
	if project := cmp.Or(b.access.QuotaProject, file.QuotaProject); project != "" {
		header.Set("X-Goog-User-Project", project)
	}
	return header, nil
}

// Post sends a JSON request, with the retries of [web.Wire.Ask]. It returns responses with any status.
func (b Bearer) Post(ctx context.Context, wire web.Wire, url string, question any) (status int, answer []byte, err error) {
	header, err := b.Header(ctx)
	if err != nil {
		return 0, nil, err
	}
	body, err := json.Marshal(question)
	if err != nil {
		return 0, nil, err
	}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "terraform-provider-statecrypt")
	wire.Authorize = func(req *http.Request) error {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return nil
	}
	return wire.Ask(ctx, http.MethodPost, url, header)
}

// impersonated provides tokens for a service account that base may impersonate. See
// https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken.
type impersonated struct {
	access Access
	base   Bearer
	wire   web.Wire
}

func (a Access) impersonate(base Bearer) *auth.Credentials {
	patience := web.Patience{Timeout: tokenTimeout, Tries: 2, WaitMin: 500 * time.Millisecond, WaitMax: 2 * time.Second}
	i := impersonated{a, base, web.Wire{Patience: patience, Transport: transport(a.World)}}
	return auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: auth.NewCachedTokenProvider(i, nil)})
}

// Token implements [auth.TokenProvider].
func (i impersonated) Token(ctx context.Context) (*auth.Token, error) {
	const accounts = "projects/-/serviceAccounts/"
	question := struct {
		Delegates []string `json:"delegates,omitempty"`
		Scope     []string `json:"scope"`
		Lifetime  string   `json:"lifetime"`
	}{Scope: i.access.ImpersonateScopes, Lifetime: "3600s"}
	for _, account := range i.access.Delegates {
		question.Delegates = append(question.Delegates, accounts+account)
	}
	var answer struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	service := "https://iamcredentials." + cmp.Or(i.access.Universe, DefaultUniverse) + "/v1/"
	status, body, err := i.base.Post(ctx, i.wire, service+accounts+url.PathEscape(i.access.Impersonate)+":generateAccessToken", question)
	switch {
	case err != nil && web.Own(err) != nil:
		return nil, err
	case err != nil:
		return nil, web.Final("%s: %w", i.access.noToken(), err)
	case status != http.StatusOK:
		return nil, i.access.refused(status)
	case json.Unmarshal(body, &answer) != nil || answer.AccessToken == "" || !recognize.IsWord(answer.AccessToken):
		return nil, web.Final("%s: the answer does not come from Google", i.access.noToken())
	}
	return &auth.Token{Value: answer.AccessToken, Type: "Bearer", Expiry: answer.ExpireTime}, nil
}
