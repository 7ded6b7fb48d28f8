// Package logs silences what libraries write by themselves: logs are where
// secrets leak, and CLIs copy what a provider prints to theirs.
package logs

import (
	"io"
	"log"
	"os"

	azure "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"google.golang.org/grpc/grpclog"
)

// Silence turns off, whatever the variables say, what libraries of this process
// log. It is for the first lines of main: none of these switches may be used while
// something runs. Google's clients are given a logger of their own instead, see
// [googleauth.Silence], and those of AWS and Kubernetes log nothing unless told.
func Silence() {
	// net/http logs unsolicited responses of servers, which may hold a part of
	// a state or of a key, and with GODEBUG=http2debug=2 each header.
	log.SetOutput(io.Discard)
	// AZURE_SDK_GO_LOGGING=all logs addresses, some of them with a SAS token.
	azure.SetListener(nil)
	// GRPC_GO_LOG_SEVERITY_LEVEL=info logs what goes wrong between the CLI and us.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	// plugin-go writes each message to this directory, readable by everyone:
	// the provider's configuration and the results of ephemeral resources too.
	_ = os.Unsetenv("TF_LOG_SDK_PROTO_DATA_DIR")
}
