package openbao

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/openbao/openbao/api/v2"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
)

var (
	errRedirected = errors.New("the answer is a redirect, but redirects are followed only with disable_redirects = false")
	errExposed    = errors.New("the answer redirects to another machine over plain http, so others could read the token and the keys")
	errNotTheAPI  = errors.New("the answer does not come from OpenBao or Vault")
)

// cannotOpen is the error for a key that does not match the file.
type cannotOpen struct{ error }

func (e cannotOpen) Unwrap() error { return e.error }

// explain translates a client error in a request for a key, or in a login if key is empty. It does not repeat
// the response, because servers include parts of the request in their errors.
func (s *server) explain(ctx context.Context, err error, path, key string) error {
	what := fmt.Sprintf("the server at %s", s.address)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	refused, ok := errors.AsType[*api.ResponseError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not answer within %v; check the address, and that the server is running", what, s.timeout)
	case errors.Is(err, errExposed):
		return fmt.Errorf("%s: %w; check the argument address", what, errExposed) // omits the client's error text
	case errors.Is(err, errRedirected), errors.Is(err, errNotTheAPI):
		return fmt.Errorf("%s: %w; check the argument address", what, err)
	case !ok:
		reason := netfail.Reason(err, "set ca_cert_file")
		if s.address == defaultAddress {
			reason += ". If the server is not at this default address, set the argument address or BAO_ADDR"
		}
		return fmt.Errorf("no answer from %s: %s", what, reason)
	}
	status, at := fmt.Sprintf(" (status %d)", refused.StatusCode), path+s.inNamespace()
	denied := answers.Row{Status: "401 403", Wraps: driver.ErrNoKey, Text: what + " denies the request" + status,
		Advice: "check that the token is valid" + s.inNamespace() + ", and that its policy allows update on " + path}
	if s.token == "" && s.login == nil {
		denied.Text, denied.Advice = what+" requires a token"+status, "set the argument token, BAO_TOKEN or one of the auth_ blocks"
	}
	isLogin, noFit, cannot := key == "", cannotOpen{driver.ErrNoKey}, fmt.Sprintf("%s cannot use the key %q for this file: ", what, key)
	return answers.Find([]answers.Row{
		{Status: "429", Text: what + " reports too many requests" + status + "; try again later"},
		{Status: "5xx", Text: what + " cannot answer now" + status + "; check whether it is sealed, starting or overloaded"},
		{Unless: !refused.RawError, Text: what + ": " + errNotTheAPI.Error() + status + "; check the argument address, and any proxy"},

		{Unless: !isLogin, Status: "400 401 403", Wraps: driver.ErrNoKey, // statuses that mean wrong credentials
			Text: what + " rejects the login at " + at + status, Advice: "check the role and its credentials" + s.besides()},
		{Unless: !isLogin, Text: what + " cannot process the login at " + at + status + "; check the arguments mount_path and namespace"},

		denied,
		{Status: "400", Said: "missing client token", Wraps: denied.Wraps, Text: denied.Text, Advice: denied.Advice},
		{Status: "404", Wraps: driver.ErrNoKey, Text: what + " has nothing at " + at,
			Advice: "check the arguments transit_engine_path and namespace"},

		// The messages come from keysutil.Policy.DecryptWithFactory in openbao/sdk/helper/keysutil/policy.go,
		// and from openbao/builtin/logical/transit/path_decrypt.go.
		{Status: "400", Said: "message authentication failed", Wraps: noFit,
			Text: cannot + "the key is a different one, or the metadata in the file was changed"},
		{Status: "400", Said: "encryption key not found", Wraps: noFit,
			Text: cannot + "there is no such key", Advice: "check the arguments key_name and transit_engine_path"},
		{Status: "400", Said: "disallowed by policy", Wraps: noFit, Text: cannot + "the version of the key that encrypted the file " +
			"is disabled (min_decryption_version)"},
		{Status: "400", Said: "version is too new", Wraps: noFit, Text: cannot + "the version of the key that encrypted the file " +
			"does not exist"},
		{Status: "400", Said: "invalid key version", Wraps: noFit, Text: cannot + "the version of the key that encrypted the file " +
			"does not exist"},
		{Status: "400", Said: "invalid ciphertext", Wraps: noFit,
			Text: cannot + "the key is a different one, or the metadata in the file was changed"},

		{Text: what + " rejects the request to " + path + status + "; check key_name, the type of the key, and associated_data"},
	}, refused.StatusCode, "", strings.ToLower(strings.Join(refused.Errors, "\n"))).Err()
}

// besides returns a note that the login is used instead of the configured token, as in OpenTofu. It returns
// an empty string if no token is configured.
func (s *server) besides() string {
	if s.token == "" {
		return ""
	}
	return ". To use the argument token or BAO_TOKEN instead, remove the auth_ block"
}

func (s *server) inNamespace() string {
	if s.namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in the namespace %q", s.namespace)
}
