package overview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

const canary = "c4n4ry" // a part of each secret in the states

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func state(t *testing.T, data []byte) *State {
	t.Helper()
	s, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// painted shows where a colour is.
func painted(colour, text string) string { return "<" + colour + ">" + text + "</>" }

// stored are the states in testdata: of real programs, or in their form.
func stored() []string {
	return []string{"format-1", "format-2", "format-3", "provider-marks", "terraform-0.12", "terraform-1.11"}
}

// TestShown has all that is shown of states of each format, in each way.
func TestShown(t *testing.T) {
	t.Parallel()
	golden := testkit.OpenGolden(t, filepath.Join("testdata", "shown.txt"), "show")
	from := File{Name: "a.tfstate", Encrypted: true, Method: "method.aes_gcm.main", KeyProviders: []string{"key_provider.pbkdf2.main"}}
	for _, name := range stored() {
		s := state(t, file(t, name))
		for way, v := range map[string]View{
			"":                             {File: from, Paint: painted},
			", a fallback":                 {File: File{Name: "-", Encrypted: true, Method: "method.aes_gcm.old", Fallback: true}},
			", in plaintext":               {Paint: painted},
			", outputs":                    {File: from, Values: true},
			", some attributes":            {File: from, Attributes: []string{"arn", "id", "input", "none", "users"}},
			", everything that is marked":  {File: from, Values: true, Attributes: []string{"id", "input", "result", "tags"}, Sensitive: true},
			", attributes that are absent": {File: from, Attributes: []string{"nothing"}},
		} {
			var text, asJSON bytes.Buffer
			missing, err := s.WriteText(&text, v)
			again, wrong := s.WriteJSON(&asJSON, v)
			if err != nil || wrong != nil || !slices.Equal(missing, again) {
				t.Errorf("%s%s: %v, %v, %q, %q", name, way, err, wrong, missing, again)
			}
			golden.Check(t, name+way, fmt.Sprintf("%s\nmissing: %q\n%s", text.String(), missing, asJSON.String()))
			if !json.Valid(asJSON.Bytes()) {
				t.Errorf("%s%s: this is no JSON: %s", name, way, asJSON.String())
			}
			hidesIDs := !slices.Contains(v.Attributes, "id") // of a random_string, the id is the secret
			if shown := text.String() + asJSON.String(); strings.Contains(shown, canary) && !v.Sensitive && hidesIDs && (name != "format-1" ||
				!v.Values) {
				t.Errorf("%s%s: a secret is shown:\n%s", name, way, shown)
			}
		}
	}
}

// TestMarks: an attribute is shown only if the instance has marks, of a known form, and none is for it.
func TestMarks(t *testing.T) {
	t.Parallel()
	for marks, want := range map[string]string{
		``:                             "",
		`,"sensitive_attributes":null`: "",
		`,"sensitive_attributes":[]`:   "a é",
		`,"sensitive_attributes":[[{"type":"get_attr","value":"a"}]]`:                                                        "é",
		`,"sensitive_attributes":[[{"type":"get_attr","value":"e\u0301"}]]`:                                                  "a",
		`,"Sensitive_Attributes":[[{"type":"get_attr","value":"é"}]]`:                                                        "a",
		`,"sensitive_attributes":[[{"type":"get_attr","value":"a"},{"type":"index","value":{"type":"string","value":"b"}}]]`: "é",
		`,"sensitive_attributes":[[{"type":"new","value":"a"}]]`:                                                             "",
		`,"sensitive_attributes":[[]]`:                                                                                       "",
		`,"sensitive_attributes":["a"]`:                                                                                      "",
		`,"sensitive_attributes":{}`:                                                                                         "",
		`,"sensitive_attributes":[[{"type":"index","value":{"type":"string","value":"a"}}]]`:                                 "",
		`,"sensitive_attributes":[[{"type":"get_attr","value":null}]]`:                                                       "",
		`,"sensitive_attributes":[[{"type":"get_attr","value":"a"}],[{"type":"new","value":"é"}]]`:                           "",
	} {
		s := state(t, []byte(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":[{"attributes":{"a":1,"é":2}`+
			marks+`}]}]}`))
		all, err := newAttributeReader().read(s.Resources[0])
		if err != nil || len(all) != 2 {
			t.Errorf("%s: %v, %v", marks, all, err)
		}
		var open []string
		for _, a := range all {
			if !a.sensitive {
				open = append(open, a.name)
			}
		}
		if got := strings.Join(open, " "); got != want {
			t.Errorf("%s: %q is open, want %q", marks, got, want)
		}
		if isList := strings.Contains(marks, ":["); s.Marked != isList {
			t.Errorf("%s: marked: %t", marks, s.Marked)
		}
	}
}

// TestMarked: a state has marks only if each instance with attributes has.
func TestMarked(t *testing.T) {
	t.Parallel()
	const with, without, empty = `{"attributes":{"a":1},"sensitive_attributes":[]}`, `{"attributes":{"a":1}}`, `{}`
	for instances, want := range map[string]bool{
		with: true, without: false, empty: true, with + "," + empty: true, with + "," + without: false, without + "," + with: false,
	} {
		s := state(t, []byte(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":[`+instances+`]},`+
			`{"mode":"managed","type":"x","name":"z","instances":[`+with+`]}]}`))
		if s.Marked != want {
			t.Errorf("%s: %t", instances, s.Marked)
		}
	}
}

// TestTwice: the last of several attributes with the same name counts, as for Terraform.
func TestTwice(t *testing.T) {
	t.Parallel()
	s := state(t, []byte(`{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":[`+
		`{"attributes":{"b":1,"a":2,"b":3,"c":4,"b":5},"sensitive_attributes":[]}]}]}`))
	all, err := newAttributeReader().read(s.Resources[0])
	got := ""
	for _, a := range all {
		got += a.name + string(a.value) + " "
	}
	if got != "a2 b5 c4 " || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestOddForms: members in another order, in other letters or twice are read as Terraform reads them.
func TestOddForms(t *testing.T) {
	t.Parallel()
	s := state(t, []byte(`{"resources":[{"instances":[{"Index_Key":"e\u0301","STATUS":"tainted","attributes":{}}],"provider":null,
		"name":"y","type":"x","mode":"data","module":"module.a[\"\\u00e9\"]"},{"mode":"later","type":"x","name":"z","instances":[{}]}],
		"outputs":{"a":{"sensitive":"yes"},"b":{"\u017fensitive":true,"sensitive":false},"a":{"type":["set",["object",{}]]}},
		"resources_":1,"Version":4,"check_results":[{"config_addr":"x.y"}],"serial":5,"SERIAL":6}`))
	if s.Serial != 6 || len(s.Resources) != 1 || len(s.Outputs) != 2 || len(s.Checks) != 1 {
		t.Fatalf("got %+v", s)
	}
	one := s.Resources[0]
	if got := one.String(); got != `module.a["é"].data.x.y["é"]` || !one.Tainted || one.Provider() != "" || one.Marked {
		t.Errorf("got %s, %+v", got, one)
	}
	if a, b := s.Outputs[0], s.Outputs[1]; a.Type != "set(object)" || a.Sensitive || b.Type != "unknown" || !b.Sensitive {
		t.Errorf("got %+v", s.Outputs)
	}
}

// TestReadErrors: a file that is not a state, or not one that Terraform writes, is refused, and the reason quotes
// nothing of it.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	golden := testkit.OpenGolden(t, filepath.Join("testdata", "shown.txt"), "refused", canary)
	const resource = `{"version":4,"resources":[{"mode":"managed","type":"x","name":"y","instances":`
	for name, text := range map[string]string{
		"nothing":               ``,
		"no JSON":               `{"version":4,"resources":[c4n4ry]}`,
		"text behind":           `{"version":4}c4n4ry`,
		"cut off":               `{"version":4,"resources":[{"mode":"managed"`,
		"no version":            `{"serial":1}`,
		"encrypted":             `{"encryption_version":"v0"}`,
		"a later format":        `{"version":5,"resources":{"c4n4ry":1}}`,
		"a format that is none": `{"version":0}`,
		"a negative serial":     `{"version":4,"serial":-1}`,
		"a serial as text":      `{"version":4,"serial":"c4n4ry"}`,
		"resources by name":     `{"version":4,"resources":{"c4n4ry":{}}}`,
		"a resource as text":    `{"version":4,"resources":["c4n4ry"]}`,
		"no name":               `{"version":4,"resources":[{"mode":"managed","type":"c4n4ry"}]}`,
		"an instance as text":   resource + `["c4n4ry"]}]}`,
		"instances by name":     resource + `{"c4n4ry":{}}}]}`,
		"a key that is none":    resource + `[{"index_key":-1}]}]}`,
		"a key as a list":       resource + `[{"index_key":["c4n4ry"]}]}]}`,
		"outputs as a list":     `{"version":4,"outputs":["c4n4ry"]}`,
		"an output as text":     `{"version":4,"outputs":{"x":"c4n4ry"}}`,
		"checks by name":        `{"version":4,"check_results":{"c4n4ry":1}}`,
		"modules as text":       `{"version":3,"modules":"c4n4ry"}`,
		"a module without path": `{"version":3,"modules":[{}]}`,
		"a path as text":        `{"version":3,"modules":[{"path":"c4n4ry"}]}`,
		"a name that is none":   `{"version":3,"modules":[{"path":["root"],"resources":{"c4n4ry":{}}}]}`,
		"an index that is none": `{"version":3,"modules":[{"path":["root"],"resources":{"x.y.c4n4ry":{}}}]}`,
		"an output of format 1": `{"version":1,"modules":[{"path":["root"],"outputs":{"x":["c4n4ry"]}}]}`,
		"a primary as text":     `{"version":3,"modules":[{"path":["root"],"resources":{"x.y":{"primary":"c4n4ry"}}}]}`,
		"long, and many of them": resource[:len(resource)-len(`y","instances":`)] + strings.Repeat("y", 1e5) + `","instances":[{}` +
			strings.Repeat(",{}", 999) + `]}]}`,
	} {
		_, err := Read([]byte(text))
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		golden.Error(t, name, err)
	}
}

// TestReadNothing: members that are null or absent are empty.
func TestReadNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"version":4}`, `{"version":3}`, `{"version":3,"modules":null}`, ` {"version":4,"resources":null,"outputs":null,"check_results":null} `,
		`{"version":3,"modules":[{"path":["root"],"resources":null,"outputs":{}}]}`, `{"version":4,"modules":"of no format 4"}`,
	} {
		if s, err := Read([]byte(text)); err != nil || len(s.Outputs)+len(s.Resources)+len(s.Checks) > 0 {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

// TestValuesOfNoJSON: values are only checked when they are shown, and the reason does not quote them.
func TestValuesOfNoJSON(t *testing.T) {
	t.Parallel()
	s := state(t, []byte(`{"version":4,"outputs":{"o":{"value":[c4n4ry]}},"resources":[{"mode":"managed","type":"x","name":"y","instances":[`+
		`{"attributes":{"a":[c4n4ry]},"sensitive_attributes":[]}]}]}`))
	for _, v := range []View{{Values: true}, {Attributes: []string{"a"}}} {
		for _, write := range []func(View) error{
			func(v View) error { _, err := s.WriteText(&bytes.Buffer{}, v); return err },
			func(v View) error { _, err := s.WriteJSON(&bytes.Buffer{}, v); return err },
		} {
			if err := write(v); err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("%+v: %v", v, err)
			}
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestFullDisk: an error of the writer is returned.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := state(t, file(t, "terraform-1.11"))
	if _, err := s.WriteText(full{}, View{}); err == nil {
		t.Error("there is no error of a text")
	}
	if _, err := s.WriteJSON(full{}, View{}); err == nil {
		t.Error("there is no error of JSON")
	}
}

// TestForeignText: whatever names a state has, they are shown in their line, and begin no command of a CI system.
//
// Promise: Text from outside
func TestForeignText(t *testing.T) {
	t.Parallel()
	evil := "\x1b[31m\n::error::x ##[group]{settings}\u202e"
	name, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(`{"version":4,"terraform_version":EVIL,"lineage":EVIL,"outputs":{EVIL:{"type":EVIL,"value":EVIL}},
		"resources":[{"module":EVIL,"mode":"managed","type":EVIL,"name":EVIL,"provider":EVIL,"instances":[{"index_key":EVIL,"deposed":EVIL,
		"attributes":{EVIL:EVIL},"sensitive_attributes":[]}]}],
		"check_results":[{"object_kind":EVIL,"config_addr":EVIL,"status":EVIL,"objects":[{"object_addr":":","status":EVIL}]}]}`, "EVIL",
		string(name))
	s := state(t, []byte(text))
	v := View{File: File{Name: evil, Encrypted: true, Method: evil, KeyProviders: []string{evil}}, Values: true, Attributes: []string{evil}}
	var shown, asJSON bytes.Buffer
	if _, err := s.WriteText(&shown, v); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteJSON(&asJSON, v); err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{shown.String(), asJSON.String()} {
		if strings.ContainsAny(got, "\x1b\u202e") || strings.Contains(got, "##") || strings.Contains(got, "\n::") || strings.Contains(got,
			" ::") {
			t.Errorf("got %q", got)
		}
	}
	if lines := strings.Count(shown.String(), "\n"); lines != 18 {
		t.Errorf("%d lines:\n%s", lines, shown.String())
	}
	var read struct {
		Lineage   string
		Resources []struct{ Name string }
	}
	if err := json.Unmarshal(asJSON.Bytes(), &read); err != nil || read.Lineage != evil || read.Resources[0].Name != evil {
		t.Errorf("a program reads %+v, %v", read, err)
	}
}

// FuzzRead: whatever a file has, reading, showing and comparing it neither fails in another way than with an error nor
// prints anything that is not JSON, or not plain text.
func FuzzRead(f *testing.F) {
	for _, name := range stored() {
		data, err := os.ReadFile(filepath.Join("testdata", name+".tfstate"))
		if err != nil {
			f.Fatal(err)
		}
		var small bytes.Buffer
		if err := json.Compact(&small, data); err != nil {
			f.Fatal(err)
		}
		f.Add(small.Bytes())
	}
	f.Add([]byte(`{"version":4,"outputs":{"::":{"value":"##","type":["object",{}]}},"resources":[{"mode":"data","type":"{settings}","name":"\n"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read(bytes.Clone(data))
		if err != nil {
			return
		}
		var text, asJSON bytes.Buffer
		v := View{Values: true, Attributes: []string{"id", "tags", "arn"}, Sensitive: true}
		_, err = s.WriteText(&text, v)
		_, wrong := s.WriteJSON(&asJSON, v)
		if json.Valid(data) && (err != nil || wrong != nil) {
			t.Errorf("%q: %v, %v", data, err, wrong)
		}
		if wrong == nil && !json.Valid(asJSON.Bytes()) {
			t.Errorf("%q: this is no JSON: %s", data, asJSON.String())
		}
		for _, shown := range []string{text.String(), asJSON.String()} {
			isOdd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
			if strings.ContainsFunc(shown, isOdd) || strings.Contains(shown, "##") {
				t.Errorf("%q: it shows %q", data, shown)
			}
		}
		again, err := Read(bytes.Clone(data))
		if err != nil {
			t.Fatal(err)
		}
		if d, err := Compare(s, again); err != nil || !d.IsEmpty() {
			t.Errorf("%q differs from itself: %+v, %v", data, d, err)
		}
	})
}
