package kubernetes

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/kubestate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// run holds the clients that the sources of one configured provider share.
type run struct {
	credentials    source.Credentials
	world          world.World
	serviceAccount string
	patience       time.Duration // limit for one response

	clients memo.Memo[string, *client] // clients by block name
}

func start(s source.Settings) source.Open { return newRun(s).open }

func newRun(s source.Settings) *run {
	return &run{credentials: s.Credentials, world: s.World(), serviceAccount: serviceAccount, patience: patience}
}

func (r *run) open(req source.Request) (source.Source, error) {
	l := &location{run: r, cluster: req.String("cluster"), limit: req.MaxSize}
	l.object, _ = req.Object.(*kubestate.Object)
	var err error
	if l.settings, err = choose(r.credentials, l.cluster); err != nil {
		return nil, err
	}
	suffix := req.String("secret_suffix")
	if l.object != nil {
		if suffix != "" {
			return nil, req.Errorf("secret_suffix", "both secret_suffix and an object block are set; remove one of them")
		}
		if req.OtherWorkspace() != "" {
			return nil, errors.New("an object has no workspaces; remove the argument workspace")
		}
		return l, nil
	}
	if suffix == "" {
		return nil, req.Errorf("secret_suffix", "neither secret_suffix nor an object block is set; set one of them")
	}
	l.namespace, l.name = req.String("namespace"), "tfstate-"+cmp.Or(req.Workspace, "default")+"-"+suffix
	if !syntax.IsDomain(l.name) {
		return nil, req.Errorf("secret_suffix", "secret_suffix and workspace together give %q, but this is not a valid name of a secret; use "+
			"only lowercase letters, digits, dashes and dots", l.name)
	}
	return l, nil
}

// location is a state in a cluster.
type location struct {
	*run
	settings        settings
	cluster         string            // the name of the credentials block; may be empty
	namespace, name string            // namespace and name of the secret
	object          *kubestate.Object // nil if the state is in the backend's secrets
	limit           int64
}

func (l *location) String() string {
	in := "Kubernetes"
	if l.cluster != "" {
		in = fmt.Sprintf("the Kubernetes cluster %q", l.cluster)
	}
	if l.object != nil {
		return fmt.Sprintf("%s in %s", l.object, in)
	}
	return fmt.Sprintf("secret %s/%s in %s", l.namespace, l.name, in)
}

// Fetch reads the state. If the server refuses credentials that were used before, they may have expired, so
// Fetch tries once more with new ones.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	c, fresh, err := l.client(ctx, nil)
	if err == nil && c.expired(time.Now()) && !fresh {
		c, fresh, err = l.client(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	snapshot, err := l.fetch(ctx, c)
	if errors.Is(err, errUnauthorized) && !fresh {
		if c, _, err = l.client(ctx, c); err != nil {
			return nil, err
		}
		snapshot, err = l.fetch(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	snapshot.Warnings = c.warnings
	return snapshot, nil
}

// client returns a client for the cluster, and whether it is new. It never returns old, which is a client
// whose credentials have expired or were refused.
func (l *location) client(ctx context.Context, old *client) (*client, bool, error) {
	fresh := false
	c, err := l.clients.Fresh(ctx, l.cluster, func(c *client) bool { return c != old }, func(ctx context.Context) (*client, error) {
		fresh = true
		conn, err := l.connect(ctx, l.settings)
		if err != nil {
			return nil, err
		}
		return newClient(conn, l.patience)
	})
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx) // another goroutine may still set fresh
	}
	return c, fresh, err
}

func (l *location) fetch(ctx context.Context, c *client) (*source.Snapshot, error) {
	if l.object != nil {
		return l.fetchObject(ctx, c)
	}
	return l.fetchSecret(ctx, c)
}

// chunk is the size of the parts, in bytes, into which Terraform splits a state. If a secret has this size,
// the state may continue in the next secret.
const chunk = 1 << 20

// fetchSecret reads a state that the backend has written. Its bytes are one gzip stream, which may be spread
// over several secrets.
func (l *location) fetchSecret(ctx context.Context, c *client) (*source.Snapshot, error) {
	var packed []byte
	var revision string
	for part := 0; ; part++ {
		what := secret(l.namespace, l.name)
		if part > 0 {
			what.name = fmt.Sprintf("%s-part-%d", l.name, part)
		}
		data, version, err := c.state(ctx, what)
		missing := errors.Is(err, errNotThere)
		switch {
		case missing && part == 0:
			detail := fmt.Sprintf("%s does not exist, or contains no tfstate", what)
			if strings.Count(l.name, "tfstate-") > 1 {
				detail += "; set secret_suffix to the part of the name after tfstate-WORKSPACE-"
			}
			return nil, &source.MissingError{Detail: detail, CredentialsSent: c.sends}
		case err != nil && !missing:
			return nil, err
		}
		packed = append(packed, data...)
		if part == 0 {
			revision = version
		} else if !missing {
			revision += "," + version
		}
		// Compressed data is at most slightly larger than the original.
		if int64(len(packed))-chunk > l.limit {
			return nil, meter.TooLarge(l.limit)
		}
		if len(data) < chunk {
			break
		}
	}
	data, err := unpack(packed, l.limit)
	if err != nil {
		return nil, err
	}
	return &source.Snapshot{Data: data, Revision: revision}, nil
}

// state returns the part of the state in one secret, and the version of the secret. As in the backend, a
// secret without tfstate counts as missing.
func (c *client) state(ctx context.Context, what document) ([]byte, string, error) {
	text, err := c.get(ctx, what)
	if err != nil {
		return nil, "", err
	}
	var s struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, "", fmt.Errorf("the server's answer for %s is not a secret", what)
	}
	raw, ok := s.Data["tfstate"]
	if !ok {
		return nil, "", errNotThere
	}
	var data []byte
	if err := json.Unmarshal(raw, &data); err != nil {
		return nil, "", fmt.Errorf("%s: tfstate is not base64", what)
	}
	return data, s.Metadata.ResourceVersion, nil
}

func unpack(packed []byte, limit int64) ([]byte, error) {
	if _, err := gzip.NewReader(bytes.NewReader(packed)); err != nil {
		return nil, errors.New("the secret does not contain a state of the kubernetes backend, because its data is not compressed with " +
			"gzip")
	}
	data, err := meter.Unpack(packed, limit, gzip.NewReader)
	switch {
	case meter.IsTooLarge(err):
		return nil, err
	case errors.Is(err, meter.ErrExpands):
		return nil, fmt.Errorf("the state in the secret: %w", err)
	case err != nil:
		return nil, errors.New("gzip cannot decompress the state in the secret, so it is damaged or incomplete; try again if the " +
			"state was just written")
	}
	return data, nil
}
