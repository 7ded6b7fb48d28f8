package openbao_test

import (
	"slices"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// vectors are files that OpenTofu wrote with such a transit engine, and where it
// was mounted.
func vectors() map[lighttest.Vector]string {
	return map[lighttest.Vector]string{
		"testdata/openbao_default":         "",
		"testdata/openbao_16_custom_path":  "my/transit",
		"testdata/openbao_64_chain":        "",
		"testdata/openbao_associated_data": "",
	}
}

// vectorServer has the key of the vectors. Variables lead there.
func vectorServer(t *testing.T, mount string) (*openbaotest.Server, attr.LookupEnv) {
	t.Helper()
	s := openbaotest.New(t, master())
	s.Token, s.Mount = "s.throwaway-token", mount
	return s, func(name string) (string, bool) {
		v, ok := map[string]string{"BAO_ADDR": s.URL, "BAO_TOKEN": s.Token}[name]
		return v, ok
	}
}

// TestVectors opens the vectors. One decrypt call is enough for all that is read
// of one file.
func TestVectors(t *testing.T) {
	t.Parallel()
	for vector, mount := range vectors() {
		t.Run(vector.Name(), func(t *testing.T) {
			t.Parallel()
			s, env := vectorServer(t, mount)
			target := vector.Target(t, kindtest.Registry(openbao.Block(), lighttest.KeyProvider("pbkdf2")), env)
			for range 20 {
				vector.Opens(t, target)
			}
			if asked := s.Requests(); !slices.Equal(asked, []string{"decrypt"}) {
				t.Errorf("asked for %q", asked)
			}
		})
	}
}
