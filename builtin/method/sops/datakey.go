package sops

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/getsops/sops/v3/shamir"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// group is a key group. Any key in a group can open the group's part of the data key.
type group struct {
	number int // counted from 1, as in the file
	keys   []key
}

// key is a key that a file names.
type key struct {
	name   string // the escaped name for messages
	effort int    // the cost of using the key; the cheapest keys are tried first
	id     string // all parts of the file that the key depends on
	open   func(context.Context) ([]byte, error)
}

// The costs of using a key, in increasing order.
const (
	inMemory = iota
	process
	network
)

// groups returns a file's key groups, cheapest first. If the settings do not allow a key, its open function
// returns an error without contacting a server.
func (m *method) groups(doc *document) []group {
	var out []group
	runs := &programs{}
	for i, from := range doc.groups {
		g := group{number: i + 1}
		for _, k := range from {
			g.keys = append(g.keys, m.key(k, runs))
		}
		slices.SortStableFunc(g.keys, func(a, b key) int { return a.effort - b.effort })
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(a, b group) int { return a.keys[0].effort - b.keys[0].effort })
	return out
}

func (m *method) key(from masterKey, runs *programs) key {
	k := key{id: from.identity()}
	var refused error
	switch from.kind {
	case kindAge:
		k.name = "age recipient " + quote(from.Recipient)
		if k.effort = inMemory; len(m.age.command) > 0 {
			k.effort = process
		}
		k.open = func(ctx context.Context) ([]byte, error) { return m.age.open(ctx, runs, from.Recipient, from.Sealed) }
	case kindPGP:
		k.name = "PGP key " + quote(from.Fingerprint)
		if k.effort = inMemory; m.pgp.useGPG {
			k.effort = process
		}
		k.open = func(ctx context.Context) ([]byte, error) { return m.pgp.open(ctx, runs, from.Sealed) }
	case kindAWS:
		k.name, k.effort = "AWS KMS key "+quote(from.ARN), network
		k.open, refused = m.services.aws(from)
	case kindGCP:
		k.name, k.effort = "Google Cloud KMS key "+quote(from.ResourceID), network
		k.open, refused = m.services.gcp(from)
	case kindAzure:
		k.name, k.effort = "Azure key "+quote(from.VaultURL+"/keys/"+from.Name), network
		k.open, refused = m.services.azure(from)
	case kindVault:
		k.name, k.effort = "Vault key "+quote(from.VaultAddress+"/v1/"+from.EnginePath+"/keys/"+from.KeyName), network
		k.open, refused = m.services.vault(from)
	default:
		k.name = "a key of another kind"
		refused = fmt.Errorf("%w: its key service is not supported", driver.ErrNoKey)
	}
	if refused != nil {
		k.effort = inMemory
		k.open = func(context.Context) ([]byte, error) { return nil, refused }
	}
	return k
}

// identityOf returns a hash that is equal for files with the same encrypted data keys.
func identityOf(groups []group, threshold int) string {
	h := sha256.New()
	fmt.Fprintln(h, threshold)
	for _, g := range groups {
		fmt.Fprintln(h, g.number, len(g.keys))
		for _, k := range g.keys {
			fmt.Fprintln(h, k.id)
		}
	}
	return string(h.Sum(nil))
}

// dataKeyOf returns a file's data key. It opens parts of the key until there are threshold parts.
func dataKeyOf(ctx context.Context, groups []group, threshold int) ([]byte, error) {
	var parts [][]byte
	failed := &groupsError{needed: threshold, all: len(groups)}
	for _, g := range groups {
		if len(parts) == threshold {
			break
		}
		part, errs := g.part(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(errs) > 0 {
			failed.keys = append(failed.keys, errs...)
			continue
		}
		parts = append(parts, part)
	}
	if failed.opened = len(parts); len(parts) < threshold {
		slices.SortStableFunc(failed.keys, func(a, b keyError) int { return a.group - b.group })
		return nil, failed
	}
	dataKey := parts[0]
	if len(groups) > 1 {
		var err error
		if dataKey, err = shamir.Combine(parts); err != nil {
			return nil, errors.New("the parts of the data key do not belong together: " + changed)
		}
	}
	if len(dataKey) != keyLength {
		return nil, fmt.Errorf("the data key of the file has %d bytes, but a data key of sops has %d", len(dataKey), keyLength)
	}
	return dataKey, nil
}

// part returns the group's part of the data key, from the first key that can open it. If none can, part
// returns the errors of all keys that it tried.
func (g group) part(ctx context.Context) (part []byte, failed []keyError) {
	for _, k := range g.keys {
		part, err := k.open(ctx)
		if err == nil {
			return part, nil
		}
		failed = append(failed, keyError{g.number, k.name, err})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// groupsError lists the keys that failed, with the reasons. It wraps ErrNoKey only if all reasons do: if a
// key timed out, for example, the file may be readable later.
type groupsError struct {
	needed, opened, all int        // numbers of key groups
	keys                []keyError // the keys that failed
}

type keyError struct {
	group int
	name  string
	err   error
}

const maxShown = 20 // the maximum number of keys in a message

func (e *groupsError) Error() string { return e.Tell(error.Error) }

// Tell returns the text of Error, but words each reason by calling text.
func (e *groupsError) Tell(text func(error) string) string {
	var b strings.Builder
	if !slices.ContainsFunc(e.keys, keyError.isFinal) {
		b.WriteString(driver.ErrNoKey.Error() + ": ")
	}
	if e.all == 1 {
		b.WriteString("the file's data key could not be decrypted with any of these keys")
	} else {
		fmt.Fprintf(&b, "%[2]d of %[1]d key groups can be opened, but %[3]d are required", e.all, e.opened, e.needed)
	}
	for _, k := range e.keys[:min(maxShown, len(e.keys))] {
		where := ""
		if e.all > 1 {
			where = fmt.Sprintf("key group %d, ", k.group)
		}
		fmt.Fprintf(&b, "\n    - %s%s: %s", where, k.name, text(k.reason()))
	}
	if more := len(e.keys) - maxShown; more > 0 {
		fmt.Fprintf(&b, "\n    - and %d more", more)
	}
	return b.String()
}

// isFinal reports whether the reason does not wrap ErrNoKey.
func (k keyError) isFinal() bool { return !errors.Is(k.err, driver.ErrNoKey) }

// reason returns a key's error without the text of [driver.ErrNoKey], which a groupsError states only once.
func (k keyError) reason() error {
	if k.isFinal() {
		return k.err
	}
	reason := errors.New(strings.TrimPrefix(k.err.Error(), driver.ErrNoKey.Error()+": "))
	for _, f := range slices.Backward(fault.In(k.err)) {
		reason = fault.Known(reason, f)
	}
	return reason
}

// Unwrap returns the reasons. If none of them is final, it also returns ErrNoKey.
func (e *groupsError) Unwrap() (all []error) {
	if !slices.ContainsFunc(e.keys, keyError.isFinal) {
		all = append(all, driver.ErrNoKey)
	}
	for _, k := range e.keys {
		all = append(all, k.reason())
	}
	return all
}
