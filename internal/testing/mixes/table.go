package mixes

import "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"

// Class says how the program treats a variable that a library reads by itself, without an attribute that declares it.
type Class int

const (
	// Refused variables are those in [world.Steering].
	Refused Class = iota
	// Withheld variables have no effect: the client gets every setting explicitly, is not used, or was silenced before
	// anything ran.
	Withheld
	// Harmless variables may take effect even if use_environment is false.
	Harmless
)

// Row lists variables that are treated in the same way.
type Row struct {
	Class Class
	Names string // separated by spaces; a name that ends with * stands for computed names
	Why   string
}

// Table returns the variables that the packages of this program read by themselves, on any system. A test searches the
// source code of all linked packages for such variables. A variable that a new version reads must be added here, or to
// [world.Steering], with the way it is treated.
func Table() []Row {
	rows := []Row{
		{Class: Withheld, Names: "AZURE_SDK_GO_LOGGING GOOGLE_SDK_GO_LOGGING_LEVEL GRPC_GO_LOG_FORMATTER GRPC_GO_LOG_SEVERITY_LEVEL " +
			"GRPC_GO_LOG_VERBOSITY_LEVEL",
			Why: "they have requests logged: main silences these loggers, and Google's clients get one that writes nothing"},
		{Class: Withheld, Names: "TF_LOG_SDK_PROTO_DATA_DIR",
			Why: "it has messages written to files: main unsets it"},
		{Class: Withheld, Names: "GRPC_BINARY_LOG_FILTER",
			Why: "it logs to a sink that nobody sets"},
		{Class: Withheld, Names: "AWS_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_ACCOUNT_ID AWS_ACCOUNT_ID_ENDPOINT_MODE AWS_AUTH_SCHEME_PREFERENCE " +
			"AWS_CONTAINER_AUTHORIZATION_TOKEN AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE " +
			"AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_CREDENTIALS_RELATIVE_URI AWS_DEFAULTS_MODE " +
			"AWS_DEFAULT_PROFILE AWS_DISABLE_CLOCK_SKEW_CORRECTION AWS_DISABLE_REQUEST_COMPRESSION " +
			"AWS_EC2_METADATA_DISABLED AWS_EC2_METADATA_V1_DISABLED AWS_ENABLE_ENDPOINT_DISCOVERY AWS_ENDPOINT_URL_* " +
			"AWS_ENDPOINT_URL_SIGNIN AWS_ENDPOINT_URL_SSO AWS_ENDPOINT_URL_SSO_OIDC " +
			"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS AWS_LOGIN_CACHE_DIRECTORY AWS_MAX_ATTEMPTS AWS_PROFILE " +
			"AWS_REQUEST_CHECKSUM_CALCULATION AWS_REQUEST_MIN_COMPRESSION_SIZE_BYTES " +
			"AWS_RESPONSE_CHECKSUM_VALIDATION AWS_RESTRICT_FILE_PERMISSIONS AWS_RETRY_MODE " +
			"AWS_S3_DISABLE_EXPRESS_SESSION_AUTH AWS_S3_DISABLE_MULTIREGION_ACCESS_POINTS AWS_S3_USE_ARN_REGION " +
			"AWS_SDK_UA_APP_ID AWS_SECRET_ACCESS_KEY AWS_SECRET_KEY AWS_SESSION_TOKEN AWS_USE_DUALSTACK_ENDPOINT " +
			"AWS_USE_FIPS_ENDPOINT",
			Why: "with the environment off, and beside keys of the code, AWS's own loader is not used, and its clients are told everything"},
		{Class: Withheld, Names: "AZURE_AUTHORITY_HOST",
			Why: "the client is told its cloud"},
		{Class: Withheld, Names: "AZURE_ADDITIONALLY_ALLOWED_TENANTS AZURE_CLIENT_CERTIFICATE_PASSWORD AZURE_CLIENT_CERTIFICATE_PATH " +
			"AZURE_CLIENT_SEND_CERTIFICATE_CHAIN AZURE_PASSWORD AZURE_TOKEN_CREDENTIALS AZURE_USERNAME",
			Why: "the credentials that read them are not used"},
		{Class: Withheld, Names: "AZURE_CLIENT_ID AZURE_CLIENT_SECRET AZURE_TENANT_ID AZURE_KUBERNETES_CA_DATA AZURE_KUBERNETES_CA_FILE " +
			"AZURE_KUBERNETES_SNI_NAME AZURE_KUBERNETES_TOKEN_PROXY",
			Why: "only workload identity reads them, which is refused if the environment is off"},
		{Class: Withheld, Names: "REGION_NAME",
			Why: "it counts if a region is to be detected, which MSAL_FORCE_REGION asks for"},
		{Class: Withheld, Names: "GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_QUOTA_PROJECT",
			Why: "Google's services are asked by our own clients, which are told who pays"},
		{Class: Withheld, Names: "GOOGLE_API_CERTIFICATE_CONFIG GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES",
			Why: "credentials with a certificate or a program are refused if the environment is off"},
		{Class: Withheld, Names: "BAO_PLUGIN_AUTOMTLS_ENABLED BAO_PLUGIN_METADATA_MODE BAO_RATE_LIMIT BAO_SRV_LOOKUP BAO_UNWRAP_TOKEN " +
			"BAO_WRAP_TTL VAULT_*",
			Why: "the client of OpenBao gets a configuration that reads no variable"},
		{Class: Withheld, Names: "PGAPPNAME PGCHANNELBINDING PGCONNECT_TIMEOUT PGDATABASE PGHOST PGMAXPROTOCOLVERSION " +
			"PGMINPROTOCOLVERSION PGOPTIONS PGPASSFILE PGPASSWORD PGPORT PGREQUIREAUTH PGSERVICE PGSERVICEFILE " +
			"PGSSLCERT PGSSLCERTMODE PGSSLKEY PGSSLMODE PGSSLNEGOTIATION PGSSLPASSWORD PGSSLROOTCERT PGSSLSNI " +
			"PGTARGETSESSIONATTRS PGTZ PGUSER",
			Why: "the driver is told every keyword; a PGSERVICE that cannot be read is an error, and none of it is used"},
		{Class: Withheld, Names: "KUBECONFIG KUBERNETES_MASTER KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT POD_NAMESPACE",
			Why: "the settings name kubeconfigs, and what a pod's variables say is read through them"},
		{Class: Withheld, Names: "AGEDEBUG",
			Why: "it shows the keys that age's own client exchanges with plugins; that client is not used"},
		{Class: Withheld, Names: "HTTP_PROXY http_proxy REQUEST_METHOD",
			Why: "with the environment off, connections get no proxy"},
		{Class: Withheld, Names: "GRPC_ALTS_MAX_CONCURRENT_HANDSHAKES GRPC_EXPERIMENTAL_ALTS_HANDSHAKER_KEEPALIVE_PARAMS " +
			"GRPC_EXPERIMENTAL_XDS_AUTHORITY_REWRITE GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS " +
			"GRPC_EXPERIMENTAL_XDS_DUALSTACK_ENDPOINTS GRPC_EXPERIMENTAL_XDS_EXT_AUTHZ_ON_CLIENT " +
			"GRPC_EXPERIMENTAL_XDS_EXT_PROC_ON_CLIENT GRPC_GO_EXPERIMENTAL_ALTS_MAX_FRAME_SIZE " +
			"GRPC_EXPERIMENTAL_XDS_GCP_AUTHENTICATION_FILTER GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT " +
			"GRPC_EXPERIMENTAL_XDS_MTLS_SPIFFE GRPC_EXPERIMENTAL_XDS_ORCA_LRS_PROPAGATION GRPC_EXPERIMENTAL_XDS_SNI " +
			"GRPC_EXPERIMENTAL_XDS_SYSTEM_ROOT_CERTS GRPC_GCP_OBSERVABILITY_CONFIG " +
			"GRPC_GCP_OBSERVABILITY_CONFIG_FILE GRPC_GO_EXPERIMENTAL_XDS_RESOURCE_PANIC_RECOVERY " +
			"GRPC_TEST_ONLY_GOOGLE_C2P_RESOLVER_TRAFFIC_DIRECTOR_URI GRPC_XDS_BOOTSTRAP GRPC_XDS_BOOTSTRAP_CONFIG " +
			"GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT",
			Why: "no address here is resolved by xDS, and no connection is one of ALTS"},

		{Class: Harmless, Names: "HOME HOMEDRIVE HOMEPATH USERPROFILE APPDATA XDG_CACHE_HOME XDG_CONFIG_HOME ProgramData USER USERNAME " +
			"USERDOMAIN",
			Why: "they say who the user is, whose files are not environment"},
		{Class: Harmless, Names: "PATH path PATHEXT NoDefaultCurrentDirectoryInExePath SYSTEMROOT OS",
			Why: "programs are found by them, and cannot run without"},
		{Class: Harmless, Names: "GODEBUG GOGC GOMAXPROCS GOMEMLIMIT GOROOT GOTRACEBACK GOTMPDIR DEBUG_HTTP2_GOROUTINES GOPROTODEBUG " +
			"GOLANG_PROTOBUF_REGISTRATION_CONFLICT",
			Why: "they are about Go's runtime; what GODEBUG=http2debug=2 logs is discarded"},
		{Class: Harmless, Names: "TZ ZONEINFO",
			Why: "no time decides about a secret, and expiry is compared in UTC"},
		{Class: Harmless, Names: "ASR_CONFIG HOSTALIASES LOCALDOMAIN RES_OPTIONS",
			Why: "they change how names are resolved; a verified connection still leads to its host"},
		{Class: Harmless, Names: "NO_COLOR TERM",
			Why: "they are about the looks of output"},
		{Class: Harmless, Names: "DISABLE_HTTP2 HTTP2_PING_TIMEOUT_SECONDS HTTP2_READ_IDLE_TIMEOUT_SECONDS KUBE_CLIENT_BACKOFF_BASE " +
			"KUBE_CLIENT_BACKOFF_DURATION KUBE_FEATURE_* KUBE_PATCH_CONVERSION_DETECTOR",
			Why: "they tune a client's HTTP/2 and its retries, and turn on features that no read uses"},
		{Class: Harmless, Names: "GRPC_ENABLE_TXT_SERVICE_CONFIG GRPC_ENFORCE_ALPN_ENABLED " +
			"GRPC_EXPERIMENTAL_ENABLE_DEFAULT_PORT_FOR_PROXY_TARGET " +
			"GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING " +
			"GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY " +
			"GRPC_GO_EXPERIMENTAL_CASE_SENSITIVE_BALANCER_REGISTRIES " +
			"GRPC_GO_EXPERIMENTAL_CONTROL_BUFFER_THROTTLE_LIMIT " +
			"GRPC_GO_EXPERIMENTAL_ENABLE_8KB_DEFAULT_HEADER_LIST_SIZE " +
			"GRPC_GO_EXPERIMENTAL_ENABLE_RECEIVE_BUFFER_COMPACTION " +
			"GRPC_GO_EXPERIMENTAL_HTTP_FRAMER_READ_BUFFER_POOLING GRPC_GO_IGNORE_TXT_ERRORS " +
			"GRPC_GO_SERVER_GOROUTINE_LABELS GRPC_RING_HASH_CAP",
			Why: "they tune balancing and buffers"},
		{Class: Harmless, Names: "AWS_EXECUTION_ENV AWS_LAMBDA_FUNCTION_NAME _X_AMZN_TRACE_ID " +
			"AWS_ENABLE_DEFAULT_SOCKET_TIMEOUT_2026",
			Why: "they set a time limit, and name the runtime and the trace in headers"},
		{Class: Harmless, Names: "AZURE_STORAGE_DISABLE_EXPECT_CONTINUE_HEADER AZURE_STORAGE_USE_LEGACY_DEFAULT_CONCURRENCY",
			Why: "they tune how large files are transferred"},
		{Class: Harmless, Names: "PLUGIN_CLIENT_CERT PLUGIN_MAX_PORT PLUGIN_MIN_PORT PLUGIN_MULTIPLEX_GRPC PLUGIN_PROTOCOL_VERSIONS " +
			"PLUGIN_UNIX_SOCKET_DIR PLUGIN_UNIX_SOCKET_GROUP TF_PLUGIN_MAGIC_COOKIE",
			Why: "the CLI sets them when it starts the provider"},
		{Class: Harmless, Names: "TF_ACC_LOG_PATH TF_LOG TF_LOG_PATH TF_LOG_PATH_MASK TF_LOG_PROVIDER TF_LOG_SDK TF_LOG_SDK_FRAMEWORK " +
			"TF_LOG_SDK_PROTO",
			Why: "the plugin libraries log calls, types and diagnostics, and no values"},
	}
	for _, some := range world.Steering() {
		rows = append(rows, Row{Refused, some.Names, some.Why})
	}
	return rows
}
