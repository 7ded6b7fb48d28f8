package azureauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// cli is a credential that gets tokens from the Azure CLI. It replaces the SDK's own credential, which would
// start the CLI through a shell and with our secrets in its environment.
type cli struct {
	Access

	// tokens holds tokens by the CLI's arguments, which are joined by newlines. Several clients share them,
	// because az is slow.
	tokens memo.Memo[string, azcore.AccessToken]
}

const (
	cliPatience = 30 * time.Second // the time limit for one run of az
	cliMargin   = 2 * time.Minute  // a token that expires sooner is not reused
)

// cliArgument matches strings that are safe to pass as arguments. On Windows, az is a batch file, so a shell
// interprets its arguments.
var cliArgument = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z ._:/-]*$`)

func (a Access) withCLI() (azcore.TokenCredential, error) {
	if half := a.half(); half != "" { // the CLI may be signed in to a different account
		return nil, errors.New(half)
	}
	if _, err := world.Find("az"); err != nil {
		return nil, fault.Known(errors.New("no way to sign in to Azure is configured, and the Azure CLI (az) was not found; set "+
			"tenant_id and client_id with client_secret or client_certificate, or set use_oidc, use_msi or "+
			"use_aks_workload_identity"),
			fault.NoCredentials{})
	}
	for _, s := range []string{a.values.String("tenant_id"), a.values.String("subscription_id")} {
		if s != "" && !cliArgument.MatchString(s) {
			return nil, errors.New("tenant_id or subscription_id is neither an ID nor a plain name")
		}
	}
	return &cli{Access: a}, nil
}

// Subscription returns the ID of the Azure CLI's current subscription. See
// https://learn.microsoft.com/cli/azure/account#az-account-show.
func (a Access) Subscription(ctx context.Context) (string, error) {
	out, err := a.az(ctx, "account", "show", "-o", "json")
	if err != nil {
		return "", err
	}
	var answer struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(out, &answer) != nil || answer.ID == "" || !cliArgument.MatchString(answer.ID) {
		return "", &Error{"the Azure CLI returns no current subscription; set subscription_id"}
	}
	return answer.ID, nil
}

// GetToken returns an access token for a resource. See
// https://learn.microsoft.com/cli/azure/account#az-account-get-access-token.
func (c *cli) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if len(options.Scopes) != 1 {
		return azcore.AccessToken{}, &Error{"the Azure CLI returns tokens for one scope only"}
	}
	arguments := []string{"account", "get-access-token", "-o", "json", "--resource", strings.TrimSuffix(options.Scopes[0], "/.default")}
	// The challenge sets options.TenantID.
	if tenant := cmp.Or(c.values.String("tenant_id"), options.TenantID); tenant != "" {
		arguments = append(arguments, "--tenant", tenant)
	}
	if subscription := c.values.String("subscription_id"); subscription != "" {
		arguments = append(arguments, "--subscription", subscription)
	}
	for _, argument := range arguments[5:] {
		if !cliArgument.MatchString(argument) && !strings.HasPrefix(argument, "--") {
			return azcore.AccessToken{}, &Error{"the service requests a token for an invalid resource or tenant"}
		}
	}
	lasts := func(t azcore.AccessToken) bool { return time.Until(t.ExpiresOn) >= cliMargin }
	return c.tokens.Fresh(ctx, strings.Join(arguments, "\n"), lasts, func(ctx context.Context) (azcore.AccessToken, error) {
		out, err := c.az(ctx, arguments...)
		if err != nil {
			return azcore.AccessToken{}, err
		}
		return parseCLI(out)
	})
}

// az runs the user's Azure CLI and returns its output. The caller must have checked the arguments. If the CLI
// runs only because of TF_ENCRYPTION, it gets none of its own variables, because they could choose other
// programs that it starts.
func (a Access) az(ctx context.Context, arguments ...string) ([]byte, error) {
	bare, why := a.values.LeadsToCommand() != nil, ""
	if bare {
		why = ". The Azure CLI ran without AZURE_CONFIG_DIR and its other variables, because only TF_ENCRYPTION selects it"
	}
	environ := a.world.Beside(bare).Environ()
	p := world.Program{Args: append([]string{"az"}, arguments...), Environ: environ, Patience: cliPatience, Limit: maxAnswer}
	out, _, err := p.Run(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		err = &Error{"the Azure CLI failed; run az login" + why}
	}
	return out, err
}

func parseCLI(out []byte) (azcore.AccessToken, error) {
	var answer struct {
		Token     string `json:"accessToken"`
		ExpiresOn int64  `json:"expires_on"` // missing before az 2.54
	}
	if json.Unmarshal(out, &answer) != nil || answer.Token == "" {
		return azcore.AccessToken{}, &Error{"the answer of the Azure CLI is not the expected JSON"}
	}
	expires := time.Now().Add(5 * time.Minute)
	if answer.ExpiresOn > 0 {
		expires = time.Unix(answer.ExpiresOn, 0)
	}
	return azcore.AccessToken{Token: answer.Token, ExpiresOn: expires}, nil
}

// Error is the reason why there is no token. Its text is safe to show.
type Error struct{ reason string }

func (e *Error) Error() string { return fmt.Sprintf("no access token: %s", e.reason) }

// NonRetriable tells the SDK not to retry.
func (*Error) NonRetriable() {}
