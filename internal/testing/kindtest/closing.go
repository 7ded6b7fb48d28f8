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

// LeavesNothing repeatedly loads settings, opens a file, and closes, like a program that does this in a function. The
// number of resources still open at the end must not depend on the number of repetitions. Nothing else may run at the
// same time.
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
		for range 2 { // after the first Close, Decrypt opens its resources again
			opened, err := enc.State().Decrypt(t.Context(), bytes.Clone(file))
			if err != nil || string(opened.Data) != plain {
				t.Fatalf("got %+v, %v", opened, err)
			}
			enc.Close()
		}
	})
}

// Leaves checks that many rounds of work leave no more resources open than one round does.
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
	// Both ends of a connection must notice that it was closed.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		more, moreFiles = runtime.NumGoroutine()-goroutines, openFiles()-files
		if more < few && moreFiles < few {
			return
		}
	}
	t.Errorf("%d rounds leave %d goroutines and %d files and connections behind", rounds, more, moreFiles)
}

// openFiles returns the number of open files and connections of this process, or 0 if the system does not tell.
func openFiles() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}
