package attr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/syntax"
)

// Entry is one block as the user wrote it, not yet decoded: a key provider, a
// method, a source or credentials. A mistake in one attribute stays with that
// attribute, so that an unused entry does no harm and a later layer can correct
// it.
type Entry struct {
	Address  string             // "key_provider.pbkdf2.main"; where there is no name, the path of the block
	Kind     string             // "pbkdf2"
	Settings map[string]Setting // :: name of an attribute → what is set
	Err      error              // why the entry as a whole cannot be used, such as an unknown kind
	Pos      Pos
}

// Setting is one attribute as written: a value, or the reason why there is none.
type Setting struct {
	Value cty.Value // may be null or unknown; an address for a reference
	Err   error
	Pos   Pos

	FromEnvironment bool // written in TF_ENCRYPTION or the value of a variable, and not in the code as well
	UsesVariables   bool // written with var.*, whose values come from the code
}

// Decides reports whether s is a choice. That something is not so is none, nor is
// an empty string, which an absent variable of Terraform comes to.
func (s Setting) Decides() bool {
	switch v := s.Value; {
	case s.Err != nil:
		return true
	case v == cty.NilVal || v.IsNull():
		return false
	case !v.IsKnown():
		return true
	case v.Type() == cty.String:
		return v.AsString() != ""
	case v.CanIterateElements():
		return v.LengthInt() > 0
	}
	return !s.Value.RawEquals(cty.False)
}

// Closed returns each [Attr.Group] of which settings say a part: no variable
// fills anything of it.
func Closed(attrs []Attr, settings map[string]Setting) map[string]bool {
	closed := map[string]bool{}
	for _, a := range attrs {
		if settings[a.Name].Decides() {
			closed[a.Group] = a.Group != ""
		}
	}
	return closed
}

// Pos is a place in configuration text. The zero value means that the setting
// did not come from text.
type Pos struct {
	File         string
	Line, Column int // from 1
}

// String returns "file:line,column", as hcl does; "" for the zero value.
func (p Pos) String() string {
	if p.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d,%d", p.File, p.Line, p.Column)
}

// Error is a mistake in the configuration. Its text never holds a value that
// the user wrote, because any value may be a secret.
type Error struct {
	Address string // of the entry or target; may be empty
	Attr    string // may be empty
	Unknown bool   // the value is not known yet, which is nobody's mistake
	Pos     Pos
	Err     error // the mistake, in a few words
}

// Error returns the place, the address and the attribute, as far as they are set,
// and the text of Err.
func (e *Error) Error() string {
	parts := []string{e.Pos.String(), strings.Trim(e.Address+"."+e.Attr, "."), e.Err.Error()}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errors holds the mistakes found in one pass.
type Errors []error

func (e Errors) Error() string { return errors.Join(e...).Error() }

// Unwrap returns the mistakes, for [errors.Is] and [errors.As].
func (e Errors) Unwrap() []error { return e }

// Err returns nil when there are none, and the mistake itself when it is the
// only one.
func (e Errors) Err() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	return e
}

// LookupEnv is the shape of [os.LookupEnv]. A nil LookupEnv finds nothing.
type LookupEnv func(name string) (string, bool)

// Get returns the value of the first of names that is set and not empty.
func (f LookupEnv) Get(names ...string) (string, bool) {
	if f == nil {
		return "", false
	}
	for _, n := range names {
		if v, ok := f(n); ok && v != "" {
			return v, true
		}
	}
	return "", false
}

// NewEntry makes an entry of the kind of table from values by the names of their
// attributes, such as those of a Terraform block. Values may be unknown or null. A
// nested block is an object value. What is wrong with a value is reported when the
// entry is used.
func NewEntry(address string, table Table, values map[string]cty.Value) *Entry {
	e := &Entry{Address: address, Kind: table.Name, Settings: map[string]Setting{}}
	for name, v := range values {
		if v.IsNull() {
			continue
		}
		s, text := Setting{Value: v}, ""
		if v.IsKnown() && v.Type() == cty.String {
			text = v.AsString()
		}
		switch a, _ := table.Attr(name); {
		case a.Reference && v.IsKnown() && !syntax.IsKeyProviderAddress(text):
			s.Err = &Error{Address: address, Attr: name, Err: errors.New("the address of a key provider is " +
				"required, such as key_provider.pbkdf2.main")}
		case a.Method && v.IsKnown() && !syntax.IsMethod(text):
			s.Err = &Error{Address: address, Attr: name, Err: syntax.ErrMethodRequired}
		}
		e.Settings[name] = s
	}
	return e
}

// References returns the addresses that the entry's reference attributes name,
// in the order of the table, as far as they are known.
func (e *Entry) References(t Table) []string {
	var refs []string
	for _, a := range t.Attrs {
		s, ok := e.Settings[a.Name]
		if a.Reference && ok && s.Err == nil && s.Value.Type() == cty.String && s.Value.IsKnown() && !s.Value.IsNull() {
			refs = append(refs, s.Value.AsString())
		}
	}
	return refs
}

// Decode converts the settings to the types of the table and fills what is
// absent from the environment, then from the defaults. No variable fills a group
// of which the settings say a part or, beside a secret of the code, a Place or a
// Guard. All mistakes are returned at once, each as an [*Error].
func (e *Entry) Decode(t Table, env LookupEnv) (Values, error) {
	if e.Err != nil {
		return Values{}, e.Err
	}
	f := filler{env: env}
	if secret, given := e.Secret(t); given {
		f.secret = &secret
	}
	return decode(e.Address, t.Attrs, e.Settings, e.Pos, f)
}

func decode(address string, attrs []Attr, settings map[string]Setting, pos Pos, f filler) (Values, error) {
	v := Values{Address: address, attrs: map[string]cty.Value{}, blocks: map[string]Values{}, pos: map[string]Pos{"": pos}, filler: f}
	var errs Errors
	closed := Closed(attrs, settings)
	for _, a := range attrs {
		if closed[a.Group] || closed[a.Follows] {
			a.Env = nil
		}
		v.pos[a.Name] = settings[a.Name].Pos
		if err := v.set(a, settings[a.Name]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return Values{}, errs.Err()
	}
	return v, nil
}

// set decodes one attribute, which may be absent.
func (v Values) set(a Attr, s Setting) (err error) {
	switch {
	case s.Err != nil:
		return s.Err
	case !s.Value.IsWhollyKnown():
		return &Error{Address: v.Address, Attr: a.Name, Pos: s.Pos, Unknown: true, Err: errors.New("the value is not known yet")}
	case a.Attrs != nil && !s.Value.IsNull():
		v.blocks[a.Name], err = decodeNested(v.Address+"."+a.Name, a, s, v.filler)
		return err
	case a.Attrs != nil && a.Required:
		return v.Errorf(a.Name, "this block is required")
	case a.Attrs != nil:
		return nil
	}
	if s.Value.IsNull() {
		text, ok, err := v.filler.fill(a)
		if err != nil {
			return v.Errorf(a.Name, "%w", err)
		}
		if s.Value = a.Default; ok {
			s.Value = fromEnvironment(text, a.Type)
		}
	}
	switch {
	case !s.Value.IsNull():
		if v.attrs[a.Name], err = convert.Convert(s.Value, a.Type); err != nil {
			return v.Errorf(a.Name, "a %s is required", friendly(a.Type))
		}
	case a.Required:
		return v.Errorf(a.Name, "this argument is required%s", orEnv(a.Env))
	default:
		v.attrs[a.Name] = cty.NullVal(a.Type)
	}
	return nil
}

// fromEnvironment is the value of a variable: a list holds it as its only
// element.
func fromEnvironment(text string, t cty.Type) cty.Value {
	if t.IsListType() {
		return cty.ListVal([]cty.Value{cty.StringVal(text)})
	}
	return cty.StringVal(text)
}

func decodeNested(address string, a Attr, s Setting, f filler) (Values, error) {
	if !s.Value.Type().IsObjectType() && !s.Value.Type().IsMapType() {
		return Values{}, &Error{Address: address, Pos: s.Pos, Err: fmt.Errorf("a block is required")}
	}
	settings := map[string]Setting{}
	for name, val := range s.Value.AsValueMap() {
		if _, ok := find(a.Attrs, name); !ok {
			return Values{}, &Error{Address: address, Pos: s.Pos, Err: fmt.Errorf("an argument named %q is not "+
				"expected here%s", name, didYouMean(name, a.Attrs))}
		}
		settings[name] = Setting{Value: val, Pos: s.Pos}
	}
	return decode(address, a.Attrs, settings, s.Pos, f)
}

func didYouMean(name string, attrs []Attr) string {
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = a.Name
	}
	return syntax.Suggest(name, names)
}

func orEnv(env []string) string {
	if len(env) == 0 {
		return ""
	}
	return " (or the environment variable " + strings.Join(env, ", ") + ")"
}

func friendly(t cty.Type) string {
	switch {
	case t.IsListType():
		return "list of " + friendly(t.ElementType()) + "s"
	case t.IsMapType():
		return "map of " + friendly(t.ElementType()) + "s"
	default:
		return t.FriendlyName()
	}
}
