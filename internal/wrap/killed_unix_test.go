//go:build unix

package wrap_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	stores "github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// TestKilledRuns kills wrap, whatever it does at that moment, again and again. The next run finds
// the old state or the new one, encrypted, and what was left of the lock; until the child has
// ended, nobody else gets that.
func TestKilledRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes are killed")
	}
	const mine = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
	after := []string{"LOCK", "GET", "ready", "POST", "ready"} // what the child has printed by then
	o, dir, out := inFile(t, "", "apply")
	path := filepath.Join(dir, "terraform.tfstate")
	write(t, path, string(seal(t, sealing, numbered(1))))
	serial, other := 1, otherFile(t, path)
	for round := range testkit.Rounds(300) {
		script := "LOCK=" + mine + " GET ready POST:1=" + numbered(serial+1) + " ready wait UNLOCK=" + mine
		o.Environ = append(o.Environ[:len(o.Environ):len(o.Environ)], "WRAP_TEST_FILE="+path)
		p := begin(t, o, script)
		steps := 1 + round%len(after)
		for _, text := range after[:steps] {
			if !p.until(text) {
				t.Fatalf("round %d: %q", round, p.said)
			}
		}
		_ = p.Process.Kill()
		_ = p.Wait()
		if waits := steps == len(after); waits && runtime.GOOS == "linux" {
			if _, held := errors.AsType[*stores.HeldError](other.Lock(t.Context(), stores.Lock{ID: "2"})); !held {
				t.Fatalf("round %d: while the child works, somebody else has its lock", round)
			}
		}
		_ = p.in.Close()
		for {
			holder, err := other.Holder(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if holder == nil { // the child has ended
				break
			}
		}
		o.Environ = append(o.Environ, "WRAP_TEST_SCRIPT=LOCK="+mine+" GET UNLOCK="+mine)
		code, err, told := run(t, o)
		if code != 0 || err != nil || !strings.Contains(told, "has ended without giving it back") {
			t.Fatalf("round %d: the next run: %d, %v\n%s%s", round, code, err, told, out)
		}
		there, err := os.ReadFile(path)
		if info, _ := encryption.Inspect(there); err != nil || info.Kind != encryption.KindEncrypted {
			t.Fatalf("round %d: there is %.100q, %v", round, there, err)
		}
		opened, err := target(t, sealing).Decrypt(t.Context(), there)
		if err != nil {
			t.Fatal(err)
		}
		written := string(opened.Data) == numbered(serial+1)
		if !written && (string(opened.Data) != numbered(serial) || steps > 3) {
			t.Fatalf("round %d, after %d steps: there is %s", round, steps, opened.Data)
		}
		if written {
			serial++
		}
	}
	if serial == 1 {
		t.Error("nothing was written")
	}
}

func numbered(serial int) string {
	return strings.Replace(state, `"serial":1`, fmt.Sprintf(`"serial":%d`, serial), 1)
}
