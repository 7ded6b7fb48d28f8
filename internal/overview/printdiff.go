package overview

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// DiffView holds the settings for showing a difference. The zero value shows no values.
type DiffView struct {
	Old, New   File
	Values     bool     // show the values of outputs that no state marks
	Attributes []string // show the values of these attributes, unless a mark covers any part of them in one of the states

	Paint func(colour, text string) string // returns a text in a colour; nil for none
}

// WriteText writes the difference as text for people.
func (d *Diff) WriteText(w io.Writer, v DiffView) error {
	p := newPrinter(w, v.Paint)
	switch {
	case d.IsEmpty():
		p.line("no changes")
		return p.w.Flush()
	case d.HasOnlySerialAndChecks():
		p.line(d.onlySerialAndChecks())
		return p.w.Flush()
	}
	d.writeHead(p)
	if err := d.writeOutputs(p, v.Values); err != nil {
		return err
	}
	if err := d.writeResources(p, v.Attributes); err != nil {
		return err
	}
	if len(d.Checks) > 0 {
		p.heading("checks", count(d.Checks, func(c CheckChange) Change { return c.Change }))
	}
	for _, c := range d.Checks {
		p.change(c.Change).add(c.Address)
		switch c.Change {
		case Added:
			p.add(": ", c.New)
		case Removed:
			p.add(": ", c.Old)
		default:
			p.add(": ", c.Old, " -> ", c.New)
		}
		if Failed(c.New) {
			p.end(red)
		} else {
			p.end(colourOfChange(c.Change))
		}
	}
	return p.w.Flush()
}

// onlySerialAndChecks describes a difference of nothing else, in one line.
func (d *Diff) onlySerialAndChecks() string {
	serial := fmt.Sprintf("the serial (%d -> %d)", d.Old.Serial, d.New.Serial)
	if len(d.Checks) == 0 {
		return "nothing but " + serial + " changed"
	}
	text := fmt.Sprintf("nothing but check results (%d)", len(d.Checks))
	if d.Old.Serial != d.New.Serial {
		text = fmt.Sprintf("nothing but %s and check results (%d)", serial, len(d.Checks))
	}
	failed := 0
	for _, c := range d.Checks {
		if Failed(c.New) && !Failed(c.Old) {
			failed++
		}
	}
	if text += " changed"; failed > 0 {
		text += fmt.Sprintf("; new failures: %d", failed)
	}
	return text
}

func (d *Diff) writeHead(p *printer) {
	for _, part := range []struct{ name, old, now, colour string }{
		{"format", strconv.Itoa(d.Old.Version), strconv.Itoa(d.New.Version), ""},
		{"written by version", d.Old.TerraformVersion, d.New.TerraformVersion, ""},
		{"lineage", d.Old.Lineage, d.New.Lineage, yellow},
		{"serial", strconv.FormatInt(d.Old.Serial, 10), strconv.FormatInt(d.New.Serial, 10), ""},
	} {
		if part.old != part.now {
			p.add(part.name, ": ", orNone(part.old), " -> ", orNone(part.now)).end(part.colour)
		}
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// heading writes an empty line, if there are lines before, and a heading.
func (p *printer) heading(name, counts string) {
	if p.lines > 0 {
		p.line()
	}
	p.line(name, ": ", counts)
}

// change begins the line of a change.
func (p *printer) change(c Change) *printer {
	return p.add("  ", map[Change]string{Added: "+", Removed: "-", Moved: ">", Changed: "~"}[c], " ")
}

func colourOfChange(c Change) string {
	return map[Change]string{Added: green, Removed: red, Moved: yellow, Changed: yellow}[c]
}

// count describes how many changes of each kind there are.
func count[E any](all []E, of func(E) Change) string {
	var parts []string
	for _, c := range []Change{Added, Removed, Moved, Changed} {
		n := 0
		for _, one := range all {
			if of(one) == c {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	return strings.Join(parts, ", ")
}

func (d *Diff) writeOutputs(p *printer, values bool) error {
	if len(d.Outputs) > 0 {
		p.heading("outputs", count(d.Outputs, func(c OutputChange) Change { return c.Change }))
	}
	for _, c := range d.Outputs {
		p.change(c.Change).add(c.Name)
		if len(c.Parts) > 0 {
			p.add(": ", strings.Join(c.Parts, ", "))
		}
		p.end(colourOfChange(c.Change))
		if !values || c.Change == Changed && !slices.Contains(c.Parts, "value") {
			continue
		}
		old, now, open, err := d.valuesOf(c)
		switch {
		case err != nil:
			return err
		case !open:
			p.line("      ", hiddenValue)
		case c.Change == Added:
			p.line("      ", now)
		case c.Change == Removed:
			p.line("      ", old)
		default:
			p.line("      ", old, " -> ", now)
		}
	}
	return nil
}

// valuesOf returns the values of an output that changed, or false if one of them may be a secret.
func (d *Diff) valuesOf(c OutputChange) (old, now string, open bool, err error) {
	if c.old.Sensitive || c.now.Sensitive || d.Old.Version == 1 || d.New.Version == 1 { // format 1 has no marks
		return "", "", false, nil
	}
	if old, err = c.old.Value(); err != nil {
		return "", "", false, err
	}
	now, err = c.now.Value()
	return old, now, err == nil, err
}

func (d *Diff) writeResources(p *printer, attributes []string) error {
	if len(d.Resources) > 0 {
		p.heading("resources", count(d.Resources, func(c ResourceChange) Change { return c.Change }))
	}
	for _, c := range d.Resources {
		p.change(c.Change)
		switch c.Change {
		case Moved:
			p.where(c.Old).add(" -> ").where(c.New)
		case Removed:
			p.where(c.Old)
		default:
			p.where(c.New)
		}
		if c.Change == Added && c.New.Tainted {
			p.add(", tainted")
		}
		between := ": "
		for _, name := range c.Attributes {
			p.add(between, name)
			between = ", "
		}
		for i, name := range c.Metadata {
			if i == 0 {
				p.add(" (")
			} else {
				p.add(", ")
			}
			p.add(c.described(name))
		}
		if len(c.Metadata) > 0 {
			p.add(")")
		}
		p.end(colourOfChange(c.Change))
		for i, name := range c.Attributes {
			if !slices.Contains(attributes, name) {
				continue
			}
			old, now, open, err := c.values(i)
			switch {
			case err != nil:
				return err
			case open:
				p.line("      ", name, ": ", old, " -> ", now)
			default:
				p.line("      ", name, ": ", hiddenValue)
			}
		}
	}
	return nil
}

// described returns how the text calls a member of an instance that changed.
func (c ResourceChange) described(member string) string {
	switch {
	case member == "status" && c.New.Tainted, member == "tainted" && c.New.Tainted:
		return "now tainted"
	case (member == "status" || member == "tainted") && c.Old.Tainted:
		return "no longer tainted"
	case member == "attributes_flat":
		return "attributes in another form"
	}
	return member
}

// values returns the values of an attribute that changed, by its index, or false if one of them may be a secret.
func (c ResourceChange) values(i int) (old, now string, open bool, err error) {
	if c.old[i].sensitive || c.now[i].sensitive {
		return "", "", false, nil
	}
	if old, err = c.old[i].text(); err != nil {
		return "", "", false, err
	}
	now, err = c.now[i].text()
	return old, now, err == nil, err
}

// text returns the value of an attribute as JSON, null if it is absent.
func (a attribute) text() (string, error) {
	if len(a.value) == 0 {
		return "null", nil
	}
	return compact(a.value)
}

// WriteJSON writes the difference as one JSON object, which the help of statecrypt diff documents.
func (d *Diff) WriteJSON(w io.Writer, v DiffView) error {
	p := newPrinter(w, nil)
	p.add(`{"old":{`).headMembers(d.Old, v.Old).add(`},"new":{`).headMembers(d.New, v.New)
	p.add(`},"differs":`, strconv.FormatBool(!d.IsEmpty()), `,"only_serial_and_checks":`, strconv.FormatBool(d.HasOnlySerialAndChecks()))
	p.add(`,"outputs":[`)
	for i, c := range d.Outputs {
		p.comma(i).add(`{"change":"`, string(c.Change), `","name":`).quote(c.Name).add(`,"parts":`).list(c.Parts)
		if v.Values {
			old, now, open, err := d.valuesOf(c)
			if err != nil {
				return err
			}
			if open && c.Change != Added {
				p.add(`,"old":`, old)
			}
			if open && c.Change != Removed {
				p.add(`,"new":`, now)
			}
		}
		p.add("}").flush()
	}
	p.add(`],"resources":[`)
	for i, c := range d.Resources {
		r := c.New
		if c.Change == Removed {
			r = c.Old
		}
		p.comma(i).add(`{"change":"`, string(c.Change), `",`).addressMembers(r)
		if c.Change == Moved {
			start := len(p.buf)
			text := string(p.address(c.Old.Address).buf[start:])
			p.buf = p.buf[:start]
			p.member("previous_address", text)
		}
		p.add(`,"attributes":`).list(c.Attributes).add(`,"metadata":`).list(c.Metadata)
		if len(v.Attributes) > 0 && len(c.Attributes) > 0 {
			if err := p.changedValues(c, v.Attributes); err != nil {
				return err
			}
		}
		p.add("}").flush()
	}
	p.add(`],"checks":[`)
	for i, c := range d.Checks {
		p.comma(i).add(`{"change":"`, string(c.Change), `","address":`).quote(c.Address)
		p.member("old", c.Old).member("new", c.New).add("}").flush()
	}
	p.add("]}\n")
	_, _ = p.w.Write(p.buf)
	return p.w.Flush()
}

// changedValues appends the member with the values of the attributes that changed and have one of the names.
func (p *printer) changedValues(c ResourceChange, names []string) error {
	n := 0
	p.add(`,"values":{`)
	for i, name := range c.Attributes {
		old, now, open, err := c.values(i)
		if err != nil {
			return err
		}
		if open && slices.Contains(names, name) {
			p.comma(n).quote(name).add(`:{"old":`, old, `,"new":`, now, "}")
			n++
		}
	}
	p.add("}")
	return nil
}
