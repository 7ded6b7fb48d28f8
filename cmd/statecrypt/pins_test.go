package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPins: a state that was exchanged for another one of the same key, or for an old
// copy, opens and is refused.
func TestPins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := oldText + "state { method = method.aes_gcm.old }\nplan { method = method.aes_gcm.old }\n"
	seal := func(name, text string) string {
		return write(t, filepath.Join(dir, name), must(t, settings, text, "encrypt"))
	}
	file := seal("state", plain)
	bare := seal("bare", `{"version":4,"outputs":{}}`)
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"as pinned":      {args: "-lineage l-1 -minimum-serial 7 " + file},
		"an earlier pin": {args: "-minimum-serial 0 " + file},
		"another lineage": {args: "-lineage l-2 " + file, code: 1,
			want: `its lineage is "l-1", and -lineage says "l-2": it is another state`},
		"an old copy": {args: "-minimum-serial 8 " + file, code: 1,
			want: "its serial is 7, and -minimum-serial says 8: it is an old copy"},
		"no serial":        {args: "-minimum-serial 0 " + bare, code: 1, want: "it has no serial"},
		"no lineage":       {args: "-lineage l-1 " + bare, code: 1, want: `its lineage is ""`},
		"an empty lineage": {args: "-lineage= " + file, code: 2, want: "-lineage must not be empty"},
		"no number":        {args: "-minimum-serial=x " + file, code: 2, want: "must be a whole number"},
		"an empty number":  {args: "-minimum-serial= " + file, code: 2, want: "must be a whole number"},
		"a negative one":   {args: "-minimum-serial -1 " + file, code: 2, want: "must be a whole number"},
		"of a plan":        {args: "-plan -lineage l-1 " + file, code: 2, want: "a plan has no serial and no lineage"},
	} {
		for _, verb := range []string{"decrypt", "verify"} {
			t.Run(verb+" "+name, func(t *testing.T) {
				t.Parallel()
				got := statecrypt(t, settings, "", append([]string{verb}, strings.Fields(c.args)...)...)
				if got.code != c.code || !strings.Contains(got.stderr, c.want) ||
					strings.Contains(got.stdout, canary) != (verb == "decrypt" && c.code == 0) {
					t.Errorf("got %+v", got)
				}
				if verb == "verify" && c.code == 1 && !strings.HasSuffix(got.stdout, ": refused\n") {
					t.Errorf("got %s", got.stdout)
				}
			})
		}
	}
	got := statecrypt(t, settings, "", "verify", "-json", "-minimum-serial=8", file)
	want := `"result":"refused","method":"method.aes_gcm.old","serial":7,"lineage":"l-1","error":"its serial is 7`
	if got.code != 1 || !strings.Contains(got.stdout, want) {
		t.Errorf("got %+v", got)
	}
	// Terraform takes the last one for the serial, in whatever case.
	two := write(t, filepath.Join(dir, "two"), "{\"version\":4,\"serial\":9,\"\u017ferial\":5}")
	got = statecrypt(t, plainText+"state { method = method.unencrypted.p }\n", "", "decrypt", "-minimum-serial=8", two)
	if got.code != 1 || !strings.Contains(got.stderr, "its serial is 5") {
		t.Errorf("got %+v", got)
	}
}
