package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
)

const (
	// fromPlain is what "statecrypt show" says of plain after its first lines.
	fromPlain = "\noutputs: 2\n  n: number\n  s: string, sensitive\n\nresources: 1\n  root module: x (p)\n    x.y\n"

	opensPlain = plainText + "state { method = method.unencrypted.p }\n"
)

// TestShow has each way to show a state, and each refusal.
//
// Promise: Files of the command
func TestShow(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	marked := strings.Replace(plain, `"attributes":{"id":"c4n4ry"}`, `"attributes":{"id":"i-1","user":"u","key":"c4n4ry"},`+
		`"sensitive_attributes":[[{"type":"get_attr","value":"key"}]]`, 1)
	values := `{"version":4,"outputs":{"text":{"value":"a\u001b[1m ::b","type":"string"},"yes":{"value":true,"type":"bool"},` +
		`"list":{"value":[1, 2],"type":["list","number"]},"none":{"value":null,"type":"string"},"absent":{}}}`
	const one = `{"version":1,"modules":[{"path":["root"],"outputs":{"x":"c4n4ry"}}]}`
	mistakes := openMistakes(t, "show")
	for name, c := range map[string]struct{ args, settings, stdin string }{
		"encrypted":                       {settings: onlyOld, stdin: sealed},
		"encrypted, JSON":                 {args: "-json", settings: onlyOld, stdin: sealed},
		"by a fallback":                   {settings: newAndOld, stdin: sealed},
		"by a fallback, JSON":             {args: "-json", settings: newAndOld, stdin: sealed},
		"plaintext":                       {settings: opensPlain, stdin: plain},
		"plaintext, JSON":                 {args: "-json", settings: opensPlain, stdin: plain},
		"plaintext, not allowed":          {settings: onlyOld, stdin: plain},
		"no settings":                     {stdin: plain},
		"another key":                     {settings: onlyNew, stdin: sealed},
		"of sops":                         {settings: onlyOld, stdin: `{"version":4,"outputs":{},"sops":{"mac":"x"}}`},
		"a plan":                          {settings: opensPlain, stdin: emptyPlan(t)},
		"an empty file":                   {settings: onlyOld},
		"no state":                        {settings: opensPlain, stdin: `{"version":4,"resources":["c4n4ry"]}`},
		"a page":                          {settings: opensPlain, stdin: "<html>c4n4ry"},
		"values":                          {args: "-values", settings: opensPlain, stdin: plain},
		"values, JSON":                    {args: "-values -json", settings: opensPlain, stdin: plain},
		"values of format 1":              {args: "-values", settings: opensPlain, stdin: one},
		"attributes":                      {args: "-attributes id,key -attributes user", settings: opensPlain, stdin: marked},
		"attributes, JSON":                {args: "-json -attributes id,key,user", settings: opensPlain, stdin: marked},
		"attributes that are not there":   {args: "-attributes id,arn", settings: opensPlain, stdin: marked},
		"attributes without marks":        {args: "-attributes id", settings: opensPlain, stdin: plain},
		"attributes with an empty name":   {args: "-attributes id,", settings: opensPlain, stdin: plain},
		"one output":                      {args: "-output n", settings: opensPlain, stdin: plain},
		"one output, raw":                 {args: "-output n -raw", settings: opensPlain, stdin: plain},
		"one output, encrypted":           {args: "-output n", settings: onlyOld, stdin: sealed},
		"one output, text":                {args: "-output text", settings: opensPlain, stdin: values},
		"one output, bool, raw":           {args: "-output yes -raw", settings: opensPlain, stdin: values},
		"one output, list":                {args: "-output list", settings: opensPlain, stdin: values},
		"one output, list, raw":           {args: "-output list -raw", settings: opensPlain, stdin: values},
		"one output, null":                {args: "-output none", settings: opensPlain, stdin: values},
		"one output, null, raw":           {args: "-output none -raw", settings: opensPlain, stdin: values},
		"one output without a value":      {args: "-output absent", settings: opensPlain, stdin: values},
		"one output that is sensitive":    {args: "-output s", settings: opensPlain, stdin: plain},
		"one output of format 1":          {args: "-output x", settings: opensPlain, stdin: one},
		"one output that is not there":    {args: "-output m", settings: opensPlain, stdin: plain},
		"-output and -json":               {args: "-output n -json", settings: opensPlain, stdin: plain},
		"-output and -values":             {args: "-output n -values", settings: opensPlain, stdin: plain},
		"-raw alone":                      {args: "-raw", settings: opensPlain, stdin: plain},
		"-sensitive alone":                {args: "-sensitive", settings: opensPlain, stdin: plain},
		"-backend and a file":             {args: "-backend x", settings: opensPlain, stdin: plain},
		"-backend without settings":       {args: "-backend"},
		"two files":                       {args: "x y"},
		"of a plan, with -plan":           {args: "-plan x"},
		"a file that is not there":        {args: "/none/x"},
		"the flags of outputs":            {args: "-only x"},
		"the settings in place of -confg": {args: "keys.hcl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := statecrypt(t, c.settings, c.stdin, append([]string{"show"}, strings.Fields(c.args)...)...)
			mistakes.checkAll(t, name, got)
			if strings.Contains(got.stdout, canary) || got.code != 0 && got.stdout != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
	for args, want := range map[string]string{
		"-values -sensitive":             `  s: string, sensitive = "c4n4ry<&>"`,
		"-json -values -sensitive":       `"s":{"type":"string","sensitive":true,"value":"c4n4ry<&>"}`,
		"-attributes key -sensitive":     `      key = "c4n4ry"`,
		"-output s -sensitive":           `"c4n4ry<&>"`,
		"-output s -sensitive -raw":      `c4n4ry<&>`,
		"-output=s -force -sensitive":    `"c4n4ry<&>"`,
		"-values -attributes id,user -h": "Usage: statecrypt show",
	} {
		if got := must(t, opensPlain, marked, append([]string{"show"}, strings.Fields(args)...)...); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", args, got)
		}
	}
	if got := must(t, opensPlain, values, "show", "-output", "text", "-raw"); got != "a\x1b[1m ::b" {
		t.Errorf("a raw output is %q", got)
	}
	old := strings.Replace(one, `"c4n4ry"`, `"a"`, 1)
	if got := must(t, opensPlain, old, "show", "-values", "-sensitive") + must(t, opensPlain, old, "show", "-output=x",
		"-sensitive"); !strings.HasSuffix(got,
		"  x: string = \"a\"\n\"a\"\n") {
		t.Errorf("got %s", got)
	}
}

// TestShowOfOthers: files of sops, of terraform-backend-git and of each format have the outputs that the real tools
// see.
func TestShowOfOthers(t *testing.T) {
	t.Parallel()
	shown := map[string]int{}
	for _, c := range conformance.All() {
		settings := opensPlain
		switch c.Kind {
		case "plain_state":
		case "sops":
			settings = `method "sops" "m" {` + "\n  age_identities = [<<KEY\n" + c.Secret("age_identity.txt") +
				"\nKEY\n]\n}\nstate { method = method.sops.m }\n"
			if c.Secret("age_identity.txt") == "" || c.ConfigFile != "" || strings.Contains(c.Name, "shamir") {
				continue
			}
		case "terraform_backend_git":
			passphrase := c.BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"]
			if passphrase == "" || c.ConfigFile != "" || strings.HasSuffix(c.Name, "_plain") {
				continue
			}
			settings = "method \"terraform_backend_git\" \"m\" { passphrase = " + quoted(passphrase) +
				" }\nstate { method = method.terraform_backend_git.m }\n"
		default:
			continue
		}
		if c.Expect != "ok" {
			continue
		}
		var got struct {
			Encrypted bool
			Method    string
			Format    int
			Outputs   map[string]struct{ Sensitive bool }
		}
		text := must(t, settings, string(c.State()), "show", "-json")
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		want := c.Outputs()
		if len(got.Outputs) != len(want) || got.Encrypted != (settings != opensPlain) || got.Method == "" {
			t.Errorf("%s: got %s", c.Name, text)
		}
		for name, output := range want {
			if one, ok := got.Outputs[name]; !ok || one.Sensitive != output.Sensitive {
				t.Errorf("%s: output %s is %+v, %t", c.Name, name, one, ok)
			}
		}
		shown[c.Kind+" "+fmt.Sprint(got.Format)]++
	}
	for _, kind := range []string{"plain_state 1", "plain_state 2", "plain_state 3", "plain_state 4", "sops 4", "terraform_backend_git 4"} {
		if shown[kind] == 0 {
			t.Errorf("no %s was shown: %v", kind, shown)
		}
	}
}

// TestShowBackend: the state in the backend is shown, and who has its lock.
func TestShowBackend(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	mistakes := openMistakes(t, "show -backend")
	for name, c := range map[string]struct {
		stored, lock, flags, settings string
	}{
		"shown":          {stored: sealed},
		"locked":         {stored: sealed, lock: "4711"},
		"one output":     {stored: sealed, flags: "-output n"},
		"JSON":           {stored: sealed, flags: "-json"},
		"plaintext":      {stored: plain},
		"plain, by name": {stored: plain, settings: opensPlain},
		"another key":    {stored: must(t, otherKey, plain, "encrypt")},
		"none":           {},
		"no output":      {stored: sealed, flags: "-output m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHTTPStore(t, c.stored)
			s.lock = c.lock
			settings := write(t, "keys.hcl", cmp.Or(c.settings, onlyOld)+s.block())
			got := statecrypt(t, "", "", append([]string{"show", "-backend", "-config", settings}, strings.Fields(c.flags)...)...)
			mistakes.checkAll(t, name, got)
			if s.lock != c.lock || s.state != c.stored || strings.Contains(got.stdout, canary) {
				t.Errorf("got %+v, and %+v", got, s)
			}
		})
	}
}

// TestShowStores: show and diff read a state in each store, whoever has its lock, and change nothing.
//
// Promise: Reading changes nothing (show and diff of the command)
func TestShowStores(t *testing.T) {
	t.Parallel()
	sealed, later := must(t, onlyOld, plain, "encrypt"), must(t, onlyOld, plainNext, "encrypt")
	for kind, open := range storesOfMany() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			name, named := "net.tfstate", "net.tfstate"
			if kind == "gcs" {
				name, named = "net/default.tfstate", "net"
			}
			s.write(name, later)
			settings := write(t, "keys.hcl", onlyOld+strings.ReplaceAll(s.block, "${module}/unused", named))
			before := s.read(name)
			check := func(says string) {
				t.Helper()
				got := statecrypt(t, "", "", "show", "-backend", "-config", settings)
				if got.code != 0 || !strings.HasSuffix(got.stdout, fromPlain) || !strings.Contains(got.stderr, says) {
					t.Errorf("got %+v", got)
				}
				got = statecrypt(t, "", sealed, "diff", "-backend", "-config", settings, "-")
				if got.code != 0 || got.stdout != "nothing but the serial (7 -> 8) changed\n" || !strings.Contains(got.stderr, says) {
					t.Errorf("got %+v", got)
				}
			}
			check("")
			s.hold(name)
			check("ci@host")
			if s.read(name) != before {
				t.Error("the state in the store has changed")
			}
		})
	}
}

// secretState returns a state whose secrets all hold the canary: what is marked, what nobody marked because the writer
// made no marks or the provider copied it, private data, messages of checks, and names that are data.
func secretState(n int) string {
	r := rand.New(rand.NewPCG(71, uint64(n))) //nolint:gosec // states of a test
	secret := fmt.Sprintf("c4n4ry-%d", r.IntN(1000))
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	text := func(s string) string { return quoted(s) }
	some := func(most int, one func(i int) string) string {
		var all []string
		for i := range 1 + r.IntN(most) {
			all = append(all, one(i))
		}
		return strings.Join(all, ",")
	}
	nested := func() string { // a value of an output, with its type
		switch r.IntN(4) {
		case 0:
			return `"value":` + text(secret) + `,"type":"string"`
		case 1:
			return `"value":{` + text(secret) + `:[` + text(secret) + `]},"type":["object",{` + text(secret) + `:["tuple",["string"]]}]`
		case 2:
			return `"value":{"value":` + text(secret) + `,"type":"string"},"type":"dynamic"`
		}
		return `"value":[{"a":{"b":` + text(secret) + `}}],"type":["list",["object",{"a":["map","string"]}]]`
	}
	if n%10 == 0 { // formats 1 to 3
		format := 1 + n/10%3
		output := func(i int) string {
			return fmt.Sprintf(`"o%d":{"value":%s,"type":"string","sensitive":true}`, i, text(secret))
		}
		if format == 1 {
			output = func(i int) string { return fmt.Sprintf(`"o%d":%s`, i, text(secret)) }
		}
		resource := func(i int) string {
			return fmt.Sprintf(`"%srandom_string.r%d%s":{"type":"random_string","provider":"provider.random","primary":{"id":%[4]s,"attributes":`+
				`{"id":%[4]s,"result":%[4]s,"tags.%%":"1","tags.%[5]s":"x"},"tainted":%[6]t},"deposed":[{"id":%[4]s,"attributes":{"id":%[4]s}}]}`,
				pick("", "data."), i, pick("", ".0", ".1"), text(secret), secret, r.IntN(2) == 0)
		}
		return fmt.Sprintf(`{"version":%d,"serial":%d,"lineage":"l","modules":[{"path":["root"],"outputs":{%s},"resources":{%s}},`+
			`{"path":["root","m"],"outputs":{"inner":%s},"resources":{%s}}]}`, format, n, some(3, output), some(3, resource), text(secret),
			some(2, resource))
	}
	output := func(i int) string { return fmt.Sprintf(`"o%d":{%s,"sensitive":true}`, i, nested()) }
	instance := func(i int) string {
		key := pick("", fmt.Sprintf(`"index_key":%d,`, i), fmt.Sprintf(`"index_key":"k%d",`, i))
		state := pick("", `"status":"tainted",`, `"deposed":"0000000a",`)
		private := `"private":` + text(secret) + `,"identity":{"id":` + text(secret) + `}`
		attributes := pick(
			`"attributes":{"id":"i","arn":`+text(secret)+`,"name":"n","input":{"value":`+text(secret)+`,"type":"string"}},`+
				`"sensitive_attributes":[[{"type":"get_attr","value":"arn"}],[{"type":"get_attr","value":"input"}]],`,
			`"attributes":{"name":{"deep":[`+text(secret)+`]},"arn":"a","result":`+text(secret)+`},"sensitive_attributes":[[{"type":"get_attr",`+
				`"value":"name"},{"type":"get_attr","value":"deep"},{"type":"index","value":{"value":0,"type":"number"}}]],`,
			`"attributes":{"id":`+text(secret)+`,"result":`+text(secret)+`,"arn":"a"},"sensitive_attributes":[],`, // random_string
			`"attributes":{"arn":`+text(secret)+`,"name":`+text(secret)+`},"sensitive_attributes":[["unknown"]],`,
			`"attributes":{"arn":[`+text(secret)+`]},"sensitive_attributes":[[]],`,
		)
		if n%10 == 1 { // of Terraform 0.12, without marks
			attributes = pick(`"attributes":{"id":`+text(secret)+`,"arn":`+text(secret)+`,"name":`+text(secret)+`},`,
				`"attributes_flat":{"id":`+text(secret)+`,"arn":`+text(secret)+`,"name.`+secret+`":"x"},`)
		}
		return `{` + key + state + attributes + private + `}`
	}
	resource := func(i int) string {
		return fmt.Sprintf(`{"module":%s,"mode":%s,"type":%s,"name":"r%d","provider":"provider[\"registry.terraform.io/hashicorp/random\"]",`+
			`"instances":[%s]}`, text(pick("", "module.m", `module.m["a"].module.n[0]`)), text(pick("managed", "data")),
			text(pick("random_string", "terraform_data", "aws_x")), i, some(3, instance))
	}
	check := func(i int) string {
		return fmt.Sprintf(`{"object_kind":"check","config_addr":"check.c%d","status":"fail","objects":[{"object_addr":"check.c%[1]d",`+
			`"status":%s,"failure_messages":["it is %s"]}]}`, i, text(pick("fail", "error", "pass")), secret)
	}
	return fmt.Sprintf(`{"version":4,"terraform_version":"1.11.4","serial":%d,"lineage":"l","outputs":{%s,"open":{"value":"o",`+
		`"type":"string"}},`+
		`"resources":[%s],"check_results":[%s]}`, n, some(3, output), some(4, resource), some(2, check))
}

// TestShowHidesSecrets: of 200 states full of secrets, and of what differs between two of them, nothing that is shown
// has one, as long as nobody asks for it.
func TestShowHidesSecrets(t *testing.T) {
	t.Parallel()
	opened := 0
	for n := range 200 {
		plain := secretState(n)
		sealed := must(t, onlyOld, plain, "encrypt")
		for _, args := range []string{"", "-json", "-values", "-values -json", "-attributes arn,name,input", "-attributes arn,name,input -json"} {
			got := statecrypt(t, onlyOld, sealed, append([]string{"show"}, strings.Fields(args)...)...)
			refused := strings.Contains(args, "-attributes") && n%10 < 2 || strings.Contains(args, "-values") && strings.HasPrefix(plain,
				`{"version":1`)
			if strings.Contains(got.stdout, canary) || (got.code != 0) != refused || refused && got.stdout != "" {
				t.Errorf("state %d, show %s: %d\n%s%s\n%s", n, args, got.code, got.stdout, got.stderr, plain)
			}
		}
		if got := must(t, onlyOld, sealed, "show", "-values", "-sensitive"); strings.Contains(got, canary) {
			opened++
		}
		other := write(t, "other", must(t, onlyOld, secretState(n+10), "encrypt"))
		for _, args := range []string{"", "-json", "-values", "-values -json", "-values -attributes arn,name,input",
			"-attributes arn,name,input -json"} {
			got := statecrypt(t, onlyOld, sealed, append([]string{"diff", "-", other}, strings.Fields(args)...)...)
			refused := strings.Contains(args, "-attributes") && n%10 < 2 || strings.Contains(args, "-values") && n%10 == 0 && got.code == 1
			if strings.Contains(got.stdout, canary) || (got.code != 0) != refused || !refused && !strings.Contains(got.stdout, "o0") {
				t.Errorf("states %d and %d, diff %s: %d\n%s%s", n, n+10, args, got.code, got.stdout, got.stderr)
			}
		}
	}
	if opened == 0 {
		t.Error("no state has a secret, or none can be asked for")
	}
}
