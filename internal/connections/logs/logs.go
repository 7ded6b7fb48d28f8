// Package logs silences the logs of libraries, because secrets leak through logs, and CLIs copy
// the output of a provider to theirs.
package logs

import (
	"io"
	"log"
	"os"

	azure "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"google.golang.org/grpc/grpclog"
)

// Silence switches off the logs of libraries in this process, even if variables switch them on. It must
// be called in the first lines of main, because none of these switches is safe for concurrent use.
// Google's clients get a logger of their own, see [googleauth.Silence]; clients of AWS and Kubernetes
// log nothing by default.
func Silence() {
	// net/http logs unsolicited responses of servers, which may hold a part of
	// a state or of a key, and with GODEBUG=http2debug=2 each header.
	log.SetOutput(io.Discard)
	// AZURE_SDK_GO_LOGGING=all logs addresses, some of them with a SAS token.
	azure.SetListener(nil)
	// GRPC_GO_LOG_SEVERITY_LEVEL=info logs failures of the connection between the CLI and us.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	// plugin-go writes each message to this directory, readable by everyone, even the provider's
	// configuration and the results of ephemeral resources.
	_ = os.Unsetenv("TF_LOG_SDK_PROTO_DATA_DIR")
}
