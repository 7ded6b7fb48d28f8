package wrap

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// newLineage returns a random UUID of version 4 (RFC 9562). Everybody who can read the store sees it.
func newLineage() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // which never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// withLineage returns a state without a lineage as a CLI writes it for the first time: with this one, and a serial.
func withLineage(state []byte, lineage string) ([]byte, error) {
	text, err := json.Marshal(lineage)
	if err != nil {
		return nil, err
	}
	made := map[string]string{"lineage": string(text), "serial": "1"}
	var out bytes.Buffer
	write := func(name string, value []byte) {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		quoted, _ := json.Marshal(name) // a text
		out.Write(append(append(quoted, ':'), value...))
	}
	out.WriteByte('{')
	err = jsonwalk.Members(state, func(name string, value []byte) (bool, error) {
		switch field := jsonwalk.Fold(name); {
		case field == "lineage", field == "serial" && (string(value) == "0" || string(value) == "null"):
			name, value = field, []byte(made[field])
			delete(made, field)
		case field == "serial":
			delete(made, field)
		}
		write(name, value)
		return true, nil
	})
	for _, name := range []string{"lineage", "serial"} {
		if value, absent := made[name]; absent {
			write(name, []byte(value))
		}
	}
	out.WriteByte('}')
	return out.Bytes(), err
}

// noteLineage warns of a state that has none, once for each run.
func (p *proxy) noteLineage(of *label) {
	if of == nil || of.Lineage != "" {
		return
	}
	p.nameless.Do(func() {
		say(p.Stderr, "warning: the state has no lineage, so nobody would notice another state in its place. Give it one: write what state "+
			"pull prints to a file, with a UUID as its lineage and a higher serial, and state push that file")
	})
}
