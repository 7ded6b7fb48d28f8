package openbao

import (
	"errors"
	"net/http"
	"testing"

	"github.com/openbao/openbao/api/v2"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// What nobody set is said to be a default, and what is set in vain is named.
func TestWhatWasNotSet(t *testing.T) {
	refused := errors.New("dial tcp 127.0.0.1:8200: connect: connection refused")
	says := testkit.OpenGolden(t, "../../testdata/mistakes.txt", "openbao, what was not set", "canary")
	for name, address := range map[string]string{"the default address": defaultAddress, "another address": "https://127.0.0.1:8201"} {
		s := &server{address: address}
		says.Error(t, name, s.explain(t.Context(), refused, "transit/decrypt/k", "k"))
	}
	denied := &api.ResponseError{StatusCode: http.StatusBadRequest}
	for name, token := range map[string]string{"a token beside a login": "canary", "a login alone": ""} {
		s := &server{address: defaultAddress, token: token}
		says.Error(t, name, s.explain(t.Context(), denied, "auth/approle/login", ""))
	}
}
