package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// FuzzAnswer reads a program's standard output, in one piece and in pieces of
// step bytes. Both give the same; no more is kept than is allowed; what is
// accepted begins with the header; and no error repeats what was read.
func FuzzAnswer(f *testing.F) {
	const limit = 1000
	header := `{"magic":"M","version":1}` + "\n"
	for _, seed := range []string{
		"", "\n", header, header + `{"a":1}`, header + `{"a":"c4n4ry"} {"a":2}`, header + `{"b":1}`, header + "null",
		header + `{"A":1,"a":2}`, `{"magic":"M","version":1,"later":{}}` + "\n" + `{"a":[]}`, `{"magic":"M","version":2}` + "\n",
		`{"magic":"X"}` + "\n", `{"MAGIC":"M","Version":1}` + "\r\n" + `{"a":null}`, header + string(bytes.Repeat([]byte("["), 900)),
		header + `{"a":"` + string(bytes.Repeat([]byte("x"), 2000)), string(bytes.Repeat([]byte("c4n4ry"), 12000)),
	} {
		f.Add([]byte(seed), 7)
	}
	f.Fuzz(func(t *testing.T, stdout []byte, step int) {
		step = max(1, min(step, 4096))
		whole, err := readAnswer(stdout, len(stdout), limit)
		pieces, again := readAnswer(stdout, step, limit)
		if (err == nil) != (again == nil) || !bytes.Equal(whole, pieces) {
			t.Errorf("%q: in one piece %q, %v; in pieces of %d %q, %v", stdout, whole, err, step, pieces, again)
		}
		line, body, _ := bytes.Cut(stdout, []byte("\n"))
		var h struct {
			Magic   string
			Version int
		}
		switch {
		case err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, errTooLong):
			t.Errorf("%q: %v", stdout, err)
		case err != nil:
			if len(err.Error()) > 300 || bytes.Contains([]byte(err.Error()), []byte("c4n4ry")) {
				t.Errorf("the error says %q", err)
			}
		case json.Unmarshal(line, &h) != nil || h.Magic != "M" || h.Version != 1 || len(body) > limit:
			t.Errorf("%q is accepted", stdout)
		}
	})
}

// readAnswer takes in stdout step by step and returns the value of a.
func readAnswer(stdout []byte, step, limit int) ([]byte, error) {
	var out struct {
		A json.RawMessage `json:"a"`
	}
	q := &question{magic: "M", limit: limit, output: &out}
	for rest := stdout; len(rest) > 0; {
		n := min(step, len(rest))
		if err := q.Hear(nil, rest[:n]); err != nil {
			return nil, err
		}
		if len(q.body) > max(limit, maxHeader) {
			return nil, errors.New("more is kept than is allowed")
		}
		rest = rest[n:]
	}
	if err := q.End(); err != nil {
		return nil, err
	}
	return out.A, nil
}
