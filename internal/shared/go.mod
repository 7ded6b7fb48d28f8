module github.com/statecrypt/terraform-provider-statecrypt/internal/shared

// What the library and the provider both import. It is a module because the library
// is one: a program that opens states needs nothing of what the provider needs.

go 1.26.0

require (
	github.com/agext/levenshtein v1.2.3 // "Did you mean", with the measure that hcl uses
	github.com/hashicorp/hcl/v2 v2.25.0 // names and addresses, as OpenTofu's language has them
	github.com/zclconf/go-cty v1.20.0 // the types and values of attributes
	golang.org/x/sys v0.50.0 // how Windows ends programs with us
)

require (
	github.com/apparentlymart/go-textseg/v15 v15.0.0 // indirect
	github.com/apparentlymart/go-textseg/v17 v17.0.1 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/go-test/deep v1.1.1 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/mitchellh/go-wordwrap v1.0.1 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
)
