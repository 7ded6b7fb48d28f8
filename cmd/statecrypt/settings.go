package main

import (
	"errors"
	"os"
	"runtime"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
)

var errNoSettings = errors.New("no method is set for this kind of file: TF_ENCRYPTION or -config must say how it is encrypted; " +
	`plaintext is accepted only if the method or a fallback is "unencrypted"`)

// target returns the methods for states or, with -plan, for plans.
func (c *call) target() (encryption.Target, error) {
	layers := []encryption.Layer{encryption.Environment(c.lookupEnv)}
	if c.config != "" {
		code, err := c.code()
		if err != nil {
			return encryption.Target{}, err
		}
		layers = []encryption.Layer{code.WithVariables(c.variables()), layers[0]}
	}
	enc, err := encryption.Load(builtin.Registry(), layers...)
	if err != nil {
		return encryption.Target{}, err
	}
	target := enc.State()
	if c.plan {
		target = enc.Plan()
	}
	// Without any settings, the library lets plaintext pass, as OpenTofu does.
	// Whoever calls this program does not want that.
	if len(target.Methods()) == 0 {
		return target, errNoSettings
	}
	return target, target.Check()
}

// code is the layer of -config. It is the caller's own, so commands in it run.
func (c *call) code() (encryption.Layer, error) {
	if info, err := os.Stat(c.config); err == nil && info.IsDir() {
		return nil, errors.New("not yet")
	}
	text, err := keyfile.Read(c.config)
	return encryption.Code(string(text), c.config), err
}

// variables are the values of var.*, as Terraform and OpenTofu take them from the
// environment.
func (c *call) variables() cty.Value {
	values := map[string]cty.Value{}
	for _, pair := range c.environ {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TF_VAR_") {
			values[strings.TrimPrefix(name, "TF_VAR_")] = cty.StringVal(value)
		}
	}
	return cty.ObjectVal(values)
}

func (c *call) lookupEnv(name string) (string, bool) {
	for _, pair := range c.environ {
		key, value, _ := strings.Cut(pair, "=")
		if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
			return value, true
		}
	}
	return "", false
}
