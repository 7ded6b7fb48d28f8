package encryption_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestLineageAddedOutside: a lineage beside the encrypted data is not believed if
// there is none inside.
func TestLineageAddedOutside(t *testing.T) {
	t.Parallel()
	const bare = `{"version":4,"serial":7,"outputs":{}}`
	file := string(seal(t, all, bare))
	target := newEncryption(t, lighttest.Registry(), all).State()
	if opened, err := target.Decrypt(t.Context(), []byte(file)); err != nil || string(opened.Data) != bare {
		t.Fatalf("without any lineage: %v", err)
	}
	forged := strings.Replace(file, "{", `{"lineage":"l-1",`, 1)
	if _, err := target.Decrypt(t.Context(), []byte(forged)); !errors.Is(err, encryption.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// archive is a zip archive with these members, in which nothing is packed.
func archive(members ...string) string {
	var b strings.Builder
	z := zip.NewWriter(&b)
	for _, name := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name})
		if err == nil {
			_, err = w.Write([]byte("the " + name))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// TestPlanIsMoreThanAnArchive: what is sealed, opened or passed as a plan has one in it.
//
// Promise: Kinds of files
func TestPlanIsMoreThanAnArchive(t *testing.T) {
	t.Parallel()
	none, plain := newEncryption(t, lighttest.Registry(), ""), newEncryption(t, lighttest.Registry(), `plan { method = "unencrypted" }`)
	strict := newEncryption(t, withBox(), boxes+all[len(keys):])
	for name, file := range map[string]string{
		"four bytes": "PK\x03\x04xxxx", "no member": archive(), "another": archive("tfstate", "tfconfig/m-/main.tf", "x/tfplan"),
		"two bytes": "PK", "cut off": plan[:len(plan)-1], "begins with something else": "x" + plan,
	} {
		for _, target := range []encryption.Target{none.Plan(), plain.Plan(), strict.Plan(), use(t, strict, "method.aes_gcm.a", "unencrypted")} {
			if _, err := target.Decrypt(t.Context(), []byte(file)); reason(t, err) != "damaged" {
				t.Errorf("%s, opened: got %v", name, err)
			}
			if sealed, err := target.Encrypt(t.Context(), []byte(file)); err == nil {
				t.Errorf("%s, sealed: got %s", name, sealed)
			}
		}
		if _, err := use(t, strict, "method.box.plain").Decrypt(t.Context(), []byte("BOX 1\n"+file)); reason(t, err) != "damaged" {
			t.Errorf("%s, inside: got %v", name, err)
		}
		sealed, err := json.Marshal(map[string]any{"meta": map[string]string{}, "encrypted_data": []byte(file), "encryption_version": "v0"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openWithAnything(t).Decrypt(t.Context(), sealed); reason(t, err) != "damaged" {
			t.Errorf("%s, in an envelope: got %v", name, err)
		}
	}
	end := len(archive("tfplan")) - 2 // where the length of the comment is
	withComment := archive("tfplan")[:end] + "\x07\x00comment"
	for _, file := range []string{archive("tfplan"), archive("tfstate", "tfconfig/x", "tfplan"), archive("tfplan", "tfplan"),
		archive("tfplan", ""), withComment} {
		if _, err := none.Plan().Decrypt(t.Context(), []byte(file)); err != nil {
			t.Error(err)
		}
	}
}

// TestDirectories: what is taken for a plan is one for archive/zip too, and a list of
// members that is damaged is no reason to panic.
func TestDirectories(t *testing.T) {
	t.Parallel()
	file := []byte(archive("tfplan"))
	for i := range file {
		for _, b := range []byte{0, 1, 0x7f, 0xff} {
			damaged := bytes.Clone(file)
			damaged[i] = b
			info, isDamaged := encryption.Inspect(damaged)
			z, err := zip.NewReader(bytes.NewReader(damaged), int64(len(damaged)))
			if info.Kind == encryption.KindPlan && isDamaged == nil && (err != nil || z.File[0].Name != "tfplan") {
				t.Errorf("byte %d as %d: %v", i, b, err)
			}
		}
	}
}

// asIs is a method that encrypts nothing.
type asIs struct{}

func (asIs) Decrypt(_ context.Context, _ driver.Keys, data []byte) ([]byte, error) {
	return data, nil
}

func openWithAnything(t *testing.T) encryption.Target {
	t.Helper()
	return use(t, newEncryption(t, encryption.Registry{Methods: []driver.Block[driver.Method]{{
		Table: attr.Table{Name: "as_is"}, Build: func(attr.Values) (driver.Method, error) { return asIs{}, nil },
	}}}, ""), "as_is")
}

// TestCutOff: what is cut off is damaged, whoever is asked, and a plaintext may still be known.
//
// Promise: Recognition
func TestCutOff(t *testing.T) {
	t.Parallel()
	target := use(t, newEncryption(t, lighttest.Registry(), all+"\n"), "method.aes_gcm.a")
	kinds := map[string]encryption.FileKind{"state": encryption.KindState, "plan": encryption.KindPlan}
	for name, file := range map[string]string{
		"envelope": string(seal(t, all, state)), "envelope of a plan": sealPlan(t), "state": state, "plan": plan,
		"indented": "{\n  \"version\": 4\n}",
	} {
		for end := 1; end < len(file); end++ {
			if name == "plan" && end < 4 {
				continue // it may be anything
			}
			_, opening := target.Decrypt(t.Context(), []byte(file[:end]))
			info, err := encryption.Inspect([]byte(file[:end]))
			if reason(t, opening) != "damaged" || !errors.Is(err, encryption.ErrDamaged) ||
				info.Kind != encryption.KindUnknown && info.Kind != kinds[name] || err.Error() != opening.Error() {
				t.Fatalf("%s, %d bytes: got %v, %v and %v", name, end, opening, info.Kind, err)
			}
		}
	}
	for _, other := range []string{"x", "{}", "[1", "{a: b}", "{\xfe\xff", "PKx"} {
		if info, err := encryption.Inspect([]byte(other)); err != nil || info.Kind != encryption.KindUnknown {
			t.Errorf("%q: got %v, %v", other, info.Kind, err)
		}
	}
}
