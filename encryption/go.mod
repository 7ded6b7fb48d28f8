module github.com/statecrypt/terraform-provider-statecrypt/encryption

// The library: what OpenTofu, Terraform and other tools encrypted, for any Go program.
// Kinds that need an SDK are in the module above, in builtin.

go 1.26.0

require (
	c2sp.org/CCTV/age v0.0.0-20260829155415-4448f2097b2d // in tests, the files that all programs of age must open or refuse
	filippo.io/age v1.3.2 // files and keys encrypted with age
	github.com/hashicorp/hcl/v2 v2.25.0 // the parser of OpenTofu's encryption text
	github.com/statecrypt/terraform-provider-statecrypt/internal/shared v0.1.0
	github.com/zclconf/go-cty v1.20.0 // the types and values of states and configurations
	golang.org/x/crypto v0.58.0 // NaCl's secretbox, ssh keys; the last one with openpgp, which programs that adopt this may need
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	filippo.io/hpke v0.4.0 // indirect
	filippo.io/nistec v0.0.4 // indirect
	github.com/agext/levenshtein v1.2.3 // indirect
	github.com/apparentlymart/go-textseg/v15 v15.0.0 // indirect
	github.com/apparentlymart/go-textseg/v17 v17.0.1 // indirect
	github.com/mitchellh/go-wordwrap v1.0.1 // indirect
	github.com/zclconf/go-cty-yaml v1.2.0 // the function yamldecode, as OpenTofu has it
	golang.org/x/mod v0.43.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/term v0.48.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
)
