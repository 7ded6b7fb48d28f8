package states

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Keys holds the targets that encrypt and decrypt the states and plans of a run.
type Keys struct {
	State  encryption.Target    // a checked target with at least one method
	Plan   encryption.Target    // a checked target, or a target without methods, which leaves plans as they are
	Doubts []encryption.Finding // probable mistakes in State, reported before the first state is sealed
}

// Seal encrypts plain, and decrypts the result with the same method, to ensure that the stored file is readable. It
// returns the encrypted file and the decrypted result, and may return both together with an error. The argument memory
// is nil, or plain: Seal then decrypts in the memory of plain, which the caller must not use afterwards, except as the
// decrypted result.
func Seal(
	ctx context.Context, target encryption.Target, plain, memory []byte,
) (sealed []byte, again *encryption.Opened, err error) {
	if sealed, err = target.Encrypt(ctx, plain); err != nil {
		return nil, nil, err
	}
	digest := sha256.Sum256(plain)
	again, err = target.DecryptInto(ctx, sealed, memory)
	switch {
	case err != nil:
		err = fmt.Errorf("the encrypted data could not be opened again: %w", err)
	case !again.Encrypted:
		err = errors.New("the primary method does not encrypt; use the method unencrypted only as a fallback")
	case again.UsedFallback:
		err = fmt.Errorf("the primary method cannot open the file that it encrypted, but %s can; check the settings of the primary method",
			again.Method)
	case sha256.Sum256(again.Data) != digest:
		err = errors.New("the data differs from the original after encryption and decryption")
	}
	return sealed, again, err
}

// SealForOthers works like [Seal], but also accepts settings with age recipients and no identity. In that case, nothing
// decrypts the file, and again is nil.
func SealForOthers(
	ctx context.Context, target encryption.Target, plain, memory []byte,
) (sealed []byte, again *encryption.Opened, err error) {
	sealed, again, err = Seal(ctx, target, plain, memory)
	if failed, ok := errors.AsType[*encryption.Error](err); ok && sealed != nil && len(failed.Attempts) > 0 &&
		fault.Has[fault.NoIdentity](failed.Attempts[0].Err) { // the methods after the first are fallbacks
		err = nil
	}
	return sealed, again, err
}

// sealCopies returns a function that encrypts the backup of a state that a store found, unless the backup is encrypted
// already. The function returns nil for a file that is not a state, see [recovery.keepDamaged].
func sealCopies(target encryption.Target) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, found []byte) ([]byte, error) {
		if info, err := encryption.Inspect(found); err == nil && info.Kind == encryption.KindEncrypted {
			return found, nil
		}
		sealed, _, err := Seal(ctx, target, found, nil)
		if err != nil {
			if _, failed := target.Decrypt(ctx, found); isNoState(found, failed) {
				return nil, nil
			}
		}
		return sealed, err
	}
}

// isNoState reports whether a file is neither a state nor an encrypted file of any known method. The err argument is
// the error from decrypting the file.
func isNoState(file []byte, err error) bool {
	info, _ := encryption.Inspect(file)
	return info.Kind == encryption.KindUnknown && errors.Is(err, encryption.ErrDamaged)
}
