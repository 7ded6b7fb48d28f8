package main

import (
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

// registry lists what the settings may name. A key provider that needs the SDK of a cloud
// is a package of its own, such as builtin/keyprovider/awskms, with a function Block.
func registry() encryption.Registry {
	var own encryption.Registry
	all := light.Registry()
	for _, kind := range []string{"pbkdf2", "static", "external"} {
		if block, ok := all.KeyProvider(kind); ok {
			own.KeyProviders = append(own.KeyProviders, block)
		}
	}
	for _, kind := range []string{"aes_gcm", "unencrypted"} {
		if block, ok := all.Method(kind); ok {
			own.Methods = append(own.Methods, block)
		}
	}
	return own
}
