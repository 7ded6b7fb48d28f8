package wrap

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// moveIn seals the state that there is: that in the backend, if there is one, and
// else the module's own. It has the lock meanwhile.
func moveIn(ctx context.Context, p *proxy, call *invocation) error {
	m := &move{proxy: p, call: call}
	if p.backend.lock.url == nil {
		return m.sealExisting(ctx)
	}
	m.id = rand.Text()
	lock, err := json.Marshal(map[string]string{
		"ID": m.id, "Operation": "statecrypt wrap -encrypt-existing", "Created": time.Now().UTC().Format(time.RFC3339),
	})
	if err == nil {
		err = m.send(ctx, p.backend.lock, "", lock)
	}
	if err != nil {
		return fmt.Errorf("the state cannot be locked: %w", err)
	}
	err = m.sealExisting(ctx)
	if p.backend.unlock.url != nil {
		if failed := m.send(context.WithoutCancel(ctx), p.backend.unlock, "", lock); failed != nil {
			err = errors.Join(err, fmt.Errorf("the lock %s was not given back: %w", m.id, failed))
		}
	}
	return err
}

// move is a state on its way in.
type move struct {
	*proxy
	call *invocation
	id   string // of the lock, "" if there are none
}

// send sends a request that has to succeed.
func (m *move) send(ctx context.Context, to endpoint, id string, body []byte) error {
	a, err := m.backend.ask(ctx, to, id, body)
	if err == nil && a.status >= 300 {
		err = fmt.Errorf("the backend answered %s", web.Status(a.status))
	}
	return err
}

func (m *move) sealExisting(ctx context.Context) error {
	there, err := m.backend.ask(ctx, m.backend.read, "", nil)
	switch {
	case err != nil:
		return fmt.Errorf("the state in the backend: %w", err)
	case there.isAbsent():
		return m.sealLocal(ctx)
	case there.status != http.StatusOK:
		return fmt.Errorf("the backend answered %s", web.Status(there.status))
	}
	switch info, err := encryption.Inspect(there.body); {
	case err != nil:
		return fmt.Errorf("the state in the backend: %w", err)
	case info.Kind == encryption.Encrypted:
		say(m.stderr, "the state in the backend is encrypted already")
		return nil
	case info.Kind != encryption.State:
		return errors.New("what the backend has is not a state")
	}
	return m.store(ctx, there.body, "the state in the backend")
}

// sealLocal is about the state of a module that had no backend, or a local one.
func (m *move) sealLocal(ctx context.Context) error {
	path, err := m.call.localState()
	if err != nil {
		return err
	}
	content, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		say(m.stderr, "there is no state yet, neither in the backend nor in "+path)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", outside.Quoted(path, 300), keyfile.Reason(err))
	}
	if err := m.store(ctx, content, "the state in "+path); err != nil {
		return err
	}
	say(m.stderr, "delete "+path+", which is not encrypted, and its backup")
	return nil
}

// localState is where the module has its state, as Terraform without wrap has
// written down.
func (i *invocation) localState() (string, error) {
	var recorded struct {
		Backend *struct {
			Type   string            `json:"type"`
			Config map[string]string `json:"config"`
		} `json:"backend"`
	}
	path := filepath.Join(i.dir, "terraform.tfstate")
	content, err := keyfile.Read(filepath.Join(i.data, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", err
	}
	_ = json.Unmarshal(content, &recorded) // other backends have settings that are no strings
	switch b := recorded.Backend; {
	case b == nil || b.Type == "http":
		return path, nil
	case b.Type != "local":
		return "", fmt.Errorf("the state lies in the backend %s: save it with terraform state pull, without wrap and before the "+
			"backend block is changed; then run init with wrap, and state push what was saved", outside.Quoted(b.Type, 100))
	case b.Config["path"] != "":
		return join(i.dir, b.Config["path"]), nil
	}
	return path, nil
}

// store seals a state and writes it to the backend.
func (m *move) store(ctx context.Context, plain []byte, what string) error {
	sealed, err := seal(ctx, m.state, plain)
	if err == nil {
		err = m.send(ctx, m.backend.write, m.id, sealed)
	}
	if err != nil {
		return fmt.Errorf("%s was not encrypted: %w", what, err)
	}
	say(m.stderr, what+" is in the backend now, encrypted")
	return nil
}
