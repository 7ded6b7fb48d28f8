package remote

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

const maxHost = 300 // bytes of an address from outside that are shown

// refusal is a status other than 200.
type refusal int

func (r refusal) Error() string { return "the server answered " + web.Status(int(r)) }

// statusOf returns the status that err is about, 0 when it is about none.
func statusOf(err error) int {
	r, _ := errors.AsType[refusal](err)
	return int(r)
}

// fail makes an error for people of what a request of the API came to. What 403
// and 404 mean depends on what was asked for.
func (x *exchange) fail(err error, denied func(code int) error) error {
	switch code := statusOf(err); {
	case code == http.StatusUnauthorized && x.tokenSent:
		return fmt.Errorf("%s refused the token (%s); it may be wrong, expired or revoked", x.origin(), web.Status(code))
	case code == http.StatusForbidden, code == http.StatusNotFound, code == http.StatusUnauthorized:
		return denied(code)
	}
	return fmt.Errorf("%s: %w", x.origin(), err)
}

// origin is where the last request went.
func (x *exchange) origin() string { return outside.Line(source.Origin(x.asked), maxHost) }
