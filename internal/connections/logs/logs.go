// Package logs silences the logs of libraries. Logs may contain secrets, and CLIs copy a provider's output to
// their own logs.
package logs

import (
	"io"
	"log"
	"os"

	azure "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"google.golang.org/grpc/grpclog"
)

// Silence disables the logs of libraries in this process, even if environment variables enable them. It must
// be called at the start of main, because none of its changes is safe for concurrent use. Google's clients
// get a separate logger; see [googleauth.Silence]. The AWS and Kubernetes clients log nothing by default.
func Silence() {
	// net/http logs unsolicited responses, which may contain parts of a state or a key. With
	// GODEBUG=http2debug=2, it also logs all headers.
	log.SetOutput(io.Discard)
	// AZURE_SDK_GO_LOGGING=all logs URLs, some of which contain a SAS token.
	azure.SetListener(nil)
	// GRPC_GO_LOG_SEVERITY_LEVEL=info logs errors in the connection to the CLI.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	// plugin-go writes all messages to this directory, including the provider's configuration and the results
	// of ephemeral resources, and makes them readable to everyone.
	_ = os.Unsetenv("TF_LOG_SDK_PROTO_DATA_DIR")
}
