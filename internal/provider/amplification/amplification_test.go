package amplification

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/provider"
)

// reader is one way in which a stranger's bytes become values.
type reader struct {
	name     string
	methods  string // the encryption text; "" for plaintext
	object   string // the block that takes a state out of a manifest; "" for none
	resource bool   // reads the only resource, and otherwise all outputs
	encoding string // of an HTTP answer; "" reads a file
	seal     func(string) string
	grammars []grammar

	ends     string // in the error of the last step that a file gets to; "" if it is read
	times    int    // bytes that may be allocated for each of the file
	programs int    // that may be started
}

// bench reads files as a CLI has them read, from the request to the answer.
type bench struct {
	server *provider.Server
	path   string
	url    string
	answer []byte
	runs   string // a line for each program that was started
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	dir := tb.TempDir()
	b := &bench{server: provider.NewServer("test"), path: filepath.Join(dir, "file"), runs: filepath.Join(dir, "runs")}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b.answer)
	}))
	tb.Cleanup(web.Close)
	b.url = web.URL
	return b
}

// program is a command that notes that it ran, and prints nothing.
func (b *bench) program(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(filepath.Dir(b.runs), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho >>'"+b.runs+"'\n"), 0o700); err != nil {
		tb.Fatal(err)
	}
	return path
}

// cost is what one read takes.
type cost struct {
	size     int
	bytes    int     // allocated, whether or not they were kept
	cpu      float64 // seconds of this process
	programs int
	err      string
}

// read configures the provider anew, so that it remembers nothing.
func (b *bench) read(tb testing.TB, r reader, file string) cost {
	tb.Helper()
	if r.seal != nil {
		file = r.seal(file)
	}
	settings := map[string]any{"allow_resource_reads": true, "default": []any{map[string]any{"method": "unencrypted"}}}
	if r.methods != "" {
		settings = map[string]any{"allow_resource_reads": true, "encryption": r.methods}
	}
	b.configure(tb, settings)
	arguments, name := b.arguments(tb, r, file), "statecrypt_remote_state"
	if r.resource {
		name = "statecrypt_resource"
	}
	_ = os.Remove(b.runs)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime()
	response, err := b.server.OpenEphemeralResource(tb.Context(), &tfprotov6.OpenEphemeralResourceRequest{
		TypeName: name, Config: &tfprotov6.DynamicValue{JSON: arguments}})
	c := cost{size: len(file), cpu: cpuTime() - began}
	runtime.ReadMemStats(&after)
	if err != nil {
		tb.Fatal(err)
	}
	c.bytes = int(after.TotalAlloc - before.TotalAlloc)
	c.err = problems(response.Diagnostics)
	runs, _ := os.ReadFile(b.runs)
	c.programs = strings.Count(string(runs), "\n")
	return c
}

func (b *bench) configure(tb testing.TB, settings map[string]any) {
	tb.Helper()
	block, err := json.Marshal(settings)
	if err != nil {
		tb.Fatal(err)
	}
	response, err := b.server.ConfigureProvider(tb.Context(), &tfprotov6.ConfigureProviderRequest{
		Config: &tfprotov6.DynamicValue{JSON: block}})
	if err != nil {
		tb.Fatal(err)
	}
	if text := problems(response.Diagnostics); text != "" {
		tb.Fatal(text)
	}
}

func (b *bench) arguments(tb testing.TB, r reader, file string) []byte {
	tb.Helper()
	arguments := map[string]any{"file": []any{map[string]any{"path": b.path}}}
	if r.encoding != "" {
		b.answer = []byte(file)
		arguments = map[string]any{"http": []any{map[string]any{"address": b.url, "retry_max": 0}}}
	} else if err := os.WriteFile(b.path, []byte(file), 0o600); err != nil {
		tb.Fatal(err)
	}
	if r.object != "" {
		arguments["object"] = json.RawMessage(r.object)
	}
	if r.resource && r.object == "" {
		arguments["address"] = "x.y"
	}
	block, err := json.Marshal(arguments)
	if err != nil {
		tb.Fatal(err)
	}
	return block
}

func problems(all []*tfprotov6.Diagnostic) string {
	var texts []string
	for _, d := range all {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			texts = append(texts, d.Summary+": "+d.Detail)
		}
	}
	return strings.Join(texts, "; ")
}

// What a file may cost. A file of any size may cost what the meter gives for
// nothing; beyond that, it pays by its length.
const (
	perUnit    = 600     // bytes that are allocated for a unit of the meter, at most
	little     = 1 << 20 // bytes of a read of nothing
	measurable = 0.05    // seconds; what is shorter says nothing of a ratio
)

// TestAmplification has files grow in each production of each grammar, and in each
// pair of two. What they cost must grow as they do.
func TestAmplification(t *testing.T) {
	skipRaced(t)
	// Garbage is collected when that suits the collector, which says nothing of a file.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	b := newBench(t)
	unit := b.secondsPerUnit(t)
	for _, r := range readers(t, b) {
		t.Run(r.name, func(t *testing.T) {
			for i, g := range r.grammars {
				for j, set := range g.sets() {
					if !testing.Short() || (i+j)%40 == 0 { // a sample
						b.grows(t, r, g, set, unit)
					}
				}
			}
		})
	}
}

// skipRaced skips a test of costs under the race detector, which has costs of its own.
func skipRaced(tb testing.TB) {
	tb.Helper()
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		tb.Skip("the race detector has costs of its own")
	}
}

// TestGrammarsAreRead checks that files get as far as they are meant to: one that is
// refused at the door costs nothing, and shows nothing.
func TestGrammarsAreRead(t *testing.T) {
	b := newBench(t)
	for _, r := range readers(t, b) {
		for _, g := range r.grammars {
			c := b.read(t, r, g.file(g.least()))
			if (c.err == "") != (r.ends == "") || !strings.Contains(c.err, r.ends) {
				t.Errorf("%s, %s: got %q, want %q", r.name, g.name, c.err, r.ends)
			}
		}
	}
}

// secondsPerUnit measures the unit of the meter with plain values, whatever else
// this machine does.
func (b *bench) secondsPerUnit(tb testing.TB) float64 {
	const values = 100_000
	return b.read(tb, reader{}, output4(list(values, same("1")), `["list","number"]`)).cpu / values
}

// grows reads ever larger files, as long as their cost leaves a doubt. The first is
// small, so that a mistake does not take minutes.
func (b *bench) grows(t *testing.T, r reader, g grammar, set []production, unit float64) {
	var before cost
	for _, size := range []int{4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20} {
		file := g.grown(size, set...)
		c := b.read(t, r, file)
		for range 4 { // a loaded machine takes longer, and never less
			if c.wrong(r, before, unit) == tooLong {
				c.cpu = min(c.cpu, b.read(t, r, file).cpu)
			}
		}
		if wrong := c.wrong(r, before, unit); wrong != "" {
			t.Errorf("%s, %s: it %s; %s", g.name, named(set), wrong, c)
			return
		}
		if size > 64<<10 && !c.doubtful(r, before) || len(file) < size/2 {
			return
		}
		before = c
	}
}

func (c cost) String() string {
	return fmt.Sprintf("a file of %d bytes allocates %d kB, takes %.2f s and starts %d programs: %.200s",
		c.size, c.bytes>>10, c.cpu, c.programs, c.err)
}

// What is wrong with a cost.
const (
	tooMuch  = "allocates more than the meter allows"
	growsTo  = "allocates more than five times what a quarter of the file does"
	tooLong  = "takes longer than the meter allows, or more than eight times as long as a quarter of the file"
	programs = "starts too many programs"
)

// wrong says what is wrong with a cost, "" if nothing is. Before is that of a file
// of a quarter of the size.
func (c cost) wrong(r reader, before cost, unit float64) string {
	linear := r.times*c.size + little
	units := float64(meter.Free + c.size/2)
	larger := before.size >= 32<<10
	switch {
	case c.programs > r.programs:
		return programs
	case c.bytes > linear+perUnit*meter.Free:
		return tooMuch
	case larger && c.bytes > max(5*before.bytes, linear):
		return growsTo
	case c.cpu < measurable:
		return ""
	case c.cpu > 4*unit*units, larger && c.cpu > 8*max(before.cpu, measurable/2):
		return tooLong
	}
	return ""
}

// doubtful reports whether a larger file of this kind could be wrong: one that
// costs little by its length can't if its cost grows with the square of that.
func (c cost) doubtful(r reader, before cost) bool {
	return c.bytes > r.times*c.size || c.cpu > 6*before.cpu && c.cpu > measurable/4
}
