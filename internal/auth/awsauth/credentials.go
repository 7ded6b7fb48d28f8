package awsauth

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
)

// maxToken is the maximum size of a token file, in bytes. STS accepts 20000 characters; see
// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html.
const maxToken = 64 << 10

// ownCredentials returns credentials that keep the SDK from looking for others: the access key in the
// settings, or anonymous credentials if a web identity will replace them. It returns nil if the settings
// contain neither.
func (s Settings) ownCredentials() aws.CredentialsProvider {
	v := s.values
	switch {
	case v.String("access_key") != "":
		return credentials.NewStaticCredentialsProvider(v.String("access_key"), v.String("secret_key"), v.String("token"))
	case s.web != nil:
		return aws.AnonymousCredentials{}
	}
	return nil
}

// assume returns cfg with the credentials of the assumed roles. As in hashicorp/aws-sdk-go-base, an access
// key takes precedence over a web identity, and a role is assumed with either. No request is sent yet. The
// credentials are cached and renewed before they expire.
func (s Settings) assume(cfg aws.Config) aws.Config {
	if s.web != nil && s.values.String("access_key") == "" {
		cfg.Credentials = aws.NewCredentialsCache(s.webProvider(cfg, s.web))
	}
	if s.role != nil {
		cfg.Credentials = aws.NewCredentialsCache(s.roleProvider(cfg))
	}
	return cfg
}

func (s Settings) webProvider(cfg aws.Config, w *webIdentity) aws.CredentialsProvider {
	return stscreds.NewWebIdentityRoleProvider(s.sts(cfg), w.role.RoleARN, w, func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName, o.Duration, o.Policy, o.PolicyARNs = w.role.RoleSessionName, w.role.Duration, w.role.Policy, w.role.PolicyARNs
	})
}

func (s Settings) roleProvider(cfg aws.Config) aws.CredentialsProvider {
	return stscreds.NewAssumeRoleProvider(s.sts(cfg), s.role.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		client := o.Client
		*o = *s.role
		o.Client = client
	})
}

// sts returns an STS client with the credentials in cfg. If the settings contain no endpoint, the SDK uses
// AWS_ENDPOINT_URL_STS, provided that it may read the environment.
func (s Settings) sts(cfg aws.Config) *sts.Client {
	return sts.NewFromConfig(cfg, func(o *sts.Options) {
		o.Region = cmp.Or(s.values.String("sts_region"), o.Region)
		s.SetEndpoint(context.Background(), cfg, sts.ServiceID, &o.BaseEndpoint)
		if s.STSEndpoint != "" {
			o.BaseEndpoint = aws.String(s.STSEndpoint)
		}
	})
}

// GetIdentityToken returns the token. It reads the token file on each call, because another program renews
// the token.
func (w *webIdentity) GetIdentityToken() ([]byte, error) {
	if w.token != "" {
		return []byte(w.token), nil
	}
	token, err := keyfile.ReadText(w.tokenFile)
	if len(token) > maxToken {
		err = fmt.Errorf("%s is too large for a token; check that this is the right file", keyfile.Shown(w.tokenFile))
	}
	if err != nil {
		return nil, &tokenFileError{fmt.Errorf("%s: %w", cmp.Or(w.from, "web_identity_token_file"), err)}
	}
	return token, nil
}

// tokenFileError is an error from reading a token file. Its text is safe to show.
type tokenFileError struct{ error }

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
