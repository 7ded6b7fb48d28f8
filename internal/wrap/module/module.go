// Package module reads the module in which Terraform runs, and writes the record of the module's backend.
package module

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

// ofBackendGit is the name of a file that terraform-backend-git writes into the module, and leaves there if Terraform
// fails.
const ofBackendGit = "git_http_backend.auto.tf"

const wanted = `in the module, write an empty block: backend "http" {}`

// Module is the folder in which Terraform runs.
type Module struct {
	Dir     string            // the absolute path of the folder, with links resolved
	Data    string            // the absolute data directory that the program would use without wrap
	sources []string          // names of the configuration files that the program reads; see FindSources
	read    map[string]places // blocks by source file name, for files already parsed
}

// places holds the blocks in a file that say where the state is, or the error from reading the file.
type places struct {
	blocks hcl.Blocks
	err    error
}

// CheckBackend returns an error if the module keeps its state elsewhere. Terraform would also refuse such a module,
// because of the record, but with a less clear error. CheckBackend checks each file separately: if no file has another
// backend, the merged configuration has none.
func (m *Module) CheckBackend() error {
	found := false
	for _, name := range m.sources {
		places, err := m.places(name)
		for _, b := range places {
			err = cmp.Or(err, checkBlock(b))
		}
		if err != nil && name == ofBackendGit {
			err = errors.New("this file of terraform-backend-git sets its own server as the backend; delete the file")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", outside.Quoted(name, 100), err)
		}
		found = found || len(places) > 0
	}
	if len(m.sources) == 0 {
		return fmt.Errorf("there are no configuration files in %s; change to the module's folder, or run terraform -chdir=FOLDER",
			outside.Quoted(m.Dir, 300))
	}
	if !found {
		return fmt.Errorf("there is no backend block in %s; %s", outside.Quoted(m.Dir, 300), wanted)
	}
	return nil
}

// FindSources finds the configuration files that the program reads. If some files are only for OpenTofu, FindSources
// asks the program for its version, to find out whether it is Terraform or OpenTofu. If the answer is unclear, all
// files count.
func (m *Module) FindSources(version func() ([]byte, error)) error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return err
	}
	apart := false
	for _, e := range entries {
		name := e.Name()
		stem, end := ofSource(name)
		if e.IsDir() || strings.HasPrefix(name, ".") || stem == "" {
			continue
		}
		m.sources = append(m.sources, name)
		apart = apart || strings.HasPrefix(end, ".tofu")
	}
	if !apart {
		return nil
	}
	text, err := version()
	if err != nil {
		return err
	}
	said := release.FindSubmatch(text)
	if said == nil {
		return nil
	}
	minor, _ := strconv.Atoi(string(said[2])) // the text has only digits
	readsTofu := string(said[1]) == "OpenTofu v1" && minor >= firstTofu
	found := slices.Clone(m.sources)
	m.sources = slices.DeleteFunc(m.sources, func(name string) bool {
		stem, end := ofSource(name)
		if strings.HasPrefix(end, ".tofu") {
			return !readsTofu
		}
		return readsTofu && slices.Contains(found, stem+strings.Replace(end, ".tf", ".tofu", 1))
	})
	return nil
}

// release matches the line in which a program prints its name and version.
var release = lazyregexp.New(`(?m)^(Terraform v1|OpenTofu v1)\.([0-9]{1,4})\.`)

// firstTofu is the first minor version of OpenTofu 1 that reads its own files, such as main.tofu, instead of main.tf.
const firstTofu = 8

// ofSource splits the name of a configuration file into stem and extension. For other files, it returns empty strings.
func ofSource(name string) (stem, end string) {
	for _, end := range []string{".tf", ".tofu", ".tf.json", ".tofu.json"} {
		if stem, ok := strings.CutSuffix(name, end); ok {
			return stem, end
		}
	}
	return "", ""
}

// LocalFile returns the state file of the module's "local" backend, or an empty string if the module has no such
// backend.
func (m *Module) LocalFile() (file string) {
	for _, name := range m.sources {
		found, _ := m.places(name) // Terraform reports mistakes in the file
		for _, b := range found {
			if len(b.Labels) == 0 || b.Labels[0] != "local" {
				continue
			}
			file = "terraform.tfstate"
			attrs, _ := b.Body.JustAttributes()
			if path, ok := attrs["path"]; ok {
				if v, _ := path.Expr.Value(nil); IsText(v) {
					file = v.AsString()
				}
			}
		}
	}
	return file
}

// places returns the blocks in a source file that say where the state is. It parses each file only once.
func (m *Module) places(name string) (found hcl.Blocks, err error) {
	if read, ok := m.read[name]; ok {
		return read.blocks, read.err
	}
	body, err := parse(filepath.Join(m.Dir, name))
	for _, terraform := range blocks(body, hcl.BlockHeaderSchema{Type: "terraform"}) {
		found = append(found, blocks(terraform.Body, hcl.BlockHeaderSchema{Type: "backend", LabelNames: []string{"type"}},
			hcl.BlockHeaderSchema{Type: "cloud"}, hcl.BlockHeaderSchema{Type: "state_store", LabelNames: []string{"type"}},
			hcl.BlockHeaderSchema{Type: "encryption"})...)
	}
	if m.read == nil {
		m.read = map[string]places{}
	}
	m.read[name] = places{found, err}
	return found, err
}

// IsText reports whether a value is a known, non-null string.
func IsText(v cty.Value) bool {
	return v != cty.NilVal && v.Type() == cty.String && v.IsKnown() && !v.IsNull()
}

// parse returns the body of a configuration file. If there is an error, the body is empty.
func parse(path string) (hcl.Body, error) {
	text, err := files.ReadFile(path)
	if err != nil {
		return hcl.EmptyBody(), keyfile.Reason(err)
	}
	parse, expect := hclparse.NewParser().ParseHCL, unstable.ExpectConfig
	if strings.HasSuffix(path, ".json") {
		parse, expect = hclparse.NewParser().ParseJSON, unstable.ExpectJSON
	}
	if err := expect(text); err != nil {
		return hcl.EmptyBody(), err
	}
	file, diags := parse(text, path)
	if diags.HasErrors() { // the details may quote the text
		line := 0
		if at := diags[0].Subject; at != nil {
			line = at.Start.Line
		}
		return hcl.EmptyBody(), fmt.Errorf("it could not be parsed (line %d); run terraform validate for details", line)
	}
	return file.Body, nil
}

func blocks(body hcl.Body, types ...hcl.BlockHeaderSchema) hcl.Blocks {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Blocks: types}) // Terraform reports other mistakes
	return content.Blocks
}

// checkBlock returns an error unless the block is an empty "http" backend.
func checkBlock(b *hcl.Block) error {
	switch {
	case b.Type == "encryption":
		return errors.New("the encryption block would encrypt the state a second time; run tofu without wrap, or remove the block")
	case b.Type != "backend" || b.Labels[0] != "http":
		name, instead := strings.Join(append([]string{b.Type}, b.Labels...), " "), ""
		if b.Type == "backend" && slices.ContainsFunc(all.Kinds(), func(k store.Kind) bool { return k.Name == b.Labels[0] }) {
			instead = ". Move the existing block to the -config file"
		}
		return fmt.Errorf("the block %s keeps the state elsewhere; %s%s", outside.Quoted(name, 100), wanted, instead)
	}
	if attrs, diags := b.Body.JustAttributes(); len(attrs) > 0 || diags.HasErrors() {
		return fmt.Errorf(`the arguments of the backend block would override wrap; %s. Move the arguments to a `+
			`backend "http" block in the -config file, or to STATECRYPT_HTTP_* variables`, wanted)
	}
	return nil
}

// NoteVariables tells the user about variables that the module declares but the child does not get. The child will ask
// for their values or fail.
func (m *Module) NoteVariables(withheld, environ []string, say func(text string)) {
	declared := map[string]bool{}
	for _, name := range m.sources {
		body, _ := parse(filepath.Join(m.Dir, name)) // the child reports mistakes in the file
		for _, b := range blocks(body, hcl.BlockHeaderSchema{Type: "variable", LabelNames: []string{"name"}}) {
			declared["TF_VAR_"+b.Labels[0]] = true
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(withheld))) {
		if value, _ := world.Lookup(environ)(name); value != "" && declared[name] {
			say(fmt.Sprintf("%s sets a variable of the encryption settings, so wrap hides it from the program, but the module has a variable "+
				"with the same name; rename one of the two variables", name))
		}
	}
}
