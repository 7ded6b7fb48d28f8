package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
)

// ParseModule reads the encryption block of the module in the folder dir, as OpenTofu does. It
// reads .tf, .tofu, .tf.json and .tofu.json files, with x.tofu instead of x.tf if both exist, and
// merges override files over the others. The block may use variables, locals, path.module,
// path.root, path.cwd and terraform.workspace. Functions that read files resolve relative paths in
// the folder.
//
// The value of a variable comes from opts or from a variable file in the folder, in OpenTofu's
// order, or else from its default. ParseModule returns a nil Config for a module without the block,
// and an error for a folder without a module.
func ParseModule(dir string, opts Options) (*Config, error) {
	m := &module{
		dir: dir, variables: map[string]*variable{}, locals: map[string]hcl.Expression{}, values: map[string]cty.Value{},
	}
	if err := m.read(); err != nil {
		return nil, err
	}
	given, err := opts.given(m)
	if err != nil {
		return nil, err
	}
	m.fit(given)
	p := parser{opts: opts}
	p.scope = p.newScope(given, m)
	layers := make([]*Config, len(m.blocks))
	var errs fault.List
	for i, block := range m.blocks {
		p.config, p.errs = newConfig(), nil
		p.root(block.Body, &rootSchema)
		layers[i] = p.config
		errs = append(errs, p.errs...)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return Merge(layers...), nil
}

// module holds the parts of a module's files that an encryption block may use.
type module struct {
	dir       string
	blocks    hcl.Blocks // encryption blocks; each is merged over the earlier ones
	variables map[string]*variable
	locals    map[string]hcl.Expression
	values    map[string]cty.Value // values of the locals that are already evaluated
	inside    int                  // number of locals being evaluated, each because the previous one refers to it
}

func (m *module) read() error {
	layers, err := moduleFiles(m.dir)
	if err != nil {
		return err
	}
	for _, paths := range layers {
		var found hcl.Blocks // at most one block in all files of a layer
		for _, path := range paths {
			blocks, err := m.readFile(path)
			if err != nil {
				return err
			}
			found = append(found, blocks...)
		}
		if len(found) > 1 {
			return secondBlock(found)
		}
		m.blocks = append(m.blocks, found...)
	}
	return nil
}

// readFile stores the variables and locals of a file, and returns its encryption blocks.
func (m *module) readFile(path string) (hcl.Blocks, error) {
	if err := keyfile.ExpectRegular(path); err != nil {
		return nil, fmt.Errorf("%.200q cannot be read: %w", path, err)
	}
	text, err := os.ReadFile(path) //nolint:gosec // a file of the module that the caller chose
	if err != nil {
		return nil, err
	}
	body, err := parseBody(text, path, strings.HasSuffix(path, ".json"), formOfSettings)
	if err != nil {
		return nil, err
	}
	content, _, diags := body.PartialContent(&moduleSchema)
	if diags.HasErrors() {
		return nil, mistake(diags, text, formOfSettings)
	}
	var found hcl.Blocks
	for _, b := range content.Blocks {
		switch b.Type {
		case "terraform":
			found = append(found, encryptionIn(b)...)
		case "variable":
			m.readVariable(b)
		case "locals":
			attrs, _ := b.Body.JustAttributes() // OpenTofu reports mistakes in locals
			for name, a := range attrs {
				m.locals[name] = a.Expr
			}
		}
	}
	return found, nil
}

var moduleSchema = hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "terraform"}, {Type: "variable", LabelNames: []string{"name"}}, {Type: "locals"},
}}

func (m *module) readVariable(block *hcl.Block) {
	name := block.Labels[0]
	if m.variables[name] == nil {
		m.variables[name] = &variable{constraint: cty.DynamicPseudoType}
	}
	m.variables[name].declare(block)
}

// workspace returns named if it is set. Otherwise, it returns the workspace that is selected in the
// folder, or "default".
func (m *module) workspace(named string) string {
	selected, _ := keyfile.Read(filepath.Join(m.dir, ".terraform", "environment")) // the file is usually absent
	return cmp.Or(named, strings.TrimSpace(string(selected)), "default")
}

// moduleFiles returns the paths of a module's files, in layers to be merged in this order. The
// first layer has all files except override files, and each override file is a separate layer.
func moduleFiles(dir string) (layers [][]string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		ignored := strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
		if !e.IsDir() && !ignored && extension(name) != "" {
			names = append(names, name)
		}
	}
	layers = [][]string{nil}
	for _, name := range names {
		ext := extension(name)
		base := strings.TrimSuffix(name, ext)
		switch {
		case slices.Contains(names, base+strings.Replace(ext, ".tf", ".tofu", 1)) && strings.HasPrefix(ext, ".tf"):
		case base == "override" || strings.HasSuffix(base, "_override"):
			layers = append(layers, []string{filepath.Join(dir, name)})
		default:
			layers[0] = append(layers[0], filepath.Join(dir, name))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: this folder is not a module, because it has no .tf or .tofu file; give the folder of a "+
			"module, or a settings file", dir)
	}
	return layers, nil
}

// extension returns the extension of a file that belongs to a module, or "" for other files.
func extension(name string) string {
	for _, ext := range []string{".tf", ".tofu", ".tf.json", ".tofu.json"} {
		if strings.HasSuffix(name, ext) {
			return ext
		}
	}
	return ""
}
