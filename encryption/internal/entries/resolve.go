package entries

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Scope is what the environment has to say about an entry. With the zero value
// it says nothing.
type Scope struct {
	Lookup attr.LookupEnv // nil reads no variable

	// OtherServer says that the variables are meant for another server than the
	// one that is asked.
	OtherServer bool

	// OnlyEnvironment says that the environment gives the entry itself: nothing is
	// required of it, and no secret in it is the code's.
	OnlyEnvironment bool

	// AllowCommands lets commands run that only the environment names.
	AllowCommands bool
}

// ErrCommand means that only the environment names a command, and that
// [Scope.AllowCommands] is not set.
var ErrCommand = errors.New("only the environment names this command; it runs only if the configuration names it as well")

func errCommand() error { return fact.With(ErrCommand, fact.OnlyEnvironment) }

// Decode is [Entry.Resolve] with variables that are meant for whatever is asked.
func (e *Entry) Decode(t attr.Table, env attr.LookupEnv) (attr.Values, error) {
	return e.Resolve(t, Scope{Lookup: env})
}

// Resolve converts the settings to the types of the table and fills what is
// absent from variables, then from the defaults. All mistakes are returned at
// once, each as an [*Error].
//
// It decides what the environment may say, and nothing else does:
//
//   - Beside a secret of the code, a variable or a layer of TF_ENCRYPTION that
//     sets what is not [attr.Attr.Harmless] is an error. The code's are also the
//     values of var.*, which a layer may use in secrets only.
//   - A variable does nothing if the code sets its attribute, or a part of its
//     [attr.Attr.Group].
//   - Variables that are meant for another server give it neither secrets, nor
//     what belongs to one, nor what is not harmless.
//   - The proxies of the machine are for all that it sends, and see nothing of a
//     verified connection.
//   - Whoever can set a variable of a pipeline must not thereby choose what runs in it:
//     a command that only a layer names is [ErrCommand]; see also [Values.Command].
//   - A layer that repeats what the code says changes nothing.
func (e *Entry) Resolve(t attr.Table, scope Scope) (attr.Values, error) {
	if e.Err != nil {
		return nil, e.Err
	}
	r := resolver{Scope: scope}
	if !scope.OnlyEnvironment {
		r.secrets = e.secrets(t)
	}
	if err := cmp.Or(e.checkCommands(t, scope), e.checkLayer(t, r.secrets)); err != nil {
		return nil, err
	}
	attrs := t.Attrs
	if t.Variables != nil {
		attrs = slices.Concat(attrs, t.Variables)
	}
	v, err := r.decode(e.Address, "", attrs, e.Settings, e.Pos)
	if err != nil {
		return nil, err
	}
	v.layered[""] = e.FromEnvironment
	return v, nil
}

// resolver decides what becomes of the variables of one entry.
type resolver struct {
	Scope
	secrets []written // of the code
}

// secretBeside returns a secret of the code that is no entry of the file in the
// attribute called name, nil for none.
func (r resolver) secretBeside(name string) *written {
	i := slices.IndexFunc(r.secrets, func(w written) bool { return !slices.Contains(w.EntryInFiles, name) })
	if i < 0 {
		return nil
	}
	return &r.secrets[i]
}

// decode decodes the attributes of an entry, or of the block in it that within names.
func (r resolver) decode(
	address, within string, attrs []attr.Attr, settings map[string]Setting, pos attr.Pos,
) (*values, error) {
	v := &values{
		address: address, within: within, attrs: map[string]cty.Value{}, blocks: map[string]*values{}, pos: map[string]attr.Pos{"": pos},
		resolver: r, variables: map[string]string{}, layered: map[string]bool{},
	}
	var errs fact.List
	groups := groupsOf(attrs, settings)
	for _, a := range attrs {
		v.pos[a.Name], v.layered[a.Name] = settings[a.Name].Pos, settings[a.Name].FromEnvironment
		if err := v.set(a, settings[a.Name], groups); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		errs = v.checkCompany(attrs, settings)
	}
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	return v, nil
}

// groups are those of [attr.Attr.Group].
type groups struct {
	closed  map[string]bool // the settings say a part
	secrets map[string]bool // secrets belong to it
}

func groupsOf(attrs []attr.Attr, settings map[string]Setting) groups {
	g := groups{closed: map[string]bool{}, secrets: map[string]bool{}}
	for _, a := range attrs {
		if settings[a.Name].IsSet() {
			g.closed[a.Group] = a.Group != ""
		}
		if isSecret(a) {
			g.secrets[a.Group], g.secrets[a.UnlessGroup] = a.Group != "", a.UnlessGroup != ""
		}
	}
	return g
}

// set decodes one attribute, which may be absent.
func (v *values) set(a attr.Attr, s Setting, g groups) (err error) {
	switch {
	case s.Err != nil:
		return s.Err
	case !s.Value.IsWhollyKnown():
		return &attr.Error{Address: v.address, Attr: v.path(a.Name), Pos: s.Pos, Unknown: true, Err: errors.New("the value is not known yet")}
	case a.Attrs != nil:
		return v.setBlock(a, s)
	case !s.fills(a):
		if s.Value, err = v.fill(a, s.Value, g); err != nil {
			return err
		}
	}
	switch {
	case !s.Value.IsNull():
		if v.attrs[a.Name], err = convert.Convert(s.Value, a.Type); err != nil {
			text := friendly(a.Type) + " is required"
			if a.Type.IsListType() && s.Value.Type() == cty.String {
				text += ", in square brackets"
			}
			return v.Errorf(a.Name, "%s", text)
		}
		if problem := problem(a, v.attrs[a.Name], v.variables[a.Name] != ""); problem != "" {
			return v.Errorf(a.Name, "it %w", fact.Odd(problem))
		}
		if a.Form == attr.Version && isEmpty(v.attrs[a.Name]) {
			return v.Errorf(a.Name, "an empty string chooses no version; leave this argument out to read the current one")
		}
	case a.Required && !v.resolver.OnlyEnvironment:
		return v.Errorf(a.Name, "this argument is required%s%s", orEnv(a.Env), briefly(a.Doc))
	default:
		v.attrs[a.Name] = cty.NullVal(a.Type)
	}
	return nil
}

// problem says what keeps a value from its form, or a secret from being one word; "" if
// nothing does. The value is not in the text.
func problem(a attr.Attr, v cty.Value, ofVariable bool) string {
	switch {
	case a.Type != cty.String || v.IsNull():
		return ""
	case a.Sensitive && !a.Local && a.Form != attr.Lines && ofVariable:
		return recognize.NoWordInVariable(v.AsString())
	case a.Sensitive && !a.Local && a.Form != attr.Lines:
		return recognize.NoWord(v.AsString())
	}
	problem := problemOf(a.Form, v.AsString())
	if problem == "" || isEmpty(v) && !a.Required && a.Default == cty.NilVal { // an empty one is none
		return ""
	}
	return problem + briefly(a.Doc)
}

// checkCompany returns what the code must not set together, or not alone.
func (v *values) checkCompany(attrs []attr.Attr, settings map[string]Setting) (errs fact.List) {
	for _, a := range attrs {
		if !settings[a.Name].IsSet() {
			continue
		}
		for _, other := range a.Excludes {
			if settings[other].IsSet() {
				errs = append(errs, v.Errorf(a.Name, "%s and %s are mutually exclusive; set one of them", other, a.Name))
			}
		}
		if a.RequiredWith != "" && isEmpty(v.get(a.RequiredWith)) {
			errs = append(errs, v.Errorf(a.RequiredWith, "it is required together with %s", a.Name))
		}
	}
	return errs
}

// fill returns what takes the place of an absent value: that of a variable, the
// default, or nothing.
func (v *values) fill(a attr.Attr, absent cty.Value, g groups) (cty.Value, error) {
	switch name, text, err := v.resolver.variable(a, g); {
	case err != nil:
		return absent, v.Errorf(cmp.Or(a.StandsFor, a.Name), "%w", err)
	case name != "":
		v.variables[a.Name] = name
		return ofVariable(name, text, a.Type)
	case absent.IsNull():
		return a.Default, nil
	}
	return absent, nil
}

// variable returns the variable that fills a, with its value; "" for none.
func (r resolver) variable(a attr.Attr, g groups) (name, text string, err error) {
	for _, name = range a.Env {
		if text, _ = r.Lookup.Get(name); text != "" {
			break
		}
	}
	harmless := isHarmless(a, text)
	switch {
	case text == "", g.closed[a.Group], g.closed[a.UnlessGroup]:
		return "", "", nil
	case r.OtherServer && (!harmless || a.StandsFor != "" || isSecret(a) || g.secrets[a.Group] || g.secrets[a.UnlessGroup]):
		return "", "", nil
	case harmless, isProxyOfMachine(name), r.secretBeside(a.Name) == nil:
		return name, text, nil
	}
	return "", "", r.secretBeside(a.Name).refuse("the environment variable "+name, cmp.Or(a.StandsFor, a.Name))
}

func isProxyOfMachine(variable string) bool {
	return slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, strings.ToUpper(variable))
}

// ofVariable is the value of a variable: a list holds it as its only element.
func ofVariable(name, text string, t cty.Type) (cty.Value, error) {
	switch {
	case t.IsListType():
		return cty.ListVal([]cty.Value{cty.StringVal(text)}), nil
	case t == cty.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return cty.NilVal, &attr.Error{Err: fmt.Errorf("the environment variable %s must be true or false", name)}
		}
		return cty.BoolVal(b), nil
	}
	return cty.StringVal(text), nil
}

func (v *values) setBlock(a attr.Attr, s Setting) (err error) {
	switch {
	case !s.Value.IsNull():
		v.blocks[a.Name], err = v.decodeBlock(a, s)
	case a.Always:
		v.blocks[a.Name], err = v.resolver.decode(v.address, v.within+a.Name+".", a.Attrs, nil, s.Pos)
	case a.Required && !v.resolver.OnlyEnvironment:
		err = v.Errorf(a.Name, "this block is required")
	}
	return err
}

func (v *values) decodeBlock(a attr.Attr, s Setting) (*values, error) {
	if !s.Value.Type().IsObjectType() && !s.Value.Type().IsMapType() {
		return nil, v.Errorf(a.Name, "a block is required")
	}
	settings := map[string]Setting{}
	written := s.Value.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if _, ok := (attr.Table{Attrs: a.Attrs}).Attr(name); !ok {
			return nil, v.Errorf(a.Name, "an argument named %q is not expected here%s", name, didYouMean(name, a.Attrs))
		}
		settings[name] = Setting{Value: written[name], Pos: s.Pos, FromEnvironment: s.FromEnvironment}
	}
	return v.resolver.decode(v.address, v.within+a.Name+".", a.Attrs, settings, s.Pos)
}

func didYouMean(name string, attrs []attr.Attr) string {
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = a.Name
	}
	return syntax.Configured(name, names)
}

// briefly describes an argument at the end of a sentence.
func briefly(doc string) string {
	if doc == "" {
		return ""
	}
	return ": " + syntax.LowerFirst(syntax.FirstSentence(doc))
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
		return "a list of " + t.ElementType().FriendlyName() + "s"
	case t.IsMapType():
		return "a map of " + t.ElementType().FriendlyName() + "s"
	case t == cty.Bool:
		return "true or false"
	default:
		return "a " + t.FriendlyName()
	}
}
