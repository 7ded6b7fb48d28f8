package main

import (
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

// registry lists the kinds that the settings may name. A key provider that needs a cloud SDK is a separate package,
// such as builtin/keyprovider/awskms, with a Block function.
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
