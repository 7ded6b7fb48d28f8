package azurerm

import (
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
)

const lockText = `{"ID":"0b1c","Operation":"OperationTypeApply","Info":"","Who":"ci@runner\u001b[31m","Version":"1.12.6","Created":"2026-01-31T12:00:00Z","Path":"x"}`

func TestLock(t *testing.T) {
	t.Parallel()
	described := map[string]string{"terraformlockid": base64.StdEncoding.EncodeToString([]byte(lockText))}
	for name, c := range map[string]struct {
		blob azuretest.Blob
		want *source.Lock
	}{
		"none": {azuretest.Blob{Data: []byte("{}")}, nil},
		"lock": {azuretest.Blob{Data: []byte("{}"), Lease: "0b1c", Metadata: described},
			&source.Lock{ID: "0b1c", Who: `ci@runner\u001b[31m`, Operation: "OperationTypeApply", Created: "2026-01-31T12:00:00Z"}},
		"left behind": {azuretest.Blob{Data: []byte("{}"), Metadata: described}, nil},
		"by another":  {azuretest.Blob{Data: []byte("{}"), Lease: "0b1c"}, &source.Lock{}},
	} {
		s := newAccount()
		s.Put("tfstate", "network.tfstate", c.blob)
		got, err := read(t, s.Client(t), settings(withKey()), place())
		if err != nil {
			t.Fatal(err)
		}
		if (got.Lock == nil) != (c.want == nil) || got.Lock != nil && *got.Lock != *c.want {
			t.Errorf("%s: got %+v", name, got.Lock)
		}
	}
}

// The backend locks a blob before it has written anything into it.
func TestLockOfTheFirstState(t *testing.T) {
	t.Parallel()
	s := newAccount()
	s.Put("tfstate", "network.tfstate", azuretest.Blob{Lease: "0b1c"})
	_, err := read(t, s.Client(t), settings(withKey()), place())
	checkRefusal(t, err, true)
	says := sourcetest.OpenMistakes(t, "azurerm, the first state")
	says.Error(t, "locked", err)
	if m, _ := source.IsMissing(err); m.Lock == nil {
		t.Error("the lock is lost")
	}
	s.Put("tfstate", "network.tfstate", azuretest.Blob{}) // as a run leaves it that was killed
	_, err = read(t, s.Client(t), settings(withKey()), place())
	checkRefusal(t, err, true)
	says.Error(t, "left behind", err)
	if m, _ := source.IsMissing(err); m.Lock != nil {
		t.Error("there is a lock")
	}
}

// A state is read while OpenTofu holds its lock.
func TestLockOfTheBackend(t *testing.T) {
	t.Parallel()
	tofu := clitest.Tofu(t)
	s := azuretest.New("tfstate")
	s.Writes = true
	client := s.Client(t)
	var mu sync.Mutex
	var locks []*source.Lock
	s.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && r.ContentLength > 0 && r.Header.Get("x-ms-lease-id") != "" {
			src, err := kind(client).Start(settings(withKey()))(request(t, place(), nil))
			if err != nil {
				t.Error(err)
				return false
			}
			snapshot, err := src.Fetch(r.Context())
			missing, ok := source.IsMissing(err)
			if err != nil && !ok {
				t.Error(err)
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			if ok {
				locks = append(locks, missing.Lock)
			} else {
				locks = append(locks, snapshot.Lock)
			}
		}
		return false
	}
	internet := cloudtest.New(t, map[string]http.Handler{accountHost: s})
	project(t, tofu, internet, "network.tfstate", "", "ARM_ACCESS_KEY="+azuretest.Key).Apply(t, "default")
	if len(locks) == 0 {
		t.Error("nothing was written under a lock")
	}
	for _, l := range locks {
		if l == nil || l.ID == "" || !strings.Contains(l.Who, "@") || l.Operation == "" || l.Created == "" {
			t.Errorf("got %+v", l)
		}
	}
}
