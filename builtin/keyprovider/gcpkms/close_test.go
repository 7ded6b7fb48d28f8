package gcpkms_test

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestClose is not parallel: it counts what the process has open.
//
// Promise: Long lives
func TestClose(t *testing.T) {
	users := service()
	users.Accepts = isUser
	for name, c := range map[string]struct {
		service  *gcpkmstest.Service
		identity string
	}{
		"token": {service: service(), identity: `access_token = "` + gcpkmstest.Token + `"`},
		"user":  {service: users, identity: `credentials = ` + strconv.Quote(user)},
		"impersonation": {service: service(), identity: `
			credentials                 = ` + strconv.Quote(user) + `
			impersonate_service_account = "target@p.iam.gserviceaccount.com"`},
	} {
		for mode, env := range map[string]attr.LookupEnv{"with an environment": os.LookupEnv, "without": nil} {
			t.Run(name+" "+mode, func(t *testing.T) {
				kindtest.LeavesNothing(t, kindtest.Registry(blockOf(t, c.service)), `
					key_provider "gcp_kms" "k" {
						kms_encryption_key = "`+keyA+`"
						key_length         = 32
						`+c.identity+`
					}
					method "aes_gcm" "m" { keys = key_provider.gcp_kms.k }
					state { method = method.aes_gcm.m }`, env)
			})
		}
	}
	google.Requests() // which others count
}

// TestCloseMeanwhile: a call that is under way is answered.
func TestCloseMeanwhile(t *testing.T) {
	t.Parallel()
	s := service()
	key, stored := kindtest.NewKey(t, build(t, s.Start(t), working()))
	arrived, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.Before = func(context.Context, string, string) *gcpkmstest.Failure {
		once.Do(func() {
			close(arrived)
			<-closed
		})
		return nil
	}
	p := kindtest.Build(t, blockOf(t, s), working(), os.LookupEnv)
	go func() {
		<-arrived
		p.(driver.Closer).Close()
		close(closed)
	}()
	for range 2 {
		if got, err := p.Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	}
}
