package object

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// NameAttr is the first attribute of a block of credentials.
func NameAttr() attr.Attr {
	return attr.Attr{
		Name: "name", Type: cty.String,
		Doc: "What `credentials_name` in a data source calls this block. One block may go without a name; it is for data sources " +
			"without `credentials_name`.",
	}
}

// ChoiceAttr is the attribute of the data source that chooses a block of kind.
func ChoiceAttr(kind string) attr.Attr {
	return attr.Attr{
		Name: "credentials_name", Type: cty.String,
		Doc: "The `name` of the `" + kind + "` block of `credentials` that says who reads. Without it, the block without a name is " +
			"used, or, where there are no blocks at all, the environment.",
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
		Doc: "The version of the object to read, in a bucket that keeps versions. Defaults to the newest one. It belongs to the object " +
			"of one workspace.",
	}
}
