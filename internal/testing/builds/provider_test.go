package builds_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	maxBinary   = 50_000_000 // bytes; leaves room for the SDKs of the clouds, of sops and of Kubernetes
	maxResident = 45_000_000 // bytes of a provider that has given its schema and read nothing
	maxInit     = 64 << 10   // bytes that one of our packages allocates before main begins: see lazyregexp
)

func TestRelease(t *testing.T) {
	path, size := release(t, module, "dev")
	if size > maxBinary {
		t.Errorf("the binary is %d bytes, want at most %d", size, maxBinary)
	}
	schema, resident := startAndAskForSchema(t, path)
	if schema < 1000 { // or the benchmark measures nothing
		t.Errorf("the schema has %d bytes", schema)
	}
	if resident > maxResident {
		t.Errorf("%d bytes are resident, want at most %d", resident, maxResident)
	}
	for name, size := range initialized(t, path) {
		if strings.HasPrefix(name, "github.com/statecrypt/") && size > maxInit {
			t.Errorf("%s allocates %d bytes at the start of every command, want at most %d", name, size, maxInit)
		}
	}
}

// initialized is what packages allocate before main begins, in bytes.
func initialized(t *testing.T, path string) map[string]int {
	t.Helper()
	cmd := exec.Command(path) // which tells people that it is a plugin, and ends
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, _ := cmd.CombinedOutput()
	// init internal/bytealg @0.008 ms, 0 ms clock, 0 bytes, 0 allocs
	found := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @.*, (\d+) bytes, \d+ allocs$`).FindAllStringSubmatch(string(trace), -1) {
		found[m[1]], _ = strconv.Atoi(m[2])
	}
	if len(found) < 10 {
		t.Fatalf("no trace in:\n%s", trace)
	}
	return found
}

// BenchmarkStart measures what every command of a CLI waits for: the start of
// the process, the handshake and the schema, beside a provider that does nothing.
func BenchmarkStart(b *testing.B) {
	own, _ := release(b, module, "dev")
	stub := filepath.Join(b.TempDir(), "stub.exe")
	compile(b, []string{"CGO_ENABLED=0", "GOWORK=off"}, "-C", "../../../tools/bench", "-trimpath", "-ldflags", "-s -w", "-o", stub, "./stub")
	for _, program := range []struct{ name, path string }{{"provider", own}, {"stub", stub}} {
		b.Run(program.name, func(b *testing.B) {
			info, err := os.Stat(program.path)
			if err != nil {
				b.Fatal(err)
			}
			resident := 0
			for b.Loop() {
				_, resident = startAndAskForSchema(b, program.path)
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			b.ReportMetric(float64(resident)/1e6, "resident-MB")
		})
	}
}

// startAndAskForSchema does what a CLI does first. It returns the size of the
// schema and the peak memory of the process, which is 0 if the system does not
// tell.
func startAndAskForSchema(tb testing.TB, path string) (schemaSize, resident int) {
	tb.Helper()
	p := start(tb, path)
	schema := p.call(tb, "tfplugin6.Provider/GetProviderSchema", nil)
	resident = peak(p.cmd.Process.Pid)
	p.end()
	return len(schema), resident
}

// Among what plugin-go would write to this directory, for anyone to read, are
// the secrets of ephemeral resources.
//
// Promise: Secrets in text
func TestProtocolDataIsNotWritten(t *testing.T) {
	path, _ := release(t, module, "dev")
	dir := t.TempDir()
	p := start(t, path, "TF_LOG_SDK_PROTO_DATA_DIR="+dir)
	// Its config, a DynamicValue, is field 1; so is the MessagePack in that: here, null.
	p.call(t, "tfplugin6.Provider/ValidateProviderConfig", []byte{0x0a, 3, 0x0a, 1, 0xc0})
	p.end()
	written, err := os.ReadDir(dir)
	if err != nil || len(written) > 0 {
		t.Errorf("got %v, %v", written, err)
	}
}

// running is a provider that was started as a CLI does it.
type running struct {
	cmd  *exec.Cmd
	conn *grpc.ClientConn
}

func start(tb testing.TB, path string, env ...string) *running {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(os.Environ(), "PLUGIN_PROTOCOL_VERSIONS=6",
		// go-plugin's way to tell a CLI from a person
		"TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2")
	cmd.Env = append(cmd.Env, env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cancel() // kills it, if it is still there
		_ = cmd.Wait()
	})
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
	return &running{cmd: cmd, conn: conn}
}

// call makes a call with encoded messages.
func (r *running) call(tb testing.TB, method string, request []byte) []byte {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var answer []byte
	if err := r.conn.Invoke(ctx, "/"+method, request, &answer, grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(64<<20)); err != nil {
		tb.Fatal(err)
	}
	return answer
}

// end has the provider end, so that a benchmark does not measure the next start
// beside it.
func (r *running) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var nothing []byte
	// Some end before they have answered.
	_ = r.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", []byte{}, &nothing, grpc.ForceCodec(raw{}))
	_ = r.cmd.Wait()
	_ = r.conn.Close()
}

// peak is the most memory that a process has had, as Linux tells.
func peak(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	var kilobytes int
	_, _ = fmt.Sscan(after, &kilobytes)
	return kilobytes << 10
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
