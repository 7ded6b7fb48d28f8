package sops

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// changed is the end of error messages about a file that sops cannot have written.
const changed = "someone changed the file; restore an intact copy"

// walker decrypts values in place and hashes them, like Tree.Decrypt in the sops library (sops.go).
type walker struct {
	ctx       context.Context
	cipher    *valueCipher
	selection *selection
	hash      hash.Hash
	sealed    bool // whether to hash only encrypted values
	cost      *meter.Meter

	// path contains the names from the root to the current value, each followed by a colon. All values share
	// it, because copying it for each value would take quadratic time.
	path []byte
}

// decrypt decrypts all values in place and checks the MAC.
func (d *document) decrypt(ctx context.Context, dataKey []byte, cost *meter.Meter) error {
	c, err := newValueCipher(dataKey)
	if err != nil {
		return err
	}
	w := walker{ctx: ctx, cipher: c, selection: d.selection, hash: sha512.New(), sealed: d.meta.MACOnlyEncrypted, cost: cost}
	if w.sealed { // a prefix distinguishes this kind of MAC
		start := sha256.Sum256([]byte("sops"))
		w.hash.Write(start[:])
	}
	if _, err := w.decrypt(d.state, false); err != nil {
		return err
	}
	stored, err := c.open(d.meta.MAC, []byte(d.meta.LastModified.Format(time.RFC3339)))
	text, _ := stored.(string)
	if err != nil || subtle.ConstantTimeCompare([]byte(text), fmt.Appendf(nil, "%X", w.hash.Sum(nil))) != 1 {
		return errors.New("the MAC of the file does not match its values: " + changed)
	}
	return nil
}

// decrypt decrypts a value and all values inside it. The parameter named is true if the selection matches a
// name in the path to the value.
func (w *walker) decrypt(value any, named bool) (any, error) {
	var err error
	switch v := value.(type) {
	case nil:
		return nil, nil
	case object:
		for i, item := range v {
			if v[i].value, err = w.member(item, named); err != nil {
				return nil, err
			}
		}
		return v, nil
	case []any:
		for i := range v {
			if v[i], err = w.decrypt(v[i], named); err != nil {
				return nil, err
			}
		}
		return v, nil
	}
	return w.leaf(value, named == w.selection.seals)
}

func (w *walker) member(item member, named bool) (any, error) {
	if !named {
		var err error
		if named, err = w.selection.has(item.name); err != nil {
			return nil, err
		}
	}
	above := len(w.path)
	w.path = append(append(w.path, item.name...), ':')
	value, err := w.decrypt(item.value, named)
	w.path = w.path[:above]
	return value, err
}

var errNotSops = errors.New("the values of the file cannot be decrypted, because sops does not write such values")

func (w *walker) leaf(value any, sealed bool) (any, error) {
	if w.ctx.Err() != nil {
		return nil, context.Cause(w.ctx)
	}
	if sealed {
		text, ok := value.(string)
		if !ok {
			return nil, errNotSops
		}
		err := w.cost.Copies(len(w.path), "the long names above the values")
		if err != nil {
			return nil, fmt.Errorf("%w; find out who wrote the file", err)
		}
		if value, err = w.cipher.open(text, w.path); err != nil {
			names := strings.Split(strings.TrimSuffix(string(w.path), ":"), ":")
			return nil, fmt.Errorf("the value at %s cannot be decrypted: the key groups are mixed up, or "+changed, at(names))
		}
	}
	if sealed || !w.sealed {
		text, err := hashed(value)
		if err != nil {
			return nil, err
		}
		w.hash.Write(text)
	}
	return value, nil
}

// hashed returns the bytes of a value that the MAC is computed from. For a comment, there are none.
func hashed(value any) ([]byte, error) {
	switch v := value.(type) {
	case string:
		return []byte(v), nil
	case int:
		return strconv.AppendInt(nil, int64(v), 10), nil
	case float64:
		return strconv.AppendFloat(nil, v, 'f', -1, 64), nil
	case bool:
		if v {
			return []byte("True"), nil
		}
		return []byte("False"), nil
	case time.Time:
		if text, err := v.MarshalText(); err == nil {
			return text, nil
		}
	case comment:
		return nil, nil
	}
	return nil, errNotSops
}
