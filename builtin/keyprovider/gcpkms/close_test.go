package gcpkms_test

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms/gcpkmstest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth/googleauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestClose is not parallel: it counts what the process has open.
func TestClose(t *testing.T) {
	users := service()
	users.Token = googleauthtest.UserToken
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
				options := c.service.Start(t)
				kindtest.LeavesNothing(t, kindtest.Registry(gcpkms.Block(options...)), `
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
