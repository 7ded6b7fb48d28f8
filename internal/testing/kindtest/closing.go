package kindtest

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// LeavesNothing loads settings again and again, opens a file and closes, as a program
// does that has a function for it. What is open at the end must not depend on how
// often. Nothing else may run meanwhile.
func LeavesNothing(t *testing.T, registry encryption.Registry, settings string, env attr.LookupEnv) {
	t.Helper()
	const plain = `{"version":4,"serial":1,"lineage":"a","outputs":{},"resources":[]}`
	load := func() *encryption.Encryption {
		enc, err := encryption.Load(registry, encryption.Code(settings, "test"), encryption.Environment(env))
		if err != nil {
			t.Fatal(err)
		}
		return enc
	}
	enc := load()
	file, err := enc.State().Encrypt(t.Context(), []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	enc.Close()
	Leaves(t, func() {
		enc := load()
		defer enc.Close()
		for range 2 { // what follows the first Close opens what it needs anew
			opened, err := enc.State().Decrypt(t.Context(), bytes.Clone(file))
			if err != nil || string(opened.Data) != plain {
				t.Fatalf("got %+v, %v", opened, err)
			}
			enc.Close()
		}
	})
}

// Leaves checks that many rounds of work leave no more behind than one does.
func Leaves(t *testing.T, round func()) {
	t.Helper()
	rounds, few := 50, 10
	if testing.Short() {
		rounds = 20
	}
	round()
	goroutines, files := runtime.NumGoroutine(), openFiles()
	for range rounds {
		round()
	}
	var more, moreFiles int
	// Both ends of a connection must notice.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		more, moreFiles = runtime.NumGoroutine()-goroutines, openFiles()-files
		if more < few && moreFiles < few {
			return
		}
	}
	t.Errorf("%d rounds leave %d goroutines and %d files and connections behind", rounds, more, moreFiles)
}

// openFiles is how many files and connections this process has open, 0 if the system
// does not say.
func openFiles() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}
