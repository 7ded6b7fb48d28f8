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
	mistakes := wrap.OpenMistakes(t, "errored.tfstate there")
	push := []string{"state", "push", "errored.tfstate"}
	for name, c := range map[string]struct {
		left    string
		args    []string
		refused bool
	}{
		"plaintext, apply":   {left: state, args: []string{"apply"}, refused: true},
		"plaintext, destroy": {left: state, args: []string{"destroy"}, refused: true},
		"plaintext, import":  {left: state, args: []string{"import", "a", "b"}, refused: true},
		"plaintext, refresh": {left: state, args: []string{"refresh"}, refused: true},
		"plaintext, plan":    {left: state, args: []string{"plan"}},
		"plaintext, init":    {left: state, args: []string{"init"}},
		"plaintext, push":    {left: state, args: push},
		"sealed, apply":      {left: "sealed", args: []string{"apply"}, refused: true},
		"sealed, plan":       {left: "sealed", args: []string{"plan"}},
		"sealed, push":       {left: "sealed", args: push},
		"an empty one":       {left: " ", args: []string{"apply"}, refused: true},
		"no bytes":           {args: []string{"apply"}},
		"something else":     {left: "something " + canary, args: []string{"apply"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, dir, out := scripted(t, newStore(t), "GET", c.args...)
			left := c.left
			if left == "sealed" {
				left = string(seal(t, sealing, state))
			}
			write(t, filepath.Join(dir, "errored.tfstate"), left)
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if (code == 1) != c.refused || c.refused == strings.Contains(out.String(), "GET 404") {
				t.Errorf("got %d, %v\n%s", code, err, out)
			}
		})
	}
}
