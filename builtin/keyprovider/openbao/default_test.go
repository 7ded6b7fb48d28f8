package openbao

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openbao/openbao/api/v2"
)

// What nobody set is said to be a default, and what is set in vain is named.
func TestWhatWasNotSet(t *testing.T) {
	refused := errors.New("dial tcp 127.0.0.1:8200: connect: connection refused")
	for address, want := range map[string]bool{defaultAddress: true, "https://127.0.0.1:8201": false} {
		s := &server{address: address}
		if text := s.explain(t.Context(), refused, "transit/decrypt/k", "k").Error(); strings.Contains(text, "set address, or BAO_ADDR") != want {
			t.Errorf("%s: got %s", address, text)
		}
	}
	denied := &api.ResponseError{StatusCode: http.StatusBadRequest}
	for token, want := range map[string]bool{"canary": true, "": false} {
		s := &server{address: defaultAddress, token: token}
		text := s.explain(t.Context(), denied, "auth/approle/login", "").Error()
		if strings.Contains(text, "token (or BAO_TOKEN) is not used") != want || strings.Contains(text, "canary") {
			t.Errorf("%q: got %s", token, text)
		}
	}
}
