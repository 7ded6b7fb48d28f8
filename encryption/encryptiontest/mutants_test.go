package encryptiontest

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

const inMutants = "STATECRYPT_TEST_MUTANTS" // set in the process whose tests must fail

// TestMutants runs the tests on key providers and methods that have one mistake
// each, in a process of their own, and looks at which of them fail.
//
// Promise: Kinds of others
func TestMutants(t *testing.T) {
	testkit.OneGoroutine(t)
	if os.Getenv(inMutants) != "" {
		runMutants(t)
		return
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "-test.run=^TestMutants$", "-test.v")
	c.Env = append(os.Environ(), inMutants+"=1")
	out, err := c.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); !failed {
		t.Fatalf("the tests did not fail: %v", err)
	}
	failed := map[string][]string{} // :: mutant → the checks that fail
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: TestMutants/"); ok {
			name, _, _ = strings.Cut(name, " (")
			mutant, check, _ := strings.Cut(name, "/")
			failed[mutant] = append(failed[mutant], check)
		}
	}
	expected := map[string]string{"a_good_key_provider": "", "a_good_method": ""}
	alone := map[string]bool{} // :: mutant → no other check fails
	for _, m := range keyMutants() {
		expected[underscored(m.name)], alone[underscored(m.name)] = underscored(m.check), m.alone
	}
	for _, m := range methodMutants() {
		expected[underscored(m.name)], alone[underscored(m.name)] = underscored(m.check), m.alone
	}
	for mutant, check := range expected {
		others := slices.DeleteFunc(slices.Clone(failed[mutant]), func(c string) bool { return c == "" || c == check })
		if alone[mutant] && len(others) > 0 {
			t.Errorf("%s: %q fail as well as %q", mutant, others, check)
		}
		if !slices.Contains(failed[mutant], check) && (check != "" || len(failed[mutant]) > 0) {
			t.Errorf("%s: %q does not fail; these do: %q", mutant, check, failed[mutant])
		}
		if !strings.Contains(string(out), "=== RUN   TestMutants/"+mutant+"/") {
			t.Errorf("%s did not run", mutant)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }

func runMutants(t *testing.T) {
	t.Run("a good key provider", func(t *testing.T) { testKeys(t, nil) })
	for _, m := range keyMutants() {
		t.Run(m.name, func(t *testing.T) { testKeys(t, m.change) })
	}
	t.Run("a good method", func(t *testing.T) { testCipher(t, nil) })
	for _, m := range methodMutants() {
		t.Run(m.name, func(t *testing.T) { testCipher(t, m.change) })
	}
}

// sound is a key provider without mistakes: HKDF over the key of another one and
// a secret, with a salt and a number of rounds that the file stores.
type sound struct {
	secret string
	hooks  keyHooks
	made   *atomic.Int32 // how many keys
}

// keyHooks are what a mutant does in another way.
type keyHooks struct {
	beside []attr.Attr // of the table
	config func(secret string) error
	salt   func() []byte
	stored func(p sound, key, salt []byte) any
	read   func(stored json.RawMessage) (document, error)
	key    func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error)
	newKey func(p sound, key []byte, stored json.RawMessage) ([]byte, json.RawMessage, error)
	knows  func(stored json.RawMessage) bool
	built  func(p sound) driver.KeyProvider
	limit  time.Duration // of a call, if the mutant takes longer than patience
	shown  bool          // the secret is not marked as one
}

type document struct {
	Salt   []byte `json:"salt"`
	Rounds int    `json:"rounds"`
}

func read(stored json.RawMessage) (document, error) {
	var d document
	switch {
	case stored == nil:
		return d, encryption.ErrNoKey
	case json.Unmarshal(stored, &d) != nil || len(d.Salt) != 16 || d.Rounds != 1:
		return d, errors.New("the metadata in the file is damaged")
	}
	return d, nil
}

func (p sound) derive(ctx context.Context, keys driver.Keys, d document) ([]byte, error) {
	upstream, err := keys(ctx, "key_provider.test.upstream")
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, append(upstream, p.secret...), d.Salt, "mutants", 32)
}

// right is Key without a mistake.
func (p sound) right(ctx context.Context, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
	d, err := p.hooks.read(stored)
	if err != nil {
		return nil, err
	}
	return p.derive(ctx, keys, d)
}

func (p sound) Key(ctx context.Context, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
	return p.hooks.key(ctx, p, keys, stored)
}

func (p sound) NewKey(ctx context.Context, keys driver.Keys) ([]byte, json.RawMessage, error) {
	p.made.Add(1)
	salt := p.hooks.salt()
	key, err := p.derive(ctx, keys, document{Salt: salt, Rounds: 1})
	if err != nil {
		return nil, nil, err
	}
	stored, err := json.Marshal(p.hooks.stored(p, key, salt))
	if err != nil {
		return nil, nil, err
	}
	return p.hooks.newKey(p, key, stored)
}

func (p sound) Recognizes(stored json.RawMessage) bool { return p.hooks.knows(stored) }

func testKeys(t *testing.T, change func(h *keyHooks)) {
	hooks := keyHooks{
		config: func(secret string) error {
			if len(secret) < 16 {
				return errors.New("the secret is too short")
			}
			return nil
		},
		salt:   func() []byte { return []byte(rand.Text())[:16] },
		stored: func(_ sound, _, salt []byte) any { return document{Salt: salt, Rounds: 1} },
		read:   read,
		key: func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
			return p.right(ctx, keys, stored)
		},
		newKey: func(_ sound, key []byte, stored json.RawMessage) ([]byte, json.RawMessage, error) {
			return key, stored, nil
		},
		knows: func(stored json.RawMessage) bool { _, err := read(stored); return err == nil },
		built: func(p sound) driver.KeyProvider { return p },
	}
	if change != nil {
		change(&hooks)
	}
	secret := func(s string) map[string]cty.Value { return map[string]cty.Value{"secret": cty.StringVal(s)} }
	KeyProvider{
		Block: driver.Block[driver.KeyProvider]{
			Table: attr.Table{Name: "mutant", Doc: "A mutant.", Attrs: append([]attr.Attr{
				{Name: "secret", Type: cty.String, Required: true, Secrecy: secrecyOf(hooks.shown), Doc: "The secret."},
			}, hooks.beside...)},
			Build: func(v attr.Values) (driver.KeyProvider, error) {
				if err := hooks.config(v.String("secret")); err != nil {
					return nil, v.Errorf("secret", "%w", err)
				}
				return hooks.built(sound{secret: v.String("secret"), hooks: hooks, made: new(atomic.Int32)}), nil
			},
		},
		Attrs:   secret("canary-horse-battery"),
		Other:   secret("another-horse-battery"),
		Bad:     []map[string]cty.Value{{}, secret("short")},
		Secrets: []string{"canary"},
		Keys: func(context.Context, string) ([]byte, error) {
			return []byte("the key of the upstream"), nil
		},
		limit: hooks.limit,
	}.Run(t)
}

// salter is sound, and makes documents without keys.
type salter struct {
	sound
	make  func(salter) json.RawMessage
	knows func(stored json.RawMessage) bool
}

func (s salter) NewDocument() json.RawMessage          { return s.make(s) }
func (s salter) IsCurrent(stored json.RawMessage) bool { return s.knows(stored) }

// salting makes a key provider a [driver.Salter], with nil for what it does as it should.
func salting(makes func(salter) json.RawMessage, knows func(json.RawMessage) bool) func(*keyHooks) {
	if makes == nil {
		makes = func(s salter) json.RawMessage {
			stored, _ := json.Marshal(document{Salt: s.hooks.salt(), Rounds: 1}) // of bytes and a number
			return stored
		}
	}
	if knows == nil {
		knows = func(stored json.RawMessage) bool { _, err := read(stored); return err == nil }
	}
	return func(h *keyHooks) {
		h.built = func(p sound) driver.KeyProvider { return salter{p, makes, knows} }
	}
}

type keyMutant struct {
	name, check string
	alone       bool // no other check notices it
	change      func(h *keyHooks)
}

// mixer is what calls share that are under way at the same time: each gets what the
// last of them has put there. A call waits for a second one.
type mixer struct {
	mu      sync.Mutex
	stored  json.RawMessage
	arrived int
	second  chan struct{}
}

func (m *mixer) swap(stored json.RawMessage) json.RawMessage {
	m.mu.Lock()
	m.stored = bytes.Clone(stored)
	if m.arrived++; m.arrived == 2 {
		close(m.second)
	}
	m.mu.Unlock()
	select {
	case <-m.second:
	case <-time.After(patience): // which is long: nobody calls it at once
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.stored)
}

// few is how many keys one key provider is asked to make where calls follow each
// other.
const few = 2

// final is a key provider that Close closes for good.
type final struct {
	sound

	closed *atomic.Bool
}

func (f final) Close() { f.closed.Store(true) }

func (f final) Key(ctx context.Context, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
	if f.closed.Load() {
		return nil, errors.New("this is closed")
	}
	return f.sound.Key(ctx, keys, stored)
}

func keyMutants() []keyMutant {
	var calls atomic.Int32
	var kept atomic.Pointer[[]byte]
	right := func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
		return p.right(ctx, keys, stored)
	}
	type keyFunc = func(context.Context, sound, driver.Keys, json.RawMessage) ([]byte, error)
	keyed := func(f keyFunc) func(*keyHooks) { return func(h *keyHooks) { h.key = f } }
	reading := func(f func(json.RawMessage) (document, error)) func(*keyHooks) {
		return func(h *keyHooks) { h.read = f }
	}
	storing := func(f func(sound, []byte, []byte) any) func(*keyHooks) { return func(h *keyHooks) { h.stored = f } }
	noting := func(before string) func(sound, []byte, []byte) any {
		return func(p sound, _, salt []byte) any {
			return map[string]any{"salt": salt, "rounds": 1, "note": []byte(before + p.secret)} // JSON makes it base64
		}
	}
	return []keyMutant{
		{name: "stores the secret", check: "same key again", change: storing(func(p sound, _, salt []byte) any {
			return map[string]any{"salt": salt, "rounds": 1, "note": p.secret}
		})},
		{name: "stores the key", check: "same key again", change: storing(func(_ sound, key, salt []byte) any {
			return map[string]any{"salt": salt, "rounds": 1, "note": key}
		})},
		{name: "stores the secret in base64", check: "same key again", alone: true, change: storing(noting(""))},
		{name: "stores the secret in base64 behind a byte", check: "same key again", alone: true, change: storing(noting("="))},
		{name: "stores the secret in base64 behind two bytes", check: "same key again", alone: true, change: storing(noting("s="))},
		{name: "stores the secret in hex", check: "same key again", alone: true, change: storing(func(p sound, _, salt []byte) any {
			return map[string]any{"salt": salt, "rounds": 1, "note": hex.EncodeToString([]byte(p.secret))}
		})},
		{name: "shows the secret in base64", check: "hostile metadata", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				key, err := right(ctx, p, keys, stored)
				if err != nil && stored != nil && ctx.Err() == nil {
					err = fmt.Errorf("%w (%s)", err, base64.StdEncoding.EncodeToString([]byte(p.secret)))
				}
				return key, err
			})},
		{name: "mixes up what it is asked for at once", check: "at once", alone: true, change: func(h *keyHooks) {
			mixed := mixer{second: make(chan struct{})}
			h.key = func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				if p.made.Load() > few {
					stored = mixed.swap(stored)
				}
				return right(ctx, p, keys, stored)
			}
		}},
		{name: "mixes up what it makes at once", check: "at once", alone: true, change: func(h *keyHooks) {
			mixed := mixer{second: make(chan struct{})}
			h.newKey = func(p sound, key []byte, stored json.RawMessage) ([]byte, json.RawMessage, error) {
				if p.made.Load() > few {
					stored = mixed.swap(stored)
				}
				return key, stored, nil
			}
		}},
		{name: "calls its passphrase so alone", check: "table", alone: true, change: func(h *keyHooks) {
			h.beside = []attr.Attr{{Name: "block", Doc: "A block.", Attrs: []attr.Attr{
				{Name: "passphrase", Type: cty.String, Secrecy: attr.LocalSecret, Doc: "The passphrase."}}}}
		}},
		{name: "checks numbers in a text", check: "table", alone: true, change: func(h *keyHooks) {
			h.beside = []attr.Attr{{Name: "count", Type: cty.String, Check: attr.Between(1, 2), Doc: "A number."}}
		}},
		{name: "builds no key provider", check: "build", alone: true, change: func(h *keyHooks) {
			h.built = func(sound) driver.KeyProvider { return nil }
		}},
		{name: "is closed for good", check: "closed", alone: true, change: func(h *keyHooks) {
			h.built = func(p sound) driver.KeyProvider { return final{p, new(atomic.Bool)} }
		}},
		{name: "makes one document", check: "new keys", alone: true, change: salting(func(salter) json.RawMessage {
			return json.RawMessage(`{"salt":"AAAAAAAAAAAAAAAAAAAAAA==","rounds":1}`)
		}, nil)},
		{name: "knows no document", check: "new keys", alone: true, change: salting(nil, func(json.RawMessage) bool { return false })},
		{name: "makes every document", check: "new keys", alone: true, change: salting(nil, func(json.RawMessage) bool { return true })},
		{name: "constant salt", check: "new keys", change: func(h *keyHooks) { h.salt = func() []byte { return make([]byte, 16) } }},
		{name: "no length check of the salt", check: "hostile metadata", change: reading(func(stored json.RawMessage) (document, error) {
			var d document
			if stored == nil {
				return d, encryption.ErrNoKey
			}
			return d, json.Unmarshal(stored, &d)
		})},
		{name: "plain error for nothing stored", check: "nothing stored", change: reading(func(stored json.RawMessage) (document, error) {
			if stored == nil {
				return document{}, errors.New("nothing is stored")
			}
			return read(stored)
		})},
		{name: "a key for nothing stored", check: "nothing stored", change: reading(func(stored json.RawMessage) (document, error) {
			if stored == nil {
				return document{Salt: make([]byte, 16)}, nil
			}
			return read(stored)
		})},
		{name: "depends on the count of calls", check: "same key again", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				key, err := right(ctx, p, keys, stored)
				if count := calls.Add(1); err == nil && count%2 == 0 {
					key[0] ^= 1
				}
				return key, err
			})},
		{name: "remembers only the last key", check: "new keys", change: func(h *keyHooks) {
			h.newKey = func(_ sound, key []byte, stored json.RawMessage) ([]byte, json.RawMessage, error) {
				last := bytes.Clone(key)
				kept.Store(&last)
				return key, stored, nil
			}
			h.key = func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				_, err := right(ctx, p, keys, stored)
				if err != nil {
					return nil, err
				}
				return bytes.Clone(*kept.Load()), nil
			}
		}},
		{name: "changes what is stored", check: "same key again", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				key, err := right(ctx, p, keys, stored)
				clear(stored)
				return key, err
			})},
		{name: "keeps the key that it returns", check: "same key again", change: func(h *keyHooks) {
			var cache sync.Map // :: what is stored, and the secret → key
			h.key = func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				if key, ok := cache.Load(string(stored) + p.secret); ok {
					return key.([]byte), nil
				}
				key, err := right(ctx, p, keys, stored)
				if err == nil {
					cache.Store(string(stored)+p.secret, key)
				}
				return key, err
			}
		}},
		{name: "reads over trailing garbage", check: "hostile metadata", change: reading(func(stored json.RawMessage) (document, error) {
			var d document
			if stored == nil {
				return d, encryption.ErrNoKey
			}
			if json.NewDecoder(bytes.NewReader(stored)).Decode(&d) != nil || len(d.Salt) != 16 || d.Rounds != 1 {
				return d, errors.New("damaged")
			}
			return d, nil
		})},
		{name: "drops the context", check: "context", change: keyed(
			func(_ context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				return right(context.Background(), p, keys, stored)
			})},
		{name: "takes a cancellation for a missing key", check: "context", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				if ctx.Err() != nil {
					return nil, fmt.Errorf("%w: %w", encryption.ErrNoKey, ctx.Err())
				}
				return right(ctx, p, keys, stored)
			})},
		{name: "panics on null", check: "hostile metadata", change: reading(func(stored json.RawMessage) (document, error) {
			var d *document
			if stored == nil {
				return document{}, encryption.ErrNoKey
			}
			if json.Unmarshal(stored, &d) != nil {
				return document{}, errors.New("damaged")
			}
			if len(d.Salt) != 16 || d.Rounds != 1 {
				return document{}, errors.New("damaged")
			}
			return *d, nil
		})},
		{name: "works as long as the file asks", check: "hostile metadata", change: func(h *keyHooks) {
			h.limit = time.Second / 4
			h.read = func(stored json.RawMessage) (document, error) {
				var d document
				if json.Unmarshal(stored, &d) == nil && d.Rounds > 1<<30 {
					time.Sleep(time.Hour) // the others have the machine
				}
				return read(stored)
			}
		}},
		{name: "allocates what the file asks", check: "hostile metadata", change: reading(func(stored json.RawMessage) (document, error) {
			var d document
			if json.Unmarshal(stored, &d) == nil && d.Rounds > 0 {
				_ = make([]byte, d.Rounds)
			}
			return read(stored)
		})},
		{name: "shows the key in an error", check: "hostile metadata", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				key, err := right(ctx, p, keys, stored)
				if err == nil {
					kept.Store(&key)
				} else if last := kept.Load(); last != nil && len(stored) > 2 {
					err = fmt.Errorf("the key is not %x", *last)
				}
				return key, err
			})},
		{name: "shows the secret in an error", check: "hostile metadata", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				key, err := right(ctx, p, keys, stored)
				if err != nil && stored != nil {
					err = fmt.Errorf("with %s: %w", p.secret, err)
				}
				return key, err
			})},
		{name: "shows a bad secret", check: "bad configuration", change: func(h *keyHooks) {
			h.config = func(secret string) error {
				if len(secret) < 16 {
					return fmt.Errorf("this is too short, canary aside: %s", secret)
				}
				return nil
			}
		}},
		{name: "accepts a bad configuration", check: "bad configuration", change: func(h *keyHooks) {
			h.config = func(string) error { return nil }
		}},
		{name: "ignores the secret", check: "another key", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				p.secret = "canary-horse-battery"
				return right(ctx, p, keys, stored)
			})},
		{name: "plain error for another key", check: "another key", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				if !strings.HasPrefix(p.secret, "canary") {
					return nil, errors.New("this is another key")
				}
				return right(ctx, p, keys, stored)
			})},
		{name: "returns a key with an error", check: "hostile metadata", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				key, err := right(ctx, p, keys, stored)
				if err != nil && stored != nil {
					key = make([]byte, 32)
				}
				return key, err
			})},
		{name: "returns one buffer", check: "new keys", change: func(h *keyHooks) {
			buffer := make([]byte, 32)
			h.key = func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				key, err := right(ctx, p, keys, stored)
				if err != nil {
					return nil, err
				}
				copy(buffer, key)
				return buffer, nil
			}
		}},
		{name: "shows what is stored", check: "hostile metadata", change: reading(func(stored json.RawMessage) (document, error) {
			d, err := read(stored)
			if err != nil && stored != nil {
				err = fmt.Errorf("this is damaged: %s", stored)
			}
			return d, err
		})},
		{name: "loses why another key is missing", check: "keys of others", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				if _, err := keys(ctx, "key_provider.test.upstream"); err != nil {
					return nil, errors.New("another key is missing")
				}
				return right(ctx, p, keys, stored)
			})},
		{name: "goes on without another key", check: "keys of others", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				return right(ctx, p, func(ctx context.Context, address string) ([]byte, error) {
					key, _ := keys(ctx, address)
					return key, nil
				}, stored)
			})},
		{name: "takes any failure for a missing key", check: "keys of others", change: keyed(
			func(ctx context.Context, p sound, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
				if _, err := keys(ctx, "key_provider.test.upstream"); err != nil && ctx.Err() == nil {
					return nil, encryption.ErrNoKey
				}
				return right(ctx, p, keys, stored)
			})},
		{name: "does not mark the secret", check: "table", change: func(h *keyHooks) { h.shown = true }},
		{name: "recognizes everything", check: "same key again", change: func(h *keyHooks) {
			h.knows = func(json.RawMessage) bool { return true }
		}},
		{name: "recognizes nothing", check: "same key again", change: func(h *keyHooks) {
			h.knows = func(json.RawMessage) bool { return false }
		}},
	}
}

// gcm is a method without mistakes.
type gcm struct{ hooks cipherHooks }

// cipherHooks are what a mutant does in another way.
type cipherHooks struct {
	config func(keys string) error
	nonce  func(calls int) []byte
	seal   func(aead cipher.AEAD, nonce, plain []byte) []byte
	open   func(aead cipher.AEAD, key, nonce, sealed []byte) ([]byte, error)
	key    func(ctx context.Context, keys driver.Keys) ([]byte, error)
	short  func(data []byte) error
	built  func(m gcm) driver.Method
	shown  bool // the secret is not marked as one
	leaks  bool // the secret is in a refusal
	calls  *atomic.Int32
}

func (m gcm) aead(ctx context.Context, keys driver.Keys) (cipher.AEAD, []byte, error) {
	key, err := m.hooks.key(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, errors.New("the key has the wrong length")
	}
	aead, err := cipher.NewGCM(block)
	return aead, key, err
}

func (m gcm) Encrypt(ctx context.Context, keys driver.Keys, plain []byte) ([]byte, error) {
	aead, _, err := m.aead(ctx, keys)
	if err != nil {
		return nil, err
	}
	return m.hooks.seal(aead, m.hooks.nonce(int(m.hooks.calls.Add(1))), plain), nil
}

func (m gcm) Decrypt(ctx context.Context, keys driver.Keys, data []byte) ([]byte, error) {
	aead, key, err := m.aead(ctx, keys)
	if err != nil {
		return nil, err
	}
	if err := m.hooks.short(data); err != nil {
		return nil, err
	}
	return m.hooks.open(aead, key, data[:12], data[12:])
}

func testCipher(t *testing.T, change func(h *cipherHooks)) {
	hooks := cipherHooks{
		config: func(keys string) error {
			if keys != "key_provider.test.x" {
				return errors.New("this is not an address")
			}
			return nil
		},
		nonce: func(int) []byte { return []byte(rand.Text())[:12] },
		seal:  func(aead cipher.AEAD, nonce, plain []byte) []byte { return aead.Seal(nonce, nonce, plain, nil) },
		open: func(aead cipher.AEAD, _, nonce, sealed []byte) ([]byte, error) {
			plain, err := aead.Open(nil, nonce, sealed, nil)
			if err != nil {
				return nil, fmt.Errorf("%w: authentication failed", encryption.ErrNoKey)
			}
			return plain, nil
		},
		key: func(ctx context.Context, keys driver.Keys) ([]byte, error) {
			return keys(ctx, "key_provider.test.x")
		},
		short: func(data []byte) error {
			if len(data) < 12 {
				return encryption.ErrNoKey
			}
			return nil
		},
		built: func(m gcm) driver.Method { return m },
	}
	if change != nil {
		change(&hooks)
	}
	keys := func(fill byte) driver.Keys {
		return func(context.Context, string) ([]byte, error) { return bytes.Repeat([]byte{fill}, 32), nil }
	}
	const pepper = "canary pepper of a method"
	address := func(s string) map[string]cty.Value {
		return map[string]cty.Value{"keys": cty.StringVal(s), "pepper": cty.StringVal(pepper)}
	}
	Method{
		Block: driver.Block[driver.Method]{
			Table: attr.Table{Name: "mutant", Doc: "A mutant.", Attrs: []attr.Attr{
				{Name: "keys", Type: cty.String, Required: true, Form: attr.KeyProvider, Doc: "The key provider."},
				{Name: "pepper", Type: cty.String, Secrecy: secrecyOf(hooks.shown), Doc: "A secret beside the key."},
			}},
			Build: func(v attr.Values) (driver.Method, error) {
				own := hooks
				own.calls = new(atomic.Int32)
				err := own.config(v.String("keys"))
				if err != nil && hooks.leaks {
					err = fmt.Errorf("%w: %s", err, hex.EncodeToString([]byte(v.String("pepper"))))
				}
				return own.built(gcm{own}), err
			},
		},
		Attrs: address("key_provider.test.x"), Bad: []map[string]cty.Value{{}, address("key_provider.test.other")},
		Secrets: []string{pepper},
		Keys:    keys(1), OtherKeys: keys(2),
	}.Run(t)
}

type methodMutant struct {
	name, check string
	alone       bool // no other check notices it
	change      func(h *cipherHooks)
}

// finalMethod is a method that Close closes for good.
type finalMethod struct {
	gcm

	closed *atomic.Bool
}

func (f finalMethod) Close() { f.closed.Store(true) }

func (f finalMethod) Decrypt(ctx context.Context, keys driver.Keys, data []byte) ([]byte, error) {
	if f.closed.Load() {
		return nil, errors.New("this is closed")
	}
	return f.gcm.Decrypt(ctx, keys, data)
}

func methodMutants() []methodMutant {
	ctr := func(key, nonce, data []byte) []byte {
		block, err := aes.NewCipher(key)
		if err != nil {
			panic(err)
		}
		out := make([]byte, len(data))
		cipher.NewCTR(block, append(bytes.Clone(nonce), 0, 0, 0, 2)).XORKeyStream(out, data) // as GCM does
		return out
	}
	var shared []byte
	return []methodMutant{
		{name: "constant nonce", check: "round trip", change: func(h *cipherHooks) {
			h.nonce = func(int) []byte { return make([]byte, 12) }
		}},
		{name: "counts nonces from zero", check: "round trip", change: func(h *cipherHooks) {
			h.nonce = func(calls int) []byte { return binary.BigEndian.AppendUint32(make([]byte, 8), uint32(calls)) }
		}},
		{name: "keeps the plaintext", check: "round trip", change: func(h *cipherHooks) {
			seal, open := h.seal, h.open
			h.seal = func(aead cipher.AEAD, nonce, plain []byte) []byte { return append(seal(aead, nonce, plain), plain...) }
			h.open = func(aead cipher.AEAD, key, nonce, sealed []byte) ([]byte, error) {
				return open(aead, key, nonce, sealed[:max(16, len(sealed))-len(samplePlain)])
			}
		}},
		{name: "seals into one buffer", check: "round trip", change: func(h *cipherHooks) {
			h.seal = func(aead cipher.AEAD, nonce, plain []byte) []byte {
				shared = aead.Seal(append(shared[:0], nonce...), nonce, plain, nil)
				return shared
			}
		}},
		{name: "writes behind the plaintext", check: "round trip", change: func(h *cipherHooks) {
			h.seal = func(aead cipher.AEAD, nonce, plain []byte) []byte {
				room := plain[:cap(plain)]
				if len(room) < len(plain)+12 {
					return aead.Seal(nonce, nonce, plain, nil)
				}
				return aead.Seal(append(room[:0], nonce...), nonce, room[12:len(plain)], nil)
			}
		}},
		{name: "authenticates nothing", check: "damage", change: func(h *cipherHooks) {
			h.open = func(_ cipher.AEAD, key, nonce, sealed []byte) ([]byte, error) {
				return ctr(key, nonce, sealed[:max(0, len(sealed)-16)]), nil
			}
		}},
		{name: "opens what is cut off", check: "damage", change: func(h *cipherHooks) {
			open := h.open
			h.open = func(aead cipher.AEAD, key, nonce, sealed []byte) ([]byte, error) {
				if len(sealed) < 16 {
					return []byte{}, nil
				}
				return open(aead, key, nonce, sealed)
			}
		}},
		{name: "panics on short data", check: "damage", change: func(h *cipherHooks) { h.short = func([]byte) error { return nil } }},
		{name: "plain error for a wrong key", check: "another key", change: func(h *cipherHooks) {
			h.open = func(aead cipher.AEAD, _, nonce, sealed []byte) ([]byte, error) {
				return aead.Open(nil, nonce, sealed, nil)
			}
		}},
		{name: "shows the key of a method", check: "another key", change: func(h *cipherHooks) {
			open := h.open
			h.open = func(aead cipher.AEAD, key, nonce, sealed []byte) ([]byte, error) {
				plain, err := open(aead, key, nonce, sealed)
				if err != nil {
					err = fmt.Errorf("%w: %s", err, hex.EncodeToString(key))
				}
				return plain, err
			}
		}},
		{name: "plaintext with an error", check: "another key", change: func(h *cipherHooks) {
			open := h.open
			h.open = func(aead cipher.AEAD, key, nonce, sealed []byte) ([]byte, error) {
				plain, err := open(aead, key, nonce, sealed)
				if err != nil {
					plain = ctr(key, nonce, sealed)
				}
				return plain, err
			}
		}},
		{name: "takes a failure for a missing key", check: "no key", change: func(h *cipherHooks) {
			h.key = func(ctx context.Context, keys driver.Keys) ([]byte, error) {
				key, err := keys(ctx, "key_provider.test.x")
				if err != nil {
					err = fmt.Errorf("%w: %w", encryption.ErrNoKey, err)
				}
				return key, err
			}
		}},
		{name: "mixes up what it seals at once", check: "at once", alone: true, change: func(h *cipherHooks) {
			mixed, seal := mixer{second: make(chan struct{})}, h.seal
			h.seal = func(aead cipher.AEAD, nonce, plain []byte) []byte {
				if string(plain) != samplePlain { // which is that of one file after the other
					plain = mixed.swap(plain)
				}
				return seal(aead, nonce, plain)
			}
		}},
		{name: "builds no method", check: "build", alone: true, change: func(h *cipherHooks) {
			h.built = func(gcm) driver.Method { return nil }
		}},
		{name: "a method that is closed for good", check: "closed", alone: true, change: func(h *cipherHooks) {
			h.built = func(m gcm) driver.Method { return finalMethod{m, new(atomic.Bool)} }
		}},
		{name: "does not mark the secret of a method", check: "table", alone: true, change: func(h *cipherHooks) { h.shown = true }},
		{name: "refuses with a secret", check: "bad configuration", alone: true, change: func(h *cipherHooks) { h.leaks = true }},
		{name: "accepts any keys", check: "bad configuration", change: func(h *cipherHooks) { h.config = func(string) error { return nil } }},
	}
}

func secrecyOf(shown bool) attr.Secrecy {
	if shown {
		return attr.Public
	}
	return attr.Secret
}
