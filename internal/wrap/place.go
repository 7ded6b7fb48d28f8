package wrap

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// checkOneModule refuses settings outside of the module that name one state for whichever
// module they are used with: the second would destroy what the first has made.
func checkOneModule(o Options, module string) error {
	if o.Backend == nil {
		return nil
	}
	place := kindOf(o.Backend).Place
	named := o.Backend.Settings[place]
	folder, err := folderOf(o.Settings)
	if err != nil || folder == "" || folder == module || !named.IsSet() || named.Err != nil || names(named.Value, unstable.Module) {
		return err
	}
	err = fmt.Errorf("the file is not in the folder of the module, and so would give every module the same state; write %s where its name "+
		"has that of the folder, or move the file there", unstable.Module)
	return &attr.Error{Address: o.Backend.Address, Attr: place, Pos: named.Pos, Err: err}
}

// forModule is a block with the name of the module where it asks for it. Of settings
// without a file, nothing is known.
func forModule(block *unstable.Entry, settings, module string) (*unstable.Entry, error) {
	folder, err := folderOf(settings)
	if err != nil || folder == "" {
		return block, err
	}
	name, err := filepath.Rel(folder, module)
	switch {
	case err != nil:
	case !filepath.IsLocal(name):
		err = errors.New("it is not in that folder")
	case name == ".":
		err = errors.New("it is that folder")
	}
	filled := *block
	filled.Settings = maps.Clone(block.Settings)
	for attribute, s := range filled.Settings {
		if !names(s.Value, unstable.Module) {
			continue
		}
		if err != nil {
			return nil, &attr.Error{Address: block.Address, Attr: attribute, Pos: s.Pos, Err: fmt.Errorf("%s is the folder of the module as "+
				"seen from that of this file, and %s has none: %w", unstable.Module, outside.Quoted(module, 300), err)}
		}
		s.Value = cty.StringVal(strings.ReplaceAll(s.Value.AsString(), unstable.Module, filepath.ToSlash(name)))
		filled.Settings[attribute] = s
	}
	return &filled, nil
}

// names reports whether a value is a text with a name in it.
func names(v cty.Value, name string) bool {
	return v != cty.NilVal && v.Type() == cty.String && v.IsKnown() && !v.IsNull() && strings.Contains(v.AsString(), name)
}

// folderOf is that of a file of settings, whatever links lead there: each module may have one. It is
// "" if there is none, or if it is a pipe.
func folderOf(settings string) (string, error) {
	if info, err := os.Stat(settings); settings == "" || err != nil || !info.Mode().IsRegular() {
		return "", nil //nolint:nilerr // settings that cannot be read are said where they are read
	}
	file, err := resolve("", settings)
	if errors.Is(err, fs.ErrNotExist) { // it has no name any more
		return "", nil
	}
	return filepath.Dir(file), err
}
