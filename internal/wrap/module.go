package wrap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/all"
)

// ofBackendGit is what terraform-backend-git writes into a module, and leaves there if
// Terraform fails.
const ofBackendGit = "git_http_backend.auto.tf"

const wanted = `the module requires an empty block, backend "http" {}`

// checkModule refuses a module that keeps its state elsewhere. Terraform refuses
// it too, see [writeRecord], but says less clearly why. Each file that the program reads is
// read by itself: what does no harm in any of them does none in whatever they are merged to.
func (i *invocation) checkModule() error {
	found := false
	for _, name := range i.sources {
		places, err := placesOf(filepath.Join(i.dir, name))
		for _, b := range places {
			err = cmp.Or(err, checkBlock(b))
		}
		if err != nil && name == ofBackendGit {
			err = errors.New("terraform-backend-git has left this file, which says that its own server has the state; delete it")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", outside.Quoted(name, 100), err)
		}
		found = found || len(places) > 0
	}
	if len(i.sources) == 0 {
		return fmt.Errorf("there is no file of a configuration in %s; go to the folder of the module, or run terraform -chdir=FOLDER",
			outside.Quoted(i.dir, 300))
	}
	if !found {
		return fmt.Errorf("there is no backend block in %s; %s", outside.Quoted(i.dir, 300), wanted)
	}
	return nil
}

// findSources finds the files of the module that the program reads. Those for OpenTofu alone
// tell the two apart, and the program, whatever it is called, says which of them it is. If it
// does not, all count.
func (i *invocation) findSources(ctx context.Context, o Options) error {
	entries, err := os.ReadDir(i.dir)
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
		i.sources = append(i.sources, name)
		apart = apart || strings.HasPrefix(end, ".tofu")
	}
	if !apart {
		return nil
	}
	out := bytes.Buffer{}
	o.Stdin, o.Stdout, o.Stderr = nil, &out, io.Discard
	asked := &invocation{command: command{Name: "version"}, program: i.program, dir: i.dir}
	if _, err := asked.run(ctx, o, asked.environ(o, "CHECKPOINT_DISABLE=1")); err != nil {
		return err
	}
	said := release.FindStringSubmatch(out.String())
	if said == nil {
		return nil
	}
	minor, _ := strconv.Atoi(said[2]) // of digits
	readsTofu := said[1] == "OpenTofu v1" && minor >= firstTofu
	found := slices.Clone(i.sources)
	i.sources = slices.DeleteFunc(i.sources, func(name string) bool {
		stem, end := ofSource(name)
		if strings.HasPrefix(end, ".tofu") {
			return !readsTofu
		}
		return readsTofu && slices.Contains(found, stem+strings.Replace(end, ".tf", ".tofu", 1))
	})
	return nil
}

// release is how a program says which one it is.
var release = lazyregexp.New(`(?m)^(Terraform v1|OpenTofu v1)\.([0-9]{1,4})\.`)

// firstTofu is the first version 1.x of OpenTofu with files of its own, which it reads in place of
// those that are called the same but for that.
const firstTofu = 8

// ofSource is the name of a file of a configuration in two parts; "" if it is none.
func ofSource(name string) (stem, end string) {
	for _, end := range []string{".tf", ".tofu", ".tf.json", ".tofu.json"} {
		if stem, ok := strings.CutSuffix(name, end); ok {
			return stem, end
		}
	}
	return "", ""
}

// localFile is the file of a backend "local" of the module, "" if it has none.
func (i *invocation) localFile() (file string) {
	for _, name := range i.sources {
		found, _ := placesOf(filepath.Join(i.dir, name)) // Terraform says what is wrong with it
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

// placesOf are the blocks of a file that say where the state is.
func placesOf(path string) (found hcl.Blocks, err error) {
	body, err := parse(path)
	for _, terraform := range blocks(body, hcl.BlockHeaderSchema{Type: "terraform"}) {
		found = append(found, blocks(terraform.Body, hcl.BlockHeaderSchema{Type: "backend", LabelNames: []string{"type"}},
			hcl.BlockHeaderSchema{Type: "cloud"}, hcl.BlockHeaderSchema{Type: "state_store", LabelNames: []string{"type"}},
			hcl.BlockHeaderSchema{Type: "encryption"})...)
	}
	return found, err
}

// parse returns what is in a file of a configuration, nothing with an error.
func parse(path string) (hcl.Body, error) {
	text, err := readFile(path)
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
	if diags.HasErrors() { // the details may hold a piece of the text
		line := 0
		if at := diags[0].Subject; at != nil {
			line = at.Start.Line
		}
		return hcl.EmptyBody(), fmt.Errorf("it cannot be parsed, see line %d; terraform validate says more", line)
	}
	return file.Body, nil
}

func blocks(body hcl.Body, types ...hcl.BlockHeaderSchema) hcl.Blocks {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Blocks: types}) // Terraform says what else is wrong
	return content.Blocks
}

// checkBlock refuses every block but an empty backend "http".
func checkBlock(b *hcl.Block) error {
	switch {
	case b.Type == "encryption":
		return errors.New("the encryption block would encrypt the state a second time; run tofu without wrap, or remove the block")
	case b.Type != "backend" || b.Labels[0] != "http":
		name, instead := strings.Join(append([]string{b.Type}, b.Labels...), " "), ""
		if b.Type == "backend" && slices.ContainsFunc(all.Kinds(), func(k store.Kind) bool { return k.Name == b.Labels[0] }) {
			instead = "; this one belongs in the file of -config"
		}
		return fmt.Errorf("the block %s keeps the state elsewhere; %s%s", outside.Quoted(name, 100), wanted, instead)
	}
	if attrs, diags := b.Body.JustAttributes(); len(attrs) > 0 || diags.HasErrors() {
		return fmt.Errorf(`the backend has arguments, which take precedence over wrap; %s, and the arguments belong in `+
			`a block backend "http" in the file of -config, or in STATECRYPT_HTTP_* variables`, wanted)
	}
	return nil
}
