package logs_test

import (
	"log"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"google.golang.org/grpc/grpclog"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/logs"
)

const (
	canary  = "a-secret-that-is-logged"
	variant = "STATECRYPT_TEST_SILENCE"
)

// TestSilence runs itself in a process that starts with these variables: what
// libraries log is set up before main begins.
//
// Promise: Secrets in text
func TestSilence(t *testing.T) {
	if silent := os.Getenv(variant); silent != "" {
		if silent == "true" {
			logs.Silence()
		}
		log.Print(canary)
		askAzure(t)
		grpclog.Info(canary)
		if dir, set := os.LookupEnv("TF_LOG_SDK_PROTO_DATA_DIR"); set {
			log.Print(dir)
		}
		return
	}
	t.Parallel()
	for silent, noisy := range map[string]bool{"true": false, "false": true} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSilence$")
		cmd.Env = append(os.Environ(), variant+"="+silent, "AZURE_SDK_GO_LOGGING=all", "GRPC_GO_LOG_SEVERITY_LEVEL=info",
			"GRPC_GO_LOG_VERBOSITY_LEVEL=99", "TF_LOG_SDK_PROTO_DATA_DIR="+canary)
		out, err := cmd.CombinedOutput()
		if n := strings.Count(string(out), canary); err != nil || (n > 0) != noisy {
			t.Errorf("silent is %s: the secret is logged %d times: %v\n%s", silent, n, err, out)
		}
	}
}

// askAzure sends a request with a SAS token to where nobody answers, with the
// pipeline of all of Azure's clients.
func askAzure(t *testing.T) {
	t.Helper()
	pipeline := runtime.NewPipeline("test", "v1", runtime.PipelineOptions{}, &policy.ClientOptions{
		Transport: http.DefaultClient, Retry: policy.RetryOptions{MaxRetries: -1},
	})
	request, err := runtime.NewRequest(t.Context(), http.MethodGet, "http://127.0.0.1:1/container/blob?sig="+canary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pipeline.Do(request); err == nil {
		t.Error("someone answered")
	}
}
