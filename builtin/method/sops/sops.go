// Package sops implements a method that decrypts files encrypted with sops. It can only read.
//
// It supports the format, key groups and MAC of github.com/getsops/sops; see https://getsops.io/docs/. It
// does not use the sops library, which uses every server, role and profile that a file names, takes settings
// and secrets from the environment of the process, and links the SDKs of all clouds. This method first checks
// that its settings allow each key in the file, and calls key services through the program's own key
// providers.
package sops

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// Block returns the sops method. The key providers in services, which are found by name, are used to call the
// key services in a file: aws_kms, gcp_kms, azure_vault and openbao. Key services without a key provider are
// not called.
func Block(services ...driver.Block[driver.KeyProvider]) driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: table(),
		Build: func(v attr.Values) (driver.Method, error) { return build(v, services) },

		OwnFormat: recognizes,
	}
}

type method struct {
	age      ageKeys
	pgp      pgpKeys
	services services
	partial  bool // whether unencrypted values are allowed

	dataKeys *memo.Secrets // data keys, by the hash from [identityOf]
}

var (
	_ driver.Warner = (*method)(nil)
	_ driver.Closer = (*method)(nil)
)

func build(v attr.Values, blocks []driver.Block[driver.KeyProvider]) (driver.Method, error) {
	return &method{
		partial: v.Bool("allow_unencrypted_values"), dataKeys: memo.NewSecrets(maxDataKeys),
		age: newAgeKeys(v), pgp: newPGPKeys(v), services: newServices(v, blocks),
	}, nil
}

const maxDataKeys = 1000 // the maximum number of data keys to remember

// Close forgets all data keys.
func (m *method) Close() { m.dataKeys.Clear() }

// Warning returns the warning of a key service that this method has called for any file.
func (m *method) Warning() driver.Warning {
	if w := m.services.unprotected.Load(); w != nil {
		return *w
	}
	return driver.Warning{}
}

var yamlMark = lazyregexp.New(`(?m)^(sops|"sops"|'sops')\s*:\s*$`)

// recognizes reports whether file is a JSON object, or looks like a YAML mapping, that contains sops
// metadata.
func recognizes(file []byte) bool {
	switch {
	case !bytes.Contains(file, []byte("sops")):
		return false
	case isJSON(file):
		var top struct {
			Sops struct {
				MAC          *string `json:"mac"`
				LastModified *string `json:"lastmodified"`
			} `json:"sops"`
		}
		_ = json.Unmarshal(file, &top) // if the file is not JSON, top stays empty
		return top.Sops.MAC != nil || top.Sops.LastModified != nil
	}
	return len(file) <= maxYAML && yamlMark.Match(file) && bytes.Contains(file, []byte("lastmodified"))
}

func isJSON(file []byte) bool {
	file = bytes.TrimLeft(file, " \t\r\n")
	return len(file) > 0 && file[0] == '{'
}

// Decrypt decrypts a file: it determines the format, gets the data key, decrypts the values and checks the
// MAC. It converts YAML to JSON.
func (m *method) Decrypt(ctx context.Context, _ driver.Keys, file []byte) ([]byte, error) {
	cost := meter.For(ctx, len(file))
	doc, err := load(file, m.partial, cost)
	if err != nil {
		return nil, err
	}
	groups := m.groups(doc)
	dataKey, err := m.dataKeys.Do(ctx, identityOf(groups, doc.threshold), func(ctx context.Context) ([]byte, error) {
		return dataKeyOf(ctx, groups, doc.threshold)
	})
	if err != nil {
		return nil, err
	}
	if err := doc.decrypt(ctx, dataKey, cost); err != nil {
		return nil, err
	}
	if !doc.binary {
		withoutComments(doc.state)
		if err := arrange(doc.state); err != nil {
			return nil, err
		}
	}
	return doc.emit()
}
