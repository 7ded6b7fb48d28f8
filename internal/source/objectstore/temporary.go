package objectstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
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
// Unlike the cache of the SDK, it stops asking when nobody waits any more.
func Renewed(get func(context.Context) (aws.Credentials, error)) aws.CredentialsProvider {
	return &renewed{get: get}
}

// Assumed are the keys that assume exchanges those of first for.
func Assumed(first aws.CredentialsProvider, assume func(context.Context, aws.Credentials) (aws.Credentials, error)) aws.CredentialsProvider {
	return Renewed(func(ctx context.Context) (aws.Credentials, error) {
		keys, err := first.Retrieve(ctx)
		if err != nil {
			return aws.Credentials{}, err
		}
		return assume(ctx, keys)
	})
}

type renewed struct {
	get   func(context.Context) (aws.Credentials, error)
	asked memo.Memo[int, aws.Credentials] // :: generation → keys

	mu         sync.Mutex
	generation int
}

// Retrieve implements [aws.CredentialsProvider].
func (r *renewed) Retrieve(ctx context.Context) (aws.Credentials, error) {
	for try := 1; ; try++ {
		r.mu.Lock()
		generation := r.generation
		r.mu.Unlock()
		keys, err := r.asked.Do(ctx, generation, r.get)
		if err != nil || try > 1 || !keys.CanExpire || time.Until(keys.Expires) > early {
			return keys, err
		}
		r.mu.Lock()
		if r.generation == generation {
			r.generation++
		}
		r.mu.Unlock()
	}
}
