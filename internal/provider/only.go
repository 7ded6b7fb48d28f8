package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// A configuration need not name the only key provider or method. This file implements that for blocks. Text
// in OpenTofu's syntax follows OpenTofu's rules.

// onlyName is the default name of a key provider or method.
const onlyName = "main"

// onlyMethod is the kind of method that is added if there is a single key provider and no method.
const onlyMethod = "aes_gcm"

// writeOut adds settings that users may leave out: a method for the only key provider, the key provider of a
// method, and the default. Unencrypted is never the default: plaintext is read only if the settings name that
// method.
func (s encryptionSettings) writeOut() {
	keys := sortedNames(s.KeyProviders)
	if len(keys) == 1 && len(s.Methods) == 0 {
		address := "method." + onlyMethod + "." + onlyName
		s.Methods[address] = &unstable.Entry{Address: address, Kind: onlyMethod, Settings: map[string]unstable.Setting{}}
		s.places[address] = s.places[keys[0]]
	}
	_, tables := unstable.Tables(s.registry)
	for _, table := range tables {
		s.writeOutKeys(table, keys)
	}
	methods := sortedNames(s.Methods)
	if len(methods) == 1 && s.Methods[methods[0]].Kind != syntax.Unencrypted {
		s.RemoteDefault = &unstable.Target{Method: methods[0]}
	}
}

// writeOutKeys adds the only key provider to each method of a kind that requires one but does not name one.
func (s encryptionSettings) writeOutKeys(table attr.Table, keys []string) {
	for _, a := range table.Attrs {
		if a.Form != attr.KeyProvider || !a.Required {
			continue
		}
		for _, address := range sortedNames(s.Methods) {
			method := s.Methods[address]
			if _, set := method.Settings[a.Name]; set || method.Kind != table.Name {
				continue
			}
			switch place := s.places[address].AtName(a.Name); len(keys) {
			case 1:
				method.Settings[a.Name] = unstable.Setting{Value: cty.StringVal(keys[0])}
			case 0:
				s.failAt(place, fault.Known(errors.New("there is no key provider; add one, for example"), aBlock(aKeyProvider)))
			default:
				choices := make([]string, len(keys))
				for i, key := range keys {
					choices[i] = fmt.Sprintf("%s = %q", a.Name, key)
				}
				s.fail(place, "this argument is required, because there is more than one key provider; set %s", strings.Join(choices, " or "))
			}
		}
	}
}
