package overview

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// File says where a state was read, and which method opened it.
type File struct {
	Name         string
	Encrypted    bool
	Method       string // the address of the method that opened it; "" if there were no settings
	Fallback     bool   // whether the method is a fallback
	KeyProviders []string
}

// View holds the settings for showing a state. The zero value shows no values.
type View struct {
	File       File
	Values     bool     // show the values of outputs
	Attributes []string // show these attributes of resources
	Sensitive  bool     // show values that are marked, too

	Paint func(colour, text string) string // returns a text in a colour; nil for none
}

// Codes of colours for View.Paint, as terminals have them.
const (
	red, green, yellow = "31", "32", "33"
)

const hiddenValue = "(sensitive)"

// printer writes lines and JSON. It escapes foreign text.
type printer struct {
	w     *bufio.Writer
	paint func(colour, text string) string
	buf   []byte // the current line, or the current part of the JSON
	lines int    // how many lines were written
	attrs *attributeReader

	compacted bytes.Buffer // a value without white space
}

func newPrinter(w io.Writer, paint func(colour, text string) string) *printer {
	return &printer{w: bufio.NewWriterSize(w, 1<<16), paint: paint, attrs: newAttributeReader()}
}

// add appends a text to the line.
func (p *printer) add(texts ...string) *printer {
	for _, text := range texts {
		p.buf = append(p.buf, text...)
	}
	return p
}

// address appends an address to the line. It makes no new string, because there may be millions of lines.
func (p *printer) address(a address.Address) *printer {
	if a.Module != "" {
		p.add(a.Module, ".")
	}
	if a.Mode == address.Data {
		p.add("data.")
	}
	p.add(a.Type, ".", a.Name)
	if a.Key.Kind == address.IntKey {
		p.buf = append(strconv.AppendInt(append(p.buf, '['), int64(a.Key.Index), 10), ']')
		return p
	}
	return p.add(a.Key.String())
}

// end ends the line, in a colour if there is one. The writer keeps an error until it is flushed.
func (p *printer) end(colour string) {
	text := p.buf
	if !isPlain(text, oddInText()) {
		text = []byte(outside.Line(string(text), len(text)))
	}
	if colour != "" && p.paint != nil {
		indent := len(text) - len(bytes.TrimLeft(text, " "))
		_, _ = p.w.Write(text[:indent])
		text = []byte(p.paint(colour, string(text[indent:])))
	}
	_, _ = p.w.Write(text)
	_ = p.w.WriteByte('\n')
	p.buf = p.buf[:0]
	p.lines++
}

// line writes a line.
func (p *printer) line(texts ...string) { p.add(texts...).end("") }

// odd is a set of ASCII characters: a bit for each of the first 64, and for each of the others.
type odd struct{ low, high uint64 }

// The printable characters with which something begins that package outside changes in text and in JSON, and those that
// JSON escapes in a string.
func oddInText() odd   { return odd{1<<'#' | 1<<':', 1 << ('{' - 64)} }
func oddInJSON() odd   { return odd{low: 1 << '#'} }
func oddInString() odd { return odd{1<<'"' | 1<<'<' | 1<<'>' | 1<<'&', 1 << ('\\' - 64)} }

// isPlain reports whether a text has only printable ASCII characters, and none that is odd. A single colon is not odd,
// nor a brace that begins no placeholder.
func isPlain[Text string | []byte](text Text, o odd) bool {
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' {
			return false
		}
		if c < 64 && o.low>>c&1 == 0 || c >= 64 && o.high>>(c-64)&1 == 0 {
			continue
		}
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		if c == ':' && next != ':' || c == '{' && next != 'c' && next != 's' {
			continue
		}
		return false
	}
	return true
}

// quote appends a JSON string.
func (p *printer) quote(text string) *printer {
	if isPlain(text, oddInString()) {
		return p.add(`"`, text, `"`)
	}
	quoted, _ := json.Marshal(text) // strings can always be encoded
	p.buf = append(p.buf, quoted...)
	return p
}

// member appends a member of a JSON object, whose value is a string, unless it is empty.
func (p *printer) member(name, text string) *printer {
	if text != "" {
		p.add(`,"`, name, `":`).quote(text)
	}
	return p
}

// flush writes the current part of the JSON.
func (p *printer) flush() {
	text := p.buf
	if !isPlain(text, oddInJSON()) {
		text = []byte(outside.JSON(string(text)))
	}
	_, _ = p.w.Write(text)
	p.buf = p.buf[:0]
}

// compact returns JSON without white space.
func compact(raw []byte) (string, error) {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil { // the error quotes the file
		return "", errForm("value")
	}
	return b.String(), nil
}

// WriteText writes the state as text for people. It returns which of the attributes in v no resource has.
func (s *State) WriteText(w io.Writer, v View) (missing []string, err error) {
	p := newPrinter(w, v.Paint)
	s.writeHead(p, v.File)
	if len(s.Outputs) > 0 {
		p.line()
		p.line("outputs: ", strconv.Itoa(len(s.Outputs)))
	}
	for _, o := range s.Outputs {
		p.add("  ", o.Name, ": ", o.Type)
		if o.Sensitive {
			p.add(", sensitive")
		}
		if v.Values && (v.Sensitive || !o.Sensitive) {
			value, err := o.Value()
			if err != nil {
				return nil, err
			}
			p.add(" = ", value)
		}
		p.end("")
	}
	found := map[string]bool{}
	if len(s.Resources) > 0 {
		p.line()
		p.line("resources: ", strconv.Itoa(len(s.Resources)))
	}
	for i, r := range s.Resources {
		if i == 0 || !r.isInGroupOf(s.Resources[i-1]) {
			p.add("  ", r.Module)
			if r.Module == "" {
				p.add("root module")
			}
			p.add(": ")
			if r.Mode == address.Data {
				p.add("data.")
			}
			p.add(r.Type)
			if r.Provider() != "" {
				p.add(" (", r.Provider(), ")")
			}
			p.end("")
		}
		p.add("    ").instance(r)
		if err := s.writeAttributes(p, r, v, found); err != nil {
			return nil, err
		}
	}
	s.writeChecks(p)
	return slices.DeleteFunc(slices.Clone(v.Attributes), func(name string) bool { return found[name] }), p.w.Flush()
}

// Value returns the value of an output as JSON, whether the output is sensitive or not.
func (o Output) Value() (string, error) {
	if len(o.value) == 0 {
		return "null", nil
	}
	return compact(o.value)
}

func (r *Resource) isInGroupOf(before *Resource) bool {
	return r.Module == before.Module && r.Mode == before.Mode && r.Type == before.Type && r.Provider() == before.Provider()
}

func (s *State) writeHead(p *printer, f File) {
	p.add("format: ", strconv.Itoa(s.Version))
	if s.TerraformVersion != "" {
		p.add(", written by version ", s.TerraformVersion)
	}
	p.end("")
	p.line("serial: ", strconv.FormatInt(s.Serial, 10))
	if s.Lineage != "" {
		p.line("lineage: ", s.Lineage)
	}
	switch {
	case !f.Encrypted:
		p.add("not encrypted").end(yellow)
	case f.Fallback:
		p.line("opened with: the fallback ", f.Method)
	default:
		p.line("opened with: ", f.Method)
	}
	for _, name := range f.KeyProviders {
		p.line("key provider: ", name)
	}
	if oddities := s.oddities(); oddities != "" {
		p.add("attention: ", oddities).end(yellow)
	}
}

// oddities describes how many parts of the state are tainted, deposed or failed. It returns an empty string if there
// are none.
func (s *State) oddities() string {
	tainted, deposed, failed := 0, 0, 0
	for _, r := range s.Resources {
		if r.Tainted {
			tainted++
		}
		if r.Deposed != "" {
			deposed++
		}
	}
	for _, c := range s.Checks {
		if Failed(c.Status) {
			failed++
		}
	}
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{tainted, "tainted"}, {deposed, "deposed"}, {failed, "failed checks"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%[2]s: %[1]d", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// instance appends the address of an instance, says if it is tainted or deposed, and ends the line.
func (p *printer) instance(r *Resource) {
	colour := ""
	if p.where(r); r.Deposed != "" {
		colour = yellow
	}
	if r.Tainted {
		p.add(", tainted")
		colour = yellow
	}
	p.end(colour)
}

// where appends the address of an instance, and the key of a deposed object.
func (p *printer) where(r *Resource) *printer {
	p.address(r.Address)
	if r.Deposed != "" {
		p.add(", deposed ", r.Deposed)
	}
	return p
}

// writeAttributes writes the attributes of an instance that the view names, and records them in found.
func (s *State) writeAttributes(p *printer, r *Resource, v View, found map[string]bool) error {
	return p.named(r, v.Attributes, func(a attribute) error {
		found[a.name] = true
		p.add("      ", a.name, " = ")
		if a.sensitive && !v.Sensitive {
			p.line(hiddenValue)
			return nil
		}
		err := p.value(a.value)
		p.end("")
		return err
	})
}

// value appends JSON without white space.
func (p *printer) value(raw []byte) error {
	p.compacted.Reset()
	if json.Compact(&p.compacted, raw) != nil { // the error quotes the file
		return errForm("value")
	}
	p.buf = append(p.buf, p.compacted.Bytes()...)
	return nil
}

// named calls visit with the attributes of an instance that have one of the names.
func (p *printer) named(r *Resource, names []string, visit func(attribute) error) error {
	if len(names) == 0 {
		return nil
	}
	all, err := p.attrs.read(r)
	if err != nil {
		return err
	}
	for _, a := range all {
		if slices.Contains(names, a.name) {
			if err := visit(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *State) writeChecks(p *printer) {
	if len(s.Checks) == 0 {
		return
	}
	p.line()
	p.line("checks: ", strconv.Itoa(len(s.Checks)))
	for _, c := range s.Checks {
		p.add("  ", c.Address, ": ", c.Status).end(colourOf(c.Status))
		for _, one := range c.Instances {
			if one.Address != c.Address {
				p.add("    ", one.Address, ": ", one.Status).end(colourOf(one.Status))
			}
		}
	}
}

func colourOf(status string) string {
	if Failed(status) {
		return red
	}
	return ""
}

// WriteJSON writes the state as one JSON object, which the help of statecrypt show documents. It returns which of the
// attributes in v no resource has.
func (s *State) WriteJSON(w io.Writer, v View) (missing []string, err error) {
	p := newPrinter(w, nil)
	p.add("{").headMembers(s, v.File).add(`,"outputs":{`)
	for i, o := range s.Outputs {
		p.comma(i).quote(o.Name).add(`:{"type":`).quote(o.Type).add(`,"sensitive":`, strconv.FormatBool(o.Sensitive))
		if v.Values && (v.Sensitive || !o.Sensitive) {
			value, err := o.Value()
			if err != nil {
				return nil, err
			}
			p.add(`,"value":`, value)
		}
		p.add("}").flush()
	}
	p.add(`},"resources":[`)
	found := map[string]bool{}
	for i, r := range s.Resources {
		p.comma(i).add("{").addressMembers(r)
		if err := p.attributes(r, v, found); err != nil {
			return nil, err
		}
		p.add("}").flush()
	}
	p.add(`],"checks":[`)
	for i, c := range s.Checks {
		p.comma(i).add(`{"address":`).quote(c.Address).member("kind", c.Kind).member("status", c.Status).add(`,"instances":[`)
		for i, one := range c.Instances {
			p.comma(i).add(`{"address":`).quote(one.Address).member("status", one.Status).add("}")
		}
		p.add("]}").flush()
	}
	p.add("]}\n")
	_, _ = p.w.Write(p.buf)
	return slices.DeleteFunc(slices.Clone(v.Attributes), func(name string) bool { return found[name] }), p.w.Flush()
}

// headMembers appends the members of a JSON object about a state and its file.
func (p *printer) headMembers(s *State, f File) *printer {
	p.add(`"file":`).quote(f.Name)
	p.add(`,"encrypted":`, strconv.FormatBool(f.Encrypted)).member("method", f.Method)
	p.add(`,"fallback":`, strconv.FormatBool(f.Fallback), `,"key_providers":`).list(f.KeyProviders)
	p.add(`,"format":`, strconv.Itoa(s.Version)).member("terraform_version", s.TerraformVersion)
	p.add(`,"serial":`, strconv.FormatInt(s.Serial, 10)).member("lineage", s.Lineage)
	return p.add(`,"marked":`, strconv.FormatBool(s.Marked))
}

// list appends a JSON array of strings.
func (p *printer) list(texts []string) *printer {
	p.add("[")
	for i, text := range texts {
		p.comma(i).quote(text)
	}
	return p.add("]")
}

// comma appends a comma before every element but the first.
func (p *printer) comma(i int) *printer {
	if i > 0 {
		return p.add(",")
	}
	return p
}

// addressMembers appends the members of a JSON object that say which instance it is. They are named as "terraform show
// -json" names them.
func (p *printer) addressMembers(r *Resource) *printer {
	start := len(p.buf)
	text := string(p.address(r.Address).buf[start:])
	p.buf = p.buf[:start]
	p.add(`"address":`).quote(text).member("module_address", r.Module).member("mode", r.Mode).member("type", r.Type).member("name", r.Name)
	switch r.Key.Kind {
	case address.IntKey:
		p.add(`,"index":`, strconv.Itoa(r.Key.Index))
	case address.StringKey:
		p.add(`,"index":`).quote(r.Key.Name)
	}
	p.member("provider_name", r.Provider())
	if r.Tainted {
		p.add(`,"tainted":true`)
	}
	return p.member("deposed_key", r.Deposed)
}

// attributes appends the members of a JSON object with the attributes that the view names.
func (p *printer) attributes(r *Resource, v View, found map[string]bool) error {
	if len(v.Attributes) == 0 {
		return nil
	}
	var hidden []string // names
	n := 0
	p.add(`,"attributes":{`)
	if err := p.named(r, v.Attributes, func(a attribute) error {
		found[a.name] = true
		if a.sensitive && !v.Sensitive {
			hidden = append(hidden, a.name)
			return nil
		}
		p.comma(n).quote(a.name).add(":")
		n++
		return p.value(a.value)
	}); err != nil {
		return err
	}
	p.add(`},"sensitive_attributes":`).list(hidden)
	return nil
}
