package plan

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// Files gives the child copies of the files that must be decrypted or checked first. The copies are in a private
// folder, where other users cannot replace them. They are removed after the child exits.
type Files struct {
	Keys      states.Keys
	Settings  string          // the name of the settings file
	Limit     int64           // the maximum size of a file, in bytes
	Backend   module.Settings // the backend of this run, which the child writes into each plan
	Line      *cmdline.Line
	Say       func(text string)
	temporary files.Temporary
	applied   string // the copy of the plan to apply, which contains the backend of this run

	destination string // the path where the user wants the plan; an empty string means no plan is saved
	made        string // the path where the child writes that plan
	encryptOnly bool   // whether the settings can encrypt plans but not open them again
}

// Prepare opens the files named on the command line, and makes the child use copies of them.
func (p *Files) Prepare(ctx context.Context) error {
	open := p.opener()
	for at, name := range p.Line.Args {
		stdin := name == "-" && p.Line.Name == "state push" // for other commands, "-" is a file name
		if open != nil && !stdin {
			if err := p.copy(ctx, &p.Line.Args[at], open); err != nil {
				return err
			}
			if p.Line.Name == "apply" {
				p.applied = p.Line.Args[at]
			}
		}
	}
	for at, f := range p.Line.Flags {
		if f.Name != "plan" || !p.Line.Command.TakesValue(f.Name) { // for console, -plan takes no value
			continue
		}
		if err := p.copy(ctx, &p.Line.Flags[at].Value, p.opened); err != nil {
			return err
		}
	}
	return p.intercept(ctx)
}

// Forget removes the copy of the plan to apply, once the child has opened it.
func (p *Files) Forget() { _ = os.Remove(p.applied) }

// copy makes a private copy of the named file, and sets name to the path of the copy.
func (p *Files) copy(ctx context.Context, name *string, open func(context.Context, string) ([]byte, error)) error {
	content, err := open(ctx, *name)
	path := ""
	if err == nil {
		path, err = p.file(filepath.Base(*name), content)
	}
	if err != nil {
		return fmt.Errorf("the file %s: %w", outside.Quoted(*name, 300), keyfile.Explain(files.Join(p.Line.Dir, *name), err))
	}
	*name = path
	return nil
}

// opener returns the function that opens files named in arguments, or nil if the command takes no such arguments.
func (p *Files) opener() func(context.Context, string) ([]byte, error) {
	switch p.Line.Name {
	case "apply":
		return p.checked
	case "show", "state push":
		return p.opened
	}
	return nil
}

// checked returns a plan that may be applied. The saved plan has an empty backend, which checked replaces with the
// backend of this run.
func (p *Files) checked(ctx context.Context, name string) ([]byte, error) {
	content, err := p.opened(ctx, name)
	if err != nil {
		return nil, err
	}
	plan, err := checkPlan(content, nil)
	if err != nil {
		return nil, err
	}
	return plan.with(p.Backend)
}

// opened reads and decrypts a plan or a state. It accepts plaintext, unless the settings encrypt plans.
func (p *Files) opened(ctx context.Context, name string) ([]byte, error) {
	content, err := p.read(name)
	if err != nil {
		return nil, err
	}
	info, err := encryption.Inspect(content)
	targets := p.targets(info.Kind)
	if err != nil || len(targets) == 0 {
		return content, err
	}
	for _, target := range targets {
		opened, failed := target.Decrypt(ctx, content)
		if failed == nil {
			return opened.Data, nil
		}
		err = cmp.Or(err, failed)
	}
	if len(p.Keys.Plan.Methods()) == 0 {
		err = fmt.Errorf("%w; to open plans, add a plan block to the settings", err)
	}
	return nil, err
}

func (p *Files) read(name string) ([]byte, error) {
	path, err := files.Resolve(p.Line.Dir, name)
	if err != nil {
		return nil, err
	}
	return files.ReadUpTo(p.Limit, path)
}

// targets returns the targets that may be able to decrypt a file, the most likely one first.
func (p *Files) targets(kind encryption.FileKind) (targets []encryption.Target) {
	sealed := kind == encryption.KindEncrypted
	if (sealed || kind == encryption.KindPlan) && len(p.Keys.Plan.Methods()) > 0 {
		targets = append(targets, p.Keys.Plan)
	}
	if sealed {
		targets = append(targets, p.Keys.State)
	}
	return targets
}

// intercept makes the child write its plan to a private file. After the run, wrap removes the backend from the plan,
// and encrypts the plan if there is a plan block. intercept refuses to replace any file except an older plan. It
// removes that plan first, so that nobody applies it by mistake if the run fails.
func (p *Files) intercept(ctx context.Context) error {
	if p.Line.Name != "plan" || !p.Line.Has("out") {
		return nil
	}
	sealing := len(p.Keys.Plan.Methods()) > 0
	if !sealing {
		p.Say("warning: the plan will not be encrypted, because the settings have no plan block")
	}
	for i, f := range p.Line.Flags {
		if f.Name != "out" {
			continue
		}
		p.destination = "" // the last occurrence of the flag counts
		if f.Value == "" { // without a name, no plan is saved
			continue
		}
		path, err := p.locate(f.Value)
		if err == nil {
			err = p.checkReplaced(ctx, path)
		}
		if err == nil {
			err = p.temporary.Open()
		}
		if err != nil {
			return p.notSaved(f.Value, err)
		}
		p.destination, p.made = path, filepath.Join(p.temporary.Dir, "made-"+filepath.Base(path))
		p.Line.Flags[i].Value = p.made
	}
	if p.destination == "" {
		return nil
	}
	if info, err := os.Stat(p.destination); err == nil && info.Size() > 0 {
		if err := os.Remove(p.destination); err != nil {
			return p.notSaved(p.destination, err)
		}
	}
	if sealing {
		if err := p.rehearse(ctx); err != nil {
			return p.notSaved(p.destination, err)
		}
	}
	return nil
}

// rehearse encrypts an empty plan, so that any failure shows before the real plan is made.
func (p *Files) rehearse(ctx context.Context) error {
	var plan bytes.Buffer
	archive := zip.NewWriter(&plan)
	_, err := archive.Create("tfplan")
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	_, again, err := states.SealForOthers(ctx, p.Keys.Plan, plan.Bytes(), nil)
	p.encryptOnly = err == nil && again == nil
	return err
}

func (p *Files) notSaved(name string, err error) error {
	return fmt.Errorf("the plan %s cannot be saved: %w", outside.Quoted(name, 300), keyfile.Explain(files.Join(p.Line.Dir, name), err))
}

// locate returns the path of a plan, with links resolved. It returns an error for anything but a regular file, such as
// /dev/null.
func (p *Files) locate(name string) (string, error) {
	path, err := files.Resolve(p.Line.Dir, name)
	if errors.Is(err, os.ErrNotExist) {
		folder, base := filepath.Split(name)
		folder, err = files.Resolve(p.Line.Dir, folder+".")
		return filepath.Join(folder, base), err
	}
	if err == nil {
		err = files.ExpectFile(path)
	}
	return path, err
}

// file writes content to a file that only the current user can read, and returns its path.
func (p *Files) file(name string, content []byte) (path string, err error) {
	if err := p.temporary.Open(); err != nil {
		return "", err
	}
	path = filepath.Join(p.temporary.Dir, name)
	return path, os.WriteFile(path, content, 0o600)
}

// Finish saves the plan that the child made, if any, and removes the copies. It returns an error if apply would refuse
// the plan.
func (p *Files) Finish(ctx context.Context) error {
	defer p.temporary.Remove()
	if p.destination == "" {
		return nil
	}
	content, err := files.ReadUpTo(p.Limit, p.made)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(content) == 0 {
		return nil
	}
	if err == nil {
		content, err = p.kept(ctx, content)
	}
	if meter.IsTooLarge(err) {
		err = errors.New(err.Error() + fewer)
	}
	if err == nil {
		err = replace.File(ctx, p.destination, content, nil)
	}
	if err != nil {
		return fmt.Errorf("the plan was not saved: %w", keyfile.Reason(err))
	}
	how, applies := "encrypted", "To apply it, use this command, not the command above:\n  "+p.apply()
	if len(p.Keys.Plan.Methods()) == 0 {
		how = "not encrypted"
	}
	if p.encryptOnly {
		applies = "Neither the command above nor these settings can open it"
	}
	p.Say(fmt.Sprintf("the plan in %s is %s. %s", p.destination, how, applies))
	return nil
}

// kept returns the plan without the backend settings of this run. The plan is encrypted if there is a plan block.
func (p *Files) kept(ctx context.Context, content []byte) ([]byte, error) {
	plan, err := checkPlan(content, p.Backend)
	if err == nil {
		content, err = plan.with(nil)
	}
	if err == nil && len(p.Keys.Plan.Methods()) > 0 {
		content, _, err = states.SealForOthers(ctx, p.Keys.Plan, content, nil)
	}
	if err == nil && int64(len(content)) > p.Limit {
		err = meter.TooLarge(p.Limit)
	}
	return content, err
}

var plainWord = lazyregexp.New(`^[0-9A-Za-z_./@:,+=-]+$`)

// apply returns a shell command that applies the plan. A name that would need quoting is replaced by a placeholder
// such as FILE.
func (p *Files) apply() string {
	inShell := func(word, otherwise string) string {
		if plainWord.MatchString(word) {
			return " " + word
		}
		return otherwise
	}
	words := "statecrypt wrap"
	if p.Settings != "" {
		words += " -config" + inShell(p.Settings, " FILE")
	}
	words += " --" + inShell(p.Line.Written[0], " terraform")
	if chdir := p.Line.Written[1]; strings.HasPrefix(chdir, "-chdir=") {
		words += inShell(chdir, " -chdir=FOLDER")
	}
	return words + " apply" + inShell(p.destination, " FILE")
}

// checkReplaced returns an error if the encrypted plan would replace a file that is not a plan. A file of unknown
// format counts as a plan if the settings can open it, or if only the key is missing.
func (p *Files) checkReplaced(ctx context.Context, path string) error {
	there, err := files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, _ := encryption.Inspect(there)
	if info.Kind == encryption.KindUnknown {
		_, err := p.Keys.Plan.Decrypt(ctx, there)
		if err == nil || errors.Is(err, encryption.ErrNoKey) || fault.Has[fault.NoIdentity](err) {
			return nil
		}
	}
	return states.CheckReplaced(info, encryption.Info{Kind: encryption.KindPlan})
}
