package jsonwalk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// read decodes a text with everything that a Reader has, to what encoding/json
// makes of it.
func read(r *Reader) (any, error) {
	switch r.Kind() {
	case '{':
		object := map[string]any{}
		return object, r.Object(func(name string) (err error) {
			object[name], err = read(r)
			return err
		})
	case '[':
		array := []any{}
		err := r.Array(func() error {
			v, err := read(r)
			array = append(array, v)
			return err
		})
		return array, err
	case '"':
		return r.String()
	case 't', 'f', 'n', '0':
		text, err := r.Literal()
		switch string(text) {
		case "true", "false":
			return string(text) == "true", err
		case "null":
			return nil, err
		}
		return json.Number(text), err
	}
	_, err := r.Literal()
	if err == nil {
		err = fmt.Errorf("there is no literal of kind %q", r.Kind())
	}
	return nil, err
}

func decode(text string) (any, error) { return decodeBy(NewReader([]byte(text))) }

func decodeBy(r *Reader) (any, error) {
	v, err := read(r)
	if err == nil {
		err = r.End()
	}
	return v, err
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		` {"a":[1,-2.5e3,true,false,null,"x","é","\u00e9\n",{"":[]},{}],"a":2} `, "{\"\xff\":\"\xff\\ud800\"}", `[01]`, `[1,]`, `{"a":}`, `"a`,
		`tru`, `[1}`, "[\"a\nb\"]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "[")+strings.Count(text, "{") > 1000 {
			t.Skip("callers bound the nesting") // read calls itself
		}
		got, err := decode(text)
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var want any
		valid := json.Valid([]byte(text))
		if valid && d.Decode(&want) != nil {
			t.Fatalf("%q", text)
		}
		if (err == nil) != valid {
			t.Errorf("%q: %v, valid: %t", text, err, valid)
		}
		if valid && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %#v, want %#v", text, got, want)
		}
		kept, keptErr := decodeBy(NewReader([]byte(text)).KeepStrings())
		if (keptErr == nil) != valid || valid && !reflect.DeepEqual(kept, want) {
			t.Errorf("%q: with the strings that it keeps, got %#v, %v, want %#v", text, kept, keptErr, want)
		}
	})
}

// TestKeepStrings: strings that recur cost no memory, and two that are kept in one place are not mistaken for each
// other.
func TestKeepStrings(t *testing.T) {
	text := []byte("[" + strings.Repeat(`{"name":"b\u00e9","nbme":"bxc\u00e9"},`, 1000) + `"` + strings.Repeat("x", maxKept) + `",""]`)
	read := func(r *Reader) (all []string) {
		if err := r.Array(func() error {
			if r.Kind() == '"' {
				text, err := r.String()
				all = append(all, text)
				return err
			}
			return r.Object(func(name string) error {
				text, err := r.String()
				all = append(all, name, text)
				return err
			})
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := read(NewReader(text))
	if got := read(NewReader(text).KeepStrings()); !reflect.DeepEqual(got, want) || len(got) != 4002 {
		t.Errorf("got %d strings, and not those without", len(got))
	}
	same := []byte("[" + strings.Repeat(`{"a":"b\u00e9"},`, 1000) + "{}]")
	count := func(keep bool) float64 {
		return testing.AllocsPerRun(10, func() {
			r := NewReader(same)
			if keep {
				r.KeepStrings()
			}
			_ = r.Array(func() error { return r.Object(func(string) error { _, err := r.String(); return err }) })
		})
	}
	if kept, without := count(true), count(false); kept > without/2 {
		t.Errorf("%g allocations, and %g without", kept, without)
	}
}

// TestOffset: the bytes between two offsets are a value, and what white space follows.
func TestOffset(t *testing.T) {
	r := NewReader([]byte(` [ {"a":1} , 12 ]`))
	var values []string
	if err := r.Array(func() error {
		start := r.Offset()
		_, err := r.Skip()
		values = append(values, string(r.data[start:r.Offset()]))
		return err
	}); err != nil || strings.Join(values, "|") != `{"a":1} |12 ` {
		t.Errorf("%q, %v", values, err)
	}
}

func TestSkip(t *testing.T) {
	r := NewReader([]byte(` [ {"a":"]"} , 12 ] `))
	var values []string
	if err := r.Array(func() error {
		v, err := r.Skip()
		values = append(values, string(v))
		if cap(v) != len(v) {
			t.Error("to append to a value would overwrite what follows")
		}
		return err
	}); err != nil || r.End() != nil || strings.Join(values, " ") != `{"a":"]"} 12` {
		t.Errorf("%q, %v", values, err)
	}
}
