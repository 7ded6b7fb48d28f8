package servertest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestMain lets this program be a server.
func TestMain(m *testing.M) {
	if os.Getenv("STATECRYPT_SERVERTEST") == "" {
		os.Exit(m.Run())
	}
	fmt.Println("ready", os.Args[1:], os.Getenv("AWS_PROFILE"))
	time.Sleep(time.Hour) // until it is killed
}

func TestServer(t *testing.T) {
	t.Setenv("AWS_PROFILE", "canary")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var server *Server
	t.Run("running", func(t *testing.T) {
		server = Start(t, program, []string{"an argument"}, "STATECRYPT_SERVERTEST=1")
		server.Await(t, func() bool { return strings.Contains(server.Output(), "\n") })
		if got := server.Output(); got != "ready [an argument] \n" {
			t.Errorf("got %q", got)
		}
	})
	select {
	case <-server.ended:
	default:
		t.Error("it goes on after the test")
	}
	skipped := true
	t.Run("absent", func(t *testing.T) {
		testkit.Program(t, "STATECRYPT_NO_SUCH_SERVER")
		skipped = false
	})
	if !skipped {
		t.Error("a test goes on without its server")
	}
}
