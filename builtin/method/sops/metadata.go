package sops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// metadata is the object that sops stores under its own name, as defined in stores/stores.go of the sops
// library. Only the MAC and the time are authenticated, one together with the other.
type metadata struct {
	keyGroup             // the key group, in files that have only one
	KeyGroups []keyGroup `json:"key_groups"`
	Threshold int        `json:"shamir_threshold"`

	Version          string    `json:"version"`
	LastModified     time.Time `json:"lastmodified"`
	MAC              string    `json:"mac"`
	MACOnlyEncrypted bool      `json:"mac_only_encrypted"`

	UnencryptedSuffix       string `json:"unencrypted_suffix"`
	EncryptedSuffix         string `json:"encrypted_suffix"`
	UnencryptedRegex        string `json:"unencrypted_regex"`
	EncryptedRegex          string `json:"encrypted_regex"`
	UnencryptedCommentRegex string `json:"unencrypted_comment_regex"`
	EncryptedCommentRegex   string `json:"encrypted_comment_regex"`
}

type keyGroup struct {
	AWS    []masterKey `json:"kms"`
	GCP    []masterKey `json:"gcp_kms"`
	Huawei []masterKey `json:"hckms"`
	Azure  []masterKey `json:"azure_kv"`
	Vault  []masterKey `json:"hc_vault"`
	PGP    []masterKey `json:"pgp"`
	Age    []masterKey `json:"age"`
}

// masterKey is a key that encrypts the data key, or part of it. Each kind uses different fields.
type masterKey struct {
	kind keyKind

	Sealed string `json:"enc"`

	Recipient   string `json:"recipient"` // for age
	Fingerprint string `json:"fp"`        // for PGP

	ARN     string            `json:"arn"` // for AWS
	Role    string            `json:"role"`
	Profile string            `json:"aws_profile"`
	Context map[string]string `json:"context"`

	ResourceID string `json:"resource_id"` // for Google Cloud

	VaultURL string `json:"vault_url"` // for Azure
	Name     string `json:"name"`
	Version  string `json:"version"`

	VaultAddress string `json:"vault_address"` // for Vault
	EnginePath   string `json:"engine_path"`
	KeyName      string `json:"key_name"`
}

type keyKind int

const (
	kindAWS keyKind = iota
	kindGCP
	kindHuawei
	kindAzure
	kindVault
	kindPGP
	kindAge
)

// keys returns all keys in a group, in the same order as sops.
func (g keyGroup) keys() (all []masterKey) {
	for kind, keys := range [][]masterKey{g.AWS, g.GCP, g.Huawei, g.Azure, g.Vault, g.PGP, g.Age} {
		for _, k := range keys {
			k.kind = keyKind(kind)
			all = append(all, k)
		}
	}
	return all
}

// identity returns a string that is equal for two keys only if opening them gives the same result.
func (k masterKey) identity() string {
	text, _ := json.Marshal(k) // never fails for a struct of strings
	return fmt.Sprintf("%d %s", k.kind, text)
}

// extract removes the metadata from the file's values, and stores both in d.
func (d *document) extract(file object, cost *meter.Meter) error {
	// The decoder's error may repeat parts of the file.
	unreadable := fmt.Errorf("%w: its sops metadata is missing or cannot be read", driver.ErrDamaged)
	i := slices.IndexFunc(file, func(m member) bool { return m.name == "sops" })
	if i < 0 {
		return unreadable
	}
	var text bytes.Buffer
	meta := &d.meta
	if err := write(&text, file[i].value); err != nil {
		return unreadable
	}
	// Each list element becomes a masterKey, even null, so the number of commas limits the number of keys.
	if err := cost.Charge(meter.Rebuilt*int64(bytes.Count(text.Bytes(), []byte(","))), "the keys in the sops metadata"); err != nil {
		return err
	}
	if err := json.Unmarshal(text.Bytes(), meta); err != nil {
		return unreadable
	}
	if group := meta.keys(); len(group) > 0 {
		d.groups = [][]masterKey{group}
	} else {
		for _, g := range meta.KeyGroups {
			d.groups = append(d.groups, g.keys())
		}
	}
	rules := []string{meta.UnencryptedSuffix, meta.EncryptedSuffix, meta.UnencryptedRegex, meta.EncryptedRegex,
		meta.UnencryptedCommentRegex, meta.EncryptedCommentRegex}
	slices.Sort(rules)
	if len(d.groups) == 0 || rules[len(rules)-2] != "" { // at most one rule
		return unreadable
	}
	d.state = slices.Delete(file, i, i+1)
	return d.checkMetadata()
}

var sopsVersion = lazyregexp.New(`^([0-9]{1,4})\.[0-9]+\.[0-9]+`)

func (d *document) checkMetadata() error {
	version := sopsVersion.FindStringSubmatch(d.meta.Version)
	if version == nil {
		return fmt.Errorf("%w: its sops metadata has no version", driver.ErrDamaged)
	}
	if major, _ := strconv.Atoi(version[1]); major > 3 {
		return fmt.Errorf("the file was written by sops %s, but only versions up to 3 are supported", quote(d.meta.Version))
	}
	if d.meta.MAC == "" {
		return errors.New("the file has no MAC: " + changed)
	}
	if err := checkKeys(d.groups); err != nil {
		return err
	}
	// Shamir's secret sharing requires at least two parts. Without a threshold, the parts of all groups are
	// required.
	groups := len(d.groups)
	d.threshold = d.meta.Threshold
	switch {
	case groups == 1:
		d.threshold = 1
	case d.threshold == 0:
		d.threshold = groups
	case d.threshold < 2 || d.threshold > groups:
		return fmt.Errorf("%w: it has %d key groups but a threshold of %d", driver.ErrDamaged, groups, d.threshold)
	}
	return nil
}

// parts returns the number of keys that an entry's data key is encrypted for. Sops itself always writes one.
func (k masterKey) parts() int {
	n := 1
	switch k.kind {
	case kindPGP:
		n = pgpParts(k.Sealed)
	case kindAge:
		n = ageParts(k.Sealed)
	}
	return max(1, n)
}

func checkKeys(groups [][]masterKey) error {
	if keys := len(slices.Concat(groups...)); len(groups) > maxGroups || keys > maxKeys {
		return fmt.Errorf("the file names %d keys in %d key groups, but at most %d keys in %d groups are allowed", keys,
			len(groups), maxKeys, maxGroups)
	}
	parts := 0
	for i, group := range groups {
		if len(group) == 0 {
			return fmt.Errorf("%w: its key group %d is empty", driver.ErrDamaged, i+1)
		}
		for _, k := range group {
			if len(k.Sealed) > maxWrapped {
				return fmt.Errorf("the file has an encrypted data key of %d bytes, but at most %d are allowed", len(k.Sealed), maxWrapped)
			}
			if len(k.identity()) > maxWrapped+maxName {
				return fmt.Errorf("the name of a key in key group %d of the file has more than %d bytes", i+1, maxName)
			}
			if parts += k.parts(); parts > maxKeys {
				return fmt.Errorf("the data keys in the file are encrypted for more than %d keys, but sops encrypts each data key "+
					"for one key", maxKeys)
			}
		}
	}
	return nil
}
