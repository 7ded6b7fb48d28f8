package states

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
)

// moves is the command that moves a state into the backend.
const moves = "statecrypt wrap -config " + fault.Config + " -encrypt-existing -- terraform init"

// Unused finds the states that the module had without wrap, which are not used under wrap.
type Unused struct {
	Module  *module.Module
	Backend *Backend // nil if the run has no backend
	Say     func(text string)
}

// Warn warns about a state that the module had without wrap. The child does not read that state, and would create all
// its resources a second time. The init command shows more warnings than others.
func (u *Unused) Warn(initializes bool) {
	const advice = "; if that state is not in wrap's backend yet, run " + moves
	if initializes {
		u.warnOfWorkspaces()
	}
	file, r, err := u.find()
	if err == nil && file == "" && initializes { // only for init, because Terraform keeps the record
		u.Say("warning: wrap does not use the state that this module stored in the backend " + r.Name() + advice)
		return
	}
	switch u.kindOf(file) {
	case encryption.KindState:
		u.Say("warning: wrap does not use the plaintext state in " + outside.Line(file, 200) + advice + ". Otherwise, delete that file")
	case encryption.KindEncrypted:
		if initializes { // other commands need no warning, because the state is encrypted
			u.Say("wrap does not use the encrypted state in " + outside.Line(file, 200) + "; if that state is not in wrap's backend " +
				"yet, decrypt it, then run " + moves)
		}
	}
}

// keeps reports whether the file at path belongs to the state in the backend.
func (u *Unused) keeps(path string) bool { return u.Backend != nil && u.Backend.Keeps(path) }

// kindOf returns the kind of a file in the module folder. The kind is unknown if the file cannot be read, or if it
// belongs to the state in the backend. A state without resources and outputs, such as destroy leaves behind, counts as
// empty.
func (u *Unused) kindOf(file string) encryption.FileKind {
	path := files.Join(u.Module.Dir, file)
	if u.keeps(path) { // the state in the backend is in use
		return encryption.KindUnknown
	}
	content, err := files.ReadFile(path)
	if err != nil {
		return encryption.KindUnknown
	}
	info, _ := encryption.Inspect(content)
	var held struct {
		Resources, Modules []json.RawMessage
		Outputs            map[string]json.RawMessage
	}
	if info.Kind == encryption.KindState && json.Unmarshal(content, &held) == nil &&
		len(held.Resources)+len(held.Modules)+len(held.Outputs) == 0 {
		return encryption.KindEmpty
	}
	return info.Kind
}

// ExpectNone returns an error if the module had a state without wrap. While the backend has no state, the child would
// create all resources in that state a second time.
func (u *Unused) ExpectNone() error {
	file, r, err := u.find()
	if err != nil {
		return err
	}
	if file == "" {
		return fmt.Errorf("wrap's backend has no state yet, but this module stored its state in the backend %s; to move that state, run %s. "+
			"If that state is no longer needed, delete %s", r.Name(), moves, outside.Line(u.Module.Data, 300))
	}
	for _, found := range append([]string{file}, u.inWorkspaces(r)...) {
		where := outside.Line(found, 200)
		first := ""
		if found != file {
			where += ", and wrap does not support workspaces"
			first = "move that file to " + outside.Line(file, 200) + ", then "
		}
		switch u.kindOf(found) {
		case encryption.KindState:
			return fmt.Errorf("wrap's backend has no state yet, but there is a plaintext state in %s; %srun %s. If that state is no longer "+
				"needed, delete that file", where, first, moves)
		case encryption.KindEncrypted:
			return fmt.Errorf("wrap's backend has no state yet, but there is an encrypted state in %s; decrypt the state, then %srun %s. If that "+
				"state is no longer needed, delete that file", where, first, moves)
		}
	}
	return nil
}

// warnOfWorkspaces warns about plaintext states that the module had in workspaces.
func (u *Unused) warnOfWorkspaces() {
	_, r, _ := u.find() // ExpectNone returns the error for an unreadable record
	for _, file := range u.inWorkspaces(r) {
		if u.kindOf(file) == encryption.KindState {
			u.Say("warning: wrap does not use the plaintext state of a workspace in " + outside.Line(file, 200) + ", because wrap does " +
				"not support workspaces")
		}
	}
}

// inWorkspaces returns the paths of states that the module may have had in workspaces, relative to the module folder.
func (u *Unused) inWorkspaces(r module.Recorded) (found []string) {
	folder, _ := r.Backend.Config["workspace_dir"].(string)
	folder = cmp.Or(folder, "terraform.tfstate.d")
	entries, _ := os.ReadDir(files.Join(u.Module.Dir, folder)) // usually, this folder does not exist
	for _, e := range entries {
		found = append(found, filepath.Join(folder, e.Name(), "terraform.tfstate"))
	}
	return found
}

// warnOfOthers warns about states of this module outside the backend, which wrap does not use.
func (u *Unused) warnOfOthers() {
	u.warnOfWorkspaces()
	backups, _ := filepath.Glob(filepath.Join(u.Module.Dir, "*.backup"))
	for _, path := range backups {
		if file := filepath.Base(path); u.kindOf(file) == encryption.KindState {
			u.Say("warning: there is a plaintext state in " + outside.Line(file, 200) + "; if that is only an older version of this state, " +
				"delete that file")
		}
	}
	switch file, r, err := u.find(); {
	case err != nil:
	case file == "":
		u.Say("warning: wrap does not use the state that this module stored in the backend " + r.Name() + "; delete that state only if it " +
			"is an older version. It may also be the current state at another address")
	case u.kindOf(file) == encryption.KindState:
		u.Say("warning: wrap does not use the plaintext state in " + outside.Line(file, 200) + "; if that is only an older version of this " +
			"state, delete that file")
	}
}

// find returns where the module keeps its state when it runs without wrap, according to Terraform's record: in a file,
// whose path is relative to the module folder, or, if file is empty, in the backend in r.
func (u *Unused) find() (file string, r module.Recorded, err error) {
	file = "terraform.tfstate"
	r, err = module.ReadRecord(u.Module.Data)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	path, _ := r.Backend.Config["path"].(string)
	same := false
	if u.Backend != nil {
		same, _ = u.Backend.succeeds(r)
	}
	switch local := slices.Contains([]string{"", "local"}, r.Backend.Type); {
	case err != nil:
	case local:
		file = cmp.Or(path, file)
	case same: // the recorded backend is the current one
	case r.Backend.Type != "http" || len(r.Backend.Config) > 0: // init records arguments; the record that wrap leaves behind has none
		file = ""
	}
	return file, r, err
}
