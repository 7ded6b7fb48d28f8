package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

func (c *call) outputs(ctx context.Context) error {
	if c.on("sensitive") {
		if err := c.refuseTerminal(); err != nil {
			return err
		}
	}
	return c.each(ctx, func(ctx context.Context, name string, file []byte) error {
		reduced, err := c.reduce(file)
		if err != nil {
			return err
		}
		reduced = append(reduced, '\n')
		return c.write(ctx, result{data: reduced, plain: reduced})
	})
}

// object is a JSON object whose values are kept in their original form, so that numbers keep all digits.
type object map[string]json.RawMessage

// pick returns the named members of a JSON object. Its errors do not quote the object.
func pick(text []byte, names ...string) (object, error) {
	picked := object{}
	err := jsonwalk.Members(text, func(name string, value []byte) (bool, error) {
		if name = jsonwalk.Fold(name); slices.Contains(names, name) {
			picked[name] = value
		}
		return true, nil
	})
	return picked, err
}

// notState returns the error for a file that is not a state.
func notState(file []byte) error {
	nothing, err := encryption.Load(encryption.Registry{})
	if err == nil {
		_, err = nothing.State().Decrypt(context.Background(), file)
	}
	return err
}

// reduce returns a state that contains only the selected outputs of state.
func (c *call) reduce(state []byte) ([]byte, error) {
	info, err := inspectFile("", state)
	switch {
	case err != nil:
	case info.Kind == "encrypted":
		err = fmt.Errorf("the state is encrypted (%s), but this command reads only plaintext; "+
			"run statecrypt decrypt -config %s STATE | statecrypt outputs", info.Format, fault.Config)
	case info.Kind == "plan":
		err = errors.New("the file is a plan, but this command reads only states; to see the content of the plan, use terraform show -json")
	case info.Kind != "state":
		err = notState(state)
	}
	if err != nil {
		return nil, err
	}
	kept, err := pick(state, "version", "terraform_version", "serial", "lineage", "outputs", "modules")
	if err != nil {
		return nil, err
	}
	switch version := string(kept["version"]); version {
	case "4":
		delete(kept, "modules")
		kept["resources"] = json.RawMessage("[]")
		err = c.selectOutputs(kept)
	case "1", "2", "3":
		delete(kept, "outputs")
		kept["modules"], err = c.rootModule(kept["modules"])
	default:
		err = fmt.Errorf("the state has format version %s, but only versions 1 to 4 are supported; check that this is the right file, or "+
			"install a newer release",
			outside.Line(version, maxName))
	}
	if err != nil {
		return nil, err
	}
	reduced, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	return reduced, checkOutputs(reduced)
}

// checkOutputs returns an error for a state whose outputs other configurations could not read.
func checkOutputs(state []byte) error {
	parsed, err := tfstate.Parse(state)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(parsed.Outputs)) {
		if _, err := parsed.Outputs[name].Value(); err != nil {
			return err
		}
	}
	return nil
}

// rootModule returns only the root module from the modules of a state in format 1 to 3, because other
// configurations can read only the root module's outputs.
func (c *call) rootModule(text json.RawMessage) (json.RawMessage, error) {
	var modules []json.RawMessage
	var path []string
	if json.Unmarshal(text, &modules) != nil {
		return nil, errors.New(`"modules" is not a list; check that this is the right file`)
	}
	for _, module := range modules {
		kept, err := pick(module, "path", "outputs")
		if err != nil || json.Unmarshal(kept["path"], &path) != nil || len(path) != 1 {
			continue
		}
		kept["resources"], kept["depends_on"] = json.RawMessage("{}"), json.RawMessage("[]")
		if err := c.selectOutputs(kept); err != nil {
			return nil, err
		}
		return json.Marshal([]object{kept})
	}
	return nil, errors.New("the state has no root module; check that this is the right file")
}

// selectOutputs removes the outputs that -only and -sensitive do not select.
func (c *call) selectOutputs(in object) error {
	var all object
	if text, ok := in["outputs"]; ok && json.Unmarshal(text, &all) != nil {
		return errors.New(`"outputs" is not an object; check that this is the right file`)
	}
	names := slices.Sorted(maps.Keys(all))
	wanted := names
	if c.isGiven("only") {
		wanted = namesIn(c.flags["only"]...)
	}
	selected := object{}
	for _, name := range wanted {
		output, ok := all[name]
		switch {
		case !ok:
			return fmt.Errorf("there is no output %s%s", outside.Quoted(name, maxName), cmp.Or(notName(name), syntax.Configured(name, names)))
		case c.on("sensitive") || !isSensitive(output):
			selected[name] = output
		case c.isGiven("only"):
			return fmt.Errorf("the output %s is sensitive; add -sensitive to include it", outside.Quoted(name, maxName))
		default:
			c.say(yellow, "note:", fmt.Sprintf("the sensitive output %s is omitted; add -sensitive to include it", outside.Quoted(name, maxName)))
		}
	}
	var err error
	in["outputs"], err = json.Marshal(selected)
	return err
}

// namesIn returns the names in comma-separated lists.
func namesIn(lists ...string) (names []string) {
	for name := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// notName returns advice if the user has written something else instead of an output name, or an empty string
// if the text is not recognized.
func notName(text string) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(text, "outputs."), "output.")
	switch {
	case text == "*" || text == "all":
		return "; remove -only to keep all outputs"
	case bare != text:
		return fmt.Sprintf("; write only the name of the output, %s", outside.Quoted(bare, maxName))
	case strings.ContainsAny(text, " ;"):
		return "; separate the names in -only with commas"
	case strings.ContainsAny(text, ".["):
		return "; write only the name of the output, because outputs are kept as a whole"
	}
	return ""
}

// isSensitive reports whether an output is marked as sensitive or cannot be parsed. In format 1, an output is
// a plain string without a mark.
func isSensitive(output json.RawMessage) bool {
	var marked struct{ Sensitive bool }
	return output[0] != '"' && json.Unmarshal(output, &marked) != nil || marked.Sensitive
}
