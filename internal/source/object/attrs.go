package object

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

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
		Doc: "The version of the object to read, in a bucket that keeps versions. Defaults to the newest one. It belongs to the object " +
			"of one workspace.",
	}
}
