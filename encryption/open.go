package encryption

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// try opens the file with the first candidate that has the key.
func (t Target) try(ctx context.Context, candidates []candidate, file []byte, env *envelope, in room) (*Opened, error) {
	var attempts []Attempt
	for i, c := range candidates {
		if c.broken != nil {
			return nil, &Error{Step: StepConfiguration, Attempts: attempts, Err: c.broken}
		}
		last := i == len(candidates)-1 // no other method needs the file afterwards
		data, err := c.data(file, env, room{inPlace: in.inPlace && last, memory: in.memory})
		if err != nil {
			return nil, &Error{Step: StepEnvelope, Attempts: attempts, Err: damaged(err)}
		}
		opened, err := t.open(ctx, c, data, env)
		if err == nil {
			opened.Attempts = attempts
			return opened, nil
		}
		attempts = append(attempts, Attempt{c.address, t.withFacts(err, c, env)})
		if ctx.Err() != nil || !isForAnother(err) {
			return nil, failure(ctx, attempts, "the file could not be opened:")
		}
	}
	return nil, failure(ctx, attempts, describeAll(attempts))
}

// data returns the bytes that the method decrypts and may overwrite.
func (c candidate) data(file []byte, env *envelope, in room) ([]byte, error) {
	switch {
	case !c.whole:
		return env.decode(in)
	case in.inPlace:
		return file, nil
	}
	return bytes.Clone(file), nil
}

// open decrypts data with one method and checks the plaintext.
func (t Target) open(ctx context.Context, c candidate, data []byte, env *envelope) (*Opened, error) {
	warners := map[string]driver.Warner{}
	keys := fileKeys{encryption: t.encryption, warners: warners, methods: t.methods}
	if !c.whole {
		keys.meta = env.Meta
	}
	plain, err := c.Decrypt(ctx, keys.key, data)
	if err != nil {
		return nil, err
	}
	opened := &Opened{Data: plain, Method: c.address, UsedFallback: !c.primary, Encrypted: !c.plaintext, meta: keys.meta}
	if w, ok := c.Method.(driver.Warner); ok {
		warners[c.address] = w
	}
	for _, address := range slices.Sorted(maps.Keys(warners)) {
		if w := warners[address].Warning(); w != (driver.Warning{}) {
			opened.Warnings = append(opened.Warnings, driver.Warning{Title: w.Title, Text: address + ": " + w.Text})
		}
	}
	switch {
	case !c.whole:
		opened.Kind, err = env.check(plain)
	case !c.plaintext:
		err = t.inside(ctx, c.then, opened)
	}
	return opened, err
}
