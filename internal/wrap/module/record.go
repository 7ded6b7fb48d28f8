package module

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

// OwnData returns the path of the child's data directory, relative to the module. The name contains the
// ID of the module. Descendants of the child inherit the relative path, with the variables of our
// backend: in another module it leads to no record, and without a record a CLI refuses to run, even if
// wrap has a record for that module. Init also installs providers there, which a CLI without wrap does
// not see; a plugin cache serves both.
func (m *Module) OwnData() string { return files.OwnFolder + "/" + m.ID() }

// ID tells the module from others on this machine.
func (m *Module) ID() string {
	sum := sha256.Sum256([]byte(m.Dir))
	return hex.EncodeToString(sum[:8])
}

const recordName = "terraform.tfstate"

// record is the record that init writes for backend "http" {}. Terraform compares the module with the
// record whenever it needs its backend: it uses the recorded backend, or refuses to run if the module
// names another one. The protection therefore holds even if files change after wrap has checked them.
// An absent argument is null.
const record = `{"version":3,"serial":1,"lineage":"00000000-0000-0000-0000-000000000000",` +
	`"backend":{"type":"http","config":{},"hash":0},"modules":[{"path":["root"],"outputs":{},"resources":{},"depends_on":[]}]}`

// noState is the record of a state that there is not. Without a backend, init looks for the state in the one
// that is recorded, or in the file of the module, which may be encrypted.
const noState = `{"version":3,"serial":1,"lineage":"00000000-0000-0000-0000-000000000000",` +
	`"backend":{"type":"local","config":{"path":"` + files.OwnFolder + `/none.tfstate","workspace_dir":null},"hash":0},` +
	`"modules":[{"path":["root"],"outputs":{},"resources":{},"depends_on":[]}]}`

// CheckOwn refuses a folder of wrap's own that a link leads to.
func (m *Module) CheckOwn() error {
	at, err := m.OwnRecord().Open(false)
	if err == nil {
		return at.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// HideBackend has init -backend=false find no state. Afterwards, the record of another run takes its place again.
// Without one, a CLI refuses to run.
func (m *Module) HideBackend(ctx context.Context) (forget func(), err error) {
	data := m.OwnRecord()
	had := CheckRecord(data) == nil
	err = writeText(ctx, data, noState)
	return func() {
		if now, err := data.Read(recordName); err != nil || string(now) != noState {
			return // another run has written its own
		}
		if had {
			_ = writeText(context.WithoutCancel(ctx), data, record)
		} else if at, err := data.Open(false); err == nil {
			defer at.Close()
			_ = at.Remove(recordName)
		}
	}, err
}

// WriteRecord writes the record into a data directory. If the directory is not writable, the record of an
// earlier run is enough.
func WriteRecord(ctx context.Context, data files.Directory) error {
	err := writeText(ctx, data, record)
	if err != nil && CheckRecord(data) == nil {
		return nil
	}
	return err
}

// writeText writes a record into a data directory, in place of any other, and of a link.
func writeText(ctx context.Context, data files.Directory, text string) error {
	at, err := data.Open(true)
	if err == nil {
		defer at.Close()
		err = replace.In(ctx, at, recordName, []byte(text))
	}
	if err != nil {
		return fmt.Errorf("the record of the backend, %s, cannot be written: %w", outside.Quoted(data.File(recordName), 300), keyfile.Reason(err))
	}
	return nil
}

// Recorded is a record of a backend, as far as it is looked at.
type Recorded struct {
	Backend struct {
		Type   string         `json:"type"`
		Config map[string]any `json:"config"`
	} `json:"backend"`
	StateStore any `json:"state_store"`
}

// Name returns the name of the backend for messages.
func (r Recorded) Name() string {
	name := outside.Quoted(r.Backend.Type, 100)
	if r.LacksAddress() {
		name += " (its address was in TF_HTTP_ADDRESS)"
	}
	return name
}

// LacksAddress reports whether variables have described the backend.
func (r Recorded) LacksAddress() bool {
	return r.Backend.Type == "http" && r.Backend.Config["address"] == nil
}

// ReadRecord reads that in the data directory of the user. Without one, the error is
// [fs.ErrNotExist].
func ReadRecord(data string) (Recorded, error) {
	return parseRecord(keyfile.Read(filepath.Join(data, recordName)))
}

func parseRecord(text []byte, err error) (r Recorded, _ error) {
	if err == nil && json.Unmarshal(text, &r) != nil { // the error may quote a password
		err = errors.New("the record of the backend cannot be read; delete it, and init again")
	}
	return r, err
}

// CheckRecord looks at the record after the run. The error says where the child
// may have gone.
func CheckRecord(data files.Directory) error {
	text, err := data.Read(recordName)
	if err == nil && string(text) == noState { // of init -backend=false beside this run
		return nil
	}
	r, err := parseRecord(text, err)
	switch {
	case err != nil:
		return err
	case r.Backend.Type == "" || r.StateStore != nil:
		return NotOurs("another kind")
	}
	for name, value := range r.Backend.Config {
		if value != nil {
			return HasSetting(name)
		}
	}
	if r.Backend.Type != "http" {
		return NotOurs(outside.Quoted(r.Backend.Type, 100))
	}
	return nil
}

func NotOurs(kind string) error { return fmt.Errorf("the backend is %s; %s", kind, wanted) }

// HasSetting returns the error for a setting in the backend block, which would win over ours.
func HasSetting(name string) error {
	return fmt.Errorf("the backend has a setting of its own, %s; %s", outside.Quoted(name, 100), wanted)
}
