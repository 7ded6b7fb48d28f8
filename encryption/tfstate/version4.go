package tfstate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// entry4 is an output in format 4, the only format that stores the types of outputs. A raw message
// is nil if its member is absent, and "null" if its member is null.
type entry4 struct {
	Value      json.RawMessage `json:"value"`
	Type       json.RawMessage `json:"type"`
	Sensitive  bool            `json:"sensitive"`
	Deprecated string          `json:"deprecated"` // only in states of OpenTofu
}

func outputs4(raw json.RawMessage) (map[string]Output, error) {
	outputs := make(map[string]Output)
	if raw == nil || string(raw) == "null" {
		return outputs, nil
	}
	common := new(shared)
	var wrong error
	if err := jsonwalk.Members(raw, func(name string, value []byte) (bool, error) {
		e, err := readEntry4(value)
		if err != nil {
			wrong = fmt.Errorf("output %s: %w", quote(name), typeError(err))
		}
		outputs[name] = Output{Sensitive: e.Sensitive, Deprecated: e.Deprecated, name: name, value: bytes.Clone(e.Value),
			typ: bytes.Clone(e.Type), shared: common}
		return wrong == nil, nil
	}); err != nil {
		return nil, errForm("outputs")
	}
	return outputs, wrong
}

// readEntry4 reads an output without decoding its value and type.
func readEntry4(raw json.RawMessage) (entry4, error) {
	var e entry4
	err := jsonwalk.Decode(raw, &e, map[string]*json.RawMessage{"value": &e.Value, "type": &e.Type}, "sensitive", "deprecated")
	return e, err
}
