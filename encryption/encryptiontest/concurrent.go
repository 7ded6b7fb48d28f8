package encryptiontest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

const goroutines = 8 // the number of goroutines that make calls at the same time

// together runs work in several goroutines that start at the same time.
func together(work func()) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range goroutines {
		all.Go(func() {
			<-begin
			work()
		})
	}
	close(begin)
	all.Wait()
}

// atOnce makes keys and asks for them in several goroutines, like a program that seals and opens
// many files at the same time. It finds more mistakes under the race detector.
func (h KeyProvider) atOnce(t *testing.T) {
	maker, _, _ := h.maker(t)
	together(func() {
		key, stored, err := maker.NewKey(context.WithValue(t.Context(), mark{}, true), h.marked(t))
		if err != nil {
			t.Errorf("a new key while others are made: %v", err)
			return
		}
		key, stored = bytes.Clone(key), bytes.Clone(stored)
		if again, err := h.ask(t, t.Context(), maker, stored); err != nil || !bytes.Equal(again, key) {
			t.Errorf("while others are made and asked for, the same key did not come back: %v", err)
		}
	})
}

// atOnce seals and opens files in several goroutines. Each file has a different plaintext.
func (h Method) atOnce(t *testing.T, method driver.Method, encrypter driver.Encrypter) {
	var files atomic.Int32
	together(func() {
		plain := fmt.Sprintf("%s %d", samplePlain, files.Add(1))
		sealed, err := within(t, patience, []byte(plain), func() ([]byte, error) {
			return encrypter.Encrypt(t.Context(), h.Keys, []byte(plain))
		})
		if err != nil {
			t.Errorf("sealing while others are sealed: %v", err)
			return
		}
		if opened, err := h.open(t, method, h.Keys, sealed); err != nil || string(opened) != plain {
			t.Errorf("while others are sealed and opened, %q opens to %q: %v", plain, opened, err)
		}
	})
}

// closed asks for a key after the key provider was closed, and while it is being closed again.
func (h KeyProvider) closed(t *testing.T) {
	maker, key, stored := h.maker(t)
	closeTwice(t, maker)
	together(func() {
		if again, err := h.ask(t, t.Context(), maker, stored); err != nil || !bytes.Equal(again, key) {
			t.Errorf("after Close, the same key did not come back: %v", err)
		}
		maker.(driver.Closer).Close()
	})
}

// closeTwice closes a key provider or a method twice if it holds resources between calls.
// Otherwise, it skips the test.
func closeTwice(t *testing.T, built any) {
	t.Helper()
	closer, ok := built.(driver.Closer)
	if !ok {
		t.Skip("it holds nothing")
	}
	closer.Close()
	closer.Close()
}
