module github.com/statecrypt/terraform-provider-statecrypt

go 1.26.0

require (
	github.com/agext/levenshtein v1.2.3 // "Did you mean", with the measure that hcl uses
	github.com/hashicorp/go-cleanhttp v0.5.2 // HTTP transports that share nothing with other code
	github.com/hashicorp/go-retryablehttp v0.7.8 // retries and Retry-After, as Terraform's http backend does them
	github.com/hashicorp/hcl v1.0.1-vault-7 // files of the CLIs, which are HCL 1 to them
	github.com/hashicorp/hcl/v2 v2.25.0 // the parser of OpenTofu's encryption text
	github.com/hashicorp/terraform-plugin-framework v1.19.0 // the provider itself
	github.com/hashicorp/terraform-plugin-go v0.31.0 // values as they go over the plugin protocol
	github.com/vmihailenco/msgpack/v5 v5.4.1 // results as they go over the plugin protocol
	github.com/zclconf/go-cty v1.20.0 // the types and values of states and configurations
	golang.org/x/crypto v0.58.0 // NaCl's secretbox, ssh keys; in tests, an ssh server; the last one with openpgp, as in encryption/go.mod
	golang.org/x/net v0.62.0 // proxies from the environment, which can be switched off
	golang.org/x/sync v0.25.0 // how much memory many files take at once
	golang.org/x/sys v0.50.0 // how Linux hands a secret to git, and Windows ends git with us
	golang.org/x/term v0.48.0 // whether a stream is a terminal
	golang.org/x/text v0.44.0 // file names in git that are spelled with other code points
	google.golang.org/grpc v1.85.0 // what the plugin protocol is spoken with, whose log is silenced
	google.golang.org/protobuf v1.36.12 // plans
)

// Modules of this repository. go.work says where they are; a release has all of them.
require (
	github.com/statecrypt/terraform-provider-statecrypt/encryption v0.1.0 // the library
	github.com/statecrypt/terraform-provider-statecrypt/internal/shared v0.1.0 // what it shares with the rest
)

// For tests only.
require (
	cloud.google.com/go/kms v1.37.0 // the messages of Cloud KMS, for its fake, as OpenTofu calls it over gRPC
	github.com/hashicorp/terraform-plugin-testing v1.16.0 // acceptance tests through the CLIs
	golang.org/x/mod v0.43.0 // archives of modules
)

// Key services.
require (
	cloud.google.com/go/auth v0.24.4 // credentials for Google Cloud
	github.com/Azure/azure-sdk-for-go/sdk/azcore v1.24.0 // Azure, the vendor's own client
	github.com/Azure/azure-sdk-for-go/sdk/azidentity v1.15.0 // every way to sign in to Azure
	github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys v1.5.0 // Azure Key Vault
	github.com/aws/aws-sdk-go-v2 v1.48.0 // AWS, the vendor's own client
	github.com/aws/aws-sdk-go-v2/config v1.33.18 // AWS profiles and credential chain
	github.com/aws/aws-sdk-go-v2/credentials v1.21.0 // AWS roles and static credentials
	github.com/aws/aws-sdk-go-v2/feature/ec2/imds v1.20.9 // AWS credentials of an instance
	github.com/aws/aws-sdk-go-v2/service/kms v1.62.6 // AWS KMS
	github.com/aws/aws-sdk-go-v2/service/signin v1.13.1 // AWS profiles of aws login
	github.com/aws/aws-sdk-go-v2/service/sso v1.39.5 // AWS single sign-on
	github.com/aws/aws-sdk-go-v2/service/ssooidc v1.44.5 // AWS single sign-on, its tokens
	github.com/aws/aws-sdk-go-v2/service/sts v1.52.0 // AWS roles
	github.com/aws/smithy-go v1.28.9 // errors of the AWS client
	github.com/openbao/openbao/api/v2 v2.7.1 // OpenBao and Vault, the vendor's own client
)

// Formats and places of others.
require (
	filippo.io/age v1.3.2 // files encrypted by age
	github.com/ProtonMail/go-crypto v1.5.2 // armoured PGP keys, with the implementation that sops uses
	github.com/getsops/sops/v3 v3.13.3 // Shamir's method as sops has it; in tests, all of sops, to compare with
	go.yaml.in/yaml/v3 v3.0.6 // manifests, before anything in them is expanded
	k8s.io/apimachinery v0.37.2 // what the Kubernetes client speaks
	k8s.io/client-go v0.37.2 // kubeconfig files and the Kubernetes REST client
	k8s.io/klog/v2 v2.140.0 // to keep the Kubernetes client from logging
	sigs.k8s.io/yaml v1.6.0 // manifests, read as Kubernetes reads them
)

// Stores of states.
require (
	github.com/Azure/azure-sdk-for-go/sdk/storage/azblob v1.8.3 // Azure Storage, the vendor's own client
	github.com/aws/aws-sdk-go-v2/service/s3 v1.114.10 // S3 and what speaks like it, the vendor's own client
	github.com/hashicorp/terraform-svchost v0.2.1 // host names as Terraform compares them, and service discovery
	github.com/jackc/pgx/v5 v5.13.0 // PostgreSQL, with the settings of libpq
)

require (
	cel.dev/expr v0.25.3 // indirect
	cloud.google.com/go v0.123.0 // indirect
	cloud.google.com/go/auth/oauth2adapt v0.3.0 // indirect
	cloud.google.com/go/compute/metadata v0.10.0 // indirect
	cloud.google.com/go/iam v1.14.0 // indirect
	cloud.google.com/go/longrunning v1.5.0 // indirect
	cloud.google.com/go/monitoring v1.30.0 // indirect
	cloud.google.com/go/storage v1.63.1 // indirect
	filippo.io/edwards25519 v1.2.0 // indirect
	filippo.io/hpke v0.4.0 // indirect
	filippo.io/nistec v0.0.4 // indirect
	github.com/Azure/azure-sdk-for-go/sdk/internal v1.13.0 // indirect
	github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/internal v1.2.0 // indirect
	github.com/Azure/azure-sdk-for-go/sdk/storage/internal v0.1.0 // indirect
	github.com/AzureAD/microsoft-authentication-library-for-go v1.10.1 // indirect
	github.com/GoogleCloudPlatform/opentelemetry-operations-go/detectors/gcp v1.35.0 // indirect
	github.com/GoogleCloudPlatform/opentelemetry-operations-go/exporter/metric v0.58.0 // indirect
	github.com/GoogleCloudPlatform/opentelemetry-operations-go/internal/resourcemapping v0.58.0 // indirect
	github.com/apparentlymart/go-textseg/v15 v15.0.0 // indirect
	github.com/apparentlymart/go-textseg/v17 v17.0.1 // indirect
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.27 // indirect
	github.com/aws/aws-sdk-go-v2/feature/s3/manager v1.22.34 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.12 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.12 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.12 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.25 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/checksum v1.11.13 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.12 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/s3shared v1.20.12 // indirect
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cloudflare/circl v1.6.4 // indirect
	github.com/cncf/xds/go v0.0.0-20260202195803-dba9d589def2 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/envoyproxy/go-control-plane/envoy v1.39.1-0.20260819172001-e6e3fd93e4be // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.3 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/felixge/httpsnoop v1.1.0 // indirect
	github.com/fxamacker/cbor/v2 v2.9.1 // indirect
	github.com/getsops/gopgagent v0.0.0-20241224165529-7044f28e491e // indirect
	github.com/go-jose/go-jose/v4 v4.1.4 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-viper/mapstructure/v2 v2.5.0 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/s2a-go v0.1.11 // indirect
	github.com/google/shlex v0.0.0-20191202100458-e7afc7fbc510 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/googleapis/enterprise-certificate-proxy v0.3.23 // indirect
	github.com/googleapis/gax-go/v2 v2.27.0 // indirect
	github.com/goware/prefixer v0.0.0-20160118172347-395022866408 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-checkpoint v0.5.0 // indirect
	github.com/hashicorp/go-cty v1.5.0 // indirect
	github.com/hashicorp/go-hclog v1.6.3 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/hashicorp/go-plugin v1.7.0 // indirect
	github.com/hashicorp/go-rootcerts v1.0.2 // indirect
	github.com/hashicorp/go-secure-stdlib/parseutil v0.2.0 // indirect
	github.com/hashicorp/go-secure-stdlib/strutil v0.1.2 // indirect
	github.com/hashicorp/go-sockaddr v1.0.7 // indirect
	github.com/hashicorp/go-uuid v1.0.3 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	github.com/hashicorp/hc-install v0.9.4 // indirect
	github.com/hashicorp/logutils v1.0.0 // indirect
	github.com/hashicorp/terraform-exec v0.25.1 // indirect
	github.com/hashicorp/terraform-json v0.27.2 // indirect
	github.com/hashicorp/terraform-plugin-log v0.10.0 // indirect
	github.com/hashicorp/terraform-plugin-sdk/v2 v2.40.0 // indirect
	github.com/hashicorp/terraform-registry-address v0.4.0 // indirect
	github.com/hashicorp/vault/api v1.23.0 // indirect
	github.com/hashicorp/yamux v0.1.2 // indirect
	github.com/huaweicloud/huaweicloud-sdk-go-v3 v0.1.207 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/json-iterator/go v1.1.13-0.20220915233716-71ac16282d12 // indirect
	github.com/kylelemons/godebug v1.1.0 // indirect
	github.com/lib/pq v1.12.3 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/go-homedir v1.1.0 // indirect
	github.com/mitchellh/go-testing-interface v1.14.1 // indirect
	github.com/mitchellh/go-wordwrap v1.0.1 // indirect
	github.com/mitchellh/mapstructure v1.5.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/oklog/run v1.2.0 // indirect
	github.com/pkg/browser v0.0.0-20240102092130-5ac0b6a4141c // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
	github.com/ryanuber/go-glob v1.0.0 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	github.com/spiffe/go-spiffe/v2 v2.8.1 // indirect
	github.com/tjfoc/gmsm v1.4.1 // indirect
	github.com/vmihailenco/msgpack v4.0.4+incompatible // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/zclconf/go-cty-yaml v1.2.0 // indirect
	go.mongodb.org/mongo-driver v1.17.9 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/contrib/detectors/gcp v1.45.0 // indirect
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.72.0 // indirect
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.72.0 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/sdk v1.47.0 // indirect
	go.opentelemetry.io/otel/sdk/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	golang.org/x/oauth2 v0.37.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	google.golang.org/api v0.304.0 // indirect
	google.golang.org/appengine v1.6.8 // indirect
	google.golang.org/genproto v0.0.0-20261012220534-4341edf3f941 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20261012220534-4341edf3f941 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261012220534-4341edf3f941 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	gopkg.in/ini.v1 v1.67.3 // indirect
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad // indirect
	k8s.io/utils v0.0.0-20260626114624-be93311217bd // indirect
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730 // indirect
	sigs.k8s.io/randfill v1.0.0 // indirect
	sigs.k8s.io/structured-merge-diff/v6 v6.4.2 // indirect
)
