package driver_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func TestDecodeStored(t *testing.T) {
	t.Parallel()
	var m struct{ A int }
	if err := driver.DecodeStored(json.RawMessage(`{"A":1}`), "a kind", &m); err != nil || m.A != 1 {
		t.Errorf("got %+v, %v", m, err)
	}
	if err := driver.DecodeStored(nil, "a kind", &m); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("nothing stored: %v", err)
	}
	err := driver.DecodeStored(json.RawMessage(`{"A":"canary"}`), "a kind", &m)
	testkit.OpenGolden(t, "../testdata/mistakes.txt", "metadata of a kind", "canary").Error(t, "damaged", err)
	if errors.Is(err, driver.ErrNoKey) {
		t.Errorf("damaged: %v", err)
	}
}

// A program that forgot to say how metadata is parsed hears so.
func TestWrappingWithoutParse(t *testing.T) {
	t.Parallel()
	var w driver.Wrapping[int]
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
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "wrapped keys", "canary")
	for name, c := range map[string]struct {
		salt    []byte
		wrapped json.RawMessage
		refused bool
	}{
		"good":     {wrapped: json.RawMessage(`{"good":1}`)},
		"bad":      {wrapped: json.RawMessage(`{}`), refused: true},
		"nothing":  {refused: true},
		"a salt":   {salt: []byte("x"), refused: true},
		"too much": {salt: []byte("x"), wrapped: json.RawMessage(`{"good":1}`), refused: true},
	} {
		w := driver.Wrapping[int]{Kind: "a kind", Parse: parse}
		if w.Recognizes(c.wrapped) != (string(c.wrapped) == `{"good":1}`) {
			t.Errorf("%s: it recognizes %s: %t", name, c.wrapped, w.Recognizes(c.wrapped))
		}
		got, err := w.Stored(c.salt, c.wrapped)
		switch {
		case c.refused:
			says.Error(t, name, err)
		case err != nil || string(got) != string(c.wrapped):
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}
