package main

import (
	"errors"
	"os"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

var errNoSettings = errors.New("no method is set for this kind of file: TF_ENCRYPTION or -config must say how it is encrypted; " +
	`plaintext is accepted only if the method or a fallback is "unencrypted"`)

// settings are those of -config, with TF_ENCRYPTION merged over them.
func (c *call) settings() (*encryption.Encryption, error) {
	code, err := c.code()
	if err != nil {
		return nil, err
	}
	return encryption.Load(builtin.Registry(), code, encryption.Environment(world.Lookup(c.environ)))
}

// target returns the methods for states or, with -plan, for plans.
func (c *call) target() (encryption.Target, error) {
	enc, err := c.settings()
	if err != nil {
		return encryption.Target{}, err
	}
	target := enc.State()
	if c.plan {
		target = enc.Plan()
	}
	return target, check(target)
}

func check(target encryption.Target) error {
	// Without any settings, the library lets plaintext pass, as OpenTofu does.
	// Whoever calls this program does not want that.
	if len(target.Methods()) == 0 {
		return errNoSettings
	}
	return target.Check()
}

// code is the layer of -config. It is the caller's own, so commands in it run. What
// it uses of TF_VAR_… is noted, and so is its backend block.
func (c *call) code() (encryption.Layer, error) {
	variables := map[string]cty.Value{}
	for _, pair := range c.environ {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TF_VAR_") {
			variables[strings.TrimPrefix(name, "TF_VAR_")] = cty.StringVal(value)
		}
	}
	layer := encryption.Module(c.config, variables)
	if info, err := os.Stat(c.config); err != nil || !info.IsDir() {
		var text []byte
		if c.config != "" {
			if text, err = keyfile.Read(c.config); err != nil {
				return nil, err
			}
		}
		layer = encryption.Code(string(text), c.config).WithVariables(cty.ObjectVal(variables))
	}
	return func(o config.Options) (*config.Config, error) {
		o.Uses = func(name string) { c.used = append(c.used, "TF_VAR_"+name) }
		o.Backends = wrap.Backends() // the file may serve wrap as well
		read, err := layer(o)
		if read != nil {
			c.backend = read.Backend
		}
		return read, err
	}, nil
}
