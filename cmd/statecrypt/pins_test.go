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
	mistakes := openMistakes(t, "pins")
	for name, args := range map[string]string{
		"as pinned":        "-lineage l-1 -minimum-serial 7 " + file,
		"an earlier pin":   "-minimum-serial 0 " + file,
		"another lineage":  "-lineage l-2 " + file,
		"an old copy":      "-minimum-serial 8 " + file,
		"no serial":        "-minimum-serial 0 " + bare,
		"no lineage":       "-lineage l-1 " + bare,
		"an empty lineage": "-lineage= " + file,
		"no number":        "-minimum-serial=x " + file,
		"an empty number":  "-minimum-serial= " + file,
		"a negative one":   "-minimum-serial -1 " + file,
		"of a plan":        "-plan -lineage l-1 " + file,
	} {
		for _, verb := range []string{"decrypt", "verify"} {
			t.Run(verb+" "+name, func(t *testing.T) {
				t.Parallel()
				got := statecrypt(t, settings, "", append([]string{verb}, strings.Fields(args)...)...)
				mistakes.check(t, verb+" "+name, got)
				if strings.Contains(got.stdout, canary) != (verb == "decrypt" && got.code == 0) {
					t.Errorf("got %+v", got)
				}
				if verb == "verify" && got.code == 1 && !strings.HasSuffix(got.stdout, ": refused\n") {
					t.Errorf("got %s", got.stdout)
				}
			})
		}
	}
	got := statecrypt(t, settings, "", "verify", "-json", "-minimum-serial=8", file)
	want := `"result":"refused","method":"method.aes_gcm.old","serial":7,"lineage":"l-1","error":"`
	if got.code != 1 || !strings.Contains(got.stdout, want) {
		t.Errorf("got %+v", got)
	}
	// Terraform takes the last one for the serial, in whatever case.
	two := write(t, filepath.Join(dir, "two"), "{\"version\":4,\"serial\":9,\"\u017ferial\":5}")
	got = statecrypt(t, plainText+"state { method = method.unencrypted.p }\n", "", "decrypt", "-minimum-serial=8", two)
	if got.code != 1 || !strings.Contains(got.stderr, "-minimum-serial") {
		t.Errorf("got %+v", got)
	}
}
