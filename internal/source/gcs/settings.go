package gcs

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// fileVar is the environment variable that names the credentials file for Google's own clients.
const fileVar = "GOOGLE_APPLICATION_CREDENTIALS"

const (
	// https://developers.google.com/identity/protocols/oauth2/scopes#storage
	readScope = "https://www.googleapis.com/auth/devstorage.read_only"
	// allScope is required to impersonate another account, whose tokens then have readScope.
	allScope = "https://www.googleapis.com/auth/cloud-platform"
)

// settings holds a block's credentials and the address of the service.
type settings struct {
	access        googleauth.Access
	encryptionKey string // the key in base64, or the path of a file that contains the key
	endpoint      *url.URL
	universe      string
	lookup        attr.LookupEnv
	blame         func(error) error // see [source.Grant.Blame]
}

// choose returns the settings in the block called name.
func choose(credentials source.Credentials, name string) (settings, error) {
	v, err := credentials.Named("credentials_name", name)
	if err != nil {
		return settings{}, err
	}
	return newSettings(v, credentials.Env, name != "", readScope)
}

// newSettings returns the settings of a block. Access tokens get the given scope. A block with a name (named) does not
// get its credentials from fileVar.
func newSettings(v source.Grant, lookup attr.LookupEnv, named bool, scope string) (settings, error) {
	s := settings{
		access:        googleauth.New(v.Values, lookup, scope),
		encryptionKey: v.String("encryption_key"), universe: cmp.Or(v.String("universe_domain"), googleauth.DefaultUniverse), lookup: lookup,
		blame: v.Blame,
	}
	s.access.Universe = v.String("universe_domain")
	if s.access.Impersonate != "" {
		s.access.Scopes = []string{allScope}
	}
	followed := world.Attribute{IsFollowed: true, IsWritten: s.access.Credentials != "" || s.access.Token != ""}
	_, set := lookup.Get(fileVar)
	if set && world.Decide(fileVar, followed, world.Beside{Withholds: named}).Answer == world.Refused {
		return settings{}, v.Errorf("credentials", "a block with a name does not use %s; set credentials or access_token in the block", fileVar)
	}
	var err error
	if s.endpoint, err = parseEndpoint(v.String("storage_custom_endpoint"), s.universe); err != nil {
		return settings{}, v.Errorf("storage_custom_endpoint", "%w", err)
	}
	return s, nil
}

// parseEndpoint parses the URL of the JSON API. Like Google's clients, it also accepts just a host.
func parseEndpoint(text, universe string) (*url.URL, error) {
	switch {
	case text == "":
		text = "https://storage." + universe + "/storage/v1/"
	case !strings.Contains(text, "://"):
		text = "https://" + text + "/storage/v1/"
	}
	u, err := source.ParseBase(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("this is not a URL with https; write a URL like https://storage.googleapis.com/storage/v1/")
	}
	return u, nil
}

// address returns the URL of an object's content. Like Google's clients, it drops the text after the endpoint's last
// slash. As a result, /storage/v1/ is equivalent to /storage/v1/b, which the backend's documentation requires.
func (s settings) address(bucket, object, generation string) *url.URL {
	q := url.Values{"alt": {"media"}}
	if generation != "" {
		q.Set("generation", generation)
	}
	return s.at(q, "b", bucket, "o", object)
}

// at returns a JSON API URL that ends with the given path elements. Like Google's clients, it drops the text after the
// endpoint's last slash. As a result, /storage/v1/ is equivalent to /storage/v1/b, which the backend's documentation
// requires.
func (s settings) at(q url.Values, names ...string) *url.URL {
	u := *s.endpoint
	u.Path = cmp.Or(u.Path[:strings.LastIndexByte(u.Path, '/')+1], "/")
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = url.PathEscape(name)
	}
	u.RawPath = u.Path + strings.Join(escaped, "/")
	u.Path += strings.Join(names, "/")
	u.RawQuery = q.Encode()
	return &u
}

// keyHeader returns the headers for a customer-supplied key.
// https://cloud.google.com/storage/docs/encryption/customer-supplied-keys
func (s settings) keyHeader() (http.Header, error) {
	h := http.Header{}
	if s.encryptionKey == "" {
		return h, nil
	}
	text, err := googleauth.ReadPathOrContents(s.encryptionKey)
	if err != nil {
		return nil, fmt.Errorf("encryption_key: %w", err)
	}
	key := source.CustomerKey(strings.TrimSpace(string(text)))
	if key == nil {
		return nil, errors.New("encryption_key: this is neither a key of 32 bytes in base64 nor the path of a file with such a key; copy the " +
			"whole key")
	}
	sum := sha256.Sum256(key)
	h.Set("X-Goog-Encryption-Algorithm", "AES256")
	h.Set("X-Goog-Encryption-Key", base64.StdEncoding.EncodeToString(key))
	h.Set("X-Goog-Encryption-Key-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
	return h, nil
}
