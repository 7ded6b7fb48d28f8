package encryption_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
)

const (
	sets   = "p = " + right + "\n"
	resets = "p = " + wrong + "\n"
)

// only is a passphrase that is right if the condition holds.
func only(condition string) string { return condition + " ? " + right + " : " + wrong }

// orders are modules whose variables have values from several places. The variable
// p has a default, so that a place that is not read goes unnoticed.
var orders = map[string]struct {
	passphrase  string // "var.p" if empty
	variable    string // how it is declared, if it is not p
	files       map[string]string
	environment map[string]string
	arguments   []string
	refused     bool
}{
	"TF_VAR":                {environment: map[string]string{"p": right}},
	"terraform.tfvars":      {files: map[string]string{"terraform.tfvars": sets}, environment: map[string]string{"p": wrong}},
	"JSON":                  {files: map[string]string{"terraform.tfvars.json": `{"p": ` + right + `}`, "terraform.tfvars": resets}},
	"auto":                  {files: map[string]string{"a.auto.tfvars": sets, "terraform.tfvars.json": `{"p": ` + wrong + `}`}},
	"auto, by name":         {files: map[string]string{"b.auto.tfvars": sets, "a.auto.tfvars": resets}},
	"auto, JSON":            {files: map[string]string{"a.auto.tfvars.json": `{"p": ` + right + `}`, "a.auto.tfvars": resets}},
	"auto, JSON before":     {files: map[string]string{"a.auto.tfvars.json": `{"p": ` + wrong + `}`, "b.auto.tfvars": sets}},
	"auto, capitals first":  {files: map[string]string{"a.auto.tfvars": sets, "B.auto.tfvars": resets}},
	"auto, hidden":          {files: map[string]string{".a.auto.tfvars": sets}},
	"auto before terraform": {files: map[string]string{"a.auto.tfvars": sets, "terraform.tfvars": resets}},
	"no such ending":        {files: map[string]string{"terraform.tfvars": sets, "x.tfvars": resets, "x.auto.tfvars.bak": resets}},
	"each its own": {passphrase: `"${var.p} ${var.q}"`, variable: `variable "q" {}`,
		files: map[string]string{"terraform.tfvars": "p = \"correct horse\"\n", "a.auto.tfvars": "q = \"battery staple\"\n"}},
	"-var":                    {files: map[string]string{"a.auto.tfvars": resets}, arguments: []string{"-var=p=correct horse battery staple"}},
	"-var twice":              {arguments: []string{"-var=p=another", "-var=p=correct horse battery staple"}},
	"-var with an equal sign": {passphrase: only(`var.p == "a=b"`), arguments: []string{"-var=p=a=b"}},
	"-var-file": {files: map[string]string{"a.auto.tfvars": resets, "x.tfvars": sets},
		arguments: []string{"-var-file=x.tfvars"}},
	"-var-file after -var": {files: map[string]string{"x.tfvars": sets}, arguments: []string{"-var=p=another", "-var-file=x.tfvars"}},
	"-var after -var-file": {files: map[string]string{"x.tfvars": resets},
		arguments: []string{"-var-file=x.tfvars", "-var=p=correct horse battery staple"}},
	"-var-file of no ending": {files: map[string]string{"x": ` {"p": ` + right + `}`}, arguments: []string{"-var-file=x"}},
	"-var-file, JSON":        {files: map[string]string{"x.json": `{"p": ` + right + `}`}, arguments: []string{"-var-file=x.json"}},
	"unknown in a file": {files: map[string]string{"terraform.tfvars": sets + "unknown = 1\n"},
		environment: map[string]string{"else": "x"}},

	"a list": {passphrase: `join(" ", var.l)`, variable: `variable "l" { type = list(string) }`,
		environment: map[string]string{"l": `["correct", "horse", "battery", "staple"]`}},
	"a list, -var": {passphrase: `join(" ", var.l)`, variable: `variable "l" { type = list }`,
		arguments: []string{`-var=l=["correct", "horse", "battery", "staple"]`}},
	"a map": {passphrase: `var.m["p"]`, variable: `variable "m" { type = map(string) }`,
		environment: map[string]string{"m": `{ p = ` + right + ` }`}},
	"a number":  {passphrase: only("var.n == 10"), variable: `variable "n" { type = number }`, environment: map[string]string{"n": "1e1"}},
	"a bool":    {passphrase: only("var.b"), variable: `variable "b" { type = bool }`, environment: map[string]string{"b": "true"}},
	"no type":   {passphrase: only(`var.u == "[1]"`), variable: `variable "u" {}`, environment: map[string]string{"u": "[1]"}},
	"any type":  {passphrase: "var.a", variable: `variable "a" { type = any }`, environment: map[string]string{"a": right}},
	"a string":  {passphrase: only(`var.s == "01"`), variable: `variable "s" { type = string }`, environment: map[string]string{"s": "01"}},
	"a default": {passphrase: only(`var.s == "1"`), variable: "variable \"s\" {\n  type = string\n  default = 1\n}"},
	"an integer": {passphrase: only(`var.s == "1"`), variable: `variable "s" { type = string }`,
		files: map[string]string{"terraform.tfvars": "s = 1\n"}},
	"optional attributes": {passphrase: only(`var.o.b == "x"`),
		variable: `variable "o" { type = object({ a = string, b = optional(string, "x") }) }`, environment: map[string]string{"o": `{ a = "" }`}},
	"a type in an override": {passphrase: only("var.n[0] == 10"), variable: `variable "n" { default = "x" }`,
		files:       map[string]string{"x_override.tf": "variable \"n\" {\n  type = list(number)\n  default = []\n}\n"},
		environment: map[string]string{"n": "[10]"}},
	"null": {passphrase: only("var.n == null"), variable: `variable "n" { default = 1 }`,
		files: map[string]string{"terraform.tfvars": "n = null\n"}},
	"never null": {passphrase: only("var.n == 1"), variable: "variable \"n\" {\n  default = 1\n  nullable = false\n}",
		files: map[string]string{"terraform.tfvars": "n = null\n"}},

	"-var, not declared": {arguments: []string{"-var=passphrase=x"}, refused: true},
	"no such -var-file":  {arguments: []string{"-var-file=gone.tfvars"}, refused: true},
	"not HCL":            {files: map[string]string{"terraform.tfvars": "p = \n"}, refused: true},
	"not JSON":           {files: map[string]string{"a.auto.tfvars.json": sets}, refused: true},
	"a block":            {files: map[string]string{"terraform.tfvars": "horse \"p\" {}\n"}, refused: true},
	"a reference":        {files: map[string]string{"terraform.tfvars": "p = horse\n"}, refused: true},
	"no expression": {passphrase: `join("", var.l)`, variable: `variable "l" { type = list(string) }`,
		environment: map[string]string{"l": "horse, horse"}, refused: true},
	"another type": {passphrase: only("var.n == 1"), variable: `variable "n" { type = number }`, environment: map[string]string{"n": "horse"}, refused: true},
	"null without a default": {passphrase: only("var.n == 1"), variable: `variable "n" { nullable = false }`,
		files: map[string]string{"terraform.tfvars": "n = null\n"}, refused: true},
}

// TestValues: OpenTofu seals a state with the value that it takes, and we open it.
//
// Promise: Modules
func TestValues(t *testing.T) {
	t.Parallel()
	sealed, says := seal(t, block(right), state), golden(t, "values of a module")
	for name, c := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			passphrase := c.passphrase
			if passphrase == "" {
				passphrase = "var.p"
			}
			files := map[string]string{"main.tf": inTerraform(passphrase) + "variable \"p\" { default = " + wrong + " }\n" + c.variable + "\n"}
			for name, text := range c.files {
				files[name] = text
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			environment := map[string]string{}
			for name, text := range c.environment {
				if environment[name] = text; strings.HasPrefix(c.variable, `variable "a"`) {
					continue // an expression keeps its quotes
				}
				environment[name] = strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`)
			}
			file := sealed
			if tofu := os.Getenv("STATECRYPT_TOFU"); tofu != "" {
				file = sealIn(t, dir, tofu, environment, !c.refused, file, c.arguments...)
			}
			layer := encryption.Module(dir, unstable.With(func(o *unstable.Options) {
				o.Environment, o.Arguments = environment, arguments(dir, c.arguments)
			}))
			err := open(t, layer, file)
			if c.refused {
				says.Error(t, name, err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func arguments(dir string, written []string) (read []string) {
	for _, argument := range written {
		if file, ok := strings.CutPrefix(argument, "-var-file="); ok {
			argument = "-var-file=" + filepath.Join(dir, file)
		}
		read = append(read, argument)
	}
	return read
}

func open(t *testing.T, layer encryption.Layer, file []byte) error {
	t.Helper()
	enc, err := encryption.Load(lighttest.Registry(), layer)
	if err != nil {
		return err
	}
	_, err = enc.State().Decrypt(t.Context(), file)
	return err
}

// The library reads the files of a module by itself, below what its caller gives, and
// says which of them decide.
func TestValuesOfModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.tf":          inTerraform("var.p") + "variable \"p\" { default = " + wrong + " }\nvariable \"q\" {}\n",
		"terraform.tfvars": resets, "a.auto.tfvars": sets + "q = 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	layer := encryption.Module(dir, unstable.With(func(o *unstable.Options) {
		o.Uses = func(name, file string) { told = append(told, name+" "+filepath.Base(file)) }
	}))
	sealed := seal(t, block(right), state)
	if err := open(t, layer, sealed); err != nil || strings.Join(told, ",") != "p a.auto.tfvars" {
		t.Errorf("got %v, %q", err, told)
	}
	given := map[string]cty.Value{"p": cty.StringVal(strings.Trim(wrong, `"`))}
	if _, err := openModule(t, dir, given, sealed); err == nil {
		t.Error("a file wins over what the caller gives")
	}
}
