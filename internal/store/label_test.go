package store

import (
	"testing"
)

// TestIdentity: a state is the same one in another form of JSON, and another one with another key.
func TestIdentity(t *testing.T) {
	t.Parallel()
	const (
		envelope = `{"serial":1,"lineage":"l","meta":{"k":"e30="},"encrypted_data":"a/b","encryption_version":"v0"}`
		sops     = `{"serial":"ENC[a]","sops":{"version":"3","mac":"ENC[b]"}}`
		plain    = `{"version":4,"serial":1,"lineage":"l"}`
	)
	for name, c := range map[string]struct {
		one, other string
		same       bool
	}{
		"an envelope in another form": {envelope, `{ "encrypted_data": "a\/b", "lineage": "l", "serial": 1 }`, true},
		"another key":                 {envelope, `{"serial":1,"lineage":"l","encrypted_data":"a/c"}`, false},
		"no data":                     {envelope, `{"serial":1,"lineage":"l","encrypted_data":""}`, false},
		"an envelope, and plaintext":  {envelope, plain, false},
		"sops in another form":        {sops, `{"sops": {"mac": "ENC[b]", "version": "3"}, "serial": "ENC[a]"}`, true},
		"sops with another key":       {sops, `{"serial":"ENC[a]","sops":{"version":"3","mac":"ENC[c]"}}`, false},
		"plaintext in another form":   {plain, `{"lineage": "l", "serial": 1}`, true},
		"another serial":              {plain, `{"version":4,"serial":2,"lineage":"l"}`, false},
		"no serial":                   {`{"lineage":"l"}`, `{"lineage": "l"}`, false},
		"no JSON":                     {"age 1", "age 2", false},
		"no JSON twice":               {"age 1", "age 1", true},
	} {
		if Identity([]byte(c.one)) == Identity([]byte(c.other)) != c.same {
			t.Errorf("%s: %t", name, !c.same)
		}
	}
}

// TestNext: nothing but the serial is another one.
func TestNext(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		`{"version":4,"serial":1,"lineage":"l","outputs":{"serial":{"value":1.50}}}`: `{"version":4,"serial":2,"lineage":"l","outputs":{"serial":{"value":1.50}}}`,
		`{ "é<": 1e400, "serial" : 9007199254740993 }`:                               `{"é\u003c":1e400,"serial":9007199254740994}`,
		`{"version":4}`:                  `{"version":4}`,
		`{"serial":null}`:                `{"serial":null}`,
		`{"serial":-1}`:                  `{"serial":0}`,
		`{"serial":9223372036854775806}`: `{"serial":9223372036854775807}`,
		`{"serial":9223372036854775807}`: "",
		`{"serial":9223372036854775808}`: "",
		`{"serial":1.5}`:                 "",
		`{"serial":"1"}`:                 "",
		`{"serial":1`:                    "",
		`[]`:                             "",
	} {
		next, err := Next([]byte(state))
		if string(next) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %s, %v", state, next, err)
		}
	}
}
