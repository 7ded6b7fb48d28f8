package overview

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
)

// TestCosts: whatever a file of a stranger repeats, reading and showing it costs no more than a multiple of its size.
//
// Promise: Cost
func TestCosts(t *testing.T) {
	const size = 1 << 20
	repeat := func(head, part, tail string) string { return head + strings.Repeat(part, size/len(part)) + tail }
	resource := `{"mode":"managed","type":"x","name":"y","instances":[{"attributes":{}}]},`
	for name, text := range map[string]string{
		"resources": repeat(`{"version":4,"resources":[`, resource, `{"mode":"data","type":"x","name":"y"}]}`),
		"instances": repeat(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":[`, "{},", "{}]}]}"),
		"outputs":   repeat(`{"version":4,"outputs":{`, `"x":{},`, `"y":{}}}`),
		"checks":    repeat(`{"version":4,"check_results":[`, `{"objects":[{},{}]},`, `{}]}`),
		"types": `{"version":4,"outputs":{"x":{"type":` + strings.Repeat(`["list",`, 4000) + `"string"` + strings.Repeat("]", 4000) +
			"}}}" + strings.Repeat(" ", size),
		"modules": repeat(`{"version":3,"modules":[`, `{"path":["root","`+strings.Repeat("x", 40)+`"],"resources":{"a.b":{"primary":{}}}},`,
			`{"path":["root"]}]}`),
		"keys": repeat(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":[`, `{"index_key":"\u0007\u0007"},`,
			"{}]}]}"),
		"paths": repeat(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":[{"attributes":{"a":1},`+
			`"sensitive_attributes":[`,
			`[{"type":"get_attr","value":"b"}],`, `[]]}]}]}`),
		"numbers": `{"version":4,"outputs":{"a":{"value":[` + strings.Repeat("0,", size/2) + `0]},"b":{}}}`,
		"members": `{"version":4,"outputs":{"a":{"value":` + strings.Repeat(`{"b":`, 9000) + `"b"` + strings.Repeat("}", 9000) + `}}}` +
			strings.Repeat(" ", size),
		"texts": repeat(`{"version":3,"modules":[{"path":["root"],"resources":{"a.b":{"primary":{"attributes":{`, `"a.b":"c",`, `"a":"b"}}}}}]}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := Read([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var shown bytes.Buffer
		for _, write := range []func(io.Writer, View) ([]string, error){s.WriteText, s.WriteJSON} {
			if _, err := write(&shown, View{Values: true, Attributes: []string{"a"}, Sensitive: true}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var other State
		if changed, err := Read([]byte(strings.NewReplacer(`:{}`, `:{"z":1}`, `"b"`, `"d"`).Replace(text))); err == nil {
			other = *changed
		}
		d, err := Compare(s, &other)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := cmpErrors(d.WriteText(&shown, DiffView{Values: true, Attributes: []string{"a"}}), d.WriteJSON(&shown, DiffView{})); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 900*size || shown.Len() > 120*size {
			t.Errorf("%s: %d MiB are used for 1 MiB, and %d shown", name, used>>20, shown.Len()>>20)
		} else {
			t.Logf("%s: %d MiB, %d KiB shown", name, used>>20, shown.Len()>>10)
		}
	}
}
