package consul

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/fips140"
	"crypto/md5" //nolint:gosec // the backend's checksum; it finds accidents, not attacks
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// run holds the clients, with their connections, that the sources of one configured provider share.
type run struct {
	credentials source.Credentials
	patience    web.Patience
	clients     memo.Memo[string, *client] // clients by block name
}

func start(s source.Settings) source.Open { return newRun(s).open }

func newRun(s source.Settings) *run {
	return &run{credentials: s.Credentials, patience: web.Patience{
		Timeout: time.Minute, Tries: 2, WaitMin: time.Second, WaitMax: 10 * time.Second,
	}}
}

func checkPath(path string) error {
	switch {
	case strings.HasPrefix(path, "v1/kv/"):
		return errors.New("v1/kv/ belongs to the address of Consul's API, not to the key; remove it")
	case strings.HasPrefix(path, "/") || strings.HasSuffix(path, "//"): // Consul would redirect to another path
		return errors.New("the path begins with a slash, or ends with two slashes; remove them")
	}
	return nil
}

func hasColon(auth string) bool { return strings.Contains(auth, ":") }

func (r *run) open(req source.Request) (source.Source, error) {
	l := &location{run: r, server: req.String("credentials_name"), limit: req.MaxSize}
	var err error
	if l.settings, err = choose(r.credentials, l.server); err != nil {
		return nil, err
	}
	path := req.String("path")
	l.chunks = strings.TrimRight(path, "/")
	if w := req.OtherWorkspace(); w != "" {
		path += "-env:" + w
		l.chunks = path
	}
	l.where = where{
		datacenter: req.String("datacenter"),
		namespace:  cmp.Or(req.String("namespace"), l.settings.String(namespaceVar)),
		partition:  cmp.Or(req.String("partition"), l.settings.String(partitionVar)),
	}
	l.key = path
	return l, nil
}

// location is a state in Consul.
type location struct {
	*run
	settings settings
	server   string // the name of the credentials block; may be empty
	where    where
	key      string
	chunks   string // the prefix of the keys for the parts of a large state
	limit    int64
}

func (l *location) String() string {
	in := "Consul"
	if l.server != "" {
		in = fmt.Sprintf("the Consul %q", l.server)
	}
	if l.where.datacenter != "" {
		in += fmt.Sprintf(", datacenter %q", l.where.datacenter)
	}
	return fmt.Sprintf("the key %q in %s", l.key, in)
}

// Fetch reads the state. It reads the parts of a large state one after the other. If the state was replaced
// in the meantime, it reads the state once more.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	c, err := l.clients.Do(ctx, l.server, func(context.Context) (*client, error) { return l.newClient(l.settings) })
	if err != nil {
		return nil, err
	}
	snapshot, err := l.read(ctx, c)
	if errors.Is(err, errTorn) {
		if snapshot, err = l.read(ctx, c); errors.Is(err, errTorn) {
			err = fmt.Errorf("%w; if the state is being written, try again. Otherwise, restore an intact copy", err)
		}
	}
	if err != nil {
		return nil, err
	}
	snapshot.Warnings = c.warnings
	return snapshot, nil
}

// errTorn means that the parts of a large state do not belong together.
var errTorn = errors.New("the parts of the state do not fit together")

func torn(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errTorn, fmt.Sprintf(format, args...))
}

func (l *location) read(ctx context.Context, c *client) (*source.Snapshot, error) {
	head, err := c.get(ctx, l.where, l.key, meter.PackedLimit(l.limit))
	switch {
	case errors.Is(err, errNoKey):
		return nil, &source.MissingError{Detail: fmt.Sprintf("Consul has no key %q (404 Not Found)", l.key), CredentialsSent: c.sends}
	case err != nil:
		return nil, l.tooLarge(err)
	}
	index, err := readIndex(head.Value)
	if err != nil {
		return nil, err
	}
	data := head.Value
	if index != nil {
		if data, err = l.collect(ctx, c, index); err != nil {
			return nil, err
		}
	}
	if data, err = unpack(data, l.limit, index != nil); err != nil {
		return nil, err
	}
	if index != nil && checksum(data) != index.hash {
		return nil, torn("their checksum differs from that in the key %q", l.key)
	}
	return &source.Snapshot{Data: data, Revision: strconv.FormatUint(head.ModifyIndex, 10)}, nil
}

// collect reads the parts of a large state. It builds their keys as the backend does, and refuses an index
// that lists other keys.
func (l *location) collect(ctx context.Context, c *client, index *index) ([]byte, error) {
	prefix := l.chunks + "/tfstate." + index.hash + "/"
	limit := meter.PackedLimit(l.limit)
	if int64(len(index.chunks)) > limit/chunk+1 {
		return nil, meter.TooLarge(l.limit)
	}
	var data []byte
	for i, name := range index.chunks {
		if key := prefix + strconv.Itoa(i); name != key {
			return nil, fmt.Errorf("the key %q lists parts of the state at places that the backend does not use; restore an intact copy", l.key)
		}
		part, err := c.get(ctx, l.where, name, limit-int64(len(data)))
		switch {
		case errors.Is(err, errNoKey):
			return nil, torn("there is no key %q", name)
		case err != nil:
			return nil, l.tooLarge(err)
		}
		if i == 0 {
			data = slices.Grow(data, min(len(index.chunks), int(limit/chunk)+1)*min(len(part.Value), chunk))
		}
		data = append(data, part.Value...)
	}
	return data, nil
}

// tooLarge replaces an error about the size of a value with one that names the size limit of the state.
func (l *location) tooLarge(err error) error {
	if meter.IsTooLarge(err) {
		return meter.TooLarge(l.limit)
	}
	return err
}

// unpack decompresses data that starts with gzip's first byte, as the backend does. If there are more than
// limit bytes, it returns an error.
func unpack(data []byte, limit int64, parts bool) ([]byte, error) {
	if len(data) == 0 || data[0] != 0x1f {
		if int64(len(data)) > limit {
			return nil, meter.TooLarge(limit)
		}
		return data, nil
	}
	data, err := meter.Unpack(data, limit, gzip.NewReader)
	switch {
	case err == nil || meter.IsTooLarge(err) || errors.Is(err, meter.ErrExpands):
		return data, err
	case parts:
		return nil, torn("gzip cannot decompress them")
	}
	return nil, errors.New("gzip cannot decompress the state, so it is damaged; restore an intact copy")
}

func checksum(data []byte) string {
	var sum [md5.Size]byte
	// No secret depends on MD5 here.
	fips140.WithoutEnforcement(func() { sum = md5.Sum(data) }) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

// chunk is the size of the parts, in bytes, into which the backend splits a state that does not fit into one
// key.
const chunk = 512 << 10

// index is the value of a large state's key.
type index struct {
	hash   string // MD5 of the uncompressed state, in hexadecimal
	chunks []string
}

// maxIndex is the maximum size of an index, in bytes. Unless configured otherwise, Consul stores values of at
// most 512 KiB.
const maxIndex = 4 << 20

var md5Pattern = lazyregexp.New(`^[0-9a-f]{32}$`)

// readIndex parses the index of a large state. It returns nil if the value is the state itself. Like the
// backend, it recognizes an index by the name current-hash alone.
func readIndex(value []byte) (*index, error) {
	const hash = "current-hash"
	if len(value) > maxIndex {
		return nil, nil
	}
	// This is a map and not a struct, because struct fields would also match names in upper case.
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || members[hash] == nil {
		return nil, nil
	}
	var x index
	if json.Unmarshal(members[hash], &x.hash) != nil || json.Unmarshal(members["chunks"], &x.chunks) != nil ||
		!md5Pattern.MatchString(x.hash) {
		return nil, errors.New("the value is neither a state nor a list of state chunks from the consul backend; check the path")
	}
	return &x, nil
}
