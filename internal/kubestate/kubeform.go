package kubestate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// moduleState returns the encrypted text that Kubeform stores for a module.
func moduleState(obj object) ([]byte, error) {
	switch s := obj.at("status", "state").(type) {
	case nil:
		return nil, ErrNoState
	case string:
		if s == "" {
			return nil, ErrNoState
		}
		return []byte(s), nil
	}
	return nil, errors.New("status.state of a Kubeform module must be a string")
}

// kubeformState rebuilds the state of a Kubeform resource. The version, serial and lineage come from
// status.state, the attributes from status.output, and the sensitive attributes from a secret.
func (o *Object) kubeformState(obj object, look secrets, cost *meter.Meter) ([]byte, error) {
	stored := obj.at("status", "state")
	if stored == nil {
		return nil, ErrNoState
	}
	described, ok := stored.(map[string]any)
	if !ok {
		return nil, errors.New("status.state of a Kubeform resource must be an object")
	}
	s, err := describedState(described)
	if err != nil {
		return nil, err
	}
	output, ok := obj.at("status", "output").(map[string]any)
	if !ok {
		return nil, errors.New("status.output must be an object")
	}
	output = maps.Clone(output)
	delete(output, "providerRef") // these fields refer to the provider and to a secret, and are not attributes
	delete(output, "secretRef")
	attributes, err := managed{Object: o, observing: true}.block(output, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := kubeformSecrets(obj, attributes, look, cost); err != nil {
		return nil, err
	}
	provider, _, _ := strings.Cut(o.Group, ".")
	resourceType := cmp.Or(o.values.String("resource_type"), provider+"_"+snake(o.Kind))
	in := instance{Attributes: attributes}
	if o.schemaVersion != nil {
		in.SchemaVersion = *o.schemaVersion
	}
	s.Resources = []resource{{
		Mode: "managed", Type: resourceType, Name: o.Name, Provider: "provider." + provider, Instances: []instance{in},
	}}
	return s.encode(cost)
}

func describedState(stored map[string]any) (state, error) {
	version, ok := whole(stored["version"])
	if !ok || version != 4 {
		return state{}, errors.New("status.state.version must be 4")
	}
	serial, ok := whole(stored["serial"])
	if !ok && stored["serial"] != nil {
		return state{}, errors.New("status.state.serial must be a non-negative whole number")
	}
	s := state{Version: 4, Serial: serial}
	for name, to := range map[string]*string{"terraform_version": &s.TerraformVersion, "lineage": &s.Lineage} {
		if *to, ok = stored[name].(string); !ok && stored[name] != nil {
			return state{}, fmt.Errorf("status.state.%s must be a string", name)
		}
	}
	return s, nil
}

// kubeformSecrets adds the sensitive attributes. Like Kubeform, it only reads a secret that the object names.
// It does not read the secret that Kubeform creates if the object names none.
func kubeformSecrets(obj object, attributes map[string]any, look secrets, cost *meter.Meter) error {
	reference := obj.at("spec", "secretRef")
	if reference == nil {
		return nil
	}
	name, ok := obj.at("spec", "secretRef", "name").(string)
	if !ok || !syntax.IsDomain(name) {
		return errors.New("spec.secretRef.name must be the name of a secret")
	}
	ref := SecretRef{Namespace: obj.text("metadata", "namespace"), Name: name}
	data, err := look(ref)
	if err != nil {
		return err
	}
	// Keys without the prefix are inputs.
	out := keys{prefix: "out.", place: func(path string) place { return strings.Split(path, ".") }, value: mapOrText}
	return ref.put(attributes, data, out, cost)
}

// mapOrText returns a sensitive value: a map if it is stored as JSON, and text otherwise. Like Kubeform, it
// removes line breaks from text.
func mapOrText(text string) any {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		var texts map[string]string
		if json.Unmarshal([]byte(text), &texts) == nil {
			m := map[string]any{}
			for key, value := range texts {
				m[key] = value
			}
			return m
		}
	}
	return strings.ReplaceAll(text, "\n", "")
}

// snake returns the Terraform name of a field or a kind that follows the naming rules: private_network_uuid
// for privateNetworkUUID, and s3_bucket for S3Bucket. A run of capital letters is one word, and so is its
// plural with an s at the end. IPv4 and IPv6 are also words.
func snake(name string) string {
	// Kubeform appends an underscore to a kind if another Go type has the same name.
	runes := []rune(adjoining.Replace(strings.TrimSuffix(name, "_")))
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && begins(runes, i) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// adjoining separates adjacent abbreviations in Kubeform's types, because a name such as webACLID does not
// show where a word ends. It covers all such names among the 5,178 field names and 1,163 kinds in Kubeform's
// API packages, v1alpha1 of 2021.
var adjoining = strings.NewReplacer(
	"ACLID", "AclID", "APIID", "ApiID", "APIURL", "ApiURL", "DNSARecord", "DnsARecord", "DNSIPS", "DnsIPS", "URLHTTP", "UrlHTTP",
	"URLSSH", "UrlSSH", "WANID", "WanID", "XJSON", "XJson", "use32Bit", "use_32Bit",
)

// begins reports whether the capital letter at i starts a word.
func begins(runes []rune, i int) bool {
	if runes[i-1] == '_' {
		return false
	}
	if !unicode.IsUpper(runes[i-1]) {
		return true
	}
	rest := runes[i+1:]
	if len(rest) == 0 || !unicode.IsLower(rest[0]) {
		return false
	}
	afterwards := func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) }
	plural := rest[0] == 's' && (len(rest) == 1 || afterwards(rest[1]))
	ip := runes[i-1] == 'I' && runes[i] == 'P' && rest[0] == 'v' && len(rest) > 1 && unicode.IsDigit(rest[1])
	return !plural && !ip
}

// attribute returns the Terraform name of a field, or an empty string if the field is not an attribute.
func (o *Object) attribute(field string) string {
	if name, ok := o.fieldNames[field]; ok {
		return name
	}
	return snake(field)
}
