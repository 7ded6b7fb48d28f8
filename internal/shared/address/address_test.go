package address

import (
	"strconv"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
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
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "addresses")
	for _, text := range []string{
		``,
		`aws_vpc`,
		`data.aws_vpc`,
		`data`,
		`aws_vpc.main.id`,
		`aws_vpc.main[0].id`,
		`aws_vpc.main[0][1]`,
		`module.net`,
		`module.net["a"]`,
		`module`,
		`module[0].x.y`,
		`x.y[*]`,
		`x.y[-1]`,
		`x.y[1.5]`,
		`x.y[1e100]`,
		`x.y[99999999999]`,
		`x.y[each.key]`,
		`x.y["${each.key}"]`,
		`x.y[0`,
		`x.y z`,
		`x..y`,
		`0.x`,
	} {
		_, err := Parse(text)
		says.Error(t, strconv.Quote(text), err)
	}
	_, err := Parse(strings.Repeat("module.m.", 5e3))
	says.Error(t, "too long", err)
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
