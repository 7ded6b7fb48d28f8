package tfstate

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Each folder of testdata has a state, and the outputs that Terraform and
// OpenTofu print for it with "output -json". Folders called err_… have a state
// that both refuse.
func TestVectors(t *testing.T) {
	says := golden(t, "states that Terraform refuses")
	for _, folder := range folders(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			outputs, err := readAll(read(t, folder, "state.json"))
			if strings.HasPrefix(filepath.Base(folder), "err_") {
				says.Error(t, filepath.Base(folder), err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			decode(t, read(t, folder, "expected_outputs.json"), &want)
			if got := asPrinted(t, outputs); !same(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	s, err := Parse(read(t, "testdata/output_zoo", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Version != 4 || s.TerraformVersion != "1.12.6" || s.Serial != 1 || s.Lineage != "7b821a54-34f7-b994-e0bc-face15b88fd8" {
		t.Errorf("got %d, %q, %d, %q", s.Version, s.TerraformVersion, s.Serial, s.Lineage)
	}
	if got := s.Outputs["with_deprecated"].Deprecated; got != "use str instead" {
		t.Errorf("deprecated: got %q", got)
	}
}

// decoded is an output with its value.
type decoded struct {
	Output
	value cty.Value
}

func readAll(data []byte) (map[string]decoded, error) {
	s, err := Parse(data)
	if err != nil {
		return nil, err
	}
	all := make(map[string]decoded)
	for name, o := range s.Outputs {
		v, err := o.Value()
		if err != nil {
			return nil, err
		}
		all[name] = decoded{o, v}
	}
	return all, nil
}

// asPrinted has the form of "output -json".
func asPrinted(t *testing.T, outputs map[string]decoded) map[string]any {
	all := make(map[string]any)
	for name, o := range outputs {
		ty, err := ctyjson.MarshalType(o.value.Type())
		if err != nil {
			t.Fatal(err)
		}
		value, err := ctyjson.Marshal(o.value, o.value.Type())
		if err != nil {
			t.Fatal(err)
		}
		printed := map[string]any{"sensitive": o.Sensitive, "type": nil, "value": nil}
		for key, raw := range map[string][]byte{"type": ty, "value": value} {
			var v any
			decode(t, raw, &v)
			printed[key] = v
		}
		if o.Deprecated != "" {
			printed["deprecated"] = o.Deprecated
		}
		all[name] = printed
	}
	return all
}

// same compares decoded JSON, numbers by their exact value.
func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		x, okX := new(big.Rat).SetString(a.String())
		y, okY := new(big.Rat).SetString(b.String())
		return ok && okX && okY && x.Cmp(y) == 0
	case map[string]any:
		b, ok := b.(map[string]any)
		for key := range a {
			if other, both := b[key]; !both || !same(a[key], other) {
				return false
			}
		}
		return ok && len(a) == len(b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(a, b)
	}
}

func folders(t testing.TB) []string {
	all, err := filepath.Glob("testdata/*/state.json")
	if err != nil || len(all) < 20 {
		t.Fatalf("found %d states, %v", len(all), err)
	}
	for i, file := range all {
		all[i] = filepath.Dir(file)
	}
	return all
}

func read(t testing.TB, folder, name string) []byte {
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode(t *testing.T, data []byte, into any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}
