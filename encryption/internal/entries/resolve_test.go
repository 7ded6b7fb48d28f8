package entries

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// situation is one row of the enumeration: what an attribute x is declared to
// be, who sets it, which secret stands beside it, and what the environment has
// to say.
type situation struct {
	// declaration of x
	harmless string // "closed": never; "always"; "this": for the value at hand; "others": for other values
	secret   bool   // x is a secret itself
	boolean  bool   // x is a bool
	must     bool   // x has a default
	empty    bool   // an empty string is a value
	lone     bool   // x is one of Table.Variables, which nobody can write
	group    string // "": none; "same": the secret's; "half": one of which the code says a part; "same follows", "half follows": UnlessGroup

	code   string // how the code sets x: "absent", "null", "empty", "false", "value"
	by     string // who else sets x: "nobody", "layer" (TF_ENCRYPTION), "layer, var" (with a variable of the code), "variable"
	beside string // the secret beside x: see besides
	env    string // "on", "elsewhere", "off"; "no code": it gives the entry itself
}

// besides are the secrets that may stand beside x, by where they come from and
// where they go.
var besides = []string{
	"none", "code", "variable", "layer", "layer, var", "local", // who gives it
	"within", "within another", "within and code", // it is an entry of the file that x names, or another attribute
}

// ofCode reports whether the attribute called secret is given by the code.
func (s situation) ofCode() bool {
	return s.beside == "code" || s.beside == "layer, var" || s.beside == "within and code"
}

func (s situation) isSameGroup() bool { return strings.HasPrefix(s.group, "same") }

// endangered reports whether a secret of the code could be lost, and whether so
// beside the file that x names.
func (s situation) endangered() (by, byFile bool) {
	byFile = s.env != "no code" && (s.ofCode() || s.beside == "within another")
	return byFile || s.env != "no code" && s.beside == "within", byFile
}

// want states the rules: "code" and "filled" are whose value x has, "absent"
// that it has none, "error" that the variable or the layer is refused.
func (s situation) want() string {
	closed := s.harmless == "closed" || s.harmless == "others"
	endangered, byFile := s.endangered()
	saysSecret := s.ofCode() || s.beside == "local" || s.beside == "layer"
	closedGroup := s.group == "half" || s.group == "half follows" || s.isSameGroup() && saysSecret
	absent := "absent"
	if s.code == "empty" { // which is what remains
		absent = "code"
	}
	switch {
	case s.by == "layer, var" && !s.secret && s.env != "no code": // what is not kept secret would carry a secret away
		return "error"
	case strings.HasPrefix(s.by, "layer") && endangered && (closed || s.isSameGroup() && s.ofCode() && s.beside != "layer, var"):
		return "error"
	case strings.HasPrefix(s.by, "layer"):
		return "filled"
	case s.code == "value", s.code == "false", s.code == "empty" && s.empty:
		return "code"
	case s.by == "nobody", s.env == "off", closedGroup:
		return absent
	case s.env == "elsewhere" && (closed || s.secret || s.lone || s.isSameGroup()):
		return absent
	case closed && byFile:
		return "error"
	}
	return "filled"
}

const given = "true" // by a variable or a layer, of any type

// table declares x and what may stand beside it.
func (s situation) table() attr.Table {
	x := attr.Attr{Name: "x", Type: cty.String, Env: []string{"X"}, Harmless: "reason"}
	if s.empty {
		x.Form = attr.OrEmpty
	}
	if s.secret {
		x.Secrecy = attr.Secret
	}
	switch s.harmless {
	case "closed":
		x.Harmless = ""
	case "this":
		x.HarmlessIf = harmless.OneOf(given)
	case "others":
		x.HarmlessIf = harmless.OneOf("another")
	}
	if s.boolean {
		x.Type = cty.Bool
	}
	if s.must {
		x.Default = cty.StringVal("default")
	}
	secret := attr.Attr{Name: "secret", Type: cty.String, Secrecy: attr.Secret, Env: []string{"SECRET"}, Harmless: "reason"}
	if s.beside == "local" {
		secret.Secrecy = attr.LocalSecret
	}
	part := attr.Attr{Name: "part", Type: cty.String}
	switch s.group {
	case "same":
		x.Group, secret.Group = "identity", "identity"
	case "same follows":
		x.UnlessGroup, secret.Group = "identity", "identity"
	case "half":
		x.Group, part.Group = "half", "half"
	case "half follows":
		x.UnlessGroup, part.Group = "half", "half"
	}
	entry := attr.Attr{Name: "profile", Type: cty.String, Secrecy: attr.NamesSecret, EntryInFiles: []string{"x", "y"}}
	if s.beside == "within another" {
		entry.EntryInFiles = []string{"y"}
	}
	if s.lone {
		x.StandsFor = "part"
		return attr.Table{Name: "kind", Attrs: []attr.Attr{entry, part, secret}, Variables: []attr.Attr{x}}
	}
	return attr.Table{Name: "kind", Attrs: []attr.Attr{entry, part, secret, x}}
}

func (s situation) entry() *Entry {
	text := cty.StringVal
	e := &Entry{Address: "block", Settings: map[string]Setting{}}
	switch s.code {
	case "null":
		e.Settings["x"] = Setting{Value: cty.NullVal(cty.String)}
	case "empty":
		e.Settings["x"] = Setting{Value: text("")}
	case "false":
		e.Settings["x"] = Setting{Value: cty.False}
	case "value":
		e.Settings["x"] = Setting{Value: text("code")}
	}
	switch s.beside {
	case "code", "local", "within and code":
		e.Settings["secret"] = Setting{Value: text("OWN")}
	case "layer", "layer, var":
		e.Settings["secret"] = Setting{Value: text("OWN"), FromEnvironment: true, UsesVariables: s.beside == "layer, var"}
	}
	if strings.HasPrefix(s.beside, "within") {
		e.Settings["profile"] = Setting{Value: text("OWN")}
	}
	if s.group == "half" || s.group == "half follows" {
		e.Settings["part"] = Setting{Value: text("OWN")}
	}
	if strings.HasPrefix(s.by, "layer") {
		e.Settings["x"] = Setting{Value: text(given), FromEnvironment: true, UsesVariables: s.by == "layer, var"}
	}
	return e
}

func (s situation) scope() Scope {
	if s.env == "off" {
		return Scope{}
	}
	return Scope{OtherServer: s.env == "elsewhere", OnlyEnvironment: s.env == "no code", Lookup: func(name string) (string, bool) {
		return given, name == "X" && s.by == "variable" || name == "SECRET" && s.beside == "variable"
	}}
}

// blamed is what an error asks users to write.
func (s situation) blamed() string {
	if s.lone {
		return "part"
	}
	return "x"
}

// got is the outcome, in the words of want.
func (s situation) got() string {
	v, err := s.entry().Resolve(s.table(), s.scope())
	mistake, isMistake := errors.AsType[*attr.Error](err)
	x, asText := cty.NilVal, ""
	if err == nil {
		if x = v.(*values).attrs["x"]; !x.IsNull() { //nolint:forcetypeassert // there is no other
			asText = textOf(x)
		}
	}
	switch {
	case isMistake && mistake.Attr == s.blamed() && !mistake.Unknown:
		return "error"
	case err != nil:
		return err.Error()
	case x.IsNull(), asText == "default":
		return "absent"
	case asText == given && (s.by == "variable") == (v.Variable("x") == "X"):
		return "filled"
	}
	return "code"
}

// possible leaves out what cannot be, or is the same as another row.
func (s situation) possible() bool {
	layer := strings.HasPrefix(s.by, "layer")
	switch {
	case s.code == "false" && !s.boolean, s.boolean && (s.code == "empty" || s.code == "value" || s.secret || s.must):
	case s.empty && s.code != "empty", s.must && s.group != "":
	case s.lone && (s.must || s.code != "absent" || layer):
	case layer && s.code != "absent": // see TestEnvironmentDoesNotRoute
	case s.secret && s.code == "value" && s.isSameGroup() && strings.HasPrefix(s.beside, "layer"): // x endangers it
	case s.by != "variable" && s.env == "elsewhere", layer && s.env == "off":
	default:
		return true
	}
	return false
}

// each runs f for every possible situation, and returns how many there are.
func each(f func(situation)) (n int) {
	for _, harmless := range []string{"closed", "always", "this", "others"} {
		for flags := range 32 {
			for _, group := range []string{"", "same", "half", "same follows", "half follows"} {
				for _, code := range []string{"absent", "null", "empty", "false", "value"} {
					for _, by := range []string{"nobody", "layer", "layer, var", "variable"} {
						for _, beside := range besides {
							for _, env := range []string{"on", "elsewhere", "off", "no code"} {
								s := situation{harmless, flags&1 > 0, flags&2 > 0, flags&4 > 0, flags&8 > 0, flags&16 > 0, group, code, by, beside,
									env}
								if s.possible() {
									n++
									f(s)
								}
							}
						}
					}
				}
			}
		}
	}
	return n
}

// TestRules: every combination of what an attribute is declared to be, of who
// sets it, of which secret stands beside it, and of what the environment has to
// say.
//
// Promise: Where secrets go
func TestRules(t *testing.T) {
	t.Parallel()
	failed := 0
	n := each(func(s situation) {
		if got, want := s.got(), s.want(); got != want {
			if failed++; failed <= 20 {
				t.Errorf("%+v: got %s, want %s", s, got, want)
			}
		}
	})
	if failed > 20 || n < 5000 {
		t.Errorf("%d of %d combinations fail", failed, n)
	}
}

// golden has the texts of a group of errors, none of which shows a value.
func golden(t *testing.T, group string, secrets ...string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, "../../testdata/mistakes.txt", "attributes, "+group, append(secrets, "c4n4ry", "canary")...)
}

// TestRefusals: the words of an error, and what is no secret that is sent.
func TestRefusals(t *testing.T) {
	t.Parallel()
	text := cty.StringVal
	here := attr.Attr{Name: "passphrase", Type: cty.String, Secrecy: attr.LocalSecret}
	sent := attr.Attr{Name: "token", Type: cty.String, Secrecy: attr.Secret}
	place := attr.Attr{Name: "address", Type: cty.String, Env: []string{"ADDRESS"}}
	proxy := attr.Attr{Name: "proxy", Type: cty.String, Env: []string{"https_proxy"}}
	nested := attr.Attr{Name: "auth", Attrs: []attr.Attr{sent, place}}
	file := attr.Attr{Name: "files", Type: cty.List(cty.String), Env: []string{"FILE"}, Harmless: "reason"}
	user := attr.Attr{Name: "user", Type: cty.String, Group: "identity", Harmless: "reason"}
	other := attr.Attr{Name: "other", Attrs: []attr.Attr{user, place}}
	grouped := sent
	grouped.Group = "identity"
	ofLayer := func(value string, usesVariables bool) Setting {
		at := attr.Pos{File: "TF_ENCRYPTION", Line: 1, Column: 2}
		return Setting{Value: text(value), FromEnvironment: true, UsesVariables: usesVariables, Pos: at}
	}
	code := Setting{Value: text("OWN"), Pos: attr.Pos{File: "code", Line: 3, Column: 4}}
	says := golden(t, "refusals", "OWN", "ENV")
	for name, c := range map[string]struct {
		attrs    []attr.Attr
		settings map[string]Setting
		refused  bool
	}{
		"a variable": {[]attr.Attr{sent, place}, map[string]Setting{"token": code}, true},
		"a layer":    {[]attr.Attr{sent, place}, map[string]Setting{"token": code, "address": ofLayer("x", false)}, true},
		"a variable of the code": {[]attr.Attr{sent, place},
			map[string]Setting{"token": ofLayer("x", true), "address": ofLayer("x", false)}, true},
		"in a block": {[]attr.Attr{nested},
			map[string]Setting{"auth": {Value: cty.ObjectVal(map[string]cty.Value{"token": text("OWN")})}}, true},
		"the machine's proxy": {[]attr.Attr{sent, proxy}, map[string]Setting{"token": code}, false},
		"a proxy of a layer":  {[]attr.Attr{sent, proxy}, map[string]Setting{"token": code, "proxy": ofLayer("x", false)}, true},
		"nothing is sent":     {[]attr.Attr{here, place}, map[string]Setting{"passphrase": code}, false},
		"nothing is sent, with a variable of the code": {[]attr.Attr{here, place},
			map[string]Setting{"passphrase": ofLayer("x", true), "address": ofLayer("x", false)}, false},
		"nothing is sent, a variable of the code in a name": {[]attr.Attr{here, place}, map[string]Setting{"address": ofLayer("x", true)}, true},
		"a variable of the code in a harmless name":         {[]attr.Attr{sent, user}, map[string]Setting{"user": ofLayer("x", true)}, true},
		"a list": {[]attr.Attr{sent, file}, map[string]Setting{"token": code}, false},
		"a block of a layer": {[]attr.Attr{sent, nested}, map[string]Setting{"token": code,
			"auth": {Value: cty.ObjectVal(map[string]cty.Value{"token": text("x")}), FromEnvironment: true}}, true},
		"what a block of a layer leaves out": {[]attr.Attr{sent, other}, map[string]Setting{"token": code,
			"other": {Value: cty.ObjectVal(map[string]cty.Value{"user": text("x")}), FromEnvironment: true}}, true},
		"the same name of a group in a block": {[]attr.Attr{grouped, {Name: "other", Attrs: []attr.Attr{user}}}, map[string]Setting{"token": code,
			"other": {Value: cty.ObjectVal(map[string]cty.Value{"user": text("x")}), FromEnvironment: true}}, false},
		"a part of the identity of a secret": {[]attr.Attr{
			{Name: "token", Type: cty.String, Secrecy: attr.Secret, UnlessGroup: "identity"}, user},
			map[string]Setting{"token": code, "user": ofLayer("x", false)}, true},
		"an empty secret": {[]attr.Attr{sent, place}, map[string]Setting{"token": {Value: text("")}}, false},
	} {
		e := &Entry{Address: "e", Settings: c.settings}
		_, err := e.Decode(attr.Table{Name: "kind", Attrs: c.attrs}, func(string) (string, bool) { return "ENV", true })
		if c.refused {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestCompany: what the code must not set beside an attribute, or without it.
func TestCompany(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "id", Type: cty.String, Env: []string{"ID"}},
		{Name: "key", Type: cty.String, Env: []string{"KEY"}, RequiredWith: "id"},
		{Name: "profile", Type: cty.String, Env: []string{"PROFILE"}, Excludes: []string{"id"}},
		{Name: "certificate", Type: cty.String, Env: []string{"CERTIFICATE"}, RequiredWith: "private"},
		{Name: "private", Type: cty.String, Env: []string{"PRIVATE"}, RequiredWith: "certificate"},
		{Name: "login", Attrs: []attr.Attr{
			{Name: "jwt", Type: cty.String, Env: []string{"JWT"}, Required: true, Excludes: []string{"file", "command"}},
			{Name: "file", Type: cty.String, Excludes: []string{"command"}}, {Name: "command", Type: cty.String},
		}},
		{Name: "other_login", Excludes: []string{"profile"}, Attrs: []attr.Attr{{Name: "role", Type: cty.String}}},
		{Name: "only", Type: cty.Bool, Excludes: []string{"profile"}},
	}}
	login := func(name, text string) map[string]Setting {
		return map[string]Setting{"login": {Value: cty.ObjectVal(map[string]cty.Value{name: cty.StringVal(text)})}}
	}
	value, says := Setting{Value: cty.StringVal("x")}, golden(t, "company")
	for name, c := range map[string]struct {
		code    map[string]Setting
		env     string
		refused bool
	}{
		"both":                {map[string]Setting{"id": value, "profile": value}, "", true},
		"one":                 {map[string]Setting{"id": value, "profile": {Value: cty.StringVal("")}}, "", false},
		"one of the code":     {map[string]Setting{"profile": value}, "ID", false},
		"none of the code":    {nil, "ID PROFILE", false},
		"without":             {map[string]Setting{"key": value}, "", true},
		"with it":             {map[string]Setting{"key": value, "id": value}, "", false},
		"with a variable's":   {map[string]Setting{"key": value}, "ID", false},
		"a variable, without": {nil, "KEY", false},
		"half a pair":         {map[string]Setting{"certificate": value}, "", true},
		"half of variables":   {nil, "PRIVATE", true},
		"a pair of both":      {map[string]Setting{"certificate": value}, "PRIVATE", false},
		"none of three":       {login("file", ""), "", true},
		"a variable of three": {login("file", ""), "JWT", false},
		"the last of three":   {login("command", "x"), "", false},
		"an empty block":      {map[string]Setting{"other_login": {Value: cty.EmptyObjectVal}, "profile": value}, "", true},
		"false in a text":     {map[string]Setting{"only": {Value: cty.StringVal("false")}, "profile": value}, "", false},
		"true in a text":      {map[string]Setting{"only": {Value: cty.StringVal("true")}, "profile": value}, "", true},
		"another mistake too": {map[string]Setting{"key": value, "id": {Value: cty.UnknownVal(cty.String)}}, "", true},
	} {
		e := &Entry{Address: "e", Settings: c.code}
		_, err := e.Decode(table, func(name string) (string, bool) { return "ENV", strings.Contains(" "+c.env+" ", " "+name+" ") })
		if c.refused {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestAlways: variables fill a block that is always there, by the same rules.
func TestAlways(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "token", Type: cty.String, Secrecy: attr.Secret},
		{Name: "endpoints", Default: cty.EmptyObjectVal, Attrs: []attr.Attr{
			{Name: "a", Type: cty.String, Env: []string{"A"}}, {Name: "b", Type: cty.String},
		}},
	}}
	block := Setting{Value: cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("code")})}
	token := Setting{Value: cty.StringVal("OWN")}
	for name, c := range map[string]struct {
		code    map[string]Setting
		env     attr.LookupEnv
		want    string
		refused bool
	}{
		"no block":        {nil, func(name string) (string, bool) { return "ENV", name == "A" }, "ENV", false},
		"a block":         {map[string]Setting{"endpoints": block}, func(string) (string, bool) { return "ENV", true }, "code", false},
		"beside a secret": {map[string]Setting{"token": token}, func(string) (string, bool) { return "ENV", true }, "", true},
		"a block, with a secret": {map[string]Setting{"token": token, "endpoints": block},
			func(string) (string, bool) { return "x", true }, "code", false},
		"no environment": {nil, nil, "", false},
	} {
		v, err := (&Entry{Address: "e", Settings: c.code}).Decode(table, c.env)
		if (err != nil) != c.refused {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil {
			if endpoints, ok := v.Block("endpoints"); !ok || endpoints.String("a") != c.want {
				t.Errorf("%s: got %q, %t, want %q", name, endpoints.String("a"), ok, c.want)
			}
		}
	}
}

// TestErrorsNameTheVariable that a value comes from.
func TestErrorsNameTheVariable(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{{Name: "x", Type: cty.String, Env: []string{"X"}}}, Variables: []attr.Attr{
		{Name: "Y", Type: cty.String, Env: []string{"Y"}, StandsFor: "x"},
	}}
	env := func(name string) (string, bool) { return name, true }
	for _, c := range []struct {
		code   map[string]Setting
		noCode bool
		attr   string
		want   string
	}{
		{
			map[string]Setting{"x": {Value: cty.StringVal("v"), Pos: attr.Pos{File: "code", Line: 1, Column: 2}}}, false, "x",
			"code:1,2: e.x: wrong",
		},
		{nil, false, "x", "e.x: the environment variable X: wrong"},
		{nil, false, "Y", "e: the environment variable Y: wrong"},
		{nil, false, "", "e: wrong"},
		{nil, true, "x", "the environment variable X: wrong"},
		{nil, true, "", "e: wrong"},
	} {
		v, err := (&Entry{Address: "e", Settings: c.code}).Resolve(table, Scope{Lookup: env, OnlyEnvironment: c.noCode})
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Errorf(c.attr, "wrong").Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestNothingIsRequiredOfTheEnvironment: an entry of its own need not be whole,
// and has nothing to say elsewhere.
func TestNothingIsRequiredOfTheEnvironment(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "url", Type: cty.String, Required: true}, {Name: "block", Required: true, Attrs: []attr.Attr{{Name: "x", Type: cty.String}}},
	}}
	env := func(string) (string, bool) { return "", false }
	e := &Entry{Address: "e"}
	if _, err := e.Resolve(table, Scope{Lookup: env}); err == nil || len(err.(fault.List)) != 2 {
		t.Errorf("got %v", err)
	}
	v, err := e.Resolve(table, Scope{Lookup: env, OnlyEnvironment: true})
	if err != nil || v.Environment() == nil {
		t.Errorf("got %v", err)
	}
	if v, err = e.Resolve(table, Scope{Lookup: env, OnlyEnvironment: true, OtherServer: true}); err != nil || v.Environment() != nil {
		t.Errorf("elsewhere: got %v", err)
	}
}

// TestSecretsAreWords: a secret that is sent is one word, unless its attribute says that
// it may have lines, whoever sets it. The secret is in no error.
func TestSecretsAreWords(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "x", Attrs: []attr.Attr{
		{Name: "token", Type: cty.String, Secrecy: attr.Secret, Env: []string{"TOKEN"}},
		{Name: "pem", Type: cty.String, Secrecy: attr.Secret, Form: attr.Lines},
		{Name: "passphrase", Type: cty.String, Secrecy: attr.LocalSecret},
		{Name: "note", Type: cty.String},
		{Name: "inner", Attrs: []attr.Attr{{Name: "token", Type: cty.String, Secrecy: attr.Secret}}},
	}}
	says := golden(t, "secrets that are words")
	for name, c := range map[string]struct {
		attrs   map[string]cty.Value
		env     string
		refused bool
	}{
		"a word":         {attrs: map[string]cty.Value{"token": cty.StringVal("c4n4ry ü/+= ")}},
		"its end":        {attrs: map[string]cty.Value{"token": cty.StringVal("c4n4ry\n")}, refused: true},
		"the end of DOS": {attrs: map[string]cty.Value{"token": cty.StringVal("c4n4ry\r\n")}, refused: true},
		"two lines":      {attrs: map[string]cty.Value{"token": cty.StringVal("c4n4ry\nX-Evil: 1")}, refused: true},
		"a zero":         {attrs: map[string]cty.Value{"token": cty.StringVal("c4n4ry\x00")}, refused: true},
		"a variable":     {env: "c4n4ry\n", refused: true},
		"inside a block": {refused: true,
			attrs: map[string]cty.Value{"inner": cty.ObjectVal(map[string]cty.Value{"token": cty.StringVal("c4n4ry\n")})}},
		"lines":            {attrs: map[string]cty.Value{"pem": cty.StringVal("-----BEGIN\nc4n4ry\n")}},
		"used here":        {attrs: map[string]cty.Value{"passphrase": cty.StringVal("c4n4ry\n")}},
		"not a secret":     {attrs: map[string]cty.Value{"note": cty.StringVal("two\nlines")}},
		"nothing":          {attrs: map[string]cty.Value{"token": cty.NullVal(cty.String)}},
		"the empty string": {attrs: map[string]cty.Value{"token": cty.StringVal("")}},
	} {
		env := func(name string) (string, bool) { return c.env, name == "TOKEN" && c.env != "" }
		_, err := NewEntry("a.b.x", table, c.attrs).Decode(table, env)
		if c.refused {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestWritten: what is set in a block, whatever the block turns out to be. One of
// the environment sets all that may stand in it.
func TestWritten(t *testing.T) {
	t.Parallel()
	text := cty.StringVal
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{{Name: "name", Type: cty.String}, {Name: "role", Attrs: []attr.Attr{
		{Name: "arn", Type: cty.String, Required: true},
		{Name: "duration", Type: cty.Number, Default: cty.NumberIntVal(60)},
		{Name: "off", Type: cty.Bool},
	}}}}
	arn := map[string]cty.Value{"arn": text("a"), "off": cty.NullVal(cty.Bool)}
	unknown := cty.UnknownVal(cty.Object(map[string]cty.Type{"arn": cty.String}))
	some, none := []string{"name", "role.arn", "role.duration"}, []string{"name", "role.duration"}
	for name, c := range map[string]struct {
		block Setting
		want  []string
	}{
		"an object":         {Setting{Value: cty.ObjectVal(arn)}, some},
		"a map":             {Setting{Value: cty.MapVal(map[string]cty.Value{"arn": text("a")})}, some},
		"an unknown object": {Setting{Value: unknown}, none},
		"a null object":     {Setting{Value: cty.NullVal(cty.Map(cty.String))}, none},
		"a string":          {Setting{Value: text("x")}, none},
		"of the environment": {Setting{Value: cty.ObjectVal(arn), FromEnvironment: true},
			[]string{"name", "role.arn", "role.duration", "role.off"}},
	} {
		e := Entry{Settings: map[string]Setting{"role": c.block, "name": {Value: text("x")}}}
		var got []string
		for _, w := range e.written(table) {
			got = append(got, w.Path)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
