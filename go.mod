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
	golang.org/x/crypto v0.58.0 // the ssh server of the git tests; a cipher of a third party
)

// Key services.
require (
	cloud.google.com/go/auth v0.20.0 // credentials for Google Cloud
	cloud.google.com/go/kms v1.32.0 // Cloud KMS; newer releases need modules that not every proxy has
	github.com/Azure/azure-sdk-for-go/sdk/azcore v1.23.3 // Azure, the vendor's own client
	github.com/Azure/azure-sdk-for-go/sdk/azidentity v1.15.0 // every way to sign in to Azure
	github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys v1.5.0 // Azure Key Vault
	github.com/aws/aws-sdk-go-v2 v1.47.6 // AWS, the vendor's own client
	github.com/aws/aws-sdk-go-v2/config v1.33.14 // AWS profiles and credential chain
	github.com/aws/aws-sdk-go-v2/credentials v1.20.14 // AWS roles and static credentials
	github.com/aws/aws-sdk-go-v2/feature/ec2/imds v1.20.6 // AWS credentials of an instance
	github.com/aws/aws-sdk-go-v2/service/kms v1.62.2 // AWS KMS
	github.com/aws/aws-sdk-go-v2/service/sts v1.51.7 // AWS roles
	github.com/aws/smithy-go v1.28.8 // errors of the AWS client
	github.com/googleapis/gax-go/v2 v2.23.0 // errors of the Google client
	github.com/openbao/openbao/api/v2 v2.7.1 // OpenBao and Vault, the vendor's own client
	google.golang.org/api v0.287.1 // options of the Google client
	google.golang.org/grpc v1.82.0 // status codes of Cloud KMS
	google.golang.org/protobuf v1.36.11 // checksums in Cloud KMS messages
)

require (
	cloud.google.com/go v0.123.0 // indirect
	cloud.google.com/go/auth/oauth2adapt v0.2.8 // indirect
	cloud.google.com/go/compute/metadata v0.9.0 // indirect
	cloud.google.com/go/iam v1.11.0 // indirect
	cloud.google.com/go/longrunning v1.2.0 // indirect
	github.com/Azure/azure-sdk-for-go/sdk/internal v1.13.0 // indirect
	github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/internal v1.2.0 // indirect
	github.com/AzureAD/microsoft-authentication-library-for-go v1.10.1 // indirect
	github.com/ProtonMail/go-crypto v1.4.1 // indirect
	github.com/apparentlymart/go-textseg/v15 v15.0.0 // indirect
	github.com/apparentlymart/go-textseg/v17 v17.0.1 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.9 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.9 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.9 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.24 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.9 // indirect
	github.com/aws/aws-sdk-go-v2/service/signin v1.12.2 // indirect
	github.com/aws/aws-sdk-go-v2/service/sso v1.39.2 // indirect
	github.com/aws/aws-sdk-go-v2/service/ssooidc v1.44.2 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cloudflare/circl v1.6.3 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/felixge/httpsnoop v1.0.4 // indirect
	github.com/go-jose/go-jose/v4 v4.1.4 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-viper/mapstructure/v2 v2.5.0 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/s2a-go v0.1.9 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/googleapis/enterprise-certificate-proxy v0.3.17 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-checkpoint v0.5.0 // indirect
	github.com/hashicorp/go-cty v1.5.0 // indirect
	github.com/hashicorp/go-hclog v1.6.3 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/hashicorp/go-plugin v1.7.0 // indirect
	github.com/hashicorp/go-secure-stdlib/parseutil v0.2.0 // indirect
	github.com/hashicorp/go-secure-stdlib/strutil v0.1.2 // indirect
	github.com/hashicorp/go-sockaddr v1.0.7 // indirect
	github.com/hashicorp/go-uuid v1.0.3 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	github.com/hashicorp/hc-install v0.9.4 // indirect
	github.com/hashicorp/hcl v1.0.1-vault-7 // indirect
	github.com/hashicorp/logutils v1.0.0 // indirect
	github.com/hashicorp/terraform-exec v0.25.1 // indirect
	github.com/hashicorp/terraform-json v0.27.2 // indirect
	github.com/hashicorp/terraform-plugin-log v0.10.0 // indirect
	github.com/hashicorp/terraform-plugin-sdk/v2 v2.40.0 // indirect
	github.com/hashicorp/terraform-registry-address v0.4.0 // indirect
	github.com/hashicorp/terraform-svchost v0.2.1 // indirect
	github.com/hashicorp/yamux v0.1.2 // indirect
	github.com/kylelemons/godebug v1.1.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/go-testing-interface v1.14.1 // indirect
	github.com/mitchellh/go-wordwrap v1.0.1 // indirect
	github.com/mitchellh/mapstructure v1.5.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/oklog/run v1.2.0 // indirect
	github.com/pkg/browser v0.0.0-20240102092130-5ac0b6a4141c // indirect
	github.com/ryanuber/go-glob v1.0.0 // indirect
	github.com/vmihailenco/msgpack v4.0.4+incompatible // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.67.0 // indirect
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.67.0 // indirect
	go.opentelemetry.io/otel v1.44.0 // indirect
	go.opentelemetry.io/otel/metric v1.44.0 // indirect
	go.opentelemetry.io/otel/trace v1.44.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/appengine v1.6.8 // indirect
	google.golang.org/genproto v0.0.0-20260319201613-d00831a3d3e7 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260630182238-925bb5da69e7 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260630182238-925bb5da69e7 // indirect
)
