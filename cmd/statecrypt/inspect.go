package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/explain"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// inspection is what is printed of a file. The help of the command documents it.
type inspection struct {
	File         string   `json:"file"`
	Kind         string   `json:"kind"`
	Format       string   `json:"format,omitempty"`
	Version      string   `json:"encryption_version,omitempty"`
	Serial       *int64   `json:"serial,omitempty"`
	Lineage      string   `json:"lineage,omitempty"`
	KeyProviders []string `json:"key_providers,omitempty"`

	info encryption.Info
}

func (c *call) inspect(ctx context.Context) error {
	return c.each(ctx, func(_ context.Context, name string, file []byte) error {
		found, err := inspectFile(name, file)
		if err != nil {
			return err
		}
		if c.json {
			encoded, _ := json.Marshal(found) // of texts and numbers
			_, err = io.WriteString(c.stdout, outside.JSON(string(encoded))+"\n")
			return err
		}
		_, err = io.WriteString(c.stdout, found.text(file))
		return err
	})
}

func inspectFile(name string, file []byte) (inspection, error) {
	info, err := wrap.Describe(file)
	found := inspection{
		info: info,

		File: name, Kind: [...]string{"unknown", "empty", "encrypted", "state", "plan", "backend_record"}[info.Kind],
		Version: info.Version, Serial: info.Serial, Lineage: info.Lineage, KeyProviders: info.KeyProviders,
	}
	if info.Kind == encryption.KindEncrypted {
		found.Format = "opentofu"
		return found, err
	}
	for _, m := range builtin.Registry().Methods {
		if m.Recognizes != nil && !m.Vague && m.Recognizes(file) { // its format may keep the shape of a state
			return inspection{File: name, Kind: "encrypted", Format: m.Name, info: encryption.Info{Kind: info.Kind}}, nil
		}
	}
	return found, err
}

// why says what an unknown file is, as an error about a state does.
func why(file []byte) string {
	err := notState(file)
	if stranger, ok := fact.Find[fact.Stranger](err); ok {
		err = fact.With(errors.New(stranger.What), stranger)
	} else if failed, ok := errors.AsType[*encryption.Error](err); ok {
		err = failed.Err
	}
	if err == nil {
		return ""
	}
	return ": " + outside.Line(explain.Text(err, explain.Command{Name: "inspect"}), maxWhy)
}

const maxWhy = 300 // bytes

// text is the inspection for people.
func (i inspection) text(file []byte) string {
	text := shown(i.File) + ": " + strings.Join(strings.Fields(i.Kind+" "+i.Format+" "+i.Version), " ")
	if i.Kind == "unknown" {
		text += why(file)
	}
	if i.Serial != nil {
		text += fmt.Sprintf("\n  serial: %d", *i.Serial)
	}
	if i.Lineage != "" {
		text += "\n  lineage: " + outside.Line(i.Lineage, maxName)
	}
	for _, name := range i.KeyProviders {
		text += "\n  key provider: " + outside.Line(name, maxName)
	}
	return text + "\n"
}
