module github.com/statecrypt/terraform-provider-statecrypt

go 1.26.0

require (
	github.com/agext/levenshtein v1.2.3 // "Did you mean", with the measure that hcl uses
	github.com/hashicorp/go-cleanhttp v0.5.2 // HTTP transports that share nothing with other code
	github.com/hashicorp/go-retryablehttp v0.7.8 // retries and Retry-After, as Terraform's http backend does them
	github.com/hashicorp/hcl/v2 v2.25.0 // the parser of OpenTofu's encryption text
	github.com/hashicorp/terraform-plugin-framework v1.19.0 // the provider itself
	github.com/hashicorp/terraform-plugin-framework-validators v0.19.0 // how often a block may stand
	github.com/hashicorp/terraform-plugin-go v0.31.0 // values as they go over the plugin protocol
	github.com/zclconf/go-cty v1.19.0 // the types and values of states and configurations
	golang.org/x/net v0.60.0 // proxies from the environment, which can be switched off
	golang.org/x/text v0.43.0 // file names in git that are spelled with other code points
)

// For tests only.
require (
	github.com/hashicorp/terraform-plugin-testing v1.16.0 // acceptance tests through the CLIs
	golang.org/x/crypto v0.58.0 // the ssh server of the git tests
	google.golang.org/grpc v1.79.3 // the benchmark of the provider's start
)

require (
	github.com/ProtonMail/go-crypto v1.4.1 // indirect
	github.com/apparentlymart/go-textseg/v15 v15.0.0 // indirect
	github.com/apparentlymart/go-textseg/v17 v17.0.1 // indirect
	github.com/cloudflare/circl v1.6.3 // indirect
	github.com/fatih/color v1.18.0 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-checkpoint v0.5.0 // indirect
	github.com/hashicorp/go-cty v1.5.0 // indirect
	github.com/hashicorp/go-hclog v1.6.3 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/hashicorp/go-plugin v1.7.0 // indirect
	github.com/hashicorp/go-uuid v1.0.3 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	github.com/hashicorp/hc-install v0.9.4 // indirect
	github.com/hashicorp/logutils v1.0.0 // indirect
	github.com/hashicorp/terraform-exec v0.25.1 // indirect
	github.com/hashicorp/terraform-json v0.27.2 // indirect
	github.com/hashicorp/terraform-plugin-log v0.10.0 // indirect
	github.com/hashicorp/terraform-plugin-sdk/v2 v2.40.0 // indirect
	github.com/hashicorp/terraform-registry-address v0.4.0 // indirect
	github.com/hashicorp/terraform-svchost v0.2.1 // indirect
	github.com/hashicorp/yamux v0.1.2 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/go-testing-interface v1.14.1 // indirect
	github.com/mitchellh/go-wordwrap v1.0.1 // indirect
	github.com/mitchellh/mapstructure v1.5.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/oklog/run v1.2.0 // indirect
	github.com/vmihailenco/msgpack v4.0.4+incompatible // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/appengine v1.6.8 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251202230838-ff82c1b0f217 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
