package encryption_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

const mebi = 1 << 20

// largeState is a state of at least size bytes.
func largeState(size int) []byte {
	return fmt.Appendf(nil, `{"version":4,"serial":7,"lineage":"l-<1>","outputs":{"a":{"value":"%s","type":"string"}}}`,
		strings.Repeat("a", size))
}

// allocated returns how many bytes work allocates. Nothing else may run at the
// same time.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemory is not parallel: it counts every byte that the process allocates.
//
// Promise: Memory
func TestMemory(t *testing.T) {
	testkit.OneGoroutine(t)
	const size = 16 * mebi
	target := newEncryption(t, lighttest.Registry(), keys+"state { method = method.aes_gcm.a }").State()
	plaintext := newEncryption(t, lighttest.Registry(), `state { method = "unencrypted" }`).State()
	plain := largeState(size)
	file, err := target.Encrypt(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		limit uint64
		work  func() error
	}{
		{name: "to inspect an encrypted file", limit: mebi / 2, work: func() error { return inspect(file, encryption.KindEncrypted) }},
		{name: "to inspect a state", limit: mebi / 2, work: func() error { return inspect(plain, encryption.KindState) }},
		{name: "to seal: with the plaintext, 2.5 times the file", limit: size * 3 / 2, work: func() error {
			_, err := target.Encrypt(t.Context(), plain)
			return err
		}},
		{name: "to seal without a method", limit: size * 3 / 2, work: func() error {
			_, err := plaintext.Encrypt(t.Context(), plain)
			return err
		}},
	} {
		var err error
		got := allocated(func() { err = c.work() })
		if err != nil || got > c.limit {
			t.Errorf("%s: %d bytes were allocated, %d are allowed (%v)", c.name, got, c.limit, err)
		}
	}
}

func inspect(file []byte, want encryption.FileKind) error {
	info, err := encryption.Inspect(file)
	if err == nil && info.Kind != want {
		err = fmt.Errorf("it is a %v", info.Kind)
	}
	return err
}

// TestEncryptInItsRoom: of every length, also with more metadata than is set aside for it.
func TestEncryptInItsRoom(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"aes_gcm":     keys + "state { method = method.aes_gcm.a }",
		"unencrypted": keys + "state { method = method.unencrypted.u }",
		"long metadata": `key_provider "static" "a" {
				key                      = "00000000000000000000000000000000"
				encrypted_metadata_alias = "` + strings.Repeat("n", 10_000) + `"
			}
			method "aes_gcm" "a" { keys = key_provider.static.a }
			state { method = method.aes_gcm.a }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := newEncryption(t, lighttest.Registry(), text).State()
			for _, size := range []int{0, 1, 2, 3, 100, 3000, 5000, 100_000} {
				plain := largeState(size)
				before := bytes.Clone(plain)
				file, err := target.Encrypt(t.Context(), plain)
				if err != nil || !bytes.Equal(plain, before) {
					t.Fatalf("%v; the plaintext changed: %t", err, !bytes.Equal(plain, before))
				}
				if rest := file[len(file):cap(file)]; len(bytes.Trim(rest, "\x00")) > 0 {
					t.Errorf("a state of %d: something is left behind the file: %.100q", len(plain), rest)
				}
				if want := marshalled(t, file); !bytes.Equal(file, plain) && !bytes.Equal(file, want) {
					t.Errorf("got %.300s, OpenTofu writes %.300s", file, want)
				}
				opened, err := target.Decrypt(t.Context(), bytes.Clone(file))
				if err != nil || !bytes.Equal(opened.Data, plain) {
					t.Errorf("a state of %d: %v", len(plain), err)
				}
			}
		})
	}
}

// keeper is a box that keeps what it was given.
type keeper struct {
	box
	given *[]byte
}

func (k keeper) Encrypt(ctx context.Context, keys driver.Keys, plain []byte) ([]byte, error) {
	*k.given = plain
	return k.box.Encrypt(ctx, keys, plain)
}

// TestPlaintextIsOverwritten: in the memory that a method was given, whether or not the file
// stays there.
func TestPlaintextIsOverwritten(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 60, 61, 1000} { // a method may add 64 bytes to what it seals in place
		var given []byte
		registry := withBox()
		registry.Methods[len(registry.Methods)-1].Build = func(v attr.Values) (driver.Method, error) {
			return keeper{box{v.String("key")}, &given}, nil
		}
		target := newEncryption(t, registry, `method "box" "m" { key = "`+strings.Repeat("k", size)+`" }
			state { method = method.box.m }`).State()
		file, err := target.Encrypt(t.Context(), []byte(state))
		if err != nil || !bytes.HasSuffix(file, []byte(state)) {
			t.Fatal(err)
		}
		for i := range file { // which may be in the same memory
			file[i] = 0
		}
		if len(given) != len(state) || len(bytes.Trim(given, "\x00")) > 0 {
			t.Errorf("a key of %d bytes: %.100q is left", size, given)
		}
	}
}

// marshalled returns an envelope as encoding/json writes it, with the fields of
// opentofu/internal/encryption/base.go and state.go.
func marshalled(t *testing.T, file []byte) []byte {
	t.Helper()
	var envelope struct {
		Serial  *int64            `json:"serial,omitempty"`
		Lineage string            `json:"lineage,omitempty"`
		Meta    map[string][]byte `json:"meta"`
		Data    []byte            `json:"encrypted_data"`
		Version string            `json:"encryption_version"`
	}
	if err := json.Unmarshal(file, &envelope); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInspectChecksData: what is not base64 is damage wherever it stands.
func TestInspectChecksData(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("AAAA", 3000)
	for _, c := range []struct {
		name, data string
		damaged    bool
	}{
		{name: "nothing", data: `""`},
		{name: "null", data: `null`},
		{name: "many parts", data: `"` + good + `"`},
		{name: "padding at the end", data: `"` + good + `AA=="`},
		{name: "an escape", data: `"` + good + `\u0041AAA"`},
		{name: "padding after a part", data: `"` + good[:4092] + `AA==` + good + `"`, damaged: true},
		{name: "no digit", data: `"` + good + `AA*A"`, damaged: true},
		{name: "half a quantum", data: `"` + good + `AA"`, damaged: true},
		{name: "a line end", data: "\"" + good + "\n\"", damaged: true},
		{name: "a number", data: `1`, damaged: true},
	} {
		_, err := encryption.Inspect([]byte(`{"meta":{},"encrypted_data":` + c.data + `,"encryption_version":"v0"}`))
		if (err != nil) != c.damaged {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// salted makes another key for each file, and counts how often it is asked.
type salted struct{ asked *atomic.Int64 }

func (s salted) Key(_ context.Context, _ driver.Keys, stored json.RawMessage) ([]byte, error) {
	s.asked.Add(1)
	key := sha256.Sum256(stored)
	return key[:], nil
}

func (s salted) NewKey(context.Context, driver.Keys) ([]byte, json.RawMessage, error) {
	stored := fmt.Appendf(nil, "%q", rand.Text())
	key := sha256.Sum256(stored)
	return key[:], stored, nil
}

func newSalted(t *testing.T) (*encryption.Encryption, *atomic.Int64) {
	asked := new(atomic.Int64)
	registry := lighttest.Registry()
	registry.KeyProviders = append(registry.KeyProviders, driver.Block[driver.KeyProvider]{
		Table: attr.Table{Name: "salted"},
		Build: func(attr.Values) (driver.KeyProvider, error) { return salted{asked}, nil },
	})
	return newEncryption(t, registry, `
		key_provider "salted" "k" {}
		method "aes_gcm" "m" { keys = key_provider.salted.k }
		state { method = method.aes_gcm.m }`), asked
}

// TestManyFiles is not parallel: it measures the heap.
//
// Promise: Long lives
func TestManyFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it opens and seals 100,000 files")
	}
	enc, _ := newSalted(t)
	pass := func(files int) {
		for i := range files {
			plain := fmt.Appendf(nil, `{"version":4,"serial":%d,"lineage":"l-%[1]d","outputs":{}}`, i)
			file, err := enc.State().Encrypt(t.Context(), plain)
			if err != nil {
				t.Fatal(err)
			}
			opened, err := enc.State().Decrypt(t.Context(), file)
			if err != nil || !bytes.Equal(opened.Data, plain) {
				t.Fatalf("file %d: %v", i, err)
			}
		}
	}
	pass(10_000)
	before := heap()
	pass(90_000)
	if grown := heap() - before; grown > mebi {
		t.Errorf("90,000 files more, and the heap has grown by %d bytes", grown)
	}
	runtime.KeepAlive(enc)
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Promise: Long lives
func TestClose(t *testing.T) {
	t.Parallel()
	enc, asked := newSalted(t)
	file, err := enc.State().Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for range 2 {
			if opened, err := enc.State().Decrypt(t.Context(), bytes.Clone(file)); err != nil || string(opened.Data) != state {
				t.Fatal(err)
			}
		}
		if got := asked.Load(); got != int64(round+1) {
			t.Errorf("round %d: the key provider was asked %d times", round, got)
		}
		enc.Close()
	}
}

// BenchmarkMemory reports what files of 100 MiB cost: B/op is what is allocated
// beside the file itself.
func BenchmarkMemory(b *testing.B) {
	enc, err := encryption.Load(lighttest.Registry(), encryption.Code(keys+"state { method = method.aes_gcm.a }", "test"))
	if err != nil {
		b.Fatal(err)
	}
	plain := largeState(100 * mebi)
	file, err := enc.State().Encrypt(b.Context(), plain)
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, input []byte, work func(input []byte) error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(input)))
			var total uint64
			for b.Loop() {
				b.StopTimer()
				own := bytes.Clone(input)
				b.StartTimer()
				total += allocated(func() { err = work(own) })
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(1+float64(total)/float64(b.N)/float64(len(input)), "peak/file")
		})
	}
	run("Inspect", file, func(file []byte) error { return inspect(file, encryption.KindEncrypted) })
	run("Encrypt", plain, func(plain []byte) error {
		_, err := enc.State().Encrypt(b.Context(), plain)
		return err
	})
	run("Decrypt", file, func(file []byte) error {
		_, err := enc.State().Decrypt(b.Context(), file)
		return err
	})
}
