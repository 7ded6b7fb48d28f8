package googleauth

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Attrs returns the attributes for signing in to Google. The default of the attribute credentials comes from
// the given environment variables.
func Attrs(variables ...string) []attr.Attr {
	return []attr.Attr{
		{Name: "credentials", Type: cty.String, Secrecy: attr.Secret, Form: attr.Lines, Group: "identity",
			Harmless: harmless.Secret, Env: variables,
			Doc: "Google credentials as JSON, or the path of a file with them. Those that run a program (`executable`) require " +
				"`GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1` in the environment."},
		{Name: "access_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "identity", Harmless: harmless.Secret,
			Env: []string{"GOOGLE_OAUTH_ACCESS_TOKEN"},
			Doc: "An OAuth 2.0 access token. It takes precedence over `credentials`."},
		{Name: "impersonate_service_account", Type: cty.String, Form: attr.Name,
			Env:      []string{"GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"},
			Harmless: "An account to act as is a name: Google gives its tokens only to those who may act as it.",
			Doc:      "The e-mail address of a service account to act as."},
		{Name: "impersonate_service_account_delegates", Type: cty.List(cty.String),
			Doc: "The chain of service accounts that leads to `impersonate_service_account`, each of which may create tokens for the next."},
	}
}

// quotaVar is Google's variable for the project to bill.
const quotaVar = "GOOGLE_CLOUD_QUOTA_PROJECT"

// New returns the Access for the values of [Attrs] and the given token scopes. Env is nil if the environment
// must not be read.
func New(v attr.Values, env attr.LookupEnv, scopes ...string) Access {
	a := Access{
		Credentials: v.String("credentials"), From: v.Variable("credentials"), Token: v.String("access_token"),
		Impersonate: v.String("impersonate_service_account"), Delegates: v.Strings("impersonate_service_account_delegates"),
		Scopes: scopes, ImpersonateScopes: scopes,
		World: world.For(env, false), Secret: v.Hands("credentials", "access_token"), Command: v.LeadsToCommand("credentials"),
	}
	if project, _ := env.Get(quotaVar); recognize.IsWord(project) {
		a.QuotaProject = project
	}
	return a
}
