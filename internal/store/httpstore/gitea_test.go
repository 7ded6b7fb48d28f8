package httpstore

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/httpstore/giteatest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// TestGitea: one file is kept for each serial.
func TestGitea(t *testing.T) {
	t.Parallel()
	testGitea(t, giteatest.Start(t).Address, "")
}

// TestRealGitea: the real one is as ours.
func TestRealGitea(t *testing.T) {
	t.Parallel()
	g := servertest.StartGitea(t)
	g.NewUser(t, "ci")
	testGitea(t, func(name string) string { return g.URL + "/api/packages/ci/terraform/state/" + name }, g.NewToken(t, "ci", "write:package"))
}

func testGitea(t *testing.T, address func(name string) string, token string) {
	t.Helper()
	open := func(name string) store.State {
		text, url := cty.StringVal, address(name)
		block := map[string]cty.Value{
			"address": text(url), "lock_address": text(url + "/lock"), "unlock_address": text(url + "/lock"),
			"lock_method": text(http.MethodPost), "unlock_method": text(http.MethodDelete),
		}
		if token != "" {
			block["bearer_token"] = text(token)
		}
		return carefully(by(t, url, block))
	}
	s := open("net")
	if err := s.Lock(t.Context(), storetest.Lock("1")); err != nil {
		t.Fatal(err)
	}
	var held *store.HeldError
	if err := open("net").Lock(t.Context(), storetest.Lock("2")); !errors.As(err, &held) || held.By == nil || held.By.ID != "1" {
		t.Errorf("locked by someone else: %v", err)
	}
	read, err := s.Write(t.Context(), storetest.State(5), "")
	if err != nil {
		t.Fatal(err)
	}
	again := bytes.ReplaceAll(storetest.State(5), []byte("xxxx"), []byte("yyyy"))
	_, err = s.Write(t.Context(), again, read)
	if answer, _ := errors.AsType[*store.AnswerError](err); errors.As(err, &held) || answer == nil || answer.Status != http.StatusConflict {
		t.Errorf("the same serial: %v", err)
	}
	if read, err = s.Write(t.Context(), storetest.State(6), read); err != nil {
		t.Errorf("the next serial: %v", err)
	}
	for name, file := range map[string]string{
		"of sops": `{"serial":"ENC[x]","sops":{"mac":"ENC[y]"}}`, "of age": "age-encryption.org/v1\n", "no serial": `{"lineage":"l"}`,
		"no lineage": `{"serial":9}`,
	} {
		answer, ok := errors.AsType[*store.AnswerError](func() error { _, err := s.Write(t.Context(), []byte(file), read); return err }())
		if !ok || answer.Status != http.StatusBadRequest {
			t.Errorf("%s: %v", name, answer)
		}
	}
	if _, err = s.Write(t.Context(), storetest.State(2), read); err != nil {
		t.Errorf("a lower serial: %v", err)
	}
	if got, _, err := open("NET").Read(t.Context()); err != nil || !bytes.Equal(got, storetest.State(2)) {
		t.Errorf("there is %.60q, %v", got, err)
	}
	if err := s.Unlock(t.Context(), "2"); !errors.As(err, &held) {
		t.Errorf("the ID of another lock: %v", err)
	}
	if err := s.Unlock(t.Context(), "1"); err != nil {
		t.Error(err)
	}
}
