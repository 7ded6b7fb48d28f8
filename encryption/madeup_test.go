package encryption_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// madeUp is a key provider that says in its table what it is given, and in no other place.
// It gets no key from its service.
func madeUp() driver.Block[driver.KeyProvider] {
	isURL := func(text string) bool { return strings.HasPrefix(text, "https://") }
	return driver.Block[driver.KeyProvider]{
		Table: attr.Table{
			Name: "made_up", Doc: "A key of a service that there is not.", Example: []string{`key = "tf-state"`},
			Attrs: []attr.Attr{
				{Name: "address", Type: cty.String, Default: cty.StringVal("https://a.test"), Env: []string{"MADE_UP_ADDRESS"},
					Check: attr.Is(isURL, "a URL with https is required"), Doc: "The server."},
				{Name: "key", Type: cty.String, Required: true, Form: attr.Name, Env: []string{"MADE_UP_KEY"},
					Harmless: "It says which key the server is asked for.", Doc: "The name of the key. It is one."},
				{Name: "engine", Type: cty.String, Form: attr.Path, Doc: "Where the keys are."},
				{Name: "revision", Type: cty.String, Form: attr.Version, Doc: "The version of the key."},
				{Name: "length", Type: cty.Number, Check: attr.Between(1, 64), Doc: "The length of the key."},
				{Name: "token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "who",
					Env: []string{"MADE_UP_TOKEN"}, Doc: "The token."},
				{Name: "token_file", Type: cty.String, Secrecy: attr.NamesSecret, Group: "who", Excludes: []string{"token"}, Doc: "The file of it."},
				{Name: "user", Type: cty.String, Group: "who", RequiredWith: "token", Env: []string{"MADE_UP_USER"}, Doc: "Who that is."},
				{Name: "passphrase", Type: cty.String, Form: attr.Passphrase, Secrecy: attr.LocalSecret, Doc: "What is mixed in."},
				{Name: "helper", Type: cty.List(cty.String), Form: attr.Command, Doc: "A program."},
				{Name: "base", Type: cty.String, Form: attr.KeyProvider, Doc: "What is built on."},
				{Name: "tokens", Type: cty.List(cty.String), Form: attr.Token, Secrecy: attr.Secret, Doc: "Further ones."},
				{Name: "folders", Type: cty.List(cty.String), Form: attr.Path, Doc: "Where they are."},
				{Name: "login", Doc: "Who signs in.", Attrs: []attr.Attr{
					{Name: "role", Type: cty.String, Form: attr.Name, Required: true, Env: []string{"MADE_UP_ROLE"}, Doc: "The role."},
					{Name: "token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Env: []string{"MADE_UP_LOGIN"},
						Harmless: "It is a secret itself.", Doc: "The token."},
					{Name: "duration", Type: cty.Number, Check: attr.Between(1, 12), Doc: "How many hours."},
					{Name: "base", Type: cty.String, Form: attr.KeyProvider, Doc: "What is built on."},
				}},
			},
		},
		Build: func(attr.Values) (driver.KeyProvider, error) { return noService{}, nil },
	}
}

// madeUpMethod is a method that says in its table what it is given. It seals nothing.
func madeUpMethod() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: attr.Table{
			Name: "made_up", Doc: "A method that there is not.", Example: []string{"keys = key_provider.made_up.x"},
			Attrs: []attr.Attr{
				{Name: "keys", Type: cty.String, Form: attr.KeyProvider, Doc: "The key."},
				{Name: "more", Type: cty.List(cty.String), Form: attr.Passphrase, Secrecy: attr.LocalSecret, Doc: "Further passphrases."},
				{Name: "wrap", Default: cty.EmptyObjectVal, Doc: "What is around the key.", Attrs: []attr.Attr{
					{Name: "passphrase", Type: cty.String, Form: attr.Passphrase, Secrecy: attr.LocalSecret, Env: []string{"MADE_UP_WRAP"},
						Harmless: "It is used here and never sent.", Doc: "The passphrase."},
					{Name: "keys", Type: cty.String, Form: attr.KeyProvider, Doc: "Another key."},
					{Name: "helper", Type: cty.String, Form: attr.Command, Doc: "A program."},
					{Name: "rounds", Type: cty.Number, Check: attr.Between(1, 9), Doc: "How often."},
				}},
			},
		},
		Build: func(attr.Values) (driver.Method, error) { return noMethod{}, nil },
	}
}

type noMethod struct{}

func (noMethod) Decrypt(context.Context, driver.Keys, []byte) ([]byte, error) {
	return nil, driver.ErrNoKey
}

func (noMethod) Encrypt(context.Context, driver.Keys, []byte) ([]byte, error) {
	return nil, errors.New("there is no such method")
}

type noService struct{}

func (noService) Key(context.Context, driver.Keys, json.RawMessage) ([]byte, error) {
	return nil, errors.New("there is no such service")
}

func (noService) NewKey(context.Context, driver.Keys) ([]byte, json.RawMessage, error) {
	return nil, nil, errors.New("there is no such service")
}

// TestMadeUp: a new kind states its table, and has every check and all advice, wherever in it
// an attribute stands and whoever says what it is.
func TestMadeUp(t *testing.T) {
	t.Parallel()
	const canary = "canary-made-up"
	says := golden(t, "a made-up kind")
	registry := lighttest.Registry()
	registry.KeyProviders = append(registry.KeyProviders, madeUp())
	registry.Methods = append(registry.Methods, madeUpMethod())
	const key = "\nkey = \"k\"\n"
	login := func(settings string) string { return key + "login {\nrole = \"r\"\n" + settings + "\n}" }
	wrap := func(settings string) string { return "wrap {\n" + settings + "\n}" }
	for name, c := range map[string]struct {
		block, layer   string // of the key provider
		method, beside string // of the method, in the code and in the layer
		variables      map[string]string
	}{
		"nothing is wrong":             {block: key},
		"nothing that is required":     {block: `length = 1`},
		"a name that it does not have": {block: key + `engines = "a"`},
		"another type":                 {block: key + `helper = "sh"`},
		"more than a name":             {block: `key = "a/../b"`},
		"a name of a variable":         {block: ` `, variables: map[string]string{"MADE_UP_KEY": "a/b"}},
		"a path that leads out":        {block: key + `engine = "../b"`},
		"no version":                   {block: key + `revision = ""`},
		"a number that is too large":   {block: key + `length = 65`},
		"a fraction":                   {block: key + `length = 1.5`},
		"what the check refuses":       {block: key + `address = "http://a.test"`},
		"a placeholder in its place":   {block: key + `address = "<your-server>"`},
		"the check, of a variable":     {block: key, variables: map[string]string{"MADE_UP_ADDRESS": "${ADDRESS}"}},
		"a token with its line break":  {block: key + `token = "` + canary + `\n"`},
		"a token with its scheme":      {block: key + `token = "Bearer ` + canary + `"`},
		"a token in quotation marks":   {block: key + `token = "'` + canary + `'"`},
		"no passphrase":                {block: key + `passphrase = "***"`},
		"a path as passphrase":         {block: key + `passphrase = "/run/secrets/passphrase"`},
		"two that exclude each other":  {block: key + `token_file = "/f"` + "\n" + `token = "` + canary + `"`},
		"half an identity":             {block: key + `user = "me"`},
		"a variable beside a token": {block: key + `token = "` + canary + `"`,
			variables: map[string]string{"MADE_UP_ADDRESS": "https://b.test"}},
		"a harmless one":                  {block: `token = "` + canary + `"`, variables: map[string]string{"MADE_UP_KEY": "k"}},
		"a layer beside a token":          {block: key + `token = "` + canary + `"`, layer: `address = "https://b.test"`},
		"a layer that splits who it is":   {block: key + `token = "` + canary + `"`, layer: `user = "me"`},
		"a command of a layer alone":      {block: key, layer: `helper = ["sh"]`},
		"a key provider that there isn't": {block: key + `base = key_provider.pbkdf2.y`},
		"a path in a list that leads out": {block: key + `folders = ["a", "../b"]`},
		"a token in a list, odd":          {block: key + `tokens = ["x", "Bearer ` + canary + `"]`},
		"a token in a list, two lines":    {block: key + `tokens = ["x", "` + canary + `\n"]`},
		"a token of a variable":           {block: key, variables: map[string]string{"MADE_UP_TOKEN": "Bearer " + canary}},
		"a token of a variable, a file":   {block: key, variables: map[string]string{"MADE_UP_TOKEN": "~/secrets/" + canary}},

		"block, nothing is wrong":           {block: login("")},
		"block, nothing that is required":   {block: key + "login {}"},
		"block, more than a name":           {block: key + "login {\nrole = \"a/b\"\n}"},
		"block, a name of a variable":       {block: key + "login {}", variables: map[string]string{"MADE_UP_ROLE": "a/b"}},
		"block, a number that is too large": {block: login("duration = 13")},
		"block, a token with its scheme":    {block: login(`token = "Bearer ` + canary + `"`)},
		"block, a token of a variable":      {block: login(""), variables: map[string]string{"MADE_UP_LOGIN": "Bearer " + canary}},
		"block, a variable beside a token": {block: login(`token = "` + canary + `"`),
			variables: map[string]string{"MADE_UP_ADDRESS": "https://b.test"}},
		"block, a key provider that there isn't": {block: login("base = key_provider.pbkdf2.y")},
		"block, two mistakes":                    {block: key + "login {\nrole = \"a/b\"\nduration = 13\n}"},

		"method, nothing is wrong":           {block: key, method: "keys = key_provider.made_up.x"},
		"method, no passphrase in a list":    {block: key, method: `more = ["` + canary + `", "***"]`},
		"method, no passphrase in a block":   {block: key, method: wrap(`passphrase = "***"`)},
		"method, no passphrase, a variable":  {block: key, variables: map[string]string{"MADE_UP_WRAP": "${PASSPHRASE}"}, method: " "},
		"method, a path as passphrase":       {block: key, method: wrap(`passphrase = "/run/secrets/passphrase"`)},
		"method, that of a variable":         {block: key, variables: map[string]string{"MADE_UP_WRAP": "/run/secrets/passphrase"}, method: " "},
		"method, no such key, in a block":    {block: key, method: wrap("keys = key_provider.made_up.y")},
		"method, a command of a layer alone": {block: key, method: " ", beside: wrap(`helper = "sh"`)},
		"method, too many rounds":            {block: key, method: wrap("rounds = 10")},
	} {
		method := "method \"aes_gcm\" \"x\" {\n  keys = key_provider.made_up.x\n}\nstate {\n  method = method.aes_gcm.x\n}"
		if c.method != "" {
			method = "method \"made_up\" \"x\" {\n" + c.method + "\n}\nstate {\n  method = method.made_up.x\n}"
		}
		layers := []encryption.Layer{encryption.Code("key_provider \"made_up\" \"x\" {\n"+c.block+"\n}\n"+method, "code")}
		layers = append(layers, encryption.Environment(func(name string) (string, bool) {
			switch {
			case name == "TF_ENCRYPTION" && c.layer != "":
				return "key_provider \"made_up\" \"x\" {\n" + c.layer + "\n}", true
			case name == "TF_ENCRYPTION" && c.beside != "":
				return "method \"made_up\" \"x\" {\n" + c.beside + "\n}", true
			}
			value, ok := c.variables[name]
			return value, ok
		}))
		enc, err := encryption.Load(registry, layers...)
		if err == nil {
			_, err = enc.State().Encrypt(t.Context(), []byte(state))
			if found := enc.Check(); len(found) > 0 {
				err = errors.Join(found[0].Err, err)
			}
		}
		says.Error(t, name, err)
		if strings.Contains(err.Error(), canary) {
			t.Errorf("%s: a secret is in the error", name)
		}
	}
}
