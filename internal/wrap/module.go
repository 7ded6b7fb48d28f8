package wrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// ofBackendGit is what terraform-backend-git writes into a module, and leaves there if
// Terraform fails.
const ofBackendGit = "git_http_backend.auto.tf"

const wanted = `the module requires an empty block, backend "http" {}`

// checkModule refuses a module that keeps its state elsewhere. Terraform refuses
// it too, see [writeRecord], but says less clearly why. All files are read that any
// version of Terraform or OpenTofu reads, each by itself: what does no harm in any
// of them does none in whatever they are merged to.
func checkModule(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found, files := false, 0
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || !isSource(name) {
			continue
		}
		files++
		ours, err := checkSource(filepath.Join(dir, name))
		if err != nil && name == ofBackendGit {
			err = errors.New("terraform-backend-git has left this file, which says that its own server has the state; delete it")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", outside.Quoted(name, 100), err)
		}
		found = found || ours
	}
	if files == 0 {
		return fmt.Errorf("there is no file of a configuration in %s; go to the folder of the module, or run terraform -chdir=FOLDER",
			outside.Quoted(dir, 300))
	}
	if !found {
		return fmt.Errorf("there is no backend block in %s; %s", outside.Quoted(dir, 300), wanted)
	}
	return nil
}

func isSource(name string) bool {
	return slices.ContainsFunc([]string{".tf", ".tofu", ".tf.json", ".tofu.json"}, func(end string) bool {
		return strings.HasSuffix(name, end)
	})
}

// localFile is the file of a backend "local" of the module, "" if it has none.
func localFile(dir string) (file string) {
	entries, _ := os.ReadDir(dir) // Terraform says what is wrong with it
	for _, e := range entries {
		if !isSource(e.Name()) {
			continue
		}
		found, _ := placesOf(filepath.Join(dir, e.Name())) // likewise
		for _, b := range found {
			if len(b.Labels) == 0 || b.Labels[0] != "local" {
				continue
			}
			file = "terraform.tfstate"
			attrs, _ := b.Body.JustAttributes()
			if path, ok := attrs["path"]; ok {
				if v, _ := path.Expr.Value(nil); names(v, "") {
					file = v.AsString()
				}
			}
		}
	}
	return file
}

// checkSource reports whether a file has our backend.
func checkSource(path string) (ours bool, err error) {
	found, err := placesOf(path)
	for _, b := range found {
		if err := checkBlock(b); err != nil {
			return false, err
		}
	}
	return len(found) > 0, err
}

// placesOf are the blocks of a file that say where the state is.
func placesOf(path string) (found hcl.Blocks, err error) {
	text, err := readFile(path)
	if err != nil {
		return nil, keyfile.Reason(err)
	}
	parse := hclparse.NewParser().ParseHCL
	if strings.HasSuffix(path, ".json") {
		parse = hclparse.NewParser().ParseJSON
	}
	file, diags := parse(text, path)
	if diags.HasErrors() { // the details may hold a piece of the text
		line := 0
		if at := diags[0].Subject; at != nil {
			line = at.Start.Line
		}
		return nil, fmt.Errorf("it cannot be parsed, see line %d; terraform validate says more", line)
	}
	for _, terraform := range blocks(file.Body, hcl.BlockHeaderSchema{Type: "terraform"}) {
		found = append(found, blocks(terraform.Body, hcl.BlockHeaderSchema{Type: "backend", LabelNames: []string{"type"}},
			hcl.BlockHeaderSchema{Type: "cloud"}, hcl.BlockHeaderSchema{Type: "state_store", LabelNames: []string{"type"}},
			hcl.BlockHeaderSchema{Type: "encryption"})...)
	}
	return found, nil
}

func blocks(body hcl.Body, types ...hcl.BlockHeaderSchema) hcl.Blocks {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Blocks: types}) // as in checkSource
	return content.Blocks
}

// checkBlock refuses every block but an empty backend "http".
func checkBlock(b *hcl.Block) error {
	switch {
	case b.Type == "encryption":
		return errors.New("the encryption block would encrypt the state a second time; run tofu without wrap, or remove the block")
	case b.Type != "backend" || b.Labels[0] != "http":
		name := strings.Join(append([]string{b.Type}, b.Labels...), " ")
		return fmt.Errorf("the block %s keeps the state elsewhere; %s", outside.Quoted(name, 100), wanted)
	}
	if attrs, diags := b.Body.JustAttributes(); len(attrs) > 0 || diags.HasErrors() {
		return fmt.Errorf(`the backend has arguments, which take precedence over wrap; %s, and the arguments belong in `+
			`a block backend "http" in the file of -config, or in STATECRYPT_HTTP_* variables`, wanted)
	}
	return nil
}
