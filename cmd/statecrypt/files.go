package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

const (
	stdinName = "-"
	maxFile   = math.MaxInt32 // the maximum size of a file, in bytes: 2 GiB
)

// read returns the content of a file.
func (c *call) read(name string) ([]byte, error) {
	in := c.stdin
	if name != stdinName {
		f, err := os.Open(name)
		if err != nil {
			return nil, reason(name, err)
		}
		defer f.Close()
		in = f
	}
	data, err := meter.Read(in, sizeOf(in), maxFile)
	return data, reason(name, err)
}

// reason explains why a file that the user has named cannot be read.
func reason(name string, err error) error {
	switch {
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w; give the path of a file%s", keyfile.Reason(err), filesIn(name))
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "~"):
		return fmt.Errorf("%w; check the path, and write ~ without quotation marks, so that the shell replaces it with the home directory",
			keyfile.Reason(err))
	}
	return keyfile.Explain(name, err)
}

// filesIn returns the names of up to 3 files in a folder, one of which the user may have meant, as the end of
// an error message.
func filesIn(dir string) string {
	const most = 3
	var names []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		isState := slices.Contains([]string{".tfstate", ".json", ".tfplan", ".enc"}, filepath.Ext(e.Name()))
		if e.Type().IsRegular() && isState && len(names) < most {
			names = append(names, shown(filepath.Join(dir, e.Name())))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", for example " + strings.Join(names, " or ")
}

// sizeOf returns the number of unread bytes in a regular file, which may be standard input. It returns -1 for
// anything else.
func sizeOf(in io.Reader) int64 {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			at, _ := f.Seek(0, io.SeekCurrent)
			return max(0, info.Size()-at)
		}
	}
	return -1
}

// toStdout reports whether to write to standard output: -o is not set, or it names standard output or the
// file that standard output is redirected to. Such a file must not be replaced, because other programs may be
// writing to it.
func (c *call) toStdout() bool {
	if c.text("o") == "" || c.text("o") == stdinName {
		return true
	}
	return isStream(c.stdout, c.text("o"))
}

// isStream reports whether a stream is redirected to or from the file called name.
func isStream(stream any, name string) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	open, openErr := f.Stat()
	named, err := os.Stat(name)
	return err == nil && openErr == nil && os.SameFile(named, open)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// result is a file to write. Its content is data, encrypted or not, and plain is the plaintext. If target is
// not nil, it can open the file to be replaced.
type result struct {
	data, plain []byte
	target      *encryption.Target
}

// write writes a result to the file that -o names, or to standard output.
func (c *call) write(ctx context.Context, r result) error {
	if c.toStdout() {
		_, err := c.stdout.Write(r.data)
		return keyfile.Reason(err)
	}
	place, err := replace.Place(c.text("o"))
	others := replace.OtherNames(place)
	if err == nil {
		err = c.checkReplaced(ctx, place, r)
	}
	if err == nil {
		err = replace.File(ctx, place, r.data, nil)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", shown(c.text("o")), reason(c.text("o"), err))
	}
	if others != "" {
		c.say(yellow, "warning:", shown(c.text("o"))+": "+others)
	}
	return nil
}

// checkReplaced returns an error if a result would replace a file that is not an older version of the result,
// as far as the file formats reveal this.
func (c *call) checkReplaced(ctx context.Context, place string, r result) error {
	isPlace := func(name string) bool { return sameFile(name, place) }
	switch isInput := slices.ContainsFunc(c.args, isPlace) || isStream(c.stdin, place); {
	case isInput && c.Name == "outputs":
		return errors.New("it is the input file, and the omitted parts of the state would be lost; choose another file name")
	case isInput:
		return nil
	}
	settings := []string{c.text("config"), c.text("from"), c.text("to")}
	for _, v := range c.given {
		if v.isFile {
			settings = append(settings, v.text)
		}
	}
	if slices.ContainsFunc(settings, isPlace) {
		return errors.New("the existing file contains the settings; choose another file name")
	}
	there, err := c.read(place)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(there) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	before, err := inspectFile("", there)
	if err != nil { // the file contains no known state
		before = inspection{}
	}
	after, _ := inspectFile("", r.data)
	if c.losesResources(ctx, there, before.info, after.info, r) {
		return errors.New("the existing file contains this state with resources that would be lost; choose another file name, or delete " +
			"that file first")
	}
	bothHave := func(m driver.Block[driver.Method]) bool {
		return m.OwnFormat != nil && (!m.Vague || after.Kind == "unknown") && m.OwnFormat(there) && m.OwnFormat(r.data)
	}
	switch {
	case slices.ContainsFunc(builtin.Registry().Methods, bothHave):
		return nil
	case before.Kind == "encrypted" && before.Format != "opentofu":
		return fmt.Errorf("the existing file is encrypted (%s), so it is unknown which state that file contains; choose another "+
			"file name, or delete that file first", before.Format)
	}
	return states.CheckReplaced(before.info, after.info)
}

// losesResources reports whether a state without resources, such as one with outputs only, would replace the
// same state with resources. It assumes that an encrypted state that cannot be opened has resources, unless
// the new state is encrypted with the same key providers: users who encrypt for others may not have a key to
// open the files.
func (c *call) losesResources(ctx context.Context, there []byte, before, after encryption.Info, r result) bool {
	serial, lineage, err := store.Label(r.plain)
	if err != nil || lineage == "" || hasResources(r.plain) {
		return false
	}
	if before.Kind == encryption.KindEncrypted && r.target != nil {
		if opened, err := r.target.Decrypt(ctx, there); err == nil {
			there = opened.Data
			before, _ = states.Describe(there)
		} else if slices.Equal(before.KeyProviders, after.KeyProviders) {
			return false
		}
	}
	isSame := before.Lineage == lineage && (c.Name == "outputs" || before.Serial != nil && serial != nil && *before.Serial == *serial)
	return isSame && (before.Kind == encryption.KindEncrypted || hasResources(there))
}

// hasResources reports whether a plaintext state has resources. It returns true for a file that is not a
// state, so that its content is not lost.
func hasResources(state []byte) bool {
	var found struct {
		Resources []json.RawMessage
		Modules   []struct{ Resources map[string]json.RawMessage } // formats 1 to 3
	}
	if json.Unmarshal(state, &found) != nil || len(found.Resources) > 0 {
		return true
	}
	for _, module := range found.Modules {
		if len(module.Resources) > 0 {
			return true
		}
	}
	return false
}
