package wrap_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// TestErroredIsInTheWay: beside a state that could not be written, nothing is changed,
// whether it is encrypted or not, and every other command but the one that writes it says
// that it is there.
func TestErroredIsInTheWay(t *testing.T) {
	t.Parallel()
	const holds = "errored.tfstate holds a state that could not be written; write it with wrap and state push, and then delete it"
	const inTheWay = "errored.tfstate is in the way of a state that cannot be written"
	push := []string{"state", "push", "errored.tfstate"}
	for name, c := range map[string]struct {
		left    string
		args    []string
		refused bool
		says    string
	}{
		"plaintext, apply":   {left: state, args: []string{"apply"}, refused: true, says: holds},
		"plaintext, destroy": {left: state, args: []string{"destroy"}, refused: true, says: holds},
		"plaintext, import":  {left: state, args: []string{"import", "a", "b"}, refused: true, says: holds},
		"plaintext, refresh": {left: state, args: []string{"refresh"}, refused: true, says: holds},
		"plaintext, plan":    {left: state, args: []string{"plan"}, says: holds},
		"plaintext, init":    {left: state, args: []string{"init"}, says: holds},
		"plaintext, push":    {left: state, args: push},
		"sealed, apply":      {left: "sealed", args: []string{"apply"}, refused: true, says: holds},
		"sealed, plan":       {left: "sealed", args: []string{"plan"}, says: holds},
		"sealed, push":       {left: "sealed", args: push},
		"an empty one":       {left: " ", args: []string{"apply"}, refused: true, says: inTheWay},
		"no bytes":           {args: []string{"apply"}},
		"something else":     {left: "something " + canary, args: []string{"apply"}, refused: true, says: inTheWay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "GET", c.args...)
			left := c.left
			if left == "sealed" {
				left = string(seal(t, sealing, state))
			}
			write(t, filepath.Join(dir, "errored.tfstate"), left)
			code, err := wrap.Run(t.Context(), o)
			text := out.String()
			if err != nil {
				text += err.Error()
			}
			if (code == 1) != c.refused || (err != nil) != c.refused || !strings.Contains(text, c.says) ||
				c.says == "" && strings.Contains(text, "errored") {
				t.Errorf("got %d, %v; want %q\n%s", code, err, c.says, out)
			}
			if strings.Contains(text, canary) || c.refused == strings.Contains(text, "GET 404") {
				t.Errorf("it says %s", text)
			}
		})
	}
}
