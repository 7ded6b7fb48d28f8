// Package lighttest has the registry for tests that are not about services that
// hand out keys: with it comes no SDK, so they are built in a moment.
package lighttest

import (
	"context"
	"encoding/json"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	externalkeys "github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/static"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/xor"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/age"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/external"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/kubeform"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/terraformbackendgit"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/unencrypted"
)

// Registry returns what builtin.Registry does, without the key providers that
// call a service, and with a pbkdf2 that is quick with the files that it sealed.
func Registry() encryption.Registry {
	return encryption.Registry{
		KeyProviders: []encryption.Block[encryption.KeyProvider]{
			quickBlock(),
			static.Block(),
			externalkeys.Block(),
			xor.Block(),
		},
		Methods: []encryption.Block[encryption.Method]{
			aesgcm.Block(),
			external.Block(),
			age.Block(),
			sopsBlock(),
			kubeform.Block(),
			terraformbackendgit.Block(),
			unencrypted.Block(),
		},
	}
}

// sopsBlock knows a file of sops, and opens none: the real method needs what sops
// imports.
func sopsBlock() encryption.Block[encryption.Method] {
	return encryption.Block[encryption.Method]{
		Table: attr.Table{Name: "sops", Doc: "Files of sops, which it does not open."},
		Build: func(attr.Values) (encryption.Method, error) { return closed{}, nil },
		Recognizes: func(file []byte) bool {
			var document struct{ Sops json.RawMessage }
			return json.Unmarshal(file, &document) == nil && document.Sops != nil
		},
	}
}

type closed struct{}

func (closed) Decrypt(context.Context, encryption.Keys, []byte) ([]byte, error) {
	return nil, encryption.ErrNoKey
}
