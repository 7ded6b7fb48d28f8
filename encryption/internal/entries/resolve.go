package entries

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Scope says which values the environment may give an entry. The zero value allows none.
type Scope struct {
	Lookup attr.LookupEnv // if nil, no variable is read

	// OtherServer is true if the variables are meant for a server other than the one that receives
	// the entry's secrets.
	OtherServer bool

	// OnlyEnvironment is true for an entry without a block, whose values all come from the
	// environment. None of its attributes is required, and none of its secrets is protected.
	OnlyEnvironment bool

	// AllowCommands allows commands that only the environment names.
	AllowCommands bool
}

// ErrCommand means that only the environment names a command, and [Scope.AllowCommands] is not set.
var ErrCommand = errors.New("this command is named only in the environment, so it does not run; name it in the configuration as " +
	"well")

func errCommand() error { return fault.Known(ErrCommand, fault.OnlyEnvironment{}) }

// Decode calls [Entry.Resolve] with variables that are meant for the server of this entry.
func (e *Entry) Decode(t attr.Table, env attr.LookupEnv) (attr.Values, error) {
	return e.Resolve(t, Scope{Lookup: env})
}

// Resolve converts the settings to the types in the table. It fills absent attributes from
// environment variables, and then from the defaults. It returns all mistakes in values at once,
// each as an [*attr.Error], together with the values that could be read. Callers look for probable
// mistakes in these values. If a setting of TF_ENCRYPTION is refused, Resolve returns only that
// error, and nil values.
//
// [world.Decide] has the rules by which the environment may set values. The functions below find
// the facts about an attribute that these rules need. A value "of the configuration" comes from
// neither TF_ENCRYPTION nor an environment variable.
//
//   - secrets: the rules protect the secrets of the configuration that are sent to a server or a
//     program. These include the values of var.*, which a layer of TF_ENCRYPTION may use only in
//     secrets, and values that such a layer repeats.
//   - checkCommands and checkLayer ask about the settings of TF_ENCRYPTION. A command that only
//     TF_ENCRYPTION names is [ErrCommand].
//   - variable asks about the environment variable for an absent attribute.
//   - Command, LeadsToCommand and Refuse let kinds ask about facts that no table contains, such
//     as values that name a command, or files that a client finds by itself. Package source/s3 uses
//     Refuse for the region of a data source, which belongs to another entry than the secret.
//   - [SecretVariable] asks about variables for which nothing names a server.
//
// For sources, internal/source/grant.go finds out which server the variables are meant for, and
// fills Scope. A block that a data source chooses by name gets no variables except the machine's
// proxies. [world.World.Refuse] asks for clients that cannot be kept from reading a variable.
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
	v.layered[""] = e.FromEnvironment
	return v, err
}

// resolver fills the attributes of one entry from environment variables.
type resolver struct {
	Scope
	secrets []Given // secrets of the configuration
}

// written returns the attributes that are set, including attributes in nested blocks. A nested
// block replaces the whole block of an earlier layer, so a block in TF_ENCRYPTION sets all its
// attributes.
func (e *Entry) written(t attr.Table) []Given { return writtenIn("", t.Attrs, e.Settings) }

func writtenIn(block string, attrs []attr.Attr, settings map[string]Setting) []Given {
	var all []Given
	for _, a := range attrs {
		s, ok := settings[a.Name]
		switch {
		case !ok:
		case a.Attrs == nil:
			all = append(all, Given{a, s, block + a.Name, block, ""})
		default:
			all = append(all, writtenIn(block+a.Name+".", a.Attrs, inner(a, s))...)
		}
	}
	return all
}

func inner(block attr.Attr, whole Setting) map[string]Setting {
	var values map[string]cty.Value
	if v := whole.Value; !v.IsNull() && v.IsKnown() && (v.Type().IsObjectType() || v.Type().IsMapType()) {
		values = v.AsValueMap()
	}
	settings := map[string]Setting{}
	for _, a := range block.Attrs {
		s := whole
		if s.Value = values[a.Name]; s.Value.IsNull() {
			s.Value = a.Default // for example, the file with a pod's token
		}
		if s.Value != cty.NilVal || whole.FromEnvironment {
			settings[a.Name] = s
		}
	}
	return settings
}

// secrets returns the secrets of the configuration that are sent to a server or a program, or that
// TF_ENCRYPTION uses in a public attribute. Only the configuration may decide who receives them and
// how they are protected on the way.
func (e *Entry) secrets(t attr.Table) []Given {
	sends := sendsSecrets(t.Attrs)
	if !sends && !e.isLayered() {
		return nil // as in most data sources
	}
	var all []Given
	for _, w := range e.written(t) {
		if sends && w.isSecretOfCode() || w.showsVariables() {
			all = append(all, w)
		}
	}
	return all
}

// isLayered reports whether TF_ENCRYPTION sets any attribute of the entry.
func (e *Entry) isLayered() bool {
	for _, s := range e.Settings {
		if s.FromEnvironment {
			return true
		}
	}
	return false
}

// showsVariables reports whether TF_ENCRYPTION uses var.* in a public attribute. The value of such
// an attribute ends up in files and errors, and servers read it.
func (w Given) showsVariables() bool {
	return w.FromEnvironment && w.UsesVariables && w.Secrecy == attr.Public
}

func sendsSecrets(attrs []attr.Attr) bool {
	for _, a := range attrs {
		if a.Secrecy.IsSent() || sendsSecrets(a.Attrs) {
			return true
		}
	}
	return false
}

func (w Given) isSecretOfCode() bool {
	if w.FromEnvironment {
		return w.UsesVariables && (w.Secrecy.IsSent() || w.Secrecy == attr.Public)
	}
	return w.Secrecy.IsSent() && !isEmpty(w.Value)
}

const layer = "TF_ENCRYPTION"

// checkCommands returns an error for a command that is set only in TF_ENCRYPTION.
func (e *Entry) checkCommands(t attr.Table, scope Scope) error {
	if !e.isLayered() {
		return nil
	}
	for _, w := range e.written(t) {
		if w.FromEnvironment && scope.refusesProgram(w.Form == attr.Command) {
			return &attr.Error{Address: e.Address, Attr: w.Path, Pos: w.Pos, Err: errCommand()}
		}
	}
	return nil
}

// checkLayer returns an error if TF_ENCRYPTION sets an attribute that could send a secret of the
// configuration elsewhere. If all secrets of an entry come from TF_ENCRYPTION, TF_ENCRYPTION may
// set any attribute.
func (e *Entry) checkLayer(t attr.Table, secrets []Given) error {
	if len(secrets) == 0 {
		return nil
	}
	for _, w := range e.written(t) {
		for _, secret := range secrets {
			if w.FromEnvironment && world.Decide(layer, w.beside(secret), world.Beside{Secret: true}).Answer == world.Refused {
				return &attr.Error{Address: e.Address, Attr: w.Path, Pos: w.Pos, Err: secret.refuse("a setting from TF_ENCRYPTION", w.Path)}
			}
		}
	}
	return nil
}

// beside describes a setting of TF_ENCRYPTION for an entry that has a secret of the configuration.
// If the configuration sets that secret, TF_ENCRYPTION must not set any member of its group, not
// even a harmless one.
func (w Given) beside(secret Given) world.Attribute {
	isSame := w.Path == secret.Path
	return world.Attribute{
		IsShown:    isSame && w.showsVariables(),
		IsSplit:    !isSame && w.block == secret.block && shareGroup(w.Attr, secret.Attr) && !secret.FromEnvironment,
		IsHarmless: isSame || isHarmless(w.Attr, textOf(w.Value)),
	}
}

func shareGroup(a, b attr.Attr) bool {
	return a.Group != "" && (a.Group == b.Group || a.Group == b.UnlessGroup) || a.UnlessGroup != "" && a.UnlessGroup == b.Group
}

// textOf returns a value as the text of an environment variable, or "" if no variable can have the
// value.
func textOf(v cty.Value) string {
	switch {
	case v.IsNull() || !v.IsKnown():
		return ""
	case v.Type() == cty.String:
		return v.AsString()
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	}
	return ""
}

// groups describes the groups that [attr.Attr.Group] names, keyed by name.
type groups struct {
	closed  map[string]bool // whether the settings set a member of the group
	secrets map[string]bool // whether a member of the group is, or names, a secret
}

func groupsOf(attrs []attr.Attr, settings map[string]Setting) groups {
	g := groups{closed: map[string]bool{}, secrets: map[string]bool{}}
	for _, a := range attrs {
		if settings[a.Name].IsSet() {
			g.closed[a.Group] = a.Group != ""
		}
		if a.Secrecy != attr.Public {
			g.secrets[a.Group], g.secrets[a.UnlessGroup] = a.Group != "", a.UnlessGroup != ""
		}
	}
	return g
}

// variable returns the name and the value of the environment variable that fills a, or "" if there
// is none. It returns an error if the variable could send a secret elsewhere.
func (r resolver) variable(a attr.Attr, g groups) (name, text string, err error) {
	for _, variable := range a.Env {
		if text, _ = r.Lookup.Get(variable); text != "" {
			name = variable
			break
		}
	}
	secret := r.secretBeside(a.Name)
	verdict := world.Decide(name, world.Attribute{
		IsWritten:  g.closed[a.Group] || g.closed[a.UnlessGroup],
		IsHarmless: isHarmless(a, text),
		IsIdentity: a.StandsFor != "" || a.Secrecy != attr.Public || g.secrets[a.Group] || g.secrets[a.UnlessGroup],
	}, world.Beside{Secret: secret != nil, OtherServer: r.OtherServer})
	switch verdict.Answer {
	case world.Used:
		return name, text, nil
	case world.Refused:
		return "", "", secret.refuse("the environment variable "+name, cmp.Or(a.StandsFor, a.Name))
	}
	return "", "", nil
}

// secretBeside returns a secret from the configuration that would be used together with the named
// attribute, or nil if there is none. If the attribute names a file, secrets that are entries in this
// file, such as a profile, are skipped; see EntryInFiles.
func (r resolver) secretBeside(name string) *Given {
	i := slices.IndexFunc(r.secrets, func(w Given) bool { return !slices.Contains(w.EntryInFiles, name) })
	if i < 0 {
		return nil
	}
	return &r.secrets[i]
}

// isHarmless reports whether the environment may set a to value together with a secret of the
// configuration.
func isHarmless(a attr.Attr, value string) bool {
	return a.Harmless != "" && (a.HarmlessIf == nil || a.HarmlessIf(value))
}

func (v *values) Command(name string) error {
	if v.resolver.refusesProgram(v.layered[name] || v.variables[name] != "") {
		return errCommand()
	}
	return nil
}

func (v *values) LeadsToCommand(names ...string) error {
	beside := slices.Contains(slices.Collect(maps.Values(v.layered)), true)
	leads := func(name string) bool { return v.layered[name] || v.variables[name] != "" }
	if v.resolver.refusesProgram(beside && (names == nil || slices.ContainsFunc(names, leads))) {
		return ErrCommand
	}
	return nil
}

// refusesProgram reports whether a program must not run. Named says whether only the environment
// names the program.
func (s Scope) refusesProgram(named bool) bool {
	return world.Decide(layer, world.Attribute{IsCommand: named}, world.Beside{AllowsCommand: s.AllowCommands}).Answer == world.Refused
}

func (v *values) Hands(names ...string) bool { return v.handed(names) >= 0 }

// handed returns the index of the first secret of the configuration whose path or block is in
// names, or -1 if there is none. Without names, any secret counts; see [attr.Values.Hands].
func (v *values) handed(names []string) int {
	return slices.IndexFunc(v.resolver.secrets, func(w Given) bool {
		return names == nil || slices.Contains(names, w.Path) || slices.Contains(names, strings.TrimSuffix(w.block, "."))
	})
}

func (v *values) Refuse(attribute, what string, handed ...string) error {
	i := v.handed(handed)
	if world.Decide(what, world.Attribute{}, world.Beside{Secret: i >= 0}).Answer != world.Refused {
		return nil
	}
	return v.Errorf(attribute, "%w", v.resolver.secrets[i].refuse(what, attribute))
}

// SecretVariable returns the name of an environment variable that is set and holds, or names, a
// secret. It returns "" if there is none.
func SecretVariable(t attr.Table, env attr.LookupEnv) string {
	for _, a := range slices.Concat(t.Attrs, t.Variables) {
		for _, name := range a.Env {
			of := world.Attribute{IsIdentity: a.Secrecy != attr.Public}
			if _, set := env.Get(name); set && world.Decide(name, of, world.Beside{NoServer: true}).Answer == world.Refused {
				return name
			}
		}
		if name := SecretVariable(attr.Table{Attrs: a.Attrs}, env); name != "" && a.Default != cty.NilVal {
			return name
		}
	}
	return ""
}

// refuse returns the error for a setting of the environment that would fill attribute although the
// secret w is set. The parameter what describes the setting.
func (w Given) refuse(what, attribute string) error {
	if w.Path == attribute {
		return fmt.Errorf("%s cannot be used, because var.* may contain a secret from the configuration. Set the argument %s in the "+
			"configuration too, or set it without var.*", what, attribute)
	}
	where := w.Path
	if w.Pos != (attr.Pos{}) {
		where += fmt.Sprintf(" (%s)", w.Pos)
	}
	comes, variables := "comes", ""
	if w.UsesVariables {
		comes, variables = "may come", ", but do not use var.*"
	}
	return fmt.Errorf("%s must not affect the secret in %s, because that secret %s from the configuration. Set the argument %s in the "+
		"configuration too, or set both in the environment%s", what, where, comes, attribute, variables)
}
