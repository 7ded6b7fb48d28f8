package wrap

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// handover is what the child gets in the place of files that are sealed, or that
// are checked: copies in a folder of our own, which nobody else exchanges. They go
// when the child has ended.
type handover struct {
	Options
	call *invocation
	folder
	place string // where the plan that is made belongs, "" if it is not sealed
	made  string // where the child writes it, "" if it makes none

	blind bool // what the settings encrypt, they do not open: they have recipients alone
}

// prepare opens the files that the command names, and gives their copies to the child.
func (h *handover) prepare(ctx context.Context) error {
	open := h.opener()
	for at, name := range h.call.args {
		stdin := name == "-" && h.call.Name == "state push" // others have a file called so
		if open != nil && !stdin {
			if err := h.copy(ctx, &h.call.args[at], open); err != nil {
				return err
			}
		}
	}
	for at, f := range h.call.flags {
		if f.name != "plan" || !h.call.command.TakesValue(f.name) { // of console, it is a switch
			continue
		}
		if err := h.copy(ctx, &h.call.flags[at].value, h.plaintext); err != nil {
			return err
		}
	}
	return h.intercept(ctx)
}

// copy puts the name of a copy in the place of that of a file.
func (h *handover) copy(ctx context.Context, name *string, open func(context.Context, string) ([]byte, error)) error {
	content, err := open(ctx, *name)
	path := ""
	if err == nil {
		path, err = h.file(filepath.Base(*name), content)
	}
	if err != nil {
		return fmt.Errorf("the file %s: %w", outside.Quoted(*name, 300), keyfile.Explain(join(h.call.dir, *name), err))
	}
	*name = path
	return nil
}

// opener returns what opens the file in an argument, nil for commands whose
// arguments are no files.
func (h *handover) opener() func(context.Context, string) ([]byte, error) {
	switch h.call.Name {
	case "apply":
		return h.checked
	case "show", "state push":
		return h.plaintext
	}
	return nil
}

// checked returns a plan that may be applied.
func (h *handover) checked(ctx context.Context, name string) ([]byte, error) {
	content, err := h.plaintext(ctx, name)
	if err == nil {
		err = checkPlan(content)
	}
	return content, err
}

// plaintext opens a plan or a state. What is plaintext already may be so, unless
// the settings say how plans are encrypted.
func (h *handover) plaintext(ctx context.Context, name string) ([]byte, error) {
	content, err := h.read(name)
	if err != nil {
		return nil, err
	}
	info, err := encryption.Inspect(content)
	targets := h.targets(info.Kind)
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
	if len(h.Plan.Methods()) == 0 {
		err = fmt.Errorf("%w; if it is a plan, the settings require a plan block", err)
	}
	return nil, err
}

func (h *handover) read(name string) ([]byte, error) {
	path, err := resolve(h.call.dir, name)
	if err != nil {
		return nil, err
	}
	return readUpTo(h.most(), path)
}

// most is how many bytes a file of a plan or a state may have.
func (h *handover) most() int64 { return cmp.Or(h.limit, maxState) }

// targets are those that may open a file, the likely one first.
func (h *handover) targets(kind encryption.FileKind) (targets []encryption.Target) {
	sealed := kind == encryption.KindEncrypted
	if (sealed || kind == encryption.KindPlan) && len(h.Plan.Methods()) > 0 {
		targets = append(targets, h.Plan)
	}
	if sealed {
		targets = append(targets, h.State)
	}
	return targets
}

// intercept has the child write its plan where nobody else looks, to be sealed. Without
// a plan block, the child writes it itself, over nothing but a plan. The older one goes
// first: whatever becomes of the run, nobody applies that in place of the new one.
func (h *handover) intercept(ctx context.Context) error {
	if h.call.Name != "plan" || !h.call.has("out") {
		return nil
	}
	sealing := len(h.Plan.Methods()) > 0
	if !sealing {
		say(h.Stderr, "warning: the plan will not be encrypted, because the settings have no plan block")
	}
	lands := "" // of several, the last one counts
	for i, f := range h.call.flags {
		if f.name != "out" {
			continue
		}
		lands = ""
		if f.value == "" { // without a name, none is saved
			continue
		}
		path, err := h.destination(f.value)
		if err != nil && !sealing {
			continue // the child may know what to do with it
		}
		if err == nil {
			err = h.checkPlace(ctx, path)
		}
		if err == nil && sealing {
			err = h.open()
		}
		if err != nil {
			return h.notSaved(f.value, err)
		}
		lands = path
		if sealing {
			h.place, h.made = path, filepath.Join(h.dir, "made-"+filepath.Base(path))
			h.call.flags[i].value = h.made
		}
	}
	if info, err := os.Stat(lands); err == nil && info.Size() > 0 {
		if err := os.Remove(lands); err != nil {
			return h.notSaved(lands, err)
		}
	}
	if h.place == "" {
		h.made = lands
		return nil
	}
	if err := h.rehearse(ctx); err != nil {
		return h.notSaved(lands, err)
	}
	return nil
}

// rehearse seals a plan with nothing in it: what cannot work is found before a real one is
// made.
func (h *handover) rehearse(ctx context.Context) error {
	var plan bytes.Buffer
	archive := zip.NewWriter(&plan)
	_, err := archive.Create("tfplan")
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	_, again, err := SealForOthers(ctx, h.Plan, plan.Bytes())
	h.blind = err == nil && again == nil
	return err
}

func (h *handover) notSaved(name string, err error) error {
	return fmt.Errorf("the plan %s cannot be saved: %w", outside.Quoted(name, 300), keyfile.Explain(join(h.call.dir, name), err))
}

// destination is where a plan lands. Links are followed, and what is no file stays:
// it may be /dev/null.
func (h *handover) destination(name string) (string, error) {
	path, err := resolve(h.call.dir, name)
	if errors.Is(err, os.ErrNotExist) {
		folder, base := filepath.Split(name)
		folder, err = resolve(h.call.dir, folder+".")
		return filepath.Join(folder, base), err
	}
	if err == nil {
		err = expectFile(path)
	}
	return path, err
}

// folder is a temporary one.
type folder struct {
	dir  string   // "" until it is needed
	kept *os.File // see keep
}

const folderName = "statecrypt-"

// open makes the folder. The child may work in another place than we do, so the name is
// absolute.
func (f *folder) open() error {
	if f.dir != "" {
		return nil
	}
	parent, err := filepath.Abs(os.TempDir())
	if err == nil {
		f.dir, err = os.MkdirTemp(parent, folderName)
	}
	if err != nil { // its cause would be taken for one of a file that is copied there
		why := keyfile.Reason(err).Error()
		return fmt.Errorf("no folder for temporary files can be made in %s (TMPDIR): %s", outside.Line(os.TempDir(), 300), why)
	}
	f.kept = keep(f.dir)
	return nil
}

func (f *folder) remove() {
	_ = os.RemoveAll(f.dir)
	_ = f.kept.Close() // if there is one
}

// noteLeft names the folders of runs that were killed.
func noteLeft(stderr io.Writer) {
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		if path := filepath.Join(os.TempDir(), e.Name()); strings.HasPrefix(e.Name(), folderName) && isLeft(path) {
			say(stderr, "warning: wrap was killed, and has left "+outside.Line(path, 300)+"; what is in it is not encrypted, so delete it")
		}
	}
}

// file puts content into a file that only this user reads.
func (h *handover) file(name string, content []byte) (path string, err error) {
	if err := h.open(); err != nil {
		return "", err
	}
	path = filepath.Join(h.dir, name)
	return path, os.WriteFile(path, content, 0o600)
}

// finish seals the plan that the child has made, if it has, and removes the copies. A plan that
// apply would refuse is refused now.
func (h *handover) finish(ctx context.Context) error {
	defer h.remove()
	if h.made == "" {
		return nil
	}
	content, err := readUpTo(h.most(), h.made)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(content) == 0 {
		return nil
	}
	if err == nil {
		err = checkPlan(content)
	}
	if meter.IsTooLarge(err) {
		err = errors.New(err.Error() + fewer)
	}
	if h.place == "" && err != nil {
		return fmt.Errorf("the plan %s cannot be applied: %w", outside.Quoted(h.made, 300), keyfile.Reason(err))
	}
	if h.place == "" {
		return nil
	}
	var sealed []byte
	if err == nil {
		sealed, _, err = SealForOthers(ctx, h.Plan, content)
	}
	if err == nil && int64(len(sealed)) > h.most() {
		err = errors.New(meter.TooLarge(h.most()).Error() + fewer)
	}
	if err == nil {
		err = replace.File(ctx, h.place, sealed, nil)
	}
	if err != nil {
		return fmt.Errorf("the plan was not saved: %w", keyfile.Reason(err))
	}
	applies := "; this does:\n  " + h.apply()
	if h.blind {
		applies = ", nor do these settings open it"
	}
	say(h.Stderr, fmt.Sprintf("the plan is in %s, encrypted. The command above does not apply it%s", h.place, applies))
	return nil
}

var plainWord = lazyregexp.New(`^[0-9A-Za-z_./@:,+=-]+$`)

// apply is the command that applies the plan, for a shell. What would need quotation marks there
// stands as FILE.
func (h *handover) apply() string {
	inShell := func(word, otherwise string) string {
		if plainWord.MatchString(word) {
			return " " + word
		}
		return otherwise
	}
	words := "statecrypt wrap"
	if h.Settings != "" {
		words += " -config" + inShell(h.Settings, " FILE")
	}
	words += " --" + inShell(h.Command[0], " terraform")
	if chdir := h.Command[1]; strings.HasPrefix(chdir, "-chdir=") {
		words += inShell(chdir, " -chdir=FOLDER")
	}
	return words + " apply" + inShell(h.place, " FILE")
}

func readFile(path string) ([]byte, error) { return readUpTo(maxState, path) }

func readUpTo(limit int64, path string) ([]byte, error) {
	if err := expectFile(path); err != nil { // before it is opened, for which a pipe waits
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return meter.Read(f, -1, limit)
}

func expectFile(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file; name one")
	}
	return err
}
