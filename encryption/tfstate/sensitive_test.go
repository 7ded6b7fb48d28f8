package tfstate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// parted splits attributes along paths, both as they stand in a state.
func parted(t testing.TB, attributes, paths string) (open, sensitive any, err error) {
	o, s, err := storedInstance{attributes: []byte(attributes), sensitive: []byte(paths)}.values(newBudget(1000))
	if err != nil {
		return nil, nil, err
	}
	return asJSON(t, o), asJSON(t, s), nil
}

// path writes a path: .name for an attribute, a number for an index, and any
// other text for the key of a map.
func path(steps ...any) string {
	var out []string
	for _, s := range steps {
		switch s := s.(type) {
		case int:
			out = append(out, fmt.Sprintf(`{"type":"index","value":{"value":%d,"type":"number"}}`, s))
		case string:
			if name, ok := strings.CutPrefix(s, "."); ok {
				out = append(out, fmt.Sprintf(`{"type":"get_attr","value":%q}`, name))
			} else {
				out = append(out, fmt.Sprintf(`{"type":"index","value":{"value":%q,"type":"string"}}`, s))
			}
		case json.RawMessage:
			out = append(out, string(s))
		}
	}
	return "[" + strings.Join(out, ",") + "]"
}

func TestSplit(t *testing.T) {
	inSet := json.RawMessage(`{"type":"index","value":{"value":{"p":"s"},"type":["object",{"p":"string"}]}}`)
	for name, c := range map[string]struct {
		attributes, open, sensitive string
		paths                       []string
	}{
		"nothing":          {`{"a":1}`, `{"a":1}`, `{}`, nil},
		"attribute":        {`{"a":1,"p":"s"}`, `{"a":1,"p":null}`, `{"p":"s"}`, []string{path(".p")}},
		"all of an object": {`{"a":1,"p":{"x":"s","y":["s"]}}`, `{"a":1,"p":null}`, `{"p":{"x":"s","y":["s"]}}`, []string{path(".p")}},
		"in an object":     {`{"b":{"p":"s","q":1},"c":2}`, `{"b":{"p":null,"q":1},"c":2}`, `{"b":{"p":"s"}}`, []string{path(".b", ".p")}},
		"in a map":         {`{"m":{"k":"s","l":"o"}}`, `{"m":{"k":null,"l":"o"}}`, `{"m":{"k":"s"}}`, []string{path(".m", "k")}},
		"in a list":        {`{"l":["o","s","o"]}`, `{"l":["o",null,"o"]}`, `{"l":[null,"s",null]}`, []string{path(".l", 1)}},
		"in a list of blocks": {`{"b":[{"p":"s","q":1},{"p":"t","q":2}]}`, `{"b":[{"p":null,"q":1},{"p":null,"q":2}]}`,
			`{"b":[{"p":"s"},{"p":"t"}]}`, []string{path(".b", 0, ".p"), path(".b", 1, ".p")}},
		"several": {`{"p":"s","q":"t","r":1}`, `{"p":null,"q":null,"r":1}`, `{"p":"s","q":"t"}`,
			[]string{path(".p"), path(".q"), path(".p")}},
		"inside of a whole":       {`{"b":{"p":"s","q":1}}`, `{"b":null}`, `{"b":{"p":"s","q":1}}`, []string{path(".b", ".p"), path(".b")}},
		"null":                    {`{"p":null}`, `{"p":null}`, `{"p":null}`, []string{path(".p")}},
		"everything":              {`{"p":"s"}`, `null`, `{"p":"s"}`, []string{path()}},
		"no such attribute":       {`{"p":"s"}`, `null`, `{"p":"s"}`, []string{path(".q")}},
		"no such inner attribute": {`{"a":1,"b":{"p":"s"}}`, `{"a":1,"b":null}`, `{"b":{"p":"s"}}`, []string{path(".b", ".q", ".r")}},
		"no such index":           {`{"a":1,"l":["s"]}`, `{"a":1,"l":null}`, `{"l":["s"]}`, []string{path(".l", 1)}},
		"negative index":          {`{"a":1,"l":["s"]}`, `{"a":1,"l":null}`, `{"l":["s"]}`, []string{path(".l", -1)}},
		"key of a list":           {`{"l":["s"]}`, `{"l":null}`, `{"l":["s"]}`, []string{path(".l", "0")}},
		"index of a map":          {`{"m":{"0":"s"}}`, `{"m":null}`, `{"m":{"0":"s"}}`, []string{path(".m", 0)}},
		"element of a set":        {`{"a":1,"b":[{"p":"s"}]}`, `{"a":1,"b":null}`, `{"b":[{"p":"s"}]}`, []string{path(".b", inSet, ".p")}},
		"past such an element":    {`{"b":{"p":"s","q":"t"}}`, `{"b":null}`, `{"b":{"p":"s","q":"t"}}`, []string{path(".b", inSet, ".p")}},
		"into a string":           {`{"p":"s"}`, `{"p":null}`, `{"p":"s"}`, []string{path(".p", ".q")}},
		"into null":               {`{"p":null}`, `{"p":null}`, `{"p":null}`, []string{path(".p", ".q")}},
		"one ends nowhere": {`{"b":{"p":"s","q":"t"}}`, `{"b":null}`, `{"b":{"p":"s","q":"t"}}`,
			[]string{path(".b", ".p"), path(".b", ".x")}},
		"dynamic": {`{"a":{"value":"s","type":"string"}}`, `{"a":null}`, `{"a":{"value":"s","type":"string"}}`,
			[]string{path(".a")}},
		"in a dynamic one": {`{"a":{"value":{"p":"s"},"type":["object",{"p":"string"}]}}`, `{"a":null}`,
			`{"a":{"value":{"p":"s"},"type":["object",{"p":"string"}]}}`, []string{path(".a", ".p")}},
		"type in a dynamic one": {`{"a":{"value":{"type":"s"},"type":["object",{"type":"string"}]}}`, `{"a":null}`,
			`{"a":{"value":{"type":"s"},"type":["object",{"type":"string"}]}}`, []string{path(".a", ".type")}},
		"value at the top":        {`{"value":"s","type":"o"}`, `{"value":null,"type":"o"}`, `{"value":"s"}`, []string{path(".value")}},
		"nothing in value at top": {`{"value":"o","type":"o"}`, `{"value":"o","type":"o"}`, `{}`, nil},
	} {
		open, sensitive, err := parted(t, c.attributes, "["+strings.Join(c.paths, ",")+"]")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var wantOpen, wantSensitive any
		decode(t, []byte(c.open), &wantOpen)
		decode(t, []byte(c.sensitive), &wantSensitive)
		if !same(open, wantOpen) || !same(sensitive, wantSensitive) {
			t.Errorf("%s: got\n%v\n%v", name, open, sensitive)
		}
	}
}

// No path list at all, as Terraform 0.13 and older wrote.
func TestNoSensitiveAttributes(t *testing.T) {
	for _, raw := range []json.RawMessage{nil, json.RawMessage("null"), json.RawMessage("[]")} {
		if m, err := readMarks(raw); err != nil || m.whole || len(m.inside) != 0 {
			t.Errorf("%s: got %v, %v", raw, m, err)
		}
	}
}

// A small file with a long path or many of them is split in no time.
func TestHostilePaths(t *testing.T) {
	testkit.OneGoroutine(t)
	long := make([]any, 100_000)
	for i := range long {
		long[i] = ".a"
	}
	open, _, err := parted(t, `{"a":{"a":{"a":1}}}`, "["+path(long...)+strings.Repeat(","+path(".a", ".a", ".b"), 10_000)+"]")
	if err != nil || fmt.Sprint(open) != "map[a:map[a:<nil>]]" {
		t.Errorf("got %v, %v", open, err)
	}
}

// Whatever the paths say, nothing is lost, and nothing that a path leads to, or
// towards, is open.
func FuzzSplit(f *testing.F) {
	for _, attributes := range []string{`{"a":{"b":[1,{"c":"s"}],"value":1},"p":"s"}`,
		`{"a":{"value":{"type":"s"},"type":["object",{"type":"string"}]}}`} {
		for _, paths := range []string{`[]`, `[` + path(".a", ".b", 1, ".c") + `,` + path(".p") + `]`, `[` + path(".a", "type") + `]`, `[[]]`,
			`[` + path(".x", 3) + `]`} {
			f.Add(attributes, paths)
		}
	}
	f.Fuzz(func(t *testing.T, attributes, paths string) {
		if !json.Valid([]byte(attributes)) || !json.Valid([]byte(paths)) {
			return
		}
		i := storedInstance{attributes: []byte(strings.TrimSpace(attributes)), sensitive: []byte(paths)}
		ty, typeErr := ctyjson.ImpliedType(i.attributes)
		open, sensitive, err := i.values(newBudget(len(i.attributes)))
		if err != nil || typeErr != nil {
			return
		}
		whole, err := (&decoder{budget: newBudget(len(i.attributes))}).decode(i.attributes, ty)
		if err != nil {
			t.Fatal(err)
		}
		o, s, w := asJSON(t, open), asJSON(t, sensitive), asJSON(t, whole)
		if !same(merge(o, s), w) {
			t.Fatalf("%s\nby %s gave\n%v and\n%v", attributes, paths, o, s)
		}
		var all [][]struct {
			Type  string
			Value json.RawMessage
		}
		if err := json.Unmarshal([]byte(paths), &all); err != nil {
			t.Fatalf("%s was taken for paths", paths)
		}
		for _, one := range all {
			at := o
			for _, step := range one {
				key, ok, err := readStep(step.Type, step.Value)
				if err != nil {
					t.Fatal(err)
				}
				switch v := at.(type) {
				case map[string]any:
					if inner, there := v[key.name]; there && ok && !key.isIndex {
						at = inner
						continue
					}
				case []any:
					if ok && key.isIndex && key.index >= 0 && key.index < len(v) {
						at = v[key.index]
						continue
					}
				}
				break
			}
			if at != nil {
				t.Fatalf("%s\nby %s leaves %v open", attributes, paths, at)
			}
		}
	})
}
