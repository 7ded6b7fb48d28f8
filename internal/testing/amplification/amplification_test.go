package amplification

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/provider"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// reader is one way in which a stranger's bytes become values.
type reader struct {
	name     string
	methods  string // the encryption text; "" for plaintext
	object   string // the block that takes a state out of a manifest; "" for none
	resource bool   // reads the only resource, and otherwise all outputs
	encoding string // of an HTTP answer; "" reads a file
	seal     func(string) string
	grammars []Grammar

	fails    bool // whether the last step that a file gets to fails
	times    int  // bytes that may be allocated for each of the file
	programs int  // that may be started
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

// read configures the provider anew, so that it remembers nothing.
func (b *bench) read(tb testing.TB, r reader, file string) Cost {
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
	c := measure(len(file), func() string {
		response, err := b.server.OpenEphemeralResource(tb.Context(), &tfprotov6.OpenEphemeralResourceRequest{
			TypeName: name, Config: &tfprotov6.DynamicValue{JSON: arguments}})
		if err != nil {
			tb.Fatal(err)
		}
		return problems(response.Diagnostics)
	})
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
	if !r.resource { // a default that is missing is compared with what is there
		arguments["defaults"] = json.RawMessage(`{"type": ["object", {"default": "bool"}], "value": {"default": true}}`)
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

// perUnit is how many bytes are allocated for a unit of the meter, at most.
const perUnit = 600

// TestAmplification has files grow in each production of each grammar, and in each
// pair of two. What they cost must grow as they do.
//
// Promise: Cost (a grammar for each reader of files)
func TestAmplification(t *testing.T) {
	alone(t)
	nests := nestsApart(t)
	b := newBench(t)
	unit := b.secondsPerUnit(t)
	for _, r := range readers(t, b) {
		t.Run(r.name, func(t *testing.T) {
			bounds := r.bounds(unit)
			bounds.nests = nests
			bounds.growAll(t, r.grammars, func(file string) Cost { return b.read(t, r, file) })
		})
	}
}

// timesUnit is how long a unit of the meter takes at the most, in plain values. A
// unit is as many bytes; to sort takes longer.
const timesUnit = 4

// bounds are what the meter allows. A file of any size may cost what the meter
// gives for nothing; beyond that, it pays by its length.
func (r reader) bounds(unit float64) bounds {
	return bounds{
		times: r.times, constant: little + perUnit*meter.Free, programs: r.programs, enough: 256 << 10,
		longest: func(size int) float64 { return timesUnit * unit * float64(meter.Free+size/2) },
	}
}

// TestGrammarsAreRead checks that files get as far as they are meant to: one that is
// refused at the door costs nothing, and shows nothing.
func TestGrammarsAreRead(t *testing.T) {
	b, says := newBench(t), testkit.OpenGolden(t, "testdata/mistakes.txt", "")
	for _, r := range readers(t, b) {
		reasons := map[string]bool{}
		for _, g := range r.grammars {
			c := b.read(t, r, g.File(g.least()))
			switch {
			case (c.err != "") != r.fails:
				t.Errorf("%s, %s: got %q", r.name, g.Name, c.err)
			case r.fails:
				reasons[strings.Split(c.err, "\n\n")[1]] = true // after the title and the place
			}
		}
		if r.fails {
			says.Error(t, r.name, errors.New(strings.Join(slices.Sorted(maps.Keys(reasons)), "\n\n")))
		}
	}
}

// secondsPerUnit measures the unit of the meter with plain values: the median of
// several times, since one alone can be half as long as another.
func (b *bench) secondsPerUnit(tb testing.TB) float64 {
	const values, times = 100_000, 9
	seconds := make([]float64, times)
	for i := range seconds {
		seconds[i] = b.read(tb, reader{}, output4(list(values, same("1")), `["list","number"]`)).cpu
	}
	slices.Sort(seconds)
	return seconds[times/2] / values
}
