package encryption_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// Whatever opens is exactly what was sealed: every truncation and every flipped
// bit of a file gives an error or the original plaintext. The latter happens in
// what the envelope does not authenticate and a reader can do without: the
// metadata of a static key, the names of members, serial and lineage when the
// damage hides them. It never happens in the ciphertext.
func TestDamage(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	file := seal(t, keys+`state { method = method.aes_gcm.a }`, state)
	target := use(t, newEncryption(t, lighttest.Registry(), keys), "method.aes_gcm.a", "unencrypted")
	opens := func(damaged []byte) bool {
		opened, err := target.Decrypt(context.Background(), bytes.Clone(damaged))
		if err == nil && (string(opened.Data) != state || !opened.Encrypted) {
			t.Errorf("%s opened to %s", damaged, opened.Data)
		}
		return err == nil
	}
	const member = `"encrypted_data":"`
	start := bytes.Index(file, []byte(member)) + len(member)
	end := start + bytes.IndexByte(file[start:], '"') - 4 // the last four digits of base64 may hold unused bits
	for i := range file {
		if opens(file[:i]) {
			t.Errorf("cut off at byte %d, it opened", i)
		}
		for bit := range 8 {
			damaged := bytes.Clone(file)
			damaged[i] ^= 1 << bit
			if opens(damaged) && i >= start && i < end {
				t.Errorf("with bit %d of byte %d of the ciphertext flipped, it opened", bit, i)
			}
		}
	}
}

func FuzzDecrypt(f *testing.F) {
	enc, err := encryption.Load(lighttest.Registry(), encryption.Code(
		keys+"state {\nmethod = method.aes_gcm.a\nfallback {\nmethod = method.unencrypted.u\n}\n}", "fuzz"))
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := enc.State().Encrypt(context.Background(), []byte(state))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte(state))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte(plan))
	f.Add([]byte(`{"encryption_version":"v0","meta":{},"encrypted_data":""}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		opened, err := enc.State().Decrypt(context.Background(), bytes.Clone(file))
		switch {
		case err != nil:
		case opened.Encrypted && string(opened.Data) != state:
			t.Errorf("%q opened to %q", file, opened.Data)
		case !opened.Encrypted && !bytes.Equal(opened.Data, file):
			t.Errorf("plaintext %q came out as %q", file, opened.Data)
		}
		if info, err := encryption.Inspect(file); err == nil && info.Kind == encryption.KindEncrypted && info.Version != "v0" {
			t.Errorf("%+v", info)
		}
	})
}
