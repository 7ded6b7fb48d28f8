package jsonwalk

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

type member struct{ name, value string }

func members(data string) (found []member, err error) {
	err = Members([]byte(data), func(name string, value []byte) (bool, error) {
		found = append(found, member{name, string(value)})
		return true, nil
	})
	return found, err
}

func TestMembers(t *testing.T) {
	for data, want := range map[string][]member{
		`{}`:                         nil,
		" {\n\t} \r\n":               nil,
		`{"a":1}`:                    {{"a", "1"}},
		` { "a" : -1.5e3 , "b":""} `: {{"a", "-1.5e3"}, {"b", `""`}},
		`{"a":{"b":[1,{"c":"}]"}]},"d":[[],{}],"e":null,"f":true}`: {{"a", `{"b":[1,{"c":"}]"}]}`}, {"d", "[[],{}]"}, {"e", "null"},
			{"f", "true"}},
		`{"a":"\"","b":"\\","c":"\\\"","":0}`: {{"a", `"\""`}, {"b", `"\\"`}, {"c", `"\\\""`}, {"", "0"}},
		`{"\u0061\n":1,"é":2,"a":3}`:          {{"a\n", "1"}, {"é", "2"}, {"a", "3"}},
		`{"a":1,"a":2}`:                       {{"a", "1"}, {"a", "2"}},
	} {
		got, err := members(data)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %q, %v", data, got, err)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: got %q, want %q", data, got[i], want[i])
			}
		}
	}
}

func TestNotAnObject(t *testing.T) {
	for data, want := range map[string]string{
		``:                     "ends too early, at byte 0",
		`null`:                 "is not JSON, at byte 0",
		`[]`:                   "is not JSON, at byte 0",
		`{`:                    "ends too early, at byte 1",
		`{"a`:                  "ends too early, at byte 3",
		`{"a"`:                 "ends too early, at byte 4",
		`{"a":`:                "ends too early, at byte 5",
		`{"a":1`:               "ends too early, at byte 6",
		`{"a":[1,2`:            "ends too early, at byte 9",
		`{"a":"\"`:             "ends too early, at byte 8",
		`{"a":1,`:              "ends too early, at byte 7",
		`{"a":1,}`:             "is not JSON, at byte 7",
		`{"a":secret}`:         "is not JSON, at byte 5",
		`{"a":}`:               "is not JSON, at byte 5",
		`{"a" 1}`:              "is not JSON, at byte 5",
		`{"a":1 "b":2}`:        "is not JSON, at byte 7",
		`{"a":1}}`:             "is not JSON, at byte 7",
		`{a:1}`:                "is not JSON, at byte 1",
		`{"\x":1}`:             "is not JSON, at byte 1",
		"{\"a\nb\":1}":         "is not JSON, at byte 1",
		`{"a":` + deep(10_001): "is nested too deeply, at byte 10005",
	} {
		_, err := members(data)
		if _, ok := errors.AsType[*SyntaxError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %s", data, err, want)
		}
	}
	if _, err := members(`{"a":` + deep(10_000) + "}"); err != nil {
		t.Error(err)
	}
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestStop(t *testing.T) {
	enough := errors.New("enough")
	for _, answer := range []error{nil, enough} {
		calls := 0
		err := Members([]byte(`{"a":1,"b":2,`), func(string, []byte) (bool, error) {
			calls++
			return false, answer
		})
		if calls != 1 || !errors.Is(err, answer) {
			t.Errorf("%d calls, %v", calls, err)
		}
	}
}

// TestFold: every character is the letter for which encoding/json takes it.
func TestFold(t *testing.T) {
	for r := range unicode.MaxRune {
		if folded := Fold(string(r)); folded != string(r) && !strings.EqualFold(string(r), folded) && utf8.ValidRune(r) {
			t.Errorf("%c is no %s", r, folded)
		}
	}
	for _, letter := range "abcdefghijklmnopqrstuvwxyz_" {
		for r := unicode.SimpleFold(letter); r != letter; r = unicode.SimpleFold(r) {
			if Fold(string(r)) != string(letter) {
				t.Errorf("%c is %c as well", r, letter)
			}
		}
	}
	var decoded struct {
		Sensitive bool `json:"sensitive"`
		Kind      bool `json:"kind"`
	}
	for name := range map[string]bool{"SENSITIVE": true, "\u017fen\u017fitive": true, "\u212aind": true} {
		decoded.Sensitive, decoded.Kind = false, false
		if err := json.Unmarshal([]byte(`{"`+name+`":true}`), &decoded); err != nil {
			t.Fatal(err)
		}
		if folded := Fold(name); decoded.Sensitive != (folded == "sensitive") || decoded.Kind != (folded == "kind") {
			t.Errorf("%s is %s, and encoding/json has %+v", name, folded, decoded)
		}
	}
}

func TestPick(t *testing.T) {
	picked, err := Pick([]byte(`{"a":{"x":1},"b":2,"é\"":[3],"a":4}`), func(name string, value []byte) bool {
		return name != "b" && string(value) != "{}"
	})
	if want := `{"a":{"x":1},"é\"":[3],"a":4}`; string(picked) != want || err != nil {
		t.Errorf("got %s, %v, want %s", picked, err, want)
	}
	if picked, err := Pick([]byte(`{"a":1}`), func(string, []byte) bool { return false }); string(picked) != "{}" || err != nil {
		t.Errorf("%s, %v", picked, err)
	}
	if _, err := Pick([]byte(`{"a":1`), func(string, []byte) bool { return true }); err == nil {
		t.Error("half an object is accepted")
	}
}

// TestPlace: the place of a mistake does not depend on the version of Go.
func TestPlace(t *testing.T) {
	for data, want := range map[string]int{"\ufeff{}": 1, "{} é": 4, "[é]": 2, "[\xff]": 2, "[x]": 2, "[1": 2, "": 1} {
		wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal([]byte(data), new(any)))
		if !ok {
			t.Fatalf("%q is JSON", data)
		}
		if got := Place([]byte(data), wrong); got != want {
			t.Errorf("%q: got %d, want %d", data, got, want)
		}
	}
}

// What encoding/json reads as an object has the same members here. What fails
// here is no object for it either.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{"a":{"b":[1,{"c":"}]"}]},"d":[[],{}],"e":null,"f":-1.5e3}`, `{"a":"\"","b":"\\","\u0061":"\ud800","a":1}`, "{\"\xff\":[\"\xff\"]}",
		`[]`, `{"a":1}x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		found, err := members(string(data))
		var want map[string]json.RawMessage
		valid := json.Unmarshal(data, &want) == nil && want != nil
		if err != nil {
			if valid {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		if !valid { // it is JSON as far as anyone looked
			return
		}
		got := map[string]string{}
		for _, m := range found {
			got[m.name] = m.value
		}
		if len(got) != len(want) {
			t.Errorf("%q: %q", data, got)
		}
		for name, value := range want {
			if got[name] != string(value) {
				t.Errorf("%q: %q is %q, want %q", data, name, got[name], value)
			}
		}
		if !bytes.Equal(data, before) {
			t.Error("the data was changed")
		}
	})
}

func TestDecode(t *testing.T) {
	t.Parallel()
	type document struct {
		Small int
		Large json.RawMessage `json:"-"`
		Other string
	}
	decode := func(text string) (d document, err error) {
		err = Decode([]byte(text), &d, map[string]*json.RawMessage{"large": &d.Large}, "small")
		return d, err
	}
	got, err := decode(`{"SMALL":1,"LaRge":{"x": [1]},"other":2,"small":3}`)
	if err != nil || got.Small != 3 || string(got.Large) != `{"x": [1]}` || got.Other != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := decode("null"); err != nil || got.Large != nil {
		t.Errorf("null: got %+v, %v", got, err)
	}
	for _, text := range []string{"", `{"small":"x"}`, `{"large":1`, "[]", `{"large":1}}`} {
		if _, err := decode(text); err == nil {
			t.Errorf("%s: there is no error", text)
		}
	}
}
