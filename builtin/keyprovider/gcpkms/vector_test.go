package gcpkms_test

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestVectors opens files that OpenTofu sealed with a service of the same keys and
// format. Twenty readers of one cause one call.
func TestVectors(t *testing.T) {
	t.Parallel()
	for vector := range vectors() {
		t.Run(vector.Name(), func(t *testing.T) {
			t.Parallel()
			testVector(t, vector)
		})
	}
}

func testVector(t *testing.T, vector lighttest.Vector) {
	t.Helper()
	var settings struct {
		Env         map[string]string `json:"env"`
		FakeService struct {
			MasterKeyHex string `json:"master_key_hex"`
		} `json:"fake_service"`
	}
	if err := json.Unmarshal(vector.Read(t, "case.json"), &settings); err != nil {
		t.Fatal(err)
	}
	master, err := hex.DecodeString(settings.FakeService.MasterKeyHex)
	if err != nil {
		t.Fatal(err)
	}
	s := &gcpkmstest.Service{
		Keys:    map[string][]byte{"projects/throwaway/locations/global/keyRings/ring/cryptoKeys/tofu": master},
		Accepts: func(token string) bool { return token == settings.Env["GOOGLE_OAUTH_ACCESS_TOKEN"] },
	}
	env := func(name string) (string, bool) { v, ok := settings.Env[name]; return v, ok }
	target := vector.Target(t, kindtest.Registry(gcpkms.BlockWith(gcpkms.Options{Transport: s.Start(t)})), env)
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() { vector.Opens(t, target) })
	}
	readers.Wait()
	if calls := s.Calls(); !slices.Equal(calls, []string{"Decrypt"}) {
		t.Errorf("calls: %v", calls)
	}
}
