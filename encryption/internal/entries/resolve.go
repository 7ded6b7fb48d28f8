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

func errCommand() error { return fault.Known(ErrCommand, fault.OnlyEnvironment{}) }

// Decode is [Entry.Resolve] with variables that are meant for whatever is asked.
func (e *Entry) Decode(t attr.Table, env attr.LookupEnv) (attr.Values, error) {
	return e.Resolve(t, Scope{Lookup: env})
}

// Resolve converts the settings to the types of the table and fills what is
// absent from variables, then from the defaults. All mistakes are returned at
// once, each as an [*Error]; the values beside them are those that could be read, for what is
// odd in them.
//
// It decides what the environment may say, by these rules in this order, and nothing else
// does; each is a function below:
//
//   - secrets: what is protected are the secrets of the code that are sent somewhere. The
//     code's are also the values of var.*, which a layer of TF_ENCRYPTION may use in secrets
//     only. What a layer repeats is the code's.
//   - checkCommands: whoever can set a variable of a pipeline must not thereby choose what
//     runs in it. A command that only a layer names is [ErrCommand].
//   - checkLayer: beside a secret of the code, a layer that sets what is not
//     [attr.Attr.Harmless] is an error.
//   - variable: a variable does nothing if the code sets its attribute, or a part of its
//     [attr.Attr.Group]. If it is meant for another server, it gives that neither secrets,
//     nor what belongs to one, nor what is not harmless. The proxies of the machine are for
//     all that it sends, and see nothing of a verified connection. Any other that is not
//     harmless is an error beside a secret of the code.
//   - Command, LeadsToCommand, Hands, Refuse: the same of what a kind knows by itself, such as
//     which values name a command, or what a client finds without an attribute.
//   - [SecretVariable]: a variable that holds a secret is for nobody if nothing says which
//     server it is meant for.
//
// What comes before these cannot be asked of an entry, and is answered elsewhere:
//
//   - For which server variables are meant: by the home of a source, in internal/source/grant.go,
//     which fills Scope and refuses what [SecretVariable] finds. So does source/git for the
//     tokens of GitHub, which name no server in their own names. A block that a data source
//     chooses by name gets none: source/gcs says so of the one variable that Google's client
//     would follow, and awsauth fills in no more than the proxies of the machine.
//   - What a client would follow although no attribute says it: by [world.World.Refuse], of
//     the client that is started, beside a secret that it is handed.
//   - Whether the region of a data source leads the secret of a block elsewhere: by source/s3,
//     because the two are different entries. It calls Refuse of the block.
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

// resolver decides what becomes of the variables of one entry.
type resolver struct {
	Scope
	secrets []Given // of the code
}

// written lists the attributes that are set, with those of nested blocks. A
// nested block replaces that of an earlier layer as a whole, so one of the
// environment sets all of its attributes.
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
			s.Value = a.Default // such as the file with a pod's token
		}
		if s.Value != cty.NilVal || whole.FromEnvironment {
			settings[a.Name] = s
		}
	}
	return settings
}

// secrets are those of the code that are sent somewhere, or that a layer of the
// environment writes where they would be seen. Where they go, and how they are
// protected on the way, is for the code to say.
func (e *Entry) secrets(t attr.Table) []Given {
	sends := sendsSecrets(t.Attrs)
	if !sends && !e.isLayered() {
		return nil // as for data sources, of which there can be many
	}
	var all []Given
	for _, w := range e.written(t) {
		if sends && w.isSecretOfCode() || w.showsVariables() {
			all = append(all, w)
		}
	}
	return all
}

// isLayered reports whether a layer of the environment sets something.
func (e *Entry) isLayered() bool {
	for _, s := range e.Settings {
		if s.FromEnvironment {
			return true
		}
	}
	return false
}

// showsVariables reports whether a layer of the environment uses variables of the
// code in what nobody keeps secret: a name ends up in files and in errors, and is
// read by whoever is asked for it.
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

// checkCommands refuses those that only TF_ENCRYPTION names.
func (e *Entry) checkCommands(t attr.Table, scope Scope) error {
	if scope.AllowCommands || !e.isLayered() {
		return nil
	}
	for _, w := range e.written(t) {
		if w.Form == attr.Command && w.FromEnvironment {
			return &attr.Error{Address: e.Address, Attr: w.Path, Pos: w.Pos, Err: errCommand()}
		}
	}
	return nil
}

// checkLayer refuses what TF_ENCRYPTION sets beside secrets of the code. One that
// brings all secrets of an entry may say where they go.
func (e *Entry) checkLayer(t attr.Table, secrets []Given) error {
	if len(secrets) == 0 {
		return nil
	}
	for _, w := range e.written(t) {
		for _, secret := range secrets {
			if w.FromEnvironment && w.endangers(secret) {
				return &attr.Error{Address: e.Address, Attr: w.Path, Pos: w.Pos, Err: secret.refuse("a setting of TF_ENCRYPTION", w.Path)}
			}
		}
	}
	return nil
}

// endangers reports whether w must not come from the environment beside a secret
// of the code. An identity is never a mixture of both; one that uses variables of
// the code comes from the environment as a whole.
func (w Given) endangers(secret Given) bool {
	switch {
	case w.Path == secret.Path:
		return w.showsVariables()
	case w.block == secret.block && shareGroup(w.Attr, secret.Attr) && !secret.FromEnvironment:
		return true
	}
	return !isHarmless(w.Attr, textOf(w.Value))
}

func shareGroup(a, b attr.Attr) bool {
	return a.Group != "" && (a.Group == b.Group || a.Group == b.UnlessGroup) || a.UnlessGroup != "" && a.UnlessGroup == b.Group
}

// textOf is a value as a variable would have it; "" if none can.
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
		if a.Secrecy != attr.Public {
			g.secrets[a.Group], g.secrets[a.UnlessGroup] = a.Group != "", a.UnlessGroup != ""
		}
	}
	return g
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
	case r.OtherServer && (!harmless || a.StandsFor != "" || a.Secrecy != attr.Public || g.secrets[a.Group] || g.secrets[a.UnlessGroup]):
		return "", "", nil
	case harmless, isProxyOfMachine(name), r.secretBeside(a.Name) == nil:
		return name, text, nil
	}
	return "", "", r.secretBeside(a.Name).refuse("the environment variable "+name, cmp.Or(a.StandsFor, a.Name))
}

// secretBeside returns a secret of the code that is no entry of the file in the
// attribute called name, nil for none.
func (r resolver) secretBeside(name string) *Given {
	i := slices.IndexFunc(r.secrets, func(w Given) bool { return !slices.Contains(w.EntryInFiles, name) })
	if i < 0 {
		return nil
	}
	return &r.secrets[i]
}

func isProxyOfMachine(variable string) bool {
	return slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, strings.ToUpper(variable))
}

// isHarmless reports whether the environment may set a to value beside a secret
// of the code.
func isHarmless(a attr.Attr, value string) bool {
	return a.Harmless != "" && (a.HarmlessIf == nil || a.HarmlessIf(value))
}

func (v *values) Command(name string) error {
	if v.resolver.AllowCommands || !v.layered[name] && v.variables[name] == "" {
		return nil
	}
	return errCommand()
}

func (v *values) LeadsToCommand(names ...string) error {
	beside := slices.Contains(slices.Collect(maps.Values(v.layered)), true)
	leads := func(name string) bool { return v.layered[name] || v.variables[name] != "" }
	if !v.resolver.AllowCommands && beside && (names == nil || slices.ContainsFunc(names, leads)) {
		return ErrCommand
	}
	return nil
}

func (v *values) Hands(names ...string) bool { return v.handed(names) >= 0 }

// handed is the index of the first such secret, -1 for none.
func (v *values) handed(names []string) int {
	return slices.IndexFunc(v.resolver.secrets, func(w Given) bool {
		return names == nil || slices.Contains(names, w.Path) || slices.Contains(names, strings.TrimSuffix(w.block, "."))
	})
}

func (v *values) Refuse(attribute, what string, handed ...string) error {
	i := v.handed(handed)
	if i < 0 {
		return nil
	}
	return v.Errorf(attribute, "%w", v.resolver.secrets[i].refuse(what, attribute))
}

// SecretVariable returns a variable that holds a secret, or names one; "" if none is set.
func SecretVariable(t attr.Table, env attr.LookupEnv) string {
	for _, a := range slices.Concat(t.Attrs, t.Variables) {
		for _, name := range a.Env {
			if _, set := env.Get(name); set && a.Secrecy != attr.Public {
				return name
			}
		}
		if name := SecretVariable(attr.Table{Attrs: a.Attrs}, env); name != "" && a.Default != cty.NilVal {
			return name
		}
	}
	return ""
}

// refuse is the error about what the environment must not say beside w.
func (w Given) refuse(what, attribute string) error {
	if w.Path == attribute {
		return fmt.Errorf("%s must not be combined with a secret of the configuration, which var.* may hold. Set %s in the configuration "+
			"as well, or without var.*", what, attribute)
	}
	where := w.Path
	if w.Pos != (attr.Pos{}) {
		where += fmt.Sprintf(" (%s)", w.Pos)
	}
	variables := ""
	if w.UsesVariables {
		variables = " and without var.*"
	}
	return fmt.Errorf("%s must not be combined with a secret of the configuration: %s. Set %s in the configuration as well, "+
		"or both in the environment%s", what, where, attribute, variables)
}
