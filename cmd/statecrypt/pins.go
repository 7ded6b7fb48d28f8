package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// pins say which state it has to be. Whoever can write to a store can put back an old
// state, or another one with the same key, and both open.
type pins struct {
	lineage string // "" for any
	serial  *int64 // the least; nil for any
}

// set reads a flag.
func (p *pins) set(name, text string) error {
	if name == "lineage" {
		if p.lineage = text; text == "" {
			return errors.New("-lineage must not be empty; leave it out to accept any")
		}
		return nil
	}
	serial, err := strconv.ParseInt(text, 10, 64)
	if p.serial = &serial; err != nil || serial < 0 {
		return errors.New("-minimum-serial must be a whole number, and not negative")
	}
	return nil
}

// ofWrap is the same for wrap, which looks at each state that Terraform gets.
func (p *pins) ofWrap() wrap.Pins {
	w := wrap.Pins{Lineage: p.lineage}
	if p.serial != nil {
		w.MinimumSerial = uint64(*p.serial)
	}
	return w
}

// accept refuses another state, and one that lacks what is pinned.
func (p *pins) accept(serial *int64, lineage string) error {
	switch {
	case p.lineage != "" && lineage != p.lineage:
		return fmt.Errorf("the state has the lineage %s, and -lineage says %s: this is another state",
			outside.Quoted(lineage, maxName), outside.Quoted(p.lineage, maxName))
	case p.serial != nil && serial == nil:
		return errors.New("the state has no serial, and -minimum-serial requires one")
	case p.serial != nil && *serial < *p.serial:
		return fmt.Errorf("the state has the serial %d, and -minimum-serial says %d: this is an old copy", *serial, *p.serial)
	}
	return nil
}

// isSet reports whether anything is pinned.
func (p *pins) isSet() bool { return *p != pins{} }

// label is the serial and the lineage of a plaintext state, as far as it has them.
func label(state []byte) (serial *int64, lineage string) {
	members, _ := pick(state, "serial", "lineage")
	_ = json.Unmarshal(members["serial"], &serial) // absent if it is something else
	_ = json.Unmarshal(members["lineage"], &lineage)
	return serial, lineage
}
