package builtin_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// TestOpenLeavesNothing: a tool that calls it for each file keeps no connection.
func TestOpenLeavesNothing(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("keyprovider/openbao/testdata/openbao_default/state.tfstate.enc")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	settings := fmt.Sprintf(`key_provider "openbao" "main" {
	address  = %q
	token    = "t"
	key_name = "k"
}
method "aes_gcm" "main" { keys = key_provider.openbao.main }
state { method = method.aes_gcm.main }`, server.URL)
	_, err = encryption.Open(t.Context(), builtin.Registry(), file, encryption.Environment(variables("TF_ENCRYPTION", settings)))
	if !errors.Is(err, encryption.ErrNoKey) {
		t.Fatalf("got %v", err)
	}
	select {
	case <-closed:
	case <-time.After(30 * time.Second): // by itself, it would be closed after 90
		t.Error("a connection is left")
	}
}
