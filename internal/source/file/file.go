// Package file reads a state from the local disk, using the file layout of Terraform's local backend.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the file source.
func Kind() source.Kind {
	return source.Kind{
		Table: attr.Table{
			Name: "file",
			Doc:  "Reads the state from a local file, as the `local` backend writes it. It must be a regular file, or a symbolic link to one.",
			Attrs: []attr.Attr{
				{Name: "path", Type: cty.String, Required: true, Check: attr.Text(CheckPath),
					Doc: "The state file of the default workspace. A relative path begins at the working directory, or at the module with " +
						"`${path.module}/` before it. `~/` is your home directory."},
				{Name: "workspace_dir", Type: cty.String, Default: cty.StringVal("terraform.tfstate.d"), Check: attr.Text(CheckPath),
					Doc: "The directory that holds the states of all workspaces but the default one. Defaults to `terraform.tfstate.d`, in the " +
						"working directory."},
			},
		},
		Workspaces: true,
		Begin:      func(source.Settings) source.Open { return open },
	}
}

func open(req source.Request) (source.Source, error) {
	attr, rest := "path", ""
	if w := req.OtherWorkspace(); w != "" {
		// The caller has checked the name. It must also be a directory name that does not lead elsewhere.
		if w != filepath.Base(w) || !filepath.IsLocal(w) || w == "." {
			return nil, errors.New("the name of the workspace is not a valid directory name; check the name")
		}
		attr, rest = "workspace_dir", filepath.Join(w, "terraform.tfstate")
	}
	if req.String(attr) == "" {
		return nil, req.Errorf(attr, "the path is empty; check whether a variable is empty")
	}
	path, err := world.ExpandHome(req.String(attr))
	if err != nil {
		return nil, req.Errorf(attr, "%w", err)
	}
	return location{path: filepath.Join(path, rest), elsewhere: rest != "" && req.Has("path"), limit: req.MaxSize, pause: pause}, nil
}

// Backend returns the table for a block that names the local file of a state.
func Backend() attr.Table {
	return attr.Table{
		Name: "file", OtherNames: []string{"local"},
		Doc: "A local file, as the `local` backend writes it.",
		Attrs: []attr.Attr{
			{Name: "path", Type: cty.String, Check: attr.Text(CheckPath),
				Doc: "The state file. A relative path is relative to the file with this block. Defaults to `terraform.tfstate` in the module."},
		},
	}
}

// CheckPath returns an error if the text is not a file path, for example a URL, or if it starts with another
// user's home directory.
func CheckPath(path string) error {
	if path == "-" {
		return errors.New("standard input is not read here; set the path of a file. If the name of the file is -, write ./-")
	}
	if strings.HasPrefix(path, "file://") {
		return errors.New("this is a URL, not a path; remove file://")
	}
	if scheme := recognize.Scheme(path); scheme != "" {
		return fmt.Errorf("this is the address of a server (%s), not the path of a file; use the block of another source, for example http, "+
			"git or s3", outside.Quoted(scheme, 20))
	}
	if first, _, _ := strings.Cut(filepath.ToSlash(path), "/"); first != "~" && strings.HasPrefix(first, "~") {
		return errors.New("~ stands only for your own home directory; if the name of the file begins with ~, write ./~")
	}
	return nil
}

// location is one file.
type location struct {
	path      string
	elsewhere bool // whether path is set although another workspace is read
	limit     int64
	pause     func(context.Context) // waits before the second attempt if someone is writing the file
}

func (l location) String() string { return l.path }

// Unfinished is the first byte of a file while statecrypt wrap overwrites it.
const Unfinished = '!'

// Fetch reads the file without locking it. If someone seems to be writing the file, Fetch reads it once more.
func (l location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	data, settled, err := l.read(ctx)
	if err == nil && !settled {
		l.pause(ctx)
		data, _, err = l.read(ctx)
	}
	if err == nil && isUnfinished(data) {
		err = errors.New("statecrypt wrap is writing the file, or was killed while writing it; try again, or run statecrypt wrap to " +
			"finish the write")
	}
	if err != nil {
		return nil, l.explain(err)
	}
	return &source.Snapshot{Data: data}, nil
}

// pause waits 100 ms, which is usually long enough for a write to finish, or until ctx is done.
func pause(ctx context.Context) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
}

func isUnfinished(data []byte) bool { return len(data) > 0 && data[0] == Unfinished }

// read returns the content of the file, and whether it is settled: not empty, not unfinished, and not changed
// during the read.
func (l location) read(ctx context.Context) (data []byte, settled bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	f, size, err := openRegular(l.path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err == nil {
		data, err = meter.Read(&steps{ctx, f}, size, l.limit)
	}
	after, errAfter := f.Stat()
	settled = len(data) > 0 && !isUnfinished(data) && errAfter == nil && before != nil && before.Size() == after.Size() &&
		before.ModTime().Equal(after.ModTime())
	return data, settled, err
}

// openRegular opens path for reading and returns its size, or -1 if the size is unknown. It checks that the
// file is regular before opening it, because opening can do harm: a tape drive rewinds, a pipe waits for a
// writer. It checks again afterwards, because the file may have been replaced in between; openFlags keep the
// open call from blocking in this case.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if err := regular(info); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	if info.Size() == 0 {
		return f, -1, nil // some file systems report 0 for files with content
	}
	return f, info.Size(), nil
}

var errDirectory = errors.New("this is a directory; set the path of the state file in it")

func regular(info fs.FileInfo) error {
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return errDirectory
	}
	return errors.New("this is not a regular file; set the path of a regular file")
}

// explain adds the absolute path and any likely mistake in the path to an error.
func (l location) explain(err error) error {
	path := l.path
	if abs, absErr := filepath.Abs(path); absErr == nil {
		path = abs // users may not know which directory a relative path starts in
	}
	if errors.Is(err, fs.ErrNotExist) {
		mistake := l.mistake(path)
		if odd := recognize.Text(l.path, recognize.Value).Said(""); odd != "" {
			mistake += ". The path " + odd
		}
		missing := fmt.Sprintf("%q does not exist%s", path, mistake)
		if _, err := os.Lstat(path); err == nil {
			missing, mistake = fmt.Sprintf("%q is a symbolic link to a file that does not exist", path), ""
		} else if folder, _ := keyfile.Near(path); mistake == "" && folder != filepath.Dir(path) {
			missing += fmt.Sprintf(", but %q does; check the rest of the path", folder)
		}
		if mistake == "" && !filepath.IsAbs(l.path) {
			missing += ". A relative path begins at the working directory; to begin at the module, write ${path.module}/ before the path"
		}
		return &source.MissingError{Detail: missing, Mistaken: mistake != ""}
	}
	for above := filepath.Dir(path); above != filepath.Dir(above); above = filepath.Dir(above) {
		if info, err := os.Stat(above); err == nil && !info.IsDir() {
			return fmt.Errorf("%q is a file, not a directory; check the arguments path and workspace_dir", above)
		}
	}
	return fmt.Errorf("reading %q: %w", path, keyfile.Reason(err))
}

// mistake describes a likely mistake in a path that does not exist. It returns an empty string if it finds
// none.
func (l location) mistake(path string) string {
	folder, near := keyfile.Near(path)
	switch {
	case l.elsewhere:
		return "; the argument path applies only to the default workspace. To read the file in path, remove the argument workspace. To read " +
			"the workspace, set workspace_dir to the folder of all workspaces (by default terraform.tfstate.d, next to the configuration that " +
			"writes them)"
	case near != "":
		return fmt.Sprintf(", but %q does", filepath.Join(folder, near))
	case strings.Contains(l.path, "*"):
		return ", and patterns are not expanded; set the path of one file"
	case recognize.IsOfWindows(l.path), strings.Contains(l.path, `\`) && filepath.Separator == '/':
		return ": this is a Windows path, but this machine does not run Windows; set the path of the file on this machine"
	}
	return ""
}

// steps is a reader that stops when ctx is done. It reads at most 4 MiB at a time, so that a read of a large
// file from a slow disk can be cancelled.
type steps struct {
	ctx context.Context
	r   io.Reader
}

func (s *steps) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p[:min(len(p), 4<<20)])
}
