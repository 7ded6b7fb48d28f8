package tfstate

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// canaries puts the text at every place of the states in testdata where a
// string, a number or a type may stand, one place at a time.
func canaries(t testing.TB, canary string) [][]byte {
	var files [][]byte
	for _, folder := range folders(t) {
		data := read(t, folder, "state.json")
		for _, mark := range []string{`"public"`, `"value":`, `"type":`, `"sensitive":`, `"hunter2"`, `"resource-secret"`, `true`, `42`, `null`,
			`[`, `:`} {
			for i := 0; ; {
				at := strings.Index(string(data[i:]), mark)
				if at < 0 {
					break
				}
				i += at + len(mark)
				files = append(files, slices.Insert(slices.Clone(data), i, []byte(`"`+canary+`",`)...))
				replaced := append(slices.Clone(data[:i]), `"`+canary+`"`...)
				files = append(files, append(replaced, after(data[i:])...))
			}
		}
	}
	return files
}

// after cuts one JSON value off data, if there is one.
func after(data []byte) []byte {
	d := json.NewDecoder(strings.NewReader(string(data)))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return data
	}
	return data[d.InputOffset():]
}

// Promise: Secrets in text
func TestErrorsNeverShowValues(t *testing.T) {
	testkit.OneGoroutine(t)
	const canary = "c4n4ry"
	failed := 0
	for _, file := range canaries(t, canary) {
		s, err := Parse(file)
		if err != nil {
			failed++
			var doc struct {
				Version string `json:"terraform_version"`
			}
			_ = json.Unmarshal(file, &doc)
			if strings.Contains(err.Error(), canary) && !strings.Contains(doc.Version, canary) { // the version is no secret
				t.Errorf("%v", err)
			}
			continue
		}
		for _, o := range s.Outputs {
			if _, err := o.Value(); err != nil {
				failed++
				if strings.Contains(err.Error(), canary) {
					t.Errorf("%v", err)
				}
			}
		}
	}
	if failed < 500 {
		t.Errorf("only %d errors were seen", failed)
	}
}

func FuzzParse(f *testing.F) {
	for _, folder := range folders(f) {
		f.Add(read(f, folder, "state.json"))
	}
	f.Add([]byte(`{"version":4,"outputs":{"a":{"value":[{"value":1,"type":"number"},{"value":"x","type":"string"}],"type":["list","dynamic"]}}}`))
	f.Add([]byte(`{"version":4,"outputs":{"a":{"value":1e999999999,"type":"number"}}}`))
	f.Add([]byte(`{"version":4,"outputs":{"a":{"value":{},"type":["object",{"a":["set","dynamic"]},["b"]]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		for _, o := range s.Outputs {
			v, err := o.Value()
			if err != nil {
				if len(err.Error()) > 4000 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
				continue
			}
			if !v.IsWhollyKnown() || v.ContainsMarked() {
				t.Errorf("got %#v", v)
			}
			if want, ok := asCty(o); ok && !v.RawEquals(want) {
				t.Errorf("got %#v, go-cty reads %#v", v, want)
			}
		}
	})
}

// asCty reads an output with go-cty's own decoder, where that can.
func asCty(o Output) (v cty.Value, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	if o.implied || strings.Contains(string(o.value), `\`) || !isASCII(o.value) {
		return v, false // keys that are the same once normalized come in any order there
	}
	ty, err := ctyjson.UnmarshalType(o.typ)
	if err != nil {
		return v, false
	}
	v, err = ctyjson.Unmarshal(o.value, ty.WithoutOptionalAttributesDeep())
	return v, err == nil
}

func isASCII(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return b >= 0x80 })
}

// withResources is a state with one output, and about size bytes of resources.
func withResources(size int) []byte {
	const one = `{"mode":"managed","type":"x","name":"y","instances":[{"attributes":{"id":"1","list":[1,2,3],"text":"some text"}}]}`
	return fmt.Appendf(nil, `{"version":4,"serial":1,"resources":[%s%s],"outputs":{"a":{"value":"v","type":"string"}}}`,
		strings.Repeat(one+",", size/len(one)), one)
}

// Resources cost no memory, neither while they are skipped nor afterwards.
func TestResourcesCostNoMemory(t *testing.T) {
	parse := func(file []byte) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Parse(file); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if got := parse(withResources(4 << 20)); got > 64<<10 {
		t.Errorf("allocated %d bytes for a file with 4 MiB of resources", got)
	}
}

// A state doesn't keep the file alive.
func TestStateSharesNothingWithTheFile(t *testing.T) {
	file := []byte(`{"version":4,"terraform_version":"1.2.3","lineage":"line","outputs":{"name":{"value":"v","type":"string"}}}`)
	s, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(file)
	v, err := s.Outputs["name"].Value()
	if err != nil || v != cty.StringVal("v") || s.TerraformVersion+s.Lineage != "1.2.3line" {
		t.Errorf("got %#v, %v", v, err)
	}
}

func BenchmarkOutputs(b *testing.B) {
	var file strings.Builder
	file.WriteString(`{"version":4,"outputs":{"last":{"value":1,"type":"number"}`)
	for i := range 10_000 {
		fmt.Fprintf(&file, `,"o%d":{"value":{"id":"i-%d","ports":[80,443],"tags":{"a":"b"}},"type":["object",{"id":"string","ports":["list","number"],"tags":["map","string"]}]}`, i, i)
	}
	file.WriteString("}}")
	data := []byte(file.String())
	b.Run("all", func(b *testing.B) { benchmark(b, data, -1) })
	b.Run("one", func(b *testing.B) { benchmark(b, data, 1) })
}

func BenchmarkResources(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchmark(b, withResources(size), 1) })
	}
}

// benchmark decodes the given number of outputs, or all when it is negative.
func benchmark(b *testing.B, data []byte, outputs int) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := Parse(data)
		if err != nil {
			b.Fatal(err)
		}
		left := outputs
		for _, o := range s.Outputs {
			if left == 0 {
				break
			}
			left--
			if _, err := o.Value(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
