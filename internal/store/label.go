package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

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
		return nil, "", errNoState
	}
	return label.Serial, label.Lineage, nil
}

var errNoState = errors.New("it is not a state in the format of Terraform; check which one is read")

// Next returns a state in plaintext with the next serial. One without a serial stays as it is.
func Next(state []byte) ([]byte, error) {
	switch serial, _, err := Label(state); {
	case err != nil:
		return nil, err
	case serial == nil:
		return state, nil
	case *serial == math.MaxInt64:
		return nil, errors.New("its serial is the highest possible, so it cannot be increased")
	default:
		next := []byte{'{'}
		err := jsonwalk.Members(state, func(name string, value []byte) (bool, error) {
			if jsonwalk.Fold(name) == "serial" {
				value = strconv.AppendInt(nil, *serial+1, 10)
			}
			quoted, err := json.Marshal(name)
			if len(next) > 1 {
				next = append(next, ',')
			}
			next = append(append(append(next, quoted...), ':'), value...)
			return true, err
		})
		return append(next, '}'), err
	}
}

// Identity tells states apart in any form in which a server keeps their JSON: an envelope, and a file of
// sops, by a text that nobody can make a second time, a state in plaintext by its label, and any other file
// by its bytes.
func Identity(file []byte) Version {
	var sealed, mac []byte
	_ = jsonwalk.Members(file, func(name string, value []byte) (bool, error) { // a text that is no JSON has no such members
		switch jsonwalk.Fold(name) {
		case "encrypted_data":
			sealed = textOf(value)
		case "sops":
			return true, jsonwalk.Members(value, func(name string, value []byte) (bool, error) {
				if name == "mac" {
					mac = textOf(value)
				}
				return true, nil
			})
		}
		return true, nil
	})
	serial, lineage, err := Label(file)
	switch {
	case len(sealed) > 0:
		return Digest(sealed)
	case len(mac) > 0:
		return Digest(mac)
	case err == nil && serial != nil:
		return Version(fmt.Sprintf("%d %s", *serial, lineage))
	}
	return Digest(file)
}

// textOf is a text in JSON, nil if it is none. As base64 is, it may be long.
func textOf(value []byte) []byte {
	if value[0] == '"' && !bytes.Contains(value, []byte(`\`)) {
		return value[1 : len(value)-1]
	}
	var text string
	_ = json.Unmarshal(value, &text)
	return []byte(text)
}
