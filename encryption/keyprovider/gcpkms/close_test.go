package gcpkms_test

import (
	"context"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms/gcpkmstest"
)

// TestClose is not parallel: it counts what the process has open.
func TestClose(t *testing.T) {
	kindtest.LeavesNothing(t, kindtest.Registry(gcpkms.Block(service().Start(t)...)), `
		key_provider "gcp_kms" "k" {
			kms_encryption_key = "`+keyA+`"
			key_length         = 32
			access_token       = "`+gcpkmstest.Token+`"
		}
		method "aes_gcm" "m" { keys = key_provider.gcp_kms.k }
		state { method = method.aes_gcm.m }`, nil)
}

// TestCloseMeanwhile: a call is made again if its connection is closed meanwhile.
func TestCloseMeanwhile(t *testing.T) {
	t.Parallel()
	s := service()
	options := s.Start(t)
	key, stored := kindtest.NewKey(t, build(t, options, working()))
	arrived, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.Before = func(context.Context, string) error {
		once.Do(func() {
			close(arrived)
			<-closed
		})
		return nil
	}
	p := build(t, options, working())
	go func() {
		<-arrived
		p.(encryption.Closer).Close()
		close(closed)
	}()
	for range 2 {
		if got, err := p.Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	}
}
