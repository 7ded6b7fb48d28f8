package address

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`aws_vpc.main`:                          `aws_vpc.main`,
		`aws_vpc.main[0]`:                       `aws_vpc.main[0]`,
		`aws_vpc.main["a"]`:                     `aws_vpc.main["a"]`,
		` module.net["a"] . aws_vpc.main[ 0 ]`:  `module.net["a"].aws_vpc.main[0]`,
		`module.a.module.b[1].data.x.y`:         `module.a.module.b[1].data.x.y`,
		`module.module.data.data.y`:             `module.module.data.data.y`,
		`data.x.y["$${k} %%{l} \"\\ \n\u00fc"]`: `data.x.y["$${k} %%{l} \"\\ \nü"]`,
		`x.y["\u0007"]`:                         `x.y["\u0007"]`,
		`x-y.z-1`:                               `x-y.z-1`,
	} {
		a, err := Parse(text)
		if err != nil || a.String() != want {
			t.Errorf("%s: got %s, %v", text, a, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                               `this is not an address`,
		`aws_vpc`:                        `has a type and a name`,
		`data.aws_vpc`:                   `has a type and a name`,
		`data`:                           `has a type and a name`,
		`aws_vpc.main.id`:                `is read as attributes.NAME of the result`,
		`aws_vpc.main[0].id`:             `is read as attributes.NAME of the result`,
		`aws_vpc.main[0][1]`:             `is read as attributes.NAME of the result`,
		`module.net`:                     `this is the address of a module`,
		`module.net["a"]`:                `this is the address of a module`,
		`module`:                         `the name of a module is required`,
		`module[0].x.y`:                  `the name of a module is required`,
		`x.y[*]`:                         `leave out [*] for all instances`,
		`x.y[-1]`:                        `this is not an address: at character 5`,
		`x.y[1.5]`:                       `a whole number that is not negative`,
		`x.y[1e100]`:                     `a whole number that is not negative`,
		`x.y[99999999999]`:               `a whole number that is not negative`,
		`x.y[each.key]`:                  `must contain either a literal number or a literal string`,
		`x.y["${each.key}"]`:             `this is not an address`,
		`x.y[0`:                          `this is not an address: at character 6`,
		`x.y z`:                          `this is not an address: at character 5`,
		`x..y`:                           `dot must be followed by attribute name`,
		`0.x`:                            `this is not an address: at character 1`,
		strings.Repeat("module.m.", 5e3): `at most 16384 bytes`,
	} {
		if a, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: got %.100s, %v, want %q", text, a, err, want)
		}
	}
}

func TestProviderAddress(t *testing.T) {
	for text, want := range map[string]string{
		`provider["registry.terraform.io/hashicorp/aws"]`:                  `registry.terraform.io/hashicorp/aws`,
		`provider["registry.terraform.io/hashicorp/aws"].west`:             `registry.terraform.io/hashicorp/aws`,
		`module.a["k"].provider["registry.opentofu.org/x/y"].by_key["eu"]`: `registry.opentofu.org/x/y`,
		`module.provider.provider["terraform.io/builtin/terraform"]`:       `terraform.io/builtin/terraform`,
		`provider.aws`:            `provider.aws`,
		`module.a.provider.aws.x`: `module.a.provider.aws.x`,
		`provider[0]`:             `provider[0]`,
		`module.a["`:              `module.a["`,
		``:                        ``,
	} {
		if got := Provider(text); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{`module.net["a"].aws_vpc.main[0]`, `data.x.y["$${k}\u00fc"]`, "x.y[\"\U000e0001\"]", `module.a.b.c`, `a[`,
		`x.y["%%{a}"]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text)
		Provider(text)
		Module(text)
		if err != nil {
			return
		}
		again, err := Parse(a.String())
		if err != nil && len(a.String()) <= maxAddress {
			t.Fatalf("%q became %q, which is no address: %v", text, a, err)
		}
		if err == nil && again != a {
			t.Errorf("%q became %q, and then %q", text, a, again)
		}
	})
}
