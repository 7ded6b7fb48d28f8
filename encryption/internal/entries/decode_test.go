package entries_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func text(s string) cty.Value { return cty.StringVal(s) }

func number(f float64) cty.Value { return cty.NumberFloatVal(f) }

func table() attr.Table {
	return attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "name", Type: cty.String, Env: []string{"NAME", "OLD_NAME"}},
		{Name: "region", Type: cty.String, Default: text("here")},
		{Name: "on", Type: cty.Bool, Env: []string{"ON"}},
		{Name: "count", Type: cty.Number},
		{Name: "list", Type: cty.List(cty.String), Env: []string{"LIST"}},
		{Name: "map", Type: cty.Map(cty.String)},
		{Name: "bytes", Type: cty.List(cty.Number)},
		{Name: "keys", Type: cty.String, Form: attr.KeyProvider},
		{Name: "then", Type: cty.String, Form: attr.Method},
		{Name: "role", Attrs: []attr.Attr{
			{Name: "arn", Type: cty.String, Required: true, Env: []string{"ARN"},
				Doc: "The [ARN](https://example.com/a.html) of `role`, such as `arn:aws:x`. Nothing else."},
			{Name: "duration", Type: cty.Number, Default: number(60)},
			{Name: "off", Type: cty.Bool, Env: []string{"OFF"}},
		}},
	}}
}

func decode(attrs map[string]cty.Value, env map[string]string) (attr.Values, error) {
	return entries.NewEntry("kind.e", table(), attrs).Decode(table(), func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
}

// The first of several names that nobody knows is the same each time.
func TestUnknownNamesInOrder(t *testing.T) {
	t.Parallel()
	role := cty.ObjectVal(map[string]cty.Value{"a": text("x"), "b": text("x"), "c": text("x"), "arn": text("x"), "d": text("x")})
	_, want := decode(map[string]cty.Value{"role": role}, nil)
	for range 30 {
		if _, err := decode(map[string]cty.Value{"role": role}, nil); err == nil || err.Error() != want.Error() {
			t.Fatalf("got %v, and before %v", err, want)
		}
	}
}

// TestDecode: every type of value, absent and present, from the code and from
// variables.
func TestDecode(t *testing.T) {
	t.Parallel()
	none, err := decode(nil, map[string]string{"NAME": "", "ON": ""})
	if err != nil {
		t.Fatal(err)
	}
	if none.Has("name") || none.String("name") != "" || none.Bool("on") || none.Strings("list") != nil || none.StringMap("map") != nil {
		t.Error("absent attributes have values")
	}
	if n := none.Int("count"); n != 0 {
		t.Errorf("an absent number: %d", n)
	}
	if b, err := none.Bytes("bytes"); b != nil || err != nil {
		t.Errorf("absent bytes: %v, %v", b, err)
	}
	if _, ok := none.Block("role"); ok || none.String("region") != "here" {
		t.Error("a block that is absent, or no default")
	}
	all, err := decode(map[string]cty.Value{
		"region": text("there"), "count": text("7"), "map": cty.MapVal(map[string]cty.Value{"a": text("1"), "b": cty.NullVal(cty.String)}),
		"bytes": cty.TupleVal([]cty.Value{number(0), number(255)}), "role": cty.ObjectVal(map[string]cty.Value{"arn": text("a")}),
	}, map[string]string{"OLD_NAME": "old", "ON": "true", "LIST": "one,two"})
	if err != nil {
		t.Fatal(err)
	}
	if n := all.Int("count"); n != 7 {
		t.Errorf("count: %d", n)
	}
	if b, err := all.Bytes("bytes"); !slices.Equal(b, []byte{0, 255}) || err != nil {
		t.Errorf("bytes: %v, %v", b, err)
	}
	role, ok := all.Block("role")
	got := []any{all.String("name"), all.Variable("name"), all.String("region"), all.Variable("region"), all.Bool("on"), all.Strings("list"),
		all.StringMap("map"), ok, role.String("arn"), role.Has("off"), role.Address()}
	want := []any{"old", "OLD_NAME", "there", "", true, []string{"one,two"}, map[string]string{"a": "1"}, true, "a", false, "kind.e.role"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("an attribute that the table does not declare was read")
		}
	}()
	all.String("undeclared")
}

// golden has the texts of a group of errors, none of which shows a value.
func golden(t *testing.T, group string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, "../../testdata/mistakes.txt", "attributes, "+group, "c4n4ry", "canary")
}

// TestMistakesInValues: each mistake names the entry and the attribute.
func TestMistakesInValues(t *testing.T) {
	t.Parallel()
	says := golden(t, "values")
	for name, c := range map[string]struct {
		attrs map[string]cty.Value
		env   map[string]string
	}{
		"a list for a string":            {attrs: map[string]cty.Value{"name": cty.ListVal([]cty.Value{text("x")})}},
		"text for a number":              {attrs: map[string]cty.Value{"count": text("many")}},
		"text for a list":                {attrs: map[string]cty.Value{"list": text("x")}},
		"text for a map":                 {attrs: map[string]cty.Value{"map": text("x")}},
		"text for a block":               {attrs: map[string]cty.Value{"role": text("x")}},
		"a word for a bool":              {env: map[string]string{"ON": "maybe"}},
		"nothing required in a block":    {attrs: map[string]cty.Value{"role": cty.EmptyObjectVal}},
		"a misspelt argument in a block": {attrs: map[string]cty.Value{"role": cty.ObjectVal(map[string]cty.Value{"arm": text("a")})}},
		"unknown":                        {attrs: map[string]cty.Value{"name": cty.UnknownVal(cty.String)}},
		"no reference":                   {attrs: map[string]cty.Value{"keys": text("main")}},
		"no method":                      {attrs: map[string]cty.Value{"then": text("key_provider.static.k")}},
		"empty address":                  {attrs: map[string]cty.Value{"keys": text("")}},
		"two mistakes":                   {attrs: map[string]cty.Value{"count": text("many"), "list": text("x")}},
	} {
		_, err := decode(c.attrs, c.env)
		says.Error(t, name, err)
		address := "kind.e"
		if c.env != nil { // nobody wrote it there
			address = ""
		}
		mistake, ok := errors.AsType[*attr.Error](err)
		if !ok || mistake.Unknown != (name == "unknown") || mistake.Address != address {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// TestNumbers: the bounds are values, and what is beyond them is not.
func TestNumbers(t *testing.T) {
	t.Parallel()
	says := golden(t, "numbers")
	table := attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "count", Type: cty.Number, Check: attr.Between(2, 5)}, {Name: "any", Type: cty.Number},
	}}
	for n, ok := range map[float64]bool{2: true, 5: true, 3: true, 1: false, 6: false, 2.5: false, 1e300: false} {
		v, err := entries.NewEntry("kind.e", table, map[string]cty.Value{"count": number(n)}).Decode(table, nil)
		if !ok {
			says.Error(t, fmt.Sprint(n), err)
		} else if err != nil || float64(v.Int("count")) != n {
			t.Errorf("%v: %v", n, err)
		}
	}
	for _, n := range []float64{2.5, 1e300} {
		if _, err := entries.NewEntry("kind.e", table, map[string]cty.Value{"any": number(n)}).Decode(table, nil); err == nil {
			t.Errorf("%v is a number that Int returns", n)
		}
	}
	v, err := decode(map[string]cty.Value{"bytes": cty.TupleVal([]cty.Value{number(256)})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Bytes("bytes")
	says.Error(t, "bytes", err)
}

// TestIdentity: equal for equal values, and for no others.
func TestIdentity(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, attrs := range map[string]map[string]cty.Value{
		"none": nil, "name": {"name": text("x")}, "another name": {"name": text("y")}, "region": {"region": text("x")},
		"a block":            {"role": cty.ObjectVal(map[string]cty.Value{"arn": text("x")})},
		"another value in a": {"role": cty.ObjectVal(map[string]cty.Value{"arn": text("y")})},
	} {
		v, errV := decode(attrs, nil)
		w, errW := decode(attrs, nil)
		if err := errors.Join(errV, errW); err != nil {
			t.Fatal(err)
		}
		if v.Identity() != w.Identity() {
			t.Errorf("%s: not equal to itself", name)
		}
		if other, ok := seen[v.Identity()]; ok {
			t.Errorf("%s has the identity of %s", name, other)
		}
		seen[v.Identity()] = name
	}
}

// TestIsSet: what counts as a choice, so that no variable takes its place.
func TestIsSet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setting entries.Setting
		want    bool
	}{
		"nothing":       {entries.Setting{}, false},
		"null":          {entries.Setting{Value: cty.NullVal(cty.String)}, false},
		"unknown":       {entries.Setting{Value: cty.UnknownVal(cty.String)}, true},
		"a mistake":     {entries.Setting{Err: errors.New("x")}, true},
		"a string":      {entries.Setting{Value: text("x")}, true},
		"no characters": {entries.Setting{Value: text("")}, false},
		"a list":        {entries.Setting{Value: cty.ListVal([]cty.Value{text("x")})}, true},
		"no elements":   {entries.Setting{Value: cty.ListValEmpty(cty.String)}, false},
		"an object":     {entries.Setting{Value: cty.ObjectVal(map[string]cty.Value{"a": text("x")})}, true},
		"true":          {entries.Setting{Value: cty.True}, true},
		"false":         {entries.Setting{Value: cty.False}, false},
		"zero":          {entries.Setting{Value: cty.Zero}, true},
	} {
		if got := c.setting.IsSet(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTextOfErrors: an error has as much of place, address and attribute as is
// known, and can be found among several.
func TestTextOfErrors(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	for want, err := range map[string]attr.Error{
		"why": {Err: why}, "a: why": {Address: "a", Err: why}, "a.b: why": {Address: "a", Attr: "b", Err: why}, "b: why": {Attr: "b", Err: why},
		"f:3,7: a.b: why": {Address: "a", Attr: "b", Pos: attr.Pos{File: "f", Line: 3, Column: 7}, Err: why},
	} {
		if err.Error() != want || !errors.Is(&err, why) {
			t.Errorf("got %s, want %s", err.Error(), want)
		}
	}
	two := fault.List{errors.New("one"), why}
	one := two[1:].Err()
	if two.Err().Error() != "one\nwhy" || !errors.Is(two.Err(), why) || one.Error() != "why" || two[:0].Err() != nil {
		t.Error("several errors")
	}
}

// TestBools: false is a value, and null is none, also in a block.
func TestBools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on, off cty.Value
		want    [2]bool
	}{
		"false": {cty.False, cty.False, [2]bool{false, false}},
		"true":  {cty.True, cty.True, [2]bool{true, true}},
		"null":  {cty.NullVal(cty.Bool), cty.NullVal(cty.Bool), [2]bool{true, true}},
	} {
		v, err := decode(map[string]cty.Value{"on": c.on, "role": cty.ObjectVal(map[string]cty.Value{"arn": text("a"), "off": c.off})},
			map[string]string{"ON": "true", "OFF": "true"})
		if err != nil {
			t.Fatal(err)
		}
		role, _ := v.Block("role")
		if got := [2]bool{v.Bool("on"), role.Bool("off")}; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLookup: the first variable that is set and not empty.
func TestLookup(t *testing.T) {
	t.Parallel()
	env := attr.LookupEnv(func(name string) (string, bool) {
		return map[string]string{"A": "", "B": "b", "C": "c"}[name], name < "D"
	})
	if got, ok := env.Get("A", "D", "B", "C"); got != "b" || !ok {
		t.Errorf("%q, %t", got, ok)
	}
	if got, ok := env.Get("A", "D"); got != "" || ok {
		t.Errorf("none: %q, %t", got, ok)
	}
	if got, ok := attr.LookupEnv(nil).Get("B"); got != "" || ok {
		t.Errorf("no environment: %q, %t", got, ok)
	}
}

// TestUnknownSecrets: whatever is not known yet is reported as that, beside what
// the environment says as well.
func TestUnknownSecrets(t *testing.T) {
	t.Parallel()
	secrets := attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "token", Type: cty.String, Secrecy: attr.Secret},
		{Name: "mode", Type: cty.String, Harmless: "Only some are.", HarmlessIf: harmless.OneOf("safe")},
	}}
	unknown, null, says := cty.UnknownVal(cty.String), cty.NullVal(cty.String), golden(t, "secrets that are not known")
	for name, c := range map[string]struct {
		token, mode cty.Value
		layer       bool
		refused     bool
	}{
		"a secret":                     {unknown, text("x"), false, true},
		"beside an unknown of a layer": {text("t"), unknown, true, true},
		"beside a null of a layer":     {text("t"), null, true, true},
		"beside what is safe":          {text("t"), text("safe"), true, false},
		"no secret":                    {null, text("x"), true, false},
		"an empty secret":              {text(""), text("x"), true, false},
	} {
		e := entries.Entry{Address: "e", Settings: map[string]entries.Setting{
			"token": {Value: c.token}, "mode": {Value: c.mode, FromEnvironment: c.layer},
		}}
		_, err := e.Decode(secrets, nil)
		if c.refused {
			says.Error(t, name, err)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHarmlessBools: how variables spell true and false.
func TestHarmlessBools(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][2]bool{
		"true": {true, false}, "1": {true, false}, "T": {true, false}, "false": {false, true}, "0": {false, true},
		"": {false, false}, "yes": {false, false}, "2": {false, false},
	} {
		if got := [2]bool{harmless.True(value), harmless.False(value)}; got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

// TestWhatKindsAsk: what a kind may learn of the environment beside its attributes.
func TestWhatKindsAsk(t *testing.T) {
	t.Parallel()
	asked := attr.Table{Name: "kind", Attrs: []attr.Attr{
		{Name: "token", Type: cty.String, Secrecy: attr.Secret},
		{Name: "profile", Type: cty.String, Secrecy: attr.NamesSecret, EntryInFiles: []string{"file"}},
		{Name: "file", Type: cty.String},
		{Name: "auth", Attrs: []attr.Attr{{Name: "jwt", Type: cty.String, Secrecy: attr.Secret}}},
	}}
	jwt := entries.Setting{Value: cty.ObjectVal(map[string]cty.Value{"jwt": text("x")})}
	env := attr.LookupEnv(func(name string) (string, bool) { return "set", name == "SET" })
	for name, c := range map[string]struct {
		secret  string // the attribute or the block that the code sets
		scope   entries.Scope
		want    string
		refused string // beside any secret, and beside token
	}{
		"nothing":         {refused: "false false"},
		"environment":     {scope: entries.Scope{Lookup: env}, want: "environment", refused: "false false"},
		"another server":  {scope: entries.Scope{Lookup: env, OtherServer: true}, refused: "false false"},
		"a secret":        {secret: "token", want: "secret, token", refused: "true true"},
		"both":            {"token", entries.Scope{Lookup: env}, "environment, secret, token", "true true"},
		"an entry":        {"profile", entries.Scope{Lookup: env}, "environment, secret", "true false"},
		"elsewhere, both": {"token", entries.Scope{Lookup: env, OtherServer: true}, "secret, token", "true true"},
		"in a block":      {"auth", entries.Scope{Lookup: env}, "environment, secret, auth, auth.jwt", "true false"},
		"no code":         {"token", entries.Scope{Lookup: env, OnlyEnvironment: true}, "environment", "false false"},
	} {
		e := entries.Entry{Address: "e", Settings: map[string]entries.Setting{c.secret: {Value: text("x")}}}
		if c.secret == "auth" {
			e.Settings["auth"] = jwt
		}
		v, err := e.Resolve(asked, c.scope)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, answer := range []struct {
			name string
			is   bool
		}{
			{"environment", v.Environment() != nil}, {"secret", v.Hands()},
			{"token", v.Hands("token", "file")}, {"auth", v.Hands("auth")}, {"auth.jwt", v.Hands("auth.jwt")}, {"jwt", v.Hands("jwt")},
		} {
			if answer.is {
				got = append(got, answer.name)
			}
		}
		refused := fmt.Sprint(v.Refuse("file", "the variable SET") != nil, v.Refuse("file", "x", "token") != nil)
		if strings.Join(got, ", ") != c.want || refused != c.refused {
			t.Errorf("%s: %q, refused: %s", name, got, refused)
		}
	}
}

// TestCommands: what only the environment names does not run, also in a block, and also
// if only some values of an attribute are commands.
func TestCommands(t *testing.T) {
	t.Parallel()
	table := attr.Table{Name: "run", Attrs: []attr.Attr{
		{Name: "command", Type: cty.String, Form: attr.Command},
		{Name: "maybe", Type: cty.String, Env: []string{"MAYBE"}},
		{Name: "note", Type: cty.String},
		{Name: "block", Attrs: []attr.Attr{{Name: "command", Type: cty.String, Form: attr.Command}}},
		{Name: "other", Attrs: []attr.Attr{{Name: "maybe", Type: cty.String}}},
	}}
	block := func(name string) cty.Value { return cty.ObjectVal(map[string]cty.Value{name: cty.StringVal("canary")}) }
	says := golden(t, "commands")
	ofCode, variable := attr.LookupEnv(nil), attr.LookupEnv(func(name string) (string, bool) { return "canary", name == "MAYBE" })
	for name, c := range map[string]struct {
		attribute string
		value     cty.Value
		layer     bool
		lookup    attr.LookupEnv
		refused   bool
		asked     bool // it is refused when Command is asked
	}{
		"code":                           {"command", cty.StringVal("canary"), false, ofCode, false, false},
		"layer":                          {"command", cty.StringVal("canary"), true, ofCode, true, false},
		"block of the code":              {"block", block("command"), false, ofCode, false, false},
		"block of a layer":               {"block", block("command"), true, ofCode, true, false},
		"maybe, code":                    {"maybe", cty.StringVal("canary"), false, variable, false, false},
		"maybe, layer":                   {"maybe", cty.StringVal("canary"), true, ofCode, false, true},
		"maybe, variable":                {"maybe", cty.NullVal(cty.String), false, variable, false, true},
		"maybe, variable beside a layer": {"note", cty.StringVal("x"), true, variable, false, true},
		"maybe, block":                   {"other", block("maybe"), false, ofCode, false, false},
		"maybe, block of layer":          {"other", block("maybe"), true, ofCode, false, true},
	} {
		for _, allowed := range []bool{false, true} {
			entry := &entries.Entry{Address: "x", Settings: map[string]entries.Setting{c.attribute: {Value: c.value, FromEnvironment: c.layer}}}
			values, err := entry.Resolve(table, entries.Scope{Lookup: c.lookup, AllowCommands: allowed})
			refused := c.refused && !allowed
			if errors.Is(err, entries.ErrCommand) != refused {
				t.Errorf("%s, allowed %t: %v", name, allowed, err)
			}
			if refused {
				says.Error(t, name, err)
			}
			if err != nil {
				continue
			}
			if c.attribute == "command" && !c.layer { // beside something of a layer
				entry.Settings["maybe"] = entries.Setting{Value: text("x"), FromEnvironment: true}
				if _, err := entry.Resolve(table, entries.Scope{}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if inner, ok := values.Block("other"); ok {
				values = inner
			}
			if err := values.Command("maybe"); errors.Is(err, entries.ErrCommand) != (c.asked && !allowed) {
				t.Errorf("%s, allowed %t: asked, it says %v", name, allowed, err)
			}
			// What a variable leads to is refused beside something of a layer.
			if err := values.LeadsToCommand("maybe"); errors.Is(err, entries.ErrCommand) != (c.asked && c.layer && !allowed) {
				t.Errorf("%s, allowed %t: asked what it leads to, it says %v", name, allowed, err)
			}
		}
	}
	// A block of a layer counts even if it is empty.
	for _, ofLayer := range []bool{false, true} {
		entry := &entries.Entry{Address: "x", FromEnvironment: ofLayer}
		values, err := entry.Resolve(attr.Table{Attrs: table.Attrs[1:]}, entries.Scope{Lookup: variable})
		if err != nil {
			t.Fatal(err)
		}
		if err := values.LeadsToCommand("maybe"); errors.Is(err, entries.ErrCommand) != ofLayer {
			t.Errorf("an empty block, of a layer %t: %v", ofLayer, err)
		}
	}
}
