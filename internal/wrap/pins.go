package wrap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// Pins say which state it has to be. Whoever can write to a store can put back an old
// state, or another one of the same key, and both open. The zero value accepts any.
type Pins struct {
	Lineage string // "" for any
	Serial  *int64 // the least; nil for any
}

// Accept refuses another state, and one that lacks what is pinned.
func (p Pins) Accept(serial *int64, lineage string) error {
	switch {
	case p.Lineage != "" && lineage != p.Lineage && lineage == strings.Trim(p.Lineage, "\"' \r\n"):
		return errors.New("-lineage has quotation marks or spaces around it; remove them, as jq -r does")
	case p.Lineage != "" && lineage != p.Lineage:
		return fmt.Errorf("its lineage is %s, and -lineage says %s: it is another state; check which one is read, or what -lineage says",
			outside.Quoted(lineage, 300), outside.Quoted(p.Lineage, 300))
	case p.Serial != nil && serial == nil:
		return errors.New("it has no serial, and -minimum-serial requires one")
	case p.Serial != nil && *serial < *p.Serial:
		return fmt.Errorf("its serial is %d, and -minimum-serial says %d: it is an old copy; "+
			"restore the newest one, or lower -minimum-serial", *serial, *p.Serial)
	}
	return nil
}
