package source

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// madeUp is a kind of source that says in its tables what it is given, and in no other place.
// Its server does not answer.
func madeUp() Kind {
	return Kind{
		Table: attr.Table{Name: "made_up", Doc: "Reads from a server that there is not.", Attrs: []attr.Attr{
			{Name: "address", Type: cty.String, Required: true, Env: []string{"MADE_UP_ADDRESS"}, Doc: "The server.",
				Check: attr.Is(func(text string) bool { return strings.HasPrefix(text, "https://") }, "a URL with https is required")},
			{Name: "key", Type: cty.String, Required: true, Form: attr.Path, Doc: "Where the state is."},
			{Name: "folders", Type: cty.List(cty.String), Form: attr.Name, Doc: "Where it may be."},
			{Name: "page", Doc: "What is asked for at once.", Attrs: []attr.Attr{
				{Name: "size", Type: cty.Number, Check: attr.Between(1, 100), Doc: "How many."},
				{Name: "version", Type: cty.String, Form: attr.Version, Doc: "Of what."},
				{Name: "name", Type: cty.String, Doc: "What it is called."},
			}},
		}},
		Credentials: attr.Table{Name: "made_up", Doc: "The secrets.", Attrs: []attr.Attr{
			{Name: "url", Type: cty.String, Required: true, Doc: "For which server."},
			{Name: "token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Env: []string{"MADE_UP_TOKEN"}, Doc: "The token."},
			{Name: "login", Default: cty.EmptyObjectVal, Doc: "Who signs in.", Attrs: []attr.Attr{
				{Name: "tokens", Type: cty.List(cty.String), Form: attr.Token, Secrecy: attr.Secret, Env: []string{"MADE_UP_LOGIN"}, Doc: "Tokens."},
				{Name: "role", Type: cty.String, Form: attr.Name, Doc: "As who."},
			}},
		}},
		Begin: func(s Settings) Open {
			return func(req Request) (Source, error) {
				u, err := url.Parse(req.String("address"))
				if err != nil {
					return nil, err
				}
				_, err = s.Credentials.For(u)
				return noServer{}, err
			}
		},
	}
}

type noServer struct{}

func (noServer) Fetch(context.Context) (*Snapshot, error) {
	return nil, errors.New("there is no such server")
}
func (noServer) String() string { return "nowhere" }

// TestMadeUp: a new kind states its tables, and has every check and all advice, wherever in them
// an attribute stands and whoever says what it is.
func TestMadeUp(t *testing.T) {
	t.Parallel()
	const canary = "canary-made-up"
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "a made-up kind", canary)
	kind, text := madeUp(), cty.StringVal
	block := func(name string, value cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{name: value}) }
	list := func(first, second string) cty.Value { return cty.ListVal([]cty.Value{text(first), text(second)}) }
	for name, c := range map[string]struct {
		block, credentials map[string]cty.Value
		env                string // variable=value
	}{
		"nothing is wrong":              {},
		"what the check refuses":        {block: map[string]cty.Value{"address": text("http://a.test")}},
		"a placeholder in its place":    {block: map[string]cty.Value{"address": text("<your-server>")}},
		"a path that leads out":         {block: map[string]cty.Value{"key": text("../b")}},
		"more than a name, in a list":   {block: map[string]cty.Value{"folders": list("a", "b/c")}},
		"block, a number that is small": {block: map[string]cty.Value{"page": block("size", cty.Zero)}},
		"block, no version":             {block: map[string]cty.Value{"page": block("version", text(""))}},
		"block, the content of a file":  {block: map[string]cty.Value{"page": block("name", text("a\nb\nc\n"))}},
		"a token with a line break":     {credentials: map[string]cty.Value{"token": text(canary + "\n")}},
		"for whom is a variable":        {env: "MADE_UP_TOKEN=" + canary},
		"for whom is one in a block":    {env: "MADE_UP_LOGIN=" + canary},
		"block, tokens, one with lines": {credentials: map[string]cty.Value{"login": block("tokens", list("x", canary+"\n"))}},
		"block, more than a name":       {credentials: map[string]cty.Value{"login": block("role", text("a/b"))}},
	} {
		env := func(name string) (string, bool) {
			variable, value, _ := strings.Cut(c.env, "=")
			return value, name == variable
		}
		if c.block == nil {
			c.block = map[string]cty.Value{}
		}
		for name, value := range map[string]string{"address": "https://a.test", "key": "k"} {
			if c.block[name] == cty.NilVal {
				c.block[name] = text(value)
			}
		}
		settings := Settings{LookupEnv: env, Credentials: Credentials{Env: env}}
		if c.credentials != nil {
			c.credentials["url"] = text("https://a.test")
			settings.Credentials.Entries = []*unstable.Entry{unstable.NewEntry("credentials.made_up[0]", kind.Credentials, c.credentials)}
		}
		values, err := unstable.NewEntry("made_up", kind.Table, c.block).Decode(kind.Table, env)
		if err == nil {
			var src Source
			if src, err = kind.Start(settings)(Request{Values: values, Workspace: "default", MaxSize: 1}); err == nil {
				_, err = src.Fetch(t.Context())
			}
		}
		says.Error(t, name, err)
	}
}
