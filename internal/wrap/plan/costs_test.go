package plan

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
)

// A saved plan may come from anyone who can write to the place where it is kept.
func TestCosts(t *testing.T) {
	plans := []amplification.Grammar{
		{
			Name:        "members",
			Productions: []amplification.Production{{Name: "members"}, {Name: "length of names"}, {Name: "length of plan"}},
			File: func(n amplification.Counts) string {
				return archiveOf(t, bytes.Repeat([]byte(" "), n["length of plan"]), n["members"], n["length of names"])
			},
		},
		{
			Name:        "fields",
			Productions: []amplification.Production{{Name: "numbers"}, {Name: "texts"}, {Name: "length of texts"}, {Name: "depth", Most: 9000}},
			File: func(n amplification.Counts) string {
				plan := backendOf(t, map[string]any{"address": nil})
				for range n["numbers"] {
					plan = protowire.AppendVarint(protowire.AppendTag(plan, 1, protowire.VarintType), 1)
				}
				for range n["texts"] {
					plan = protowire.AppendString(protowire.AppendTag(plan, 2, protowire.BytesType), strings.Repeat("x", n["length of texts"]))
				}
				for range n["depth"] {
					plan = protowire.AppendTag(plan, 3, protowire.StartGroupType)
				}
				for range n["depth"] {
					plan = protowire.AppendTag(plan, 3, protowire.EndGroupType)
				}
				return archiveOf(t, plan, 1, 1)
			},
		},
		{
			Name: "settings",
			Productions: []amplification.Production{
				{Name: "settings"}, {Name: "length of names"}, {Name: "elements"}, {Name: "length of texts"}, {Name: "depth", Most: 9000},
			},
			File: func(n amplification.Counts) string {
				settings := map[string]any{}
				for i := range n["settings"] {
					settings[fmt.Sprint(i, strings.Repeat("x", n["length of names"]))] = nil
				}
				settings["list"] = make([]bool, n["elements"])
				settings["text"] = strings.Repeat("x", n["length of texts"])
				deep := bytes.Repeat([]byte{0x91}, n["depth"]) // lists of one element
				settings["deep"] = msgpack.RawMessage(append(deep, 0xc0))
				return archiveOf(t, backendOf(t, settings), 1, 1)
			},
		},
	}
	amplification.Grow(t, 300, plans, func(_ *testing.T, file string) func() error {
		return func() error {
			plan, err := checkPlan([]byte(file), nil)
			if err == nil {
				_, err = plan.with(module.Settings{"address": "x"})
			}
			return err
		}
	})
}

// archiveOf is a plan in the first member, which is not packed: what unpacking may
// come to is another limit.
func archiveOf(t *testing.T, plan []byte, members, length int) string {
	t.Helper()
	var content bytes.Buffer
	w := zip.NewWriter(&content)
	for i := range members {
		name := "tfplan"
		if i > 0 {
			name = fmt.Sprint(i, strings.Repeat("x", min(length, 60_000)))
		}
		member, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil && i == 0 {
			_, err = member.Write(plan)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return content.String()
}

// backendOf is the message of a plan with an http backend.
func backendOf(t *testing.T, settings map[string]any) []byte {
	t.Helper()
	config, err := msgpack.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	b := protowire.AppendString(protowire.AppendTag(nil, fieldType, protowire.BytesType), "http")
	value := protowire.AppendBytes(protowire.AppendTag(nil, fieldMsgpack, protowire.BytesType), config)
	b = protowire.AppendBytes(protowire.AppendTag(b, fieldConfig, protowire.BytesType), value)
	return protowire.AppendBytes(protowire.AppendTag(nil, fieldBackend, protowire.BytesType), b)
}
