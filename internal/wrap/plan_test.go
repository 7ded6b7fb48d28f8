package wrap_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// TestPlanWithAStore: a plan that has a state store keeps its state there, whatever it
// says of a backend.
func TestPlanWithAStore(t *testing.T) {
	t.Parallel()
	packed, err := msgpack.Marshal(cty.EmptyObjectVal, cty.EmptyObject)
	if err != nil {
		t.Fatal(err)
	}
	message := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	ours := message(13, append(message(1, []byte("http")), message(2, message(1, packed))...))
	store := message(29, message(1, []byte("x")))
	for name, c := range map[string]struct {
		tfplan  []byte
		refused bool
	}{
		"our backend":               {tfplan: ours},
		"a store":                   {tfplan: store, refused: true},
		"our backend and a store":   {tfplan: append(ours[:len(ours):len(ours)], store...), refused: true},
		"a store, then our backend": {tfplan: append(store[:len(store):len(store)], ours...), refused: true},
	} {
		o, dir, out := scripted(t, newStore(t), "ready GET", "apply", "tfplan")
		write(t, filepath.Join(dir, "tfplan"), archive(t, string(c.tfplan)))
		_, err := wrap.Run(t.Context(), o)
		refused := err != nil && strings.Contains(err.Error(), "the backend is not http")
		if refused != c.refused || (out.String() == "") != c.refused {
			t.Errorf("%s: got %v\n%s", name, err, out)
		}
	}
}
