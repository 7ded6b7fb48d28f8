package wrap

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// withLineage is a state without a lineage as a CLI writes it for the first time: with one, and a serial. Of the
// same state, it is the same each time, so that another try finds what one before has written.
func withLineage(state []byte) ([]byte, error) {
	sum := sha256.Sum256(state)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8, RFC 9562
	made := map[string]string{
		"lineage": fmt.Sprintf(`"%x-%x-%x-%x-%x"`, sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]), "serial": "1",
	}
	var out bytes.Buffer
	write := func(name string, value []byte) {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		quoted, _ := json.Marshal(name) // a text
		out.Write(append(append(quoted, ':'), value...))
	}
	out.WriteByte('{')
	err := jsonwalk.Members(state, func(name string, value []byte) (bool, error) {
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
