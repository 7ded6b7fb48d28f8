package kubeform

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func TestBase91(t *testing.T) {
	t.Parallel()
	if len(alphabet) != 91 {
		t.Fatalf("%d characters", len(alphabet))
	}
	for plain, text := range map[string]string{
		"":                    "",
		"a":                   "GB",
		"test":                "fPNKd",
		"Never odd or even\n": "_O^gp@J`7RztjblLA#_1eHA",
	} {
		if got := encode([]byte(plain)); string(got) != text {
			t.Errorf("%q: got %q, want %q", plain, got, text)
		}
		if got, err := decode([]byte(text)); err != nil || string(got) != plain {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
		spaced := " " + strings.Join(strings.Split(text, ""), "\r\n\t") + "\n"
		if got, err := decode([]byte(spaced)); err != nil || string(got) != plain {
			t.Errorf("%q: got %q, %v", spaced, got, err)
		}
	}
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method kubeform, base91")
	for _, junk := range []string{"fP-NKd", "fPNKd\x00", "é", "'", "\\n", "A\vA", "fPNK~"} {
		_, err := decode([]byte(junk))
		says.Error(t, fmt.Sprintf("%q", junk), err)
	}
	// Every value of 13 and 14 bits, at every offset.
	var all []byte
	for i := range 1 << 16 {
		all = append(all, byte(i), byte(i>>8), byte(i>>3))
	}
	for _, data := range [][]byte{all, all[1:], bytes.Repeat([]byte{0}, 1000), bytes.Repeat([]byte{0xff}, 1000)} {
		if got, err := decode(encode(data)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes did not come back: %v", len(data), err)
		}
	}
}

func FuzzBase91(f *testing.F) {
	for _, seed := range []string{"", "fPNKd", "fP NK\nd", "A", "AA", "\"\"\"", "~\"", strings.Repeat("\"", 100), "x'y", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if back, err := decode(encode(in)); err != nil || !bytes.Equal(back, in) {
			t.Errorf("%q: encoded and decoded to %q, %v", in, back, err)
		}
		out, err := decode(in)
		if err != nil {
			return
		}
		if len(out) > len(in) {
			t.Errorf("%d characters decode to %d bytes", len(in), len(out))
		}
		// There is one text for each message, but for white space and a last
		// character that holds nothing.
		text := strings.Join(strings.Fields(string(in)), "")
		if again := string(encode(out)); again != text && again != text+"A" && again+"A" != text {
			t.Errorf("%q decodes to %q, which encodes to %q", in, out, again)
		}
	})
}
