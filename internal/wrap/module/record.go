package module

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

const recordName = "terraform.tfstate"

// Username is the user name in every run's settings. The password differs between runs.
const Username = "statecrypt"

// Settings maps arguments of a backend "http" to their values.
type Settings map[string]any

// recordOf returns the record that init would write for a backend. A missing argument counts as null. Whenever
// Terraform needs its backend, it compares the module with the record. It then uses the recorded backend, or refuses
// to run if the module names another one. Therefore the child cannot use another backend, even if files change after
// wrap has checked them. Init compares the settings, which wrap passes to it. Other commands compare the recorded hash
// with the hash of the module's block.
func recordOf(kind string, settings Settings, hash uint64) string {
	config, _ := json.Marshal(settings) // strings and numbers always encode
	return fmt.Sprintf(`{"version":3,"serial":1,"lineage":"00000000-0000-0000-0000-000000000000",`+
		`"backend":{"type":%q,"config":%s,"hash":%d},"modules":[{"path":["root"],"outputs":{},"resources":{},"depends_on":[]}]}`,
		kind, config, hash)
}

// noState returns a record that names a state file that does not exist. With this record, init -backend=false finds no
// state. Without a record, it would read the module's own state file, which may be encrypted.
func noState() string {
	return recordOf("local", Settings{"path": files.OwnFolder + "/none.tfstate"}, 0)
}

// Record is the record of a run's backend.
type Record struct {
	Data     files.Directory // the data directory of the program
	Settings Settings
}

// Write writes the record. It replaces an existing record, even if that is a link.
func (r Record) Write(ctx context.Context, hash uint64) error {
	return writeText(ctx, r.Data, recordOf("http", r.Settings, hash))
}

// writeText writes a record into a data directory. It replaces an existing record, even if that is a link.
func writeText(ctx context.Context, data files.Directory, text string) error {
	at, err := data.Open(true)
	advice := "check that the folder is writable, and that the disk has free space"
	if err == nil {
		defer at.Close()
		if info, failed := at.Lstat(recordName); failed == nil && info.Mode().Type()&^fs.ModeSymlink != 0 {
			err, advice = errors.New("it is not a regular file"), "remove it"
		} else {
			err = replace.In(ctx, at, recordName, []byte(text))
		}
	}
	if err != nil {
		err = fmt.Errorf("could not write the backend record, %s: %w", outside.Quoted(data.File(recordName), 300), keyfile.Reason(err))
	}
	return fault.With(err, advice)
}

// Recorded holds the parts of a backend record that wrap reads.
type Recorded struct {
	Backend struct {
		Type   string   `json:"type"`
		Config Settings `json:"config"`
		Hash   uint64   `json:"hash"`
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

// LacksAddress reports whether the record has no address because an environment variable named it.
func (r Recorded) LacksAddress() bool {
	return r.Backend.Type == "http" && r.Backend.Config["address"] == nil
}

// EmptyLeft empties the user's record if it names the proxy of an init -leave that was killed. It reports whether it
// has emptied the record. It does nothing while an init -leave is running, which holds the lock.
func (m *Module) EmptyLeft() (emptied bool, err error) {
	found, err := ReadRecord(m.Data)
	config := found.Backend.Config
	address, _ := config["address"].(string)
	if err != nil || config["username"] != Username || config["client_ca_certificate_pem"] == nil ||
		!strings.HasPrefix(address, "https://127.0.0.1:") {
		return false, nil //nolint:nilerr // other callers report errors in this record
	}
	now, expire := context.WithCancel(context.Background())
	expire() // do not wait for the lock
	end, err := m.Lock(now)
	if err != nil {
		return false, nil //nolint:nilerr // the other run is still active
	}
	defer end()
	return true, m.Empty(context.Background())
}

// Empty replaces the user's record with a record without settings, so that Terraform asks for init.
func (m *Module) Empty(ctx context.Context) error {
	return Record{files.Directory{Path: m.Data}, Settings{}}.Write(ctx, 0)
}

// ReadRecord reads the record in the user's data directory. It returns [fs.ErrNotExist] if there is none.
func ReadRecord(data string) (Recorded, error) {
	return parseRecord(keyfile.Read(filepath.Join(data, recordName)))
}

func parseRecord(text []byte, err error) (r Recorded, _ error) {
	if err == nil && json.Unmarshal(text, &r) != nil { // the JSON error may quote a password
		err = errors.New("the backend record (terraform.tfstate in the data directory) cannot be read; delete that file, and run init again")
	}
	return r, err
}

// Check returns an error if the record no longer names the proxy after the run. In that case, the child may have
// written its state elsewhere.
func (r Record) Check() error {
	found, err := parseRecord(r.Data.Read(recordName))
	switch {
	case err != nil:
		return err
	case found.Backend.Type == "" || found.StateStore != nil:
		return NotOurs("of another kind")
	}
	for name, value := range found.Backend.Config {
		if value != nil && !r.Settings.Has(name, value) {
			return HasSetting(name)
		}
	}
	if found.Backend.Type != "http" {
		return NotOurs(outside.Quoted(found.Backend.Type, 100))
	}
	return nil
}

// Has reports whether an argument has this value. Numbers of different types are equal if they print the same.
func (s Settings) Has(name string, value any) bool {
	own, there := s[name]
	return there && fmt.Sprint(own) == fmt.Sprint(value)
}

func NotOurs(kind string) error { return fmt.Errorf("the backend is %s; %s", kind, wanted) }

// HasSetting returns the error for a setting in the backend block that would take precedence over wrap's own setting.
func HasSetting(name string) error {
	return fmt.Errorf("the module's backend block sets %s; %s", outside.Quoted(name, 100), wanted)
}
