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

// Label returns the serial and lineage of a plaintext state or an envelope. A missing serial is nil, and a missing
// lineage is an empty string. Label returns an error if the file is not a JSON object, or if either value has the wrong
// type.
func Label(state []byte) (serial *int64, lineage string, err error) {
	var label struct {
		Serial  *int64
		Lineage string
	}
	picked, err := jsonwalk.Pick(state, func(name string, _ []byte) bool {
		name = jsonwalk.Fold(name)
		return name == "serial" || name == "lineage"
	})
	if err != nil || json.Unmarshal(picked, &label) != nil { // the JSON errors may quote the state
		return nil, "", errNoState
	}
	return label.Serial, label.Lineage, nil
}

var errNoState = errors.New("it is not a Terraform state; check the file, and the program that wrote it")

// Next returns a plaintext state with its serial incremented by 1. It returns a state without a serial unchanged.
func Next(state []byte) ([]byte, error) {
	switch serial, _, err := Label(state); {
	case err != nil:
		return nil, err
	case serial == nil:
		return state, nil
	case *serial == math.MaxInt64:
		return nil, ErrSerial
	default:
		return WithSerial(state, *serial+1)
	}
}

// ErrSerial means that no serial follows that of a state.
var ErrSerial = errors.New("its serial is the highest possible, so it cannot be increased")

// WithSerial returns a plaintext state with another serial. It returns a state without a serial unchanged.
func WithSerial(state []byte, serial int64) ([]byte, error) {
	next := []byte{'{'}
	err := jsonwalk.Members(state, func(name string, value []byte) (bool, error) {
		if jsonwalk.Fold(name) == "serial" {
			value = strconv.AppendInt(nil, serial, 10)
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

// Identity returns a version that does not change if a server reformats the JSON of the state. For an envelope or a
// sops file, it is derived from ciphertext that no other write produces. For a plaintext state with a serial, it
// depends on the label. For any other file, it depends on the bytes.
func Identity(file []byte) Version {
	var sealed, mac []byte
	_ = jsonwalk.Members(file, func(name string, value []byte) (bool, error) { // a file that is not JSON has no members
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

// textOf returns the content of a JSON string, or an empty slice for other values. It avoids a copy if it can, because
// base64 text may be long.
func textOf(value []byte) []byte {
	if value[0] == '"' && !bytes.Contains(value, []byte(`\`)) {
		return value[1 : len(value)-1]
	}
	var text string
	_ = json.Unmarshal(value, &text)
	return []byte(text)
}
