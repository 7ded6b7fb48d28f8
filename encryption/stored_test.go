package encryption_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

func TestDecodeStored(t *testing.T) {
	t.Parallel()
	var m struct{ A int }
	if err := encryption.DecodeStored(json.RawMessage(`{"A":1}`), "a kind", &m); err != nil || m.A != 1 {
		t.Errorf("got %+v, %v", m, err)
	}
	if err := encryption.DecodeStored(nil, "a kind", &m); !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("nothing stored: %v", err)
	}
	err := encryption.DecodeStored(json.RawMessage(`{"A":"canary"}`), "a kind", &m)
	if err == nil || errors.Is(err, encryption.ErrNoKey) || strings.Contains(err.Error(), "canary") ||
		!strings.Contains(err.Error(), "a kind") {
		t.Errorf("damaged: %v", err)
	}
}

// A program that forgot to say how metadata is parsed hears so.
func TestWrappingWithoutParse(t *testing.T) {
	t.Parallel()
	var w encryption.Wrapping[int]
	if w.Recognizes(json.RawMessage(`{}`)) {
		t.Error("it recognizes something")
	}
	if got, err := w.Stored(nil, json.RawMessage(`{}`)); err == nil || got != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestWrapping(t *testing.T) {
	t.Parallel()
	parse := func(document json.RawMessage) (int, error) {
		if string(document) != `{"good":1}` {
			return 0, errors.New("canary")
		}
		return 1, nil
	}
	for name, c := range map[string]struct {
		salt    []byte
		wrapped json.RawMessage
		want    string
	}{
		"good":     {wrapped: json.RawMessage(`{"good":1}`)},
		"bad":      {wrapped: json.RawMessage(`{}`), want: "must be the metadata that a kind stores"},
		"nothing":  {want: "wrapped_key is required"},
		"a salt":   {salt: []byte("x"), want: "needs no salt"},
		"too much": {salt: []byte("x"), wrapped: json.RawMessage(`{"good":1}`), want: "needs no salt"},
	} {
		w := encryption.Wrapping[int]{Kind: "a kind", Parse: parse}
		if w.Recognizes(c.wrapped) != (string(c.wrapped) == `{"good":1}`) {
			t.Errorf("%s: it recognizes %s: %t", name, c.wrapped, w.Recognizes(c.wrapped))
		}
		got, err := w.Stored(c.salt, c.wrapped)
		switch {
		case c.want == "" && (err != nil || string(got) != string(c.wrapped)):
			t.Errorf("%s: got %s, %v", name, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary")):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
