// Package objectstore has what the sources oss, cos and oci share. They read
// one object each, in stores of different vendors that all understand the API
// of S3.
package objectstore

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Settings are a block of credentials, over the environment variables that its
// table names. They are apart because an identity must come as a whole from
// one of them: a key of the block with a token of the environment is nobody's.
type Settings struct {
	attr.Values                // what the block says
	Name        string         // of the block; may be empty
	Env         attr.LookupEnv // nil where no variable may fill the block

	table attr.Table
}

// Choose returns the settings that a data source calls name.
func Choose(s source.Settings, table attr.Table, name string) (Settings, error) {
	s.Credentials.Table, s.Credentials.Env = table, nil
	grant, err := s.Credentials.Named("credentials_name", name)
	if err != nil {
		return Settings{}, err
	}
	out := Settings{Values: grant.Values, Name: name, table: table}
	if name == "" {
		out.Env = s.LookupEnv
	}
	return out, nil
}

// Variable returns what the environment says of attr.
func (s Settings) Variable(attr string) string {
	a, _ := s.table.Attr(attr)
	text, _ := s.Env.Get(a.Env...)
	return text
}

// Text returns attr of the block, or else of the environment.
func (s Settings) Text(attr string) string {
	if s.Has(attr) {
		return s.String(attr)
	}
	return s.Variable(attr)
}

// Seconds returns attr as [Settings.Text] does, otherwise where it is in
// neither.
func (s Settings) Seconds(attr string, least, most, otherwise int64) (int64, error) {
	if s.Has(attr) {
		return s.Int(attr, least, most)
	}
	text := s.Variable(attr)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, s.Errorf(attr, "its environment variable must be a number from %d to %d", least, most)
	}
	return n, nil
}

// Identity returns the attribute of attrs that says who reads, "" for none, and
// where to read it and what belongs to it: all in the block, or else all in the
// environment. There the first one counts; in a block, several are an error. ID
// is the one of attrs that secret_key and security_token belong to.
func (s Settings) Identity(id string, attrs ...string) (attr string, say func(string) string, err error) {
	for _, a := range attrs {
		switch {
		case s.String(a) == "":
		case attr != "":
			return "", nil, s.Errorf(a, "%s and %s are two identities; set one of them", attr, a)
		default:
			attr = a
		}
	}
	if attr != "" {
		return attr, s.String, nil
	}
	if s.Has("secret_key") || s.Has("security_token") {
		return "", nil, s.Errorf(id, "secret_key and security_token belong to %s, which is missing", id)
	}
	for _, a := range attrs {
		if s.Variable(a) != "" {
			return a, s.Variable, nil
		}
	}
	return "", s.Variable, nil
}

// Keys returns the keys with the given ID, as say says it.
func (s Settings) Keys(id string, say func(string) string) (aws.Credentials, error) {
	keys := Keys(say(id), say("secret_key"), say("security_token"))
	if keys.SecretAccessKey == "" {
		return keys, s.Errorf("secret_key", "%s needs secret_key", id)
	}
	if err := CheckKeys(keys); err != nil {
		return keys, s.Errorf(id, "%w", err)
	}
	return keys, nil
}

// NameAttr is the first attribute of a block of credentials.
func NameAttr() attr.Attr {
	return attr.Attr{
		Name: "name", Type: cty.String,
		Doc: "What `credentials_name` in a data source calls this block. One block may go without a name; it is for data sources without `credentials_name`.",
	}
}

// ChoiceAttr is the attribute of the data source that chooses a block of kind.
func ChoiceAttr(kind string) attr.Attr {
	return attr.Attr{
		Name: "credentials_name", Type: cty.String,
		Doc: "The `name` of the `" + kind + "` block of `credentials` that says who reads. Without it, the block without a name is used, or, where there are no blocks at all, the environment.",
	}
}

// KeyAttr is the name of the state in the backends oss and cos.
func KeyAttr() attr.Attr {
	return attr.Attr{
		Name: "key", Type: cty.String, Default: cty.StringVal("terraform.tfstate"),
		Doc: "The path of the state below `prefix`. Defaults to `terraform.tfstate`.",
	}
}

// VersionAttr pins a version of the object.
func VersionAttr() attr.Attr {
	return attr.Attr{
		Name: "version_id", Type: cty.String,
		Doc: "The version of the object to read, in a bucket that keeps versions. Defaults to the newest one. It belongs to the object of one workspace.",
	}
}
