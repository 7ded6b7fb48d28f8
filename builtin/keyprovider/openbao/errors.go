package openbao

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openbao/openbao/api/v2"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
)

var (
	errRedirected = errors.New("it redirects, which is not followed unless disable_redirects = false")
	errNotTheAPI  = errors.New("its answer is not that of OpenBao or Vault")
)

// refusals are what a transit engine says with status 400 when it cannot open
// a ciphertext with the key: keysutil.Policy.DecryptWithFactory in
// openbao/sdk/helper/keysutil/policy.go and openbao/builtin/logical/transit/path_decrypt.go.
var refusals = []struct{ said, means, advice string }{
	{said: "message authentication failed", means: "the key is another one, or the metadata in the file was changed"},
	{said: "encryption key not found", means: "there is no such key", advice: "check key_name and transit_engine_path"},
	{said: "disallowed by policy", means: "its version of the key is disabled (min_decryption_version)"},
	{said: "version is too new", means: "its version of the key is not there"},
	{said: "invalid key version", means: "its version of the key is not there"},
	{said: "invalid ciphertext", means: "the key is another one, or the metadata in the file was changed"},
}

// cannotOpen says that the key and the file do not belong together.
type cannotOpen struct{ error }

func (e cannotOpen) Unwrap() error { return e.error }

// explain says what an error of the client means, when a key was asked for or,
// without one, a login. The answer is not shown, because servers repeat what they
// were sent.
func (s *server) explain(ctx context.Context, err error, path, key string) error {
	what := fmt.Sprintf("the server at %s", s.address)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	answer, ok := errors.AsType[*api.ResponseError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not answer within %v; check its address, and that it runs", what, s.timeout)
	case errors.Is(err, errRedirected), errors.Is(err, errNotTheAPI):
		return fmt.Errorf("%s: %w; check address", what, err)
	case !ok:
		reason := netfail.Reason(err, "set ca_cert_file")
		if s.address == defaultAddress {
			reason += "; this is the default address: set address, or BAO_ADDR, if the server is elsewhere"
		}
		return fmt.Errorf("no answer from %s: %s", what, reason)
	}
	switch code := answer.StatusCode; {
	case answer.RawError && code < 500 && code != http.StatusTooManyRequests: // a proxy's, say, which knows nothing of keys
		return fmt.Errorf("%s: %w (status %d); check address and any proxy", what, errNotTheAPI, code)
	case code == http.StatusTooManyRequests:
		return fmt.Errorf("%s is asked too often (status 429); try again later", what)
	case code >= 500:
		return fmt.Errorf("%s cannot answer now (status %d): it may be sealed, starting or overloaded; see its status", what, code)
	case key == "":
		return s.explainLogin(code, path)
	case code == http.StatusForbidden, code == http.StatusUnauthorized, code == http.StatusBadRequest && said(answer, "missing client token"):
		if s.token == "" && s.login == nil {
			return fact.Advise(fmt.Errorf("%w: %s asks for a token (status %d)", driver.ErrNoKey, what, code),
				"set token, BAO_TOKEN or one of the auth_ blocks")
		}
		return fact.Advise(fmt.Errorf("%w: %s denies it (status %d)", driver.ErrNoKey, what, code),
			fmt.Sprintf("the token must be valid there%s, and its policy must allow update on %s", s.inNamespace(), path))
	case code == http.StatusNotFound:
		return fact.Advise(fmt.Errorf("%w: %s has nothing at %s%s", driver.ErrNoKey, what, path, s.inNamespace()),
			"check transit_engine_path and namespace")
	case code == http.StatusBadRequest:
		for _, refusal := range refusals {
			if said(answer, refusal.said) {
				return cannotOpen{fact.Advise(fmt.Errorf("%w: %s cannot use the key %q for this file: %s", driver.ErrNoKey, what, key,
					refusal.means), refusal.advice)}
			}
		}
	}
	return fmt.Errorf("%s refuses the request to %s (status %d); check key_name, its type and "+
		"associated_data", what, path, answer.StatusCode)
}

// explainLogin: auth methods answer wrong credentials with 400 or 403.
func (s *server) explainLogin(code int, path string) error {
	switch code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return fact.Advise(fmt.Errorf("%w: the server at %s denies the login at %s%s (status %d)", driver.ErrNoKey, s.address, path,
			s.inNamespace(), code), "check the role and its credentials"+s.besides())
	}
	return fmt.Errorf("the server at %s refuses the login at %s%s (status %d); check mount_path "+
		"and namespace", s.address, path, s.inNamespace(), code)
}

// besides says that a login goes before a token, as in OpenTofu.
func (s *server) besides() string {
	if s.token == "" {
		return ""
	}
	return "; beside a login, token (or BAO_TOKEN) is not used: remove the auth_ block to use it"
}

func (s *server) inNamespace() string {
	if s.namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in the namespace %q", s.namespace)
}

func said(answer *api.ResponseError, text string) bool {
	return strings.Contains(strings.ToLower(strings.Join(answer.Errors, "\n")), text)
}
