package vectors_test

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/probe"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// Every truncation and every flipped bit of each encrypted file gives an
// error, or the outputs, serial and lineage that were in it. The second is for
// what a format does not authenticate and a reader can do without; each such
// mutant is under one of the reasons of harmless, and they are counted.
//
// Promise: Authentication (every vector, every flipped bit)
func TestDamage(t *testing.T) {
	const (
		small = 4 << 10
		large = 16 << 10 // one file is larger, and would take hours
	)
	tested, every := map[string]int{}, 30/testkit.Rounds(30)
	for _, v := range conformance.All() {
		file := v.State()
		_, method := methodOf(v)
		if v.Kind == "sops" {
			continue // which has a test of its own for this, with small files
		}
		if len(v.Programs) > 0 || stricter[v.Name] != "" {
			continue // the kinds that run programs have tests of their own, too
		}
		encrypted := method != "" || v.Kind == "opentofu_state" && bytes.Contains(file, []byte(`"encryption_version"`))
		if v.Expect != "ok" || !encrypted || len(file) > large || testing.Short() && len(file) > small {
			continue
		}
		remoteState := ""
		if i := slices.IndexFunc(v.Selection, func(s conformance.Selection) bool { return s.Expect == "ok" }); i >= 0 {
			remoteState = v.Selection[i].Name
		}
		if _, counted := accepted[v.Name]; v.Kind == "opentofu_state" && !counted {
			continue // one of the others with other settings, or with something in it changed already
		}
		tested[v.Kind]++
		if v.Kind == "opentofu_state" && (tested[v.Kind]-1)%every > 0 {
			continue // the same format, as written for other settings
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			target, err := targetWith(t, quickly(file), v, remoteState)
			if err != nil {
				t.Fatal(err)
			}
			probe.Every(t, bytes.Clone(file), func(damaged []byte) (string, error) {
				state, err := read(target, damaged)
				if err != nil {
					return "", err
				}
				return content(state), nil
			}, harmless(v, file)...)
		})
	}
	if !testing.Short() && (tested["opentofu_state"] < 31 || tested["terraform_backend_git"] != 4) || tested["kubeform_module"] != 3 {
		t.Errorf("too few files: %v", tested)
	}
}

func content(s *tfstate.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s\n", s.Serial, s.Lineage, s.TerraformVersion)
	for _, name := range slices.Sorted(maps.Keys(s.Outputs)) {
		value, err := s.Outputs[name].Value()
		fmt.Fprintf(&b, "%q %t %#v %v\n", name, s.Outputs[name].Sensitive, value, err)
	}
	return b.String()
}

// spans are parts of a file: from, to.
type spans [][2]int

func (s spans) has(at int) bool {
	return slices.ContainsFunc(s, func(p [2]int) bool { return at >= p[0] && at < p[1] })
}

// layout says what is where in an envelope, as bytes of the file.
type layout struct {
	copies   spans // the names serial and lineage
	names    spans // the names of the members that are needed
	metaName spans // the names in the metadata
	meta     spans // the texts in the metadata: base64
	data     spans // the last digits of the encrypted data: base64
	rest     spans // members that nobody knows or needs
}

var member = regexp.MustCompile(`"([^"]*)"\s*:\s*("[^"]*"|[0-9]+|\{)`)

func layoutOf(file []byte) layout {
	var l layout
	start, end := bytes.Index(file, []byte(`"meta"`)), 0
	if start >= 0 {
		end = start + bytes.IndexByte(file[start:], '}')
	}
	for _, m := range member.FindAllSubmatchIndex(file, -1) {
		name, value := [2]int{m[2], m[3]}, [2]int{m[4], m[5]}
		switch text := string(file[m[2]:m[3]]); {
		case m[0] > start && m[0] < end:
			l.metaName, l.meta = append(l.metaName, name), append(l.meta, value)
		case text == "serial" || text == "lineage":
			l.copies = append(l.copies, name)
		case text == "encrypted_data":
			l.names, l.data = append(l.names, name), append(l.data, [2]int{m[5] - 5, m[5] - 1})
		case text == "meta" && bytes.IndexByte(file[m[4]:end], '"') < 0: // it is empty
			l.rest = append(l.rest, name)
		case text == "meta" || text == "encryption_version":
			l.names = append(l.names, name)
		default:
			l.rest = append(l.rest, [2]int{m[0], len(file)})
		}
	}
	return l
}

// harmless lists the reasons for which a damaged file may open, with how many
// mutants of this file do.
func harmless(v conformance.Case, file []byte) []probe.Harmless {
	l := layoutOf(file)
	in := func(s spans) func(probe.Case) bool {
		return func(d probe.Case) bool { return !d.Cut && s.has(d.At) }
	}
	list := []probe.Harmless{
		{
			Why: "the line end at the end is missing",
			Is:  func(d probe.Case) bool { return d.Cut && d.At == len(file)-1 && file[d.At] == '\n' },
		},
		{
			Why: "a name differs in the case of a letter, which JSON in Go does not mind",
			Is: func(d probe.Case) bool {
				return in(append(l.names, l.copies...))(d) && d.File[d.At]^file[d.At] == 'a'-'A'
			},
		},
		{Why: "there is no copy of the serial or lineage beside the encrypted data any more, as early versions wrote none; both are inside",
			Is: in(l.copies)},
		{Why: "metadata has another name, and its key provider knows it by its shape", Is: in(l.metaName)},
		{Why: "a name in the metadata differs in the case of a letter, or none of the metadata can be used", Is: in(l.meta)},
		{Why: "these bits of the last digit of base64 hold nothing", Is: in(l.data)},
		{Why: "nobody needs this member", Is: in(l.rest)},
	}
	for i := range list {
		list[i].Count = accepted[v.Name][i]
	}
	return list
}

// accepted is how many mutants open for each of the reasons, in this order. All
// other mutants fail.
var accepted = map[string][7]int{
	"aes_gcm_aad":                  {1, 47, 91, 162, 17, 0, 0},
	"alpha_no_serial_lineage":      {0, 34, 0, 162, 18, 0, 0},
	"config_function_call":         {1, 47, 91, 162, 17, 0, 0},
	"config_json":                  {1, 47, 91, 162, 17, 0, 0},
	"config_json_template_refs":    {1, 47, 91, 332, 34, 0, 0},
	"config_literal_keys":          {1, 43, 91, 0, 0, 0, 32},
	"enforced_ok":                  {1, 47, 91, 162, 17, 0, 0},
	"envelope_extra_keys":          {0, 47, 91, 319, 35, 0, 57},
	"fallback_after_wrong_key":     {1, 47, 91, 162, 16, 0, 0},
	"fallback_broken_unused":       {1, 47, 91, 162, 18, 0, 0},
	"fallback_old_key":             {1, 47, 91, 178, 17, 0, 0},
	"fallback_primary_unencrypted": {1, 47, 91, 178, 17, 0, 0},
	"fallback_two_levels":          {1, 47, 91, 178, 17, 0, 0},
	"gitlab_auto_encryption":       {1, 47, 91, 366, 17, 0, 0},
	"http_backend_compact":         {0, 47, 91, 162, 18, 0, 0},
	"kubeform_module_wrapped":      {1, 0, 0, 0, 0, 0, 0},
	"merge_alias_of_code":          {1, 47, 91, 130, 17, 3, 0},
	"merge_code_and_env":           {1, 47, 91, 162, 18, 0, 0},
	"merge_keeps_fallback":         {1, 47, 91, 162, 16, 0, 0},
	"meta_missing":                 {1, 43, 91, 0, 0, 0, 0},
	"metadata_alias":               {1, 47, 91, 128, 17, 0, 0},
	"metadata_alias_unicode":       {1, 47, 91, 125, 17, 1, 0},
	"no_outputs":                   {1, 47, 91, 162, 17, 3, 0},
	"output_zoo":                   {1, 47, 91, 178, 17, 1, 0},
	"passphrase_template":          {1, 47, 91, 162, 17, 3, 0},
	"passphrase_template_json":     {1, 47, 91, 162, 17, 1, 0},
	"pbkdf2_chain_pbkdf2_alias":    {1, 47, 91, 144, 34, 0, 0},
	"pbkdf2_defaults":              {1, 47, 91, 162, 18, 0, 0},
	"pbkdf2_metadata_wins":         {1, 47, 91, 162, 17, 0, 0},
	"pbkdf2_sha256_key16":          {1, 47, 91, 162, 10, 0, 0},
	"pbkdf2_sha256_key32_salt1":    {1, 47, 91, 162, 16, 0, 0},
	"pbkdf2_sha512_key24_salt64":   {1, 47, 91, 162, 16, 0, 0},
	"pbkdf2_unicode_passphrase":    {1, 47, 91, 162, 17, 0, 0},
	"remote_state_selection":       {1, 47, 91, 162, 18, 0, 0},
	"serial_gt_1":                  {1, 47, 91, 162, 18, 1, 0},
	"serial_large":                 {1, 47, 91, 162, 17, 0, 0},
	"settings_decomposed":          {1, 47, 91, 80, 18, 0, 0},
}
