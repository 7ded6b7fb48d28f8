package objectstore

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// early is how long before their end temporary keys are replaced: a read takes
// its time, and clocks differ.
const early = 2 * time.Minute

// Keys makes keys that do not end.
func Keys(id, secret, token string) aws.Credentials {
	return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token}
}

// Temporary makes keys that end, after looking at what a service answered.
func Temporary(who, id, secret, token string, end time.Time) (aws.Credentials, error) {
	keys := Keys(id, secret, token)
	if id == "" || secret == "" || token == "" || end.IsZero() || CheckKeys(keys) != nil {
		return aws.Credentials{}, fmt.Errorf("%s gave an answer without usable keys", who)
	}
	keys.CanExpire, keys.Expires = true, end
	return keys, nil
}

// CheckKeys reports whether keys can be sent: they become part of headers.
func CheckKeys(keys aws.Credentials) error {
	for _, s := range []string{keys.AccessKeyID, keys.SessionToken} {
		for _, r := range s {
			if r > unicode.MaxASCII || !unicode.IsPrint(r) || r == ' ' || r == ',' || r == '/' && s == keys.AccessKeyID {
				return errors.New("keys and tokens are made of letters, digits and a few signs, without spaces")
			}
		}
	}
	return nil
}

// Renewed remembers the keys that get returns until shortly before their end.
func Renewed(get func(context.Context) (aws.Credentials, error)) aws.CredentialsProvider {
	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(get), func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = early })
}
