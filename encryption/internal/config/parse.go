package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Options says which kinds, blocks and values a configuration text may use.
type Options struct {
	KeyProviders []attr.Table // kinds of key providers that the text may use
	Methods      []attr.Table // kinds of methods that the text may use
	Backends     []attr.Table // kinds of backend blocks; if empty, the text must not have such a block

	// Backend is called with the backend block, which is not part of the encryption settings.
	Backend func(*entries.Entry)

	// Variables holds the values of var.*, as an object or a map. It may be unknown, or have
	// unknown elements. It is NilVal if there are no variables.
	Variables cty.Value

	// Environment and Arguments set var.* like OpenTofu's TF_VAR_name, -var and -var-file.
	// Arguments take precedence over the environment, and later arguments over earlier ones. In a
	// module, its variable files come between the environment and the arguments. Variables take
	// precedence over everything.
	Environment map[string]string // texts by variable name
	Arguments   []string          // "-var=name=text", read according to the variable's type, or "-var-file=path"

	// FromEnvironment is true if only an environment variable names the text. The text is then
	// trusted as little as TF_ENCRYPTION.
	FromEnvironment bool

	// Workspace is the value of terraform.workspace in a module. If it is "", the workspace
	// selected in the module's folder is used.
	Workspace string

	// AllowCommands allows commands that only the environment names.
	AllowCommands bool

	// Uses is called for each variable that an expression refers to. Variable is its name, or ""
	// for var as a whole. File is the file that sets its value, or "" if there is none. Uses may be
	// nil.
	Uses func(variable, file string)
}

// Parse reads the body of an OpenTofu encryption block. The text is read as JSON if it begins with
// "{" or if filename ends with .json, and as native syntax otherwise. The text may also be a whole
// file that contains the block, alone or inside a terraform block. For blank text, Parse returns a
// nil Config. Errors give positions in the text, under the name filename.
//
// Programs named in the text will run. Use [ParseEnvironment] for TF_ENCRYPTION, which anyone who
// can set an environment variable can write.
//
// Parse returns an [*attr.Error] for each unknown block, for each unknown argument of a known kind,
// and for each mistake in the state and plan blocks. Mistakes inside a key provider or a method are
// kept with the entry, and reported when the entry is used.
func Parse(text, filename string, opts Options) (*Config, error) {
	return parse(text, filename, parser{opts: opts})
}

// ParseEnvironment reads TF_ENCRYPTION like [Parse], and fills absent attributes from lookup.
// [entries.Entry.Resolve] describes the rules for such text. If lookup is nil, ParseEnvironment
// returns a nil Config.
func ParseEnvironment(lookup attr.LookupEnv, opts Options) (*Config, error) {
	if lookup == nil {
		return nil, nil
	}
	text, _ := lookup.Get("TF_ENCRYPTION")
	c, err := parse(text, "TF_ENCRYPTION", parser{opts: opts, fromEnvironment: true})
	if err != nil {
		return nil, err
	}
	return Merge(c, &Config{LookupEnv: lookup}), nil
}

func parse(text, filename string, p parser) (*Config, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, nil
	}
	if what := isState(trimmed); what != "" {
		return nil, mistakeAtStart(filename, notSettings("this is "+what+", but encryption settings are required here"))
	}
	if p.fromEnvironment && !strings.Contains(text, `"`) && unquoted.MatchString(text) {
		return nil, mistakeAtStart(filename, errors.New("this text has no quotation marks, perhaps because a shell removed them; put the "+
			"text in single quotes, or use \"$(cat FILE)\""))
	}
	body, err := parseBody([]byte(text), filename, trimmed[0] == '{' || strings.HasSuffix(filename, ".json"), formOfSettings)
	if err != nil {
		if recognize.NotText([]byte(text)) != "" {
			return nil, err
		}
		if what := p.inPlaceOfSettings(trimmed); what != "" {
			return nil, mistakeAtStart(filename, errors.New(what))
		}
		return nil, cmp.Or(noneOfSettings(filename, trimmed), err)
	}
	given, err := p.opts.given(nil)
	if err != nil {
		return nil, err
	}
	p.config, p.scope = newConfig(), p.newScope(given, nil)
	schema := rootSchema
	if !p.fromEnvironment {
		beside := p.backend(body)
		if body = p.unwrap(beside, filename); body == beside && len(p.opts.Backends) > 0 {
			schema.Blocks = slices.Concat(schema.Blocks, backendSchema.Blocks) // beside has no such block, but messages name it
		}
	}
	p.root(body, &schema)
	if err := p.errs.Err(); err != nil {
		if strings.HasSuffix(strings.TrimSuffix(filename, ".json"), ".tfvars") {
			err = mistakeAtStart(filename, errors.New("this file has values of variables, but the settings are required here; use "+
				"-var-file for this file"))
		}
		return nil, err
	}
	return p.config, nil
}

// isState returns "a state" or "an encrypted state" if text is one, or "" if it is not.
func isState(text string) string {
	var state struct {
		Lineage       *json.RawMessage `json:"lineage"`
		EncryptedData *json.RawMessage `json:"encrypted_data"`
	}
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &state) != nil {
		return ""
	}
	switch {
	case state.EncryptedData != nil:
		return "an encrypted state"
	case state.Lineage != nil:
		return "a state"
	}
	return ""
}

// inPlaceOfSettings explains why the syntax of a text is wrong, for example because the text is
// JSON that was cut off. It returns "" for text that may be settings with a mistake.
func (p *parser) inPlaceOfSettings(text string) string {
	variable := ""
	if p.fromEnvironment {
		variable = "TF_ENCRYPTION"
	}
	is := recognize.Text(text, recognize.Settings).Said(variable)
	switch {
	case is != "":
		return "this " + is
	case text[0] == '{' && strings.HasPrefix(strings.TrimSpace(text[1:]), "'"):
		return `this is JSON with single quotes; JSON requires double quotes (")`
	case text[0] == '{' && jsonwalk.IsCutOff(json.Unmarshal([]byte(text), &struct{}{})):
		return "this is truncated JSON; write it again"
	case text[0] == '{' && strings.HasPrefix(strings.TrimSpace(text[1:]), `\`):
		return `each quotation mark has a backslash before it; remove the backslashes`
	case strings.HasPrefix(text, "@'"), strings.HasPrefix(text, `@"`):
		return "the marks of a PowerShell here-string (@' and '@) are part of the text; remove them"
	case strings.HasPrefix(text, "<<"):
		return "the markers of a here document (<<EOT and EOT) are part of the text; remove them"
	case text[0] == '[':
		return `this is a JSON array, not an object; begin with {`
	case text[0] != '{' && strings.Contains(text, `\n`) && !strings.Contains(text, "\n"):
		return `this text has \n in place of line breaks; in a shell, quote "$(cat FILE)" to keep line breaks`
	case yamlStart.MatchString(text) && (text[0] == '"' || !strings.Contains(text, "{")):
		return `this looks like YAML, not HCL or JSON; use jsonencode(…), or write blocks like key_provider "pbkdf2" "main"`
	}
	return ""
}

// noneOfSettings returns an error for text without any block, or nil for text that may be settings
// with a mistake.
func noneOfSettings(filename, text string) error {
	what := `this text contains no encryption settings; write blocks like key_provider "pbkdf2" "main"`
	switch {
	case strings.Contains(text, "{"), text[0] == '"':
		return nil
	case recognize.HoldsPrivateKey(text):
		what = "this is a private key, but encryption settings are required here"
	case recognize.IsRecipient(comments.ReplaceAllString(text, "")):
		what = `these are age recipients, but encryption settings are required here; put recipients in a key_provider "age" block`
	}
	return mistakeAtStart(filename, notSettings(what))
}

func notSettings(text string) error { return &NotSettingsError{text} }

// NotSettingsError is the error for a text without any settings.
type NotSettingsError struct{ text string }

func (e *NotSettingsError) Error() string { return e.text }

// These patterns match settings without quotation marks, leading comments, and the beginning of
// YAML.
var (
	unquoted  = lazyregexp.New(`(^|\s)key_provider\s+\w+\s+\w+\s*\{`)
	comments  = lazyregexp.New(`^(#.*\n\s*)+`)
	yamlStart = lazyregexp.New(`^(#.*\n\s*)*(---|[\w.-]+:|"[\w.-]+":[ \t]*\r?\n)(\s|$)`)
)

func mistakeAtStart(filename string, err error) error {
	return &attr.Error{Pos: attr.Pos{File: filename, Line: 1, Column: 1}, Err: err}
}

func parseBody(text []byte, filename string, isJSON bool, form string) (hcl.Body, error) {
	if what := recognize.NotText(text); what != "" {
		return nil, mistakeAtStart(filename, errors.New(what))
	}
	blankEnds(text)
	read, expect := hcljson.Parse, ExpectJSON
	if !isJSON {
		expect = ExpectConfig
		read = func(text []byte, filename string) (*hcl.File, hcl.Diagnostics) {
			return hclsyntax.ParseConfig(text, filename, hcl.InitialPos)
		}
	}
	if err := expect(text); err != nil {
		return nil, mistakeAtStart(filename, err)
	}
	file, diags := read(text, filename)
	if diags.HasErrors() {
		// The details of syntax errors repeat pieces of the text, which may be a secret that the
		// user forgot to quote.
		return nil, mistake(diags, text, form)
	}
	return file.Body, nil
}

// blankEnds replaces white space at both ends of text with spaces, except for line feeds. The
// parsers do not accept all white space: a lone carriage return, a form feed and a no-break space
// are errors.
func blankEnds(text []byte) {
	inside := bytes.TrimSpace(text)
	before, _, _ := bytes.Cut(text, inside)
	for _, end := range [][]byte{before, text[len(before)+len(inside):]} {
		for i, b := range end {
			if b != '\n' {
				end[i] = ' '
			}
		}
	}
}

type parser struct {
	opts            Options
	fromEnvironment bool
	config          *Config
	scope           scope
	errs            fault.List
}

// isLayer reports whether the text counts as part of the environment.
func (p *parser) isLayer() bool { return p.fromEnvironment || p.opts.FromEnvironment }

// Module is the placeholder for the module's folder in values of a backend block.
const Module = "${module}"

var backendSchema = hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "backend", LabelNames: []string{"type"}}}}

// backend reads the backend block, which is not part of the encryption settings. It returns a body
// without that block.
func (p *parser) backend(body hcl.Body) hcl.Body {
	if len(p.opts.Backends) == 0 {
		return body
	}
	defer func(outer scope) { p.scope = outer }(p.scope)
	p.scope = p.scope.with("module", cty.StringVal(Module))
	content, rest, diags := body.PartialContent(&backendSchema)
	p.diagnostics(diags, &backendSchema)
	for i, block := range content.Blocks {
		kind, pos := block.Labels[0], position(block.DefRange)
		e := &entries.Entry{Address: "backend." + kind, Kind: kind, Settings: map[string]entries.Setting{}, Pos: pos}
		table, known := Find(p.opts.Backends, kind)
		switch {
		case i > 0:
			p.fail(e.Address, "", pos, errors.New("there is more than one backend block; use only one of them"))
		case !known:
			p.errs = append(p.errs, entries.UnknownKind(e.Address, "backend", kind, pos, p.opts.Backends))
		default:
			p.settings(e, block.Body, table.Attrs)
			p.opts.Backend(e)
		}
	}
	return rest
}

// Find returns the table of a kind, or false if there is none.
func Find(tables []attr.Table, kind string) (attr.Table, bool) {
	if i := slices.IndexFunc(tables, func(t attr.Table) bool { return t.Name == kind }); i >= 0 {
		return tables[i], true
	}
	return attr.Table{}, false
}

// unwrap returns the body of the encryption block if the file contains one, or body itself if not.
func (p *parser) unwrap(body hcl.Body, filename string) hcl.Body {
	blocks, beside := only(body, "terraform", "encryption")
	own, _, _ := beside.PartialContent(&rootSchema)
	if len(blocks) == 0 && (len(own.Blocks) > 0 || extension(filename) == "") {
		return body
	}
	var found hcl.Blocks
	for _, b := range blocks {
		if b.Type == "terraform" {
			found = append(found, encryptionIn(b)...)
		} else {
			found = append(found, b)
		}
	}
	switch {
	case len(own.Blocks) > 0:
		p.fail("", "", position(own.Blocks[0].DefRange), fmt.Errorf("a %s block is outside the encryption block; move it inside",
			own.Blocks[0].Type))
	case len(found) == 0 && extension(filename) != "":
		p.errs = append(p.errs, mistakeAtStart(filename, errors.New("this is a file of a module, without an encryption block; write the blocks "+
			"key_provider, method and state in another file, for example keys.hcl")))
	case len(found) == 0:
		p.fail("", "", position(blocks[0].DefRange), errors.New("the terraform block has no encryption block; write the blocks key_provider, "+
			"method and state without a terraform block"))
	case len(found) > 1:
		p.errs = append(p.errs, secondBlock(found))
	default:
		return found[0].Body
	}
	return hcl.EmptyBody()
}

func encryptionIn(terraform *hcl.Block) hcl.Blocks {
	found, _ := only(terraform.Body, "encryption")
	return found
}

func secondBlock(blocks hcl.Blocks) error {
	return &attr.Error{Pos: position(blocks[1].DefRange), Err: errors.New("there is more than one encryption block; use only one of them")}
}

// only returns the blocks of these types, and a body with everything else.
func only(body hcl.Body, types ...string) (hcl.Blocks, hcl.Body) {
	schema := &hcl.BodySchema{}
	for _, t := range types {
		schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: t})
	}
	content, rest, _ := body.PartialContent(schema)
	return content.Blocks, rest
}

var rootSchema = hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "key_provider", LabelNames: []string{"type", "name"}},
	{Type: "method", LabelNames: []string{"type", "name"}},
	{Type: "state"},
	{Type: "plan"},
	{Type: "remote_state_data_sources"},
}}

func (p *parser) root(body hcl.Body, schema *hcl.BodySchema) {
	for _, block := range p.content(body, schema).Blocks {
		switch block.Type {
		case "key_provider":
			p.entry(block, p.opts.KeyProviders, p.config.KeyProviders)
		case "method":
			p.entry(block, p.opts.Methods, p.config.Methods)
		case "state":
			p.target(block, "state", &enforceableSchema, &p.config.State)
		case "plan":
			p.target(block, "plan", &enforceableSchema, &p.config.Plan)
		case "remote_state_data_sources":
			p.remote(block.Body)
		}
	}
}

var remoteSchema = hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "default"},
	{Type: "remote_state_data_source", LabelNames: []string{"name"}},
}}

func (p *parser) remote(body hcl.Body) {
	for _, block := range p.content(body, &remoteSchema).Blocks {
		if block.Type == "default" {
			p.target(block, "remote_state_data_sources.default", &targetSchema, &p.config.RemoteDefault)
			continue
		}
		name := block.Labels[0]
		var t *Target
		p.target(block, "remote_state_data_source", &targetSchema, &t)
		if _, exists := p.config.Remote[name]; exists {
			p.fail("", "", position(block.DefRange), errors.New("this remote_state_data_source is configured twice; remove one of the two"))
		}
		p.config.Remote[name] = t
	}
}

func (p *parser) entry(block *hcl.Block, tables []attr.Table, into map[string]*entries.Entry) {
	kind, name := block.Labels[0], block.Labels[1]
	e := &entries.Entry{
		Address:  block.Type + "." + kind + "." + name,
		Kind:     kind,
		Settings: map[string]entries.Setting{},
		Pos:      position(block.DefRange),

		FromEnvironment: p.isLayer(),
	}
	if !syntax.IsName(kind) || !syntax.IsName(name) {
		p.fail("", "", e.Pos, fmt.Errorf("the type and the name of a %s may contain only letters, digits, underscores and dashes", block.Type))
		return
	}
	if _, exists := into[e.Address]; exists {
		p.fail(e.Address, "", e.Pos, errors.New("this block is configured twice; remove or rename one of the two"))
	}
	into[e.Address] = e

	table, known := Find(tables, kind)
	if !known {
		e.Err = entries.UnknownKind(e.Address, block.Type, kind, e.Pos, tables)
		return
	}
	p.settings(e, block.Body, table.Attrs)
}

func (p *parser) settings(e *entries.Entry, body hcl.Body, attrs []attr.Attr) {
	content := p.content(body, bodySchema(attrs), attrs...)
	for _, a := range attrs {
		written, ok := content.Attributes[a.Name]
		if !ok {
			continue
		}
		read := p.scope.place
		switch {
		case a.Secrecy == attr.LocalSecret: // a local secret is not a path
			read = p.scope.value
		case a.Form == attr.KeyProvider:
			read = p.keyReference(e.Address + "." + a.Name)
		case a.Form == attr.Method:
			read = p.methodReference
		}
		e.Settings[a.Name] = p.setting(e.Address, written, read)
	}
	for _, block := range content.Blocks {
		if _, twice := e.Settings[block.Type]; twice {
			p.fail(e.Address, block.Type, position(block.DefRange), errors.New("this block is configured twice; remove one of the two"))
		}
		a, _ := attr.Table{Attrs: attrs}.Attr(block.Type)
		e.Settings[block.Type] = p.nested(e.Address+"."+block.Type, block, a)
	}
}

func (p *parser) nested(address string, block *hcl.Block, a attr.Attr) entries.Setting {
	inner := &entries.Entry{Address: address, Settings: map[string]entries.Setting{}}
	p.settings(inner, block.Body, a.Attrs)
	whole := entries.Setting{Pos: position(block.DefRange), FromEnvironment: p.isLayer()}
	values := map[string]cty.Value{}
	for name, s := range inner.Settings {
		if s.Err != nil {
			return entries.Setting{Err: s.Err, Pos: s.Pos}
		}
		values[name] = s.Value
		whole.UsesVariables = whole.UsesVariables || s.UsesVariables
	}
	whole.Value = cty.ObjectVal(values)
	return whole
}

// bodySchema returns the schema of a body with these attributes. It allows nested settings both as
// a block and as an attribute, because OpenTofu uses both forms.
func bodySchema(attrs []attr.Attr) *hcl.BodySchema {
	var s hcl.BodySchema
	for _, a := range attrs {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.Name})
		if a.Attrs != nil {
			s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: a.Name})
		}
	}
	return &s
}

// target reads a state, plan, default or remote_state_data_source block.
func (p *parser) target(block *hcl.Block, address string, schema *hcl.BodySchema, into **Target) {
	if *into != nil {
		p.fail(address, "", position(block.DefRange), errors.New("this block is configured twice; remove one of the two"))
		return
	}
	t := &Target{Pos: position(block.DefRange)}
	*into = t
	content := p.content(block.Body, schema)
	if written, ok := content.Attributes["method"]; ok {
		t.Method = p.targetMethod(address, written)
	}
	if written, ok := content.Attributes["enforced"]; ok {
		t.Enforced = p.bool(address, written)
	}
	p.fallback(address, content, t)
}

func (p *parser) fallback(address string, content *hcl.BodyContent, t *Target) {
	for i, block := range content.Blocks {
		address := address + ".fallback"
		if i > 0 {
			p.fail(address, "", position(block.DefRange), errors.New("only one fallback is allowed here; nest a second fallback "+
				"inside the first"))
			return
		}
		inner := p.content(block.Body, &targetSchema)
		written, ok := inner.Attributes["method"]
		if !ok {
			p.fail(address, "method", position(block.DefRange), errors.New("this argument is required; set it to a method like method.aes_gcm.main"))
			return
		}
		t.Fallbacks = append(t.Fallbacks, p.targetMethod(address, written))
		p.fallback(address, inner, t)
	}
}

// These are the schemas of targets and of the fallbacks in them. Only the state and the plan of the
// module itself can be enforced.
var (
	fallbackBlock     = []hcl.BlockHeaderSchema{{Type: "fallback"}}
	targetSchema      = hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "method"}}, Blocks: fallbackBlock}
	enforceableSchema = hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "method"}, {Name: "enforced"}}, Blocks: fallbackBlock}
)

func (p *parser) bool(address string, written *hcl.Attribute) bool {
	v, err := p.scope.value(written.Expr)
	if err == nil && (v.IsNull() || !v.IsKnown() || v.Type() != cty.Bool) {
		err = errors.New("the value must be true or false")
	}
	if err != nil {
		p.fail(address, written.Name, position(written.Range), err)
		return true // this function reads only enforced; in doubt, plaintext is refused
	}
	return v.True()
}

// content returns the arguments and blocks of a body, as far as they could be read, and records
// mistakes. Attrs are the attributes in the body's table, if it has one.
func (p *parser) content(body hcl.Body, schema *hcl.BodySchema, attrs ...attr.Attr) *hcl.BodyContent {
	content, diags := body.Content(schema)
	p.diagnostics(diags, schema, attrs...)
	return content
}

func (p *parser) diagnostics(diags hcl.Diagnostics, schema *hcl.BodySchema, attrs ...attr.Attr) {
	said := map[string]bool{}
	// HCL collects diagnostics in a map, so their order is random.
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int { return a.Subject.Start.Byte - b.Subject.Start.Byte })
	for _, d := range diags {
		// These details contain names of arguments and blocks, but never values.
		text, found := wordFor(d)
		if !found {
			text = fmt.Sprintf("%s: %s%s", d.Summary, d.Detail, p.renamed(d.Detail, schema, attrs))
		}
		if d.Severity == hcl.DiagError && !said[text] {
			p.fail("", "", position(*d.Subject), errors.New(text))
			said[text] = found // one mistake may cause several diagnostics
		}
	}
}

// renamed returns advice for an unexpected argument or block, based on the detail of HCL's error.
// The advice names the argument that the user probably meant, or the place where the block belongs.
func (p *parser) renamed(detail string, schema *hcl.BodySchema, attrs []attr.Attr) string {
	for _, misplaced := range []struct{ part, advice string }{
		{`of type "terraform"`, " Only the content of the encryption block is required here."},
		{`of type "encryption"`, " Only the content of the encryption block is required here."},
		{`Blocks of type "backend"`, " Only the settings file of statecrypt wrap may contain it, outside all other blocks."},
		{`of type "variable"`, " Variables need no declaration here: use them as var.NAME."},
		{`of type "provider"`, ` This block configures a provider in Terraform. Write the content of OpenTofu's encryption block here, for example key_provider "pbkdf2" "main".`},
		{"must have 2 labels", ` Write them in quotes, like key_provider "pbkdf2" "main".`},
		{"must have 1 labels", ` Write it in quotes, like backend "http".`},
		{"No labels are expected", " Remove it."},
	} {
		if strings.Contains(detail, misplaced.part) {
			return misplaced.advice
		}
	}
	if (strings.Contains(detail, `of type "fallback"`) || strings.Contains(detail, `named "enforced"`)) && len(schema.Attributes) == 0 {
		return ` It belongs in a state or plan block, or in another block that selects a method.`
	}
	if _, rest, ok := strings.Cut(detail, `named "`); ok && !strings.Contains(detail, "Did you mean") {
		name, _, _ := strings.Cut(rest, `"`)
		if meant := p.meantArgument(name, attrs); meant != "" {
			return " " + meant
		}
	}
	isUnknown := strings.HasSuffix(detail, " expected here.") || strings.HasPrefix(detail, "No argument or block type is named")
	if isUnknown && !strings.Contains(detail, "Did you mean") {
		return thereAre(schema)
	}
	return ""
}

// meantArgument returns advice for an argument of another program or of an older version, such as
// the RFC for OpenTofu's encryption. It suggests the attribute with a similar name or with the same
// form.
func (p *parser) meantArgument(name string, attrs []attr.Attr) string {
	stem, isFile := strings.CutSuffix(name, "_file")
	begin, isPassphrase := strings.TrimSuffix(name, "y"), name == "passphrase" || name == "password"
	for _, a := range attrs {
		switch {
		case isFile && a.Name == stem && a.Type.IsListType():
			return fmt.Sprintf(`Write %s = compact(split("\n", file("PATH"))).`, stem)
		case isFile && a.Name == stem:
			return fmt.Sprintf(`Write %s = trimspace(file("PATH")).`, stem)
		case len(begin) > 3 && strings.HasPrefix(a.Name, begin), name == "key_provider" && a.Form == attr.KeyProvider,
			(isPassphrase || name == "secret") && a.Form == attr.Passphrase:
			return fmt.Sprintf("Did you mean %q?", a.Name)
		}
	}
	isSent := func(a attr.Attr) bool { return a.Secrecy.IsSent() }
	takesPassphrase := func(a attr.Attr) bool { return a.Form == attr.Passphrase }
	for _, t := range p.opts.KeyProviders {
		if isPassphrase && len(attrs) > 0 && !slices.ContainsFunc(attrs, isSent) && slices.ContainsFunc(t.Attrs, takesPassphrase) {
			return fmt.Sprintf("For a passphrase, use key_provider %q.", t.Name)
		}
	}
	return ""
}

// thereAre returns the part of an error message that lists the arguments and blocks that a block
// may have.
func thereAre(schema *hcl.BodySchema) string {
	var names []string
	for _, a := range schema.Attributes {
		names = append(names, a.Name)
	}
	for _, b := range schema.Blocks {
		if !slices.Contains(names, b.Type) {
			names = append(names, b.Type)
		}
	}
	if len(names) == 0 {
		return " Nothing belongs in this block; remove it."
	}
	return " Expected: " + strings.Join(names, ", ") + "."
}

func (p *parser) setting(address string, written *hcl.Attribute, read func(hcl.Expression) (cty.Value, error)) entries.Setting {
	pos := position(written.Range)
	v, err := read(written.Expr)
	if err != nil {
		return entries.Setting{Err: &attr.Error{Address: address, Attr: written.Name, Pos: pos, Err: err}, Pos: pos}
	}
	isVariable := func(t hcl.Traversal) bool { return t.RootName() == "var" }
	usesVariables := !p.opts.FromEnvironment && slices.ContainsFunc(written.Expr.Variables(), isVariable)
	return entries.Setting{Value: v, Pos: pos, FromEnvironment: p.isLayer(), UsesVariables: usesVariables}
}

func (p *parser) fail(address, name string, pos attr.Pos, err error) {
	p.errs = append(p.errs, &attr.Error{Address: address, Attr: name, Pos: pos, Err: err})
}

func position(r hcl.Range) attr.Pos {
	return attr.Pos{File: r.Filename, Line: r.Start.Line, Column: r.Start.Column}
}
