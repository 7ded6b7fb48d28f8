package store

import (
	"encoding/json"
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
)

// Label returns the serial and the lineage of a state, or of the envelope of one, as far as
// it has them, and neither if one of them is something else.
func Label(state []byte) (serial *int64, lineage string, err error) {
	var label struct {
		Serial  *int64
		Lineage string
	}
	picked, err := jsonwalk.Pick(state, func(name string, _ []byte) bool {
		name = jsonwalk.Fold(name)
		return name == "serial" || name == "lineage"
	})
	if err != nil || json.Unmarshal(picked, &label) != nil { // the errors may quote the state
		return nil, "", errors.New("it is not a state in the format of Terraform; check which one is read")
	}
	return label.Serial, label.Lineage, nil
}
