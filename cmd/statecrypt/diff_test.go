package main

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiff has each way to compare states, and each refusal.
//
// Promise: Files of the command
func TestDiff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) { write(t, filepath.Join(dir, name), text) }
	changed := strings.NewReplacer(`"n":{"value":12345678901234567890.1230`, `"n":{"value":2`, `"c4n4ry<&>"`, `"c4n4ry-2"`, `"serial":7`,
		`"serial":8`,
		`"id":"c4n4ry"`, `"id":"c4n4ry-2"`).Replace(plain)
	marked := strings.Replace(plain, `"attributes":{"id":"c4n4ry"}`, `"attributes":{"id":"i-1","key":"c4n4ry"},`+
		`"sensitive_attributes":[[{"type":"get_attr","value":"key"}]]`, 1)
	file("old", must(t, onlyOld, plain, "encrypt"))
	file("again", must(t, onlyNew, plain, "encrypt"))
	file("new", must(t, onlyNew, changed, "encrypt"))
	file("next", must(t, onlyNew, plainNext, "encrypt"))
	file("checked", must(t, onlyNew, strings.Replace(plain, `"check_results":null`,
		`"check_results":[{"config_addr":"check.a","status":"fail"}]`, 1),
		"encrypt"))
	file("marked", must(t, onlyNew, marked, "encrypt"))
	file("remarked", must(t, onlyNew, strings.NewReplacer("i-1", "i-2", "c4n4ry", "c4n4ry-2").Replace(marked), "encrypt"))
	file("plain", plain)
	file("first", `{"version":1,"modules":[]}`)
	file("broken", must(t, onlyNew, `{"version":4,"resources":["c4n4ry"]}`, "encrypt"))
	mistakes := openMistakes(t, "diff")
	for name, c := range map[string]struct{ args, settings, stdin string }{
		"of two keys":                       {args: "old again"},
		"of two keys, -exit-code":           {args: "-exit-code old again"},
		"changed":                           {args: "old new"},
		"changed, JSON":                     {args: "-json old new"},
		"changed, values":                   {args: "-values old new"},
		"changed, -exit-code":               {args: "-exit-code old new"},
		"changed, JSON, -exit-code":         {args: "-json -exit-code old new"},
		"marked, attributes":                {args: "-attributes id,key marked remarked"},
		"marked, attributes, JSON":          {args: "-attributes id -attributes key -json marked remarked"},
		"attributes without marks":          {args: "-attributes id old marked"},
		"attributes with an empty name":     {args: "-attributes id, old new"},
		"values of format 1":                {args: "-values first first", settings: opensPlain},
		"the serial":                        {args: "old next"},
		"the serial, -exit-code":            {args: "-exit-code old next"},
		"serial and checks":                 {args: "next checked"},
		"from standard input":               {args: "- next", stdin: changed, settings: migrationAndOld},
		"plaintext, allowed":                {args: "plain new", settings: migrationAndOld},
		"plaintext, not allowed":            {args: "plain new"},
		"another key":                       {args: "old new", settings: onlyOld},
		"another key, -exit-code":           {args: "-exit-code old new", settings: onlyOld},
		"no state":                          {args: "old broken"},
		"no state, -exit-code":              {args: "-exit-code old broken"},
		"no file":                           {args: "old none"},
		"no settings, -exit-code":           {args: "-exit-code -config none old new"},
		"one file":                          {args: "old"},
		"three files":                       {args: "old new next"},
		"nothing":                           {},
		"-backend and two":                  {args: "-backend old new"},
		"standard input twice":              {args: "- -"},
		"-backend without a block":          {args: "-backend old"},
		"a flag of show":                    {args: "-raw old new"},
		"an empty standard input":           {args: "- new"},
		"two changes that nobody may see":   {args: "-values old next"},
		"a state that is on both sides":     {args: "old old"},
		"a state in plaintext on both side": {args: "plain plain", settings: opensPlain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"diff"}
			for _, arg := range strings.Fields(c.args) {
				if !strings.HasPrefix(arg, "-") {
					arg = filepath.Join(dir, arg)
				}
				args = append(args, arg)
			}
			got := statecrypt(t, cmp.Or(c.settings, newAndOld), c.stdin, args...)
			got.stderr, got.stdout = strings.ReplaceAll(got.stderr, dir, "/folder"), strings.ReplaceAll(got.stdout, dir, "/folder")
			mistakes.checkAll(t, name, got)
			if strings.Contains(got.stdout, canary) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// migrationAndOld opens what both keys and no key have sealed.
const migrationAndOld = oldText + newText + plainText +
	"state {\n  method = method.aes_gcm.new\n  fallback {\n    method = method.aes_gcm.old\n" +
	"    fallback { method = method.unencrypted.p }\n  }\n}\n"

// TestDiffBackend: a file is compared with the state in the backend.
func TestDiffBackend(t *testing.T) {
	t.Parallel()
	sealed := must(t, onlyOld, plain, "encrypt")
	mistakes := openMistakes(t, "diff -backend")
	for name, c := range map[string]struct{ stored, flags string }{
		"the same":    {stored: sealed, flags: "-exit-code"},
		"a later one": {stored: must(t, onlyOld, plainNext, "encrypt"), flags: "-exit-code"},
		"JSON":        {stored: must(t, onlyOld, plainNext, "encrypt"), flags: "-json"},
		"none":        {},
		"another key": {stored: must(t, otherKey, plain, "encrypt"), flags: "-exit-code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHTTPStore(t, c.stored)
			settings := write(t, "keys.hcl", onlyOld+s.block())
			got := statecrypt(t, "", sealed, append([]string{"diff", "-backend", "-config", settings, "-"}, strings.Fields(c.flags)...)...)
			mistakes.checkAll(t, name, got)
			if s.lock != "" || s.state != c.stored || strings.Contains(got.stdout, canary) {
				t.Errorf("got %+v, and %+v", got, s)
			}
		})
	}
}
