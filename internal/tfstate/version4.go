package tfstate

import (
	"encoding/json"
	"fmt"
)

// entry4 is an output in format 4, the only one that gives it a type. A key
// that is absent leaves a nil message; null leaves "null".
type entry4 struct {
	Value      json.RawMessage `json:"value"`
	Type       json.RawMessage `json:"type"`
	Sensitive  bool            `json:"sensitive"`
	Deprecated string          `json:"deprecated"` // OpenTofu only
}

func outputs4(doc *document) (map[string]Output, error) {
	entries, err := doc.Outputs.get("outputs")
	if err != nil {
		return nil, err
	}
	outputs := make(map[string]Output, len(entries))
	for name, raw := range entries {
		var e entry4
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("output %s: %w", quote(name), typeError(err))
		}
		outputs[name] = Output{Sensitive: e.Sensitive, Deprecated: e.Deprecated, name: name, value: e.Value, typ: e.Type}
	}
	return outputs, nil
}
