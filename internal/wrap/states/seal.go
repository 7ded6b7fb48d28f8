package states

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Keys open and seal.
type Keys struct {
	State  encryption.Target    // it has methods, and was checked
	Plan   encryption.Target    // likewise, if it has methods; otherwise plans are left as they are
	Doubts []encryption.Finding // probable mistakes in State, reported before the first state is sealed
}

// Seal encrypts a file, and opens the result by the same method, so that the stored file is readable.
func Seal(ctx context.Context, target encryption.Target, plain []byte) (sealed []byte, again *encryption.Opened, err error) {
	if sealed, err = target.Encrypt(ctx, plain); err != nil {
		return nil, nil, err
	}
	again, err = target.Decrypt(ctx, sealed)
	switch {
	case err != nil:
		err = fmt.Errorf("the encrypted data cannot be opened again: %w", err)
	case !again.Encrypted:
		err = errors.New("the first method does not encrypt; here, unencrypted may only be a fallback")
	case again.UsedFallback:
		err = fmt.Errorf("the first method does not open its own file, but %s does; check the settings of the first", again.Method)
	case !bytes.Equal(again.Data, plain):
		err = errors.New("the encrypted data does not open to the same bytes")
	}
	return sealed, again, err
}

// SealForOthers is [Seal], and works as well with settings that have recipients of age and no
// identity: here, nothing opens the file again, which is then nil.
func SealForOthers(ctx context.Context, target encryption.Target, plain []byte) (sealed []byte, again *encryption.Opened, err error) {
	sealed, again, err = Seal(ctx, target, plain)
	if failed, ok := errors.AsType[*encryption.Error](err); ok && sealed != nil && len(failed.Attempts) > 0 &&
		fault.Has[fault.NoIdentity](failed.Attempts[0].Err) { // the methods after the first are fallbacks
		err = nil
	}
	return sealed, again, err
}

// sealCopies returns a function that makes the backup of a state that a store found. The backup is always
// encrypted. There is none of a file that is not a state, see [recovery.keepDamaged].
func sealCopies(target encryption.Target) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, found []byte) ([]byte, error) {
		if info, err := encryption.Inspect(found); err == nil && info.Kind == encryption.KindEncrypted {
			return found, nil
		}
		sealed, _, err := Seal(ctx, target, found)
		if err != nil {
			if _, failed := target.Decrypt(ctx, found); isNoState(found, failed) {
				return nil, nil
			}
		}
		return sealed, err
	}
}

// isNoState reports whether a file that does not open, with this error, is of no kind that anybody knows:
// neither a state, nor the file of a method or of another key.
func isNoState(file []byte, err error) bool {
	info, _ := encryption.Inspect(file)
	return info.Kind == encryption.KindUnknown && errors.Is(err, encryption.ErrDamaged)
}
