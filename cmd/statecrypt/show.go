package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/overview"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// show prints the content of a state.
func (c *call) show(ctx context.Context) error {
	if err := c.checkShow(); err != nil {
		return err
	}
	target, err := c.target(c.text("config"))
	if err != nil {
		return err
	}
	work := func(ctx context.Context, name string, file []byte) error {
		state, from, err := c.overview(ctx, target, name, file)
		if err != nil {
			return err
		}
		if c.isGiven("output") {
			return c.showOutput(state)
		}
		return c.showState(state, from)
	}
	if c.on("backend") {
		c.noteUnused()
		return c.fromBackend(ctx, target, work)
	}
	return c.each(ctx, work)
}

// checkShow returns an error if flags of show do not go together.
func (c *call) checkShow() error {
	values := c.on("values") || c.isGiven("attributes")
	switch {
	case c.on("backend") && len(c.args) > 0:
		return usageError("the command show cannot combine a file with -backend; remove the file, or remove -backend")
	case c.isGiven("output") && (values || c.on("json")):
		return usageError("-output prints only one output; remove -values, -attributes and -json")
	case c.on("raw") && !c.isGiven("output"):
		return usageError("-raw has no output to print; add -output NAME")
	case c.on("sensitive") && !values && !c.isGiven("output"):
		return usageError("-sensitive does not choose any values; add -values, -attributes NAMES or -output NAME")
	}
	if err := c.checkAttributes(); err != nil || !c.on("sensitive") {
		return err
	}
	return c.refuseTerminal()
}

// checkAttributes returns an error if a name in -attributes is empty.
func (c *call) checkAttributes() error {
	if slices.Contains(c.attributes(), "") {
		return usageError("a name in -attributes is empty; check for an empty variable, or a space after a comma")
	}
	return nil
}

// attributes returns the names in -attributes.
func (c *call) attributes() []string {
	if !c.isGiven("attributes") {
		return nil
	}
	return namesIn(c.flags["attributes"]...)
}

// overview opens a state and returns its content. The result keeps the memory of file, which is overwritten.
func (c *call) overview(ctx context.Context, target encryption.Target, name string, file []byte) (*overview.State, overview.File, error) {
	from := overview.File{Name: name}
	from.KeyProviders = keyProviders(file)
	opened, err := target.DecryptInPlace(ctx, file)
	if err != nil {
		return nil, from, err
	}
	c.warn(name, opened)
	from.Encrypted, from.Method, from.Fallback = opened.Encrypted, opened.Method, opened.UsedFallback
	state, err := overview.Read(opened.Data)
	return state, from, err
}

// keyProviders returns the names in the metadata of a file in OpenTofu's format, or nil for any other file. It reads
// only the beginning of the file, up to the metadata.
func keyProviders(file []byte) []string {
	var meta map[string]json.RawMessage
	_ = jsonwalk.Members(file, func(name string, value []byte) (bool, error) { // any other file has no metadata
		isMeta := name == "meta"
		if isMeta {
			_ = json.Unmarshal(value, &meta)
		}
		return !isMeta && name != "encrypted_data", nil
	})
	return slices.Sorted(maps.Keys(meta))
}

// lookInBackend returns the file in the backend, and prints who has its lock.
func (c *call) lookInBackend(ctx context.Context, target encryption.Target) ([]byte, error) {
	kept, err := c.states(ctx, c.text("config"), target)
	if err != nil {
		return nil, err
	}
	file, holder, err := kept.Look(ctx, "")
	if holder != nil {
		c.say(yellow, "note:", c.holder(holder))
	}
	return file, errors.Join(err, kept.Close())
}

// showState prints a state as text or JSON.
func (c *call) showState(state *overview.State, from overview.File) error {
	v := overview.View{File: from, Values: c.on("values"), Attributes: c.attributes(), Sensitive: c.on("sensitive")}
	v.Paint = func(colour, text string) string { return c.paint(c.stdout, colour, text) }
	if err := closed(state, v.Values, v.Attributes, "add -sensitive to show the values anyway"); err != nil && !v.Sensitive {
		return err
	}
	write := state.WriteText
	if c.on("json") {
		write = state.WriteJSON
	}
	missing, err := write(c.stdout, v)
	for _, name := range missing {
		c.say(yellow, "note:", "no resource has the attribute "+outside.Quoted(name, maxName))
	}
	return keyfile.Reason(err)
}

// closed returns an error with the given advice if values of a state are to be shown that does not say which are
// sensitive.
func closed(state *overview.State, values bool, attributes []string, advice string) error {
	switch {
	case len(attributes) > 0 && !state.Marked:
		return fault.With(errors.New("the state does not say which attributes are sensitive, because Terraform 0.13 or earlier wrote it"), advice)
	case values && state.Version == 1:
		return fault.With(errUnmarked, advice)
	}
	return nil
}

var errUnmarked = errors.New("the state does not say which outputs are sensitive, because its format version is 1")

// showOutput prints the value of one output.
func (c *call) showOutput(state *overview.State) error {
	name := c.text("output")
	output, names := overview.Output{}, make([]string, 0, len(state.Outputs))
	for _, o := range state.Outputs {
		if names = append(names, o.Name); o.Name == name {
			output = o
		}
	}
	switch {
	case !slices.Contains(names, name):
		return fmt.Errorf("there is no output %s%s", outside.Quoted(name, maxName), syntax.Configured(name, names))
	case output.Sensitive && !c.on("sensitive"):
		return fmt.Errorf("the output %s is sensitive; add -sensitive to print it", outside.Quoted(name, maxName))
	case state.Version == 1 && !c.on("sensitive"):
		return fault.With(errUnmarked, "add -sensitive to print the value anyway")
	}
	value, err := output.Value()
	if err != nil {
		return err
	}
	text := outside.JSON(value) + "\n"
	if c.on("raw") {
		if text, err = rawValue(value); err != nil {
			return fmt.Errorf("the output %s %w", outside.Quoted(name, maxName), err)
		}
		if isTerminal(c.stdout) {
			text = outside.Text(text)
		}
	}
	_, err = io.WriteString(c.stdout, text)
	return keyfile.Reason(err)
}

// rawValue returns a string, a number or a bool in JSON as text.
func rawValue(value string) (string, error) {
	switch value[0] {
	case '"':
		var text string
		err := json.NewDecoder(bytes.NewReader([]byte(value))).Decode(&text) // it is compacted JSON, which can be decoded
		return text, err
	case '{', '[', 'n':
		return "", fault.With(errors.New("is not a string, number or bool"), "remove -raw to print it as JSON")
	}
	return value, nil
}
