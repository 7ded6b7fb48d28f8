package object

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// early is the time before expiry at which temporary keys are replaced, because a read takes time and clocks
// differ.
const early = 2 * time.Minute

// Identity returns the first of attrs that has a value, or an empty string if there is none.
func Identity(g source.Grant, attrs ...string) string {
	i := slices.IndexFunc(attrs, func(name string) bool { return g.String(name) != "" })
	if i < 0 {
		return ""
	}
	return attrs[i]
}

// KeysOf returns the keys in g. The attribute id has the key ID, and secret_key has the secret.
func KeysOf(g source.Grant, id, token string) (aws.Credentials, error) {
	keys := Keys(g.String(id), g.String("secret_key"), token)
	if keys.SecretAccessKey == "" {
		return keys, g.Errorf("secret_key", "%s is set, but secret_key is not; set both arguments", id)
	}
	if err := CheckKeys(keys); err != nil {
		return keys, g.Errorf(id, "%w", err)
	}
	return keys, nil
}

// Keys returns keys that do not expire.
func Keys(id, secret, token string) aws.Credentials {
	return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token}
}

// Temporary returns a service's keys, which expire at end. It returns an error if an argument is missing or
// invalid. who names the service in the error.
func Temporary(who, id, secret, token string, end time.Time) (aws.Credentials, error) {
	keys := Keys(id, secret, token)
	if id == "" || secret == "" || token == "" || end.IsZero() || CheckKeys(keys) != nil {
		return aws.Credentials{}, fmt.Errorf("%s returned no usable keys", who)
	}
	keys.CanExpire, keys.Expires = true, end
	return keys, nil
}

// CheckKeys returns an error for keys that cannot be sent in headers.
func CheckKeys(keys aws.Credentials) error {
	for _, s := range []string{keys.AccessKeyID, keys.SessionToken} {
		for _, r := range s {
			if r > unicode.MaxASCII || !unicode.IsPrint(r) || r == ' ' || r == ',' || r == '/' && s == keys.AccessKeyID {
				return errors.New("the value contains a character that no key and no token contains; copy the whole value again")
			}
		}
	}
	return nil
}

var roleName = lazyregexp.New(`^[A-Za-z0-9._+=,@-]{1,128}$`)

// IsRole reports whether name can be the name of an instance's role, which becomes part of a path.
func IsRole(name string) bool { return roleName.MatchString(name) && name != "." && name != ".." }

// AskInstance requests a role's keys from an instance's metadata service. It appends the role name to url,
// and decodes the JSON response into answer. who names the service in errors.
func (n Network) AskInstance(ctx context.Context, who, url, role string, header http.Header, answer any) error {
	if !IsRole(role) { // the name may come from a profile
		return fmt.Errorf("%.200q is not a valid role name", role)
	}
	status, body, err := n.Wire(true).Ask(ctx, http.MethodGet, url+role, header)
	var outcome struct{ Code string }
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", who, err)
	case status == http.StatusNotFound:
		return fmt.Errorf("%s has no role %q; attach the role to the instance", who, role)
	case status != http.StatusOK:
		return fmt.Errorf("%s returned no keys for the role %q: the answer has the status %d", who, role, status)
	case json.Unmarshal(body, &outcome) != nil || outcome.Code != "Success" || json.Unmarshal(body, answer) != nil:
		return fmt.Errorf("%s returned no usable keys", who)
	}
	return nil
}

// STS is a service that returns temporary keys for a role.
type STS struct {
	Name    string // for error messages
	URL     *url.URL
	Header  http.Header
	Reasons []answers.Row // the meanings of its error codes
}

// Assume requests a role's keys and decodes the JSON response into answer. code points to the error code in
// answer. Assume calls sign for each attempt; sign returns the request body and may set headers.
func (n Network) Assume(
	ctx context.Context, s STS, role string, sign func(*http.Request) ([]byte, error), answer any, code *string,
) error {
	wire := n.Wire(false)
	wire.Authorize = func(req *http.Request) error {
		text, err := sign(req)
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		return err
	}
	n.Exposed.Note(s.Name, s.URL)
	status, body, err := wire.Ask(ctx, http.MethodPost, s.URL.String()+"/", s.Header)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	err = json.Unmarshal(body, answer)
	if status == http.StatusOK && err == nil && (*code == "" || *code == "Success") {
		return nil
	}
	reason := fmt.Sprintf("the answer has the status %d", status)
	if row := answers.Find(s.Reasons, status, *code, ""); row.Text != "" {
		reason = answers.Coded(row.Text, *code)
	} else if strings.HasPrefix(*code, "InvalidParameter") || strings.HasPrefix(*code, "MissingParameter") {
		reason = "the request is refused; check the assume_role arguments"
	} else if status == http.StatusOK {
		reason = "the answer does not come from STS"
	}
	return fmt.Errorf("%s: the role %q cannot be assumed: %s", s.Name, role, reason)
}

// Renewed returns a provider that gets keys by calling get, and keeps them until shortly before they expire.
// Unlike the SDK's cache, it cancels get when no caller is waiting for the keys.
func Renewed(get func(context.Context) (aws.Credentials, error)) aws.CredentialsProvider {
	var remembered memo.Memo[struct{}, aws.Credentials]
	lasts := func(keys aws.Credentials) bool { return !keys.CanExpire || time.Until(keys.Expires) > early }
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		return remembered.Fresh(ctx, struct{}{}, lasts, get)
	})
}
