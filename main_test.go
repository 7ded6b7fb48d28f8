package main

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// maxBinary leaves room for the SDKs of the clouds, of sops and of Kubernetes.
const maxBinary = 75_000_000 // bytes

// releaseBinary builds the provider as a release does.
func releaseBinary(tb testing.TB) (path string, size int64) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "terraform-provider-statecrypt.exe")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	return path, info.Size()
}

func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the provider")
	}
	path, size := releaseBinary(t)
	if size > maxBinary {
		t.Errorf("the binary is %d bytes, want at most %d", size, maxBinary)
	}
	if n := startAndAskForSchema(t, path); n < 1000 { // or the benchmark measures nothing
		t.Errorf("the schema has %d bytes", n)
	}
}

// BenchmarkStart measures what every command of a CLI waits for: the start of
// the process, the handshake and the schema. At most 30 ms are wanted.
func BenchmarkStart(b *testing.B) {
	path, size := releaseBinary(b)
	for b.Loop() {
		startAndAskForSchema(b, path)
	}
	b.ReportMetric(float64(size)/1e6, "MB")
}

// startAndAskForSchema does what a CLI does first, and returns the size of the
// schema.
func startAndAskForSchema(tb testing.TB, path string) int {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(os.Environ(), "PLUGIN_PROTOCOL_VERSIONS=6",
		"TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2") // go-plugin's way to tell a CLI from a person
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer cancel() // kills it, if it is still there
	line, err := bufio.NewReader(stdout).ReadString('\n')
	parts := strings.Split(strings.TrimSpace(line), "|") // 1|6|unix|/tmp/plugin123|grpc|
	if err != nil || len(parts) < 5 {
		tb.Fatalf("handshake %q: %v", line, err)
	}
	conn, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, parts[2], parts[3])
		}))
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	var schema, nothing []byte
	if err := conn.Invoke(ctx, "/tfplugin6.Provider/GetProviderSchema", []byte{}, &schema, grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(64<<20)); err != nil {
		tb.Fatal(err)
	}
	if err := conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", []byte{}, &nothing, grpc.ForceCodec(raw{})); err == nil {
		_ = cmd.Wait()
	}
	return len(schema)
}

// raw sends and receives messages as they are: the schema need not be
// understood here.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
