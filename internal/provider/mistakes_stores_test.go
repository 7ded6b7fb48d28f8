package provider

import "strings"

// mistakenStores are the sources of clouds and other services, with their credentials.
func (p *mistakenPlace) mistakenStores() []mistake {
	good := textProvider(staticText)
	s3 := from("s3", "bucket = \"acme-states\"\nkey = \"s\"\nregion = \"eu-west-1\"")
	gcs := from("gcs", `bucket = "acme-states"`)
	pg := from("pg", "")
	consul := from("consul", `path = "states/network"`)
	kubernetes := from("kubernetes", `secret_suffix = "network"`)
	bucket := "bucket = \"acme-states\"\nkey = \"network/terraform.tfstate\"\n"
	west := bucket + "region = \"eu-west-1\""
	storage := from("azurerm", "storage_account_name = \"acme\"\ncontainer_name = \"states\"\nkey = \"network.tfstate\"")
	blob := from("azurerm", "storage_account_name = \"acmestates\"\ncontainer_name = \"states\"\nkey = \"s\"")
	const noBundle = "AWS_CA_BUNDLE=" // which would be an error of its own beside a secret
	return []mistake{
		// S3.
		{name: "s3, empty version", provider: good, body: reads("s",
			"s3 {\nbucket = \"acme-states\"\nkey = \"s\"\nregion = \"eu-west-1\"\nversion_id = \"\"\n}")},
		{name: "s3 without a key", provider: good, body: reads("s", "s3 {\nbucket = \"acme-states\"\nregion = \"eu-west-1\"\n}")},
		{name: "s3, no region", provider: settings("use_environment = false"), body: from("s3", bucket)},
		{name: "s3, bucket as a URL", body: from("s3", "bucket = \"s3://acme-states\"\nkey = \"s\"\nregion = \"eu-west-1\"")},
		{name: "s3, key with a slash at its start", body: from("s3", "bucket = \"acme-states\"\nkey = \"/s\"\nregion = \"eu-west-1\"")},
		{name: "s3, secret key alone", env: noBundle, provider: credentials("s3", `secret_key = "s"`), body: from("s3", west)},
		{name: "s3, no such profile", env: noBundle,
			provider: credentials("s3", "profile = \"prod\"\nshared_config_files = [\"/no/such/config\"]\n"+
				"shared_credentials_files = [\"/no/such/credentials\"]"), body: from("s3", west)},
		{name: "s3, secret key with a line break", env: noBundle, body: from("s3", west),
			provider: credentials("s3", "access_key = \"A\"\nsecret_key = \"s\\n\"")},
		{name: "s3, bundle of nobody", env: noBundle, provider: credentials("s3", "access_key = \"A\"\nsecret_key = \"s\"\n"+
			"custom_ca_bundle = \"/no/such/ca.pem\""), body: from("s3", west)},
		{name: "s3, credentials_name of nobody", env: noBundle,
			provider: credentials("s3", "name = \"prod\"\naccess_key = \"A\"\nsecret_key = \"s\""),
			body:     from("s3", bucket+"region = \"eu-west-1\"\ncredentials_name = \"staging\"")},
		{name: "s3, credentials_name missing", env: noBundle,
			provider: credentials("s3", "name = \"prod\"\naccess_key = \"A\"\nsecret_key = \"s\""),
			body:     from("s3", bucket+`region = "eu-west-1"`)},
		{name: "s3, dynamodb_table", body: from("s3", bucket+"region = \"eu-west-1\"\ndynamodb_table = \"locks\"")},
		{name: "s3, profile in the source", body: from("s3", bucket+"region = \"eu-west-1\"\nprofile = \"prod\"")},
		{name: "s3, two without a name", env: noBundle, body: s3,
			provider: settings("credentials {\ns3 {\nprofile = \"a\"\n}\ns3 {\nprofile = \"b\"\n}\n}")},
		{name: "s3, one name twice", env: noBundle, body: s3,
			provider: settings("credentials {\ns3 {\nname = \"a\"\nprofile = \"a\"\n}\ns3 {\nname = \"a\"\nprofile = \"b\"\n}\n}")},
		{name: "s3, key is a URL", env: noBundle, body: strings.Replace(s3, "key = \"s\"", "key = \"s3://acme-states/s\"", 1)},
		{name: "s3, name of a role", env: noBundle, body: s3, provider: credentials("s3", "assume_role {\nrole_arn = \"reader\"\n}")},
		{name: "s3, content of the shared file", env: noBundle, body: s3,
			provider: credentials("s3", "shared_credentials_files = [\"[default]\\naws_access_key_id = A\\n\"]")},
		{name: "s3, half of a key in the environment", env: "AWS_ACCESS_KEY_ID=AKIA", body: s3,
			provider: credentials("s3", "skip_metadata_api_check = true")},
		{name: "s3, nothing to sign in with", env: noBundle, body: s3, provider: credentials("s3", "skip_metadata_api_check = true")},
		{name: "s3, nothing to sign in with, and no block", env: "AWS_EC2_METADATA_DISABLED=true", body: s3, provider: good},
		{name: "s3, profile of the environment", env: "AWS_PROFILE=prod", body: s3,
			provider: credentials("s3", "skip_metadata_api_check = true")},
		{name: "s3, keys exchanged", cli: true, body: s3, provider: credentials("s3", "access_key = \"wJalrXUtnFEMI\"\nsecret_key = "+
			"\"AKIAIOSFODNN7EXAMPLE\""), env: noBundle},
		{name: "s3, temporary key without a token", body: s3, provider: credentials("s3", "access_key = \"ASIAIOSFODNN7EXAMPLE\"\n"+
			"secret_key = \"s\""), env: noBundle},
		{name: "s3, token file of the environment", env: "AWS_WEB_IDENTITY_TOKEN_FILE=/no/such/token", body: s3,
			provider: credentials("s3", "skip_metadata_api_check = true\nassume_role_with_web_identity {\nrole_arn = "+
				"\"arn:aws:iam::123456789012:role/r\"\n}")},
		{name: "s3, role of the environment alone", env: "AWS_ROLE_ARN=arn:aws:iam::123456789012:role/r", body: s3,
			provider: credentials("s3", "skip_metadata_api_check = true")},
		{name: "s3, availability zone", body: from("s3", "bucket = \"acme-states\"\nkey = \"s\"\nregion = \"eu-west-1a\""), provider: good},
		{name: "s3, path in the bucket", body: from("s3", "bucket = \"acme-states/network\"\nkey = \"s\"\nregion = \"eu-west-1\""),
			provider: good},
		// OSS.
		{name: "oss, profile in no file", provider: credentials("oss", "profile = \"prod\"\nshared_credentials_file = \"/no/such/config.json\""),
			body: from("oss", "bucket = \"acme-states\"\nregion = \"eu-central-1\"")},
		{name: "oss, region with oss-", body: reads("s", "oss {\nbucket = \"acme-states\"\nregion = \"oss-eu-central-1\"\n}"),
			provider: credentials("oss", "access_key = \"a\"\nsecret_key = \"s\"")},
		// COS.
		{name: "cos, bucket without an account", body: from("cos", "bucket = \"states\"\nregion = \"eu-frankfurt\""),
			provider: credentials("cos", "secret_id = \"a\"\nsecret_key = \"b\"")},
		// OCI.
		{name: "oci, no credentials", provider: settings("use_environment = false"),
			body: from("oci", "namespace = \"n\"\nregion = \"eu-frankfurt-1\"\n"+bucket)},
		// GCS.
		{name: "gcs, bucket as a URL", body: from("gcs", `bucket = "gs://acme-states"`)},
		{name: "gcs, credentials of nobody", provider: credentials("gcs", `credentials = "/no/such/account.json"`), body: gcs},
		{name: "gcs, key without a private key", body: gcs, provider: credentials("gcs",
			`credentials = jsonencode({ type = "service_account", client_email = "a@b" })`)},
		{name: "gcs, user without a secret", body: gcs, provider: credentials("gcs",
			`credentials = jsonencode({ type = "authorized_user", client_id = "c" })`)},
		{name: "gcs, key in base64", body: gcs, provider: credentials("gcs", `credentials = "eyJ0eXBlIjoic2VydmljZV9hY2NvdW50In0="`)},
		{name: "gcs, name of an account", body: gcs, provider: credentials("gcs", "access_token = \"t\"\nimpersonate_service_account "+
			"= \"reader\"")},
		{name: "gcs, key of the environment that is cut off", env: `GOOGLE_CREDENTIALS={"type":"service_account", "project_id":`, body: gcs,
			provider: good},
		{name: "gcs, file of the environment", env: "GOOGLE_APPLICATION_CREDENTIALS=/no/such/key.json", body: gcs, provider: good},
		{name: "gcs, private key alone", body: gcs, provider: credentials("gcs", `credentials = "-----BEGIN PRIVATE KEY-----\nx\n"`)},
		{name: "gcs, scheme before the bucket", cli: true, body: from("gcs", `bucket = "gs://acme-states"`), provider: good},
		{name: "gcs, client of OAuth", body: gcs, provider: credentials("gcs", `credentials = jsonencode({ installed = {} })`)},
		// Azure.
		{name: "azurerm, name of the account", body: from("azurerm",
			"storage_account_name = \"Acme-States\"\ncontainer_name = \"states\"\nkey = \"s\"")},
		{name: "azurerm, certificate of nobody", provider: credentials("azurerm",
			"tenant_id = \"00000000-0000-0000-0000-000000000000\"\nclient_id = \"00000000-0000-0000-0000-000000000000\"\n"+
				"client_certificate_path = \"/no/such/cert.pfx\""), body: storage},
		{name: "azurerm, access_key in the source", body: from("azurerm",
			"storage_account_name = \"acme\"\ncontainer_name = \"states\"\nkey = \"s\"\naccess_key = \"k\"")},
		{name: "azurerm, access_key that is none", provider: credentials("azurerm", `access_key = "not base64!"`), body: storage},
		{name: "azurerm, connection string", body: reads("s", "azurerm {\nstorage_account_name = \"acmestates\"\ncontainer_name = \"states\"\n"+
			"key = \"s\"\n}"), provider: credentials("azurerm", `access_key = "AccountName=acmestates;AccountKey=AA=="`)},
		{name: "azurerm, secret without a tenant", cli: true, body: blob, provider: credentials("azurerm",
			"client_id = \"11111111-1111-1111-1111-111111111111\"\nclient_secret = \"s\"")},
		{name: "azurerm, secret without a client", body: blob, provider: credentials("azurerm",
			"tenant_id = \"11111111-1111-1111-1111-111111111111\"\nclient_secret = \"s\"")},
		{name: "azurerm, host of the account", body: from("azurerm", "storage_account_name = \"acmestates.blob.core.windows.net\"\n"+
			"container_name = \"states\"\nkey = \"s\""), provider: good},
		{name: "azurerm, path in the container", body: from("azurerm", "storage_account_name = \"acmestates\"\n"+
			"container_name = \"states/network\"\nkey = \"s\""), provider: good},
		{name: "azurerm, token that has expired",
			body:     from("azurerm", "storage_account_name = \"acmestates\"\ncontainer_name = \"states\"\nkey = \"s\""),
			provider: credentials("azurerm", "sas_token = \"sv=2020-01-01&se=2021-01-01T00:00:00Z&sig=c4n4ry\"")},
		// Consul.
		{name: "consul, ca_file of nobody", provider: credentials("consul", "address = \"https://127.0.0.1:1\"\nca_file = \"/no/such/ca.pem\""),
			body: consul},
		{name: "consul, password without a user", cli: true, body: from("consul", `path = "s"`),
			provider: credentials("consul", `http_auth = "p"`)},
		{name: "consul, address without a port", body: from("consul", `path = "s"`), provider: credentials("consul", `address = "127.0.0.1"`)},
		{name: "consul, path of the API", body: from("consul", `path = "v1/kv/network/terraform.tfstate"`),
			provider: credentials("consul", "address = \""+p.server.URL+"\"")},
		{name: "consul, slash before the path", body: from("consul", `path = "/network/terraform.tfstate"`),
			provider: credentials("consul", "address = \""+p.server.URL+"\"")},
		// Kubernetes.
		{name: "kubernetes, token with a line break", body: kubernetes,
			provider: credentials("kubernetes", "host = \"https://127.0.0.1:1\"\ntoken = \"t\\n\"")},
		{name: "kubernetes, config_path of nobody", provider: credentials("kubernetes", `config_path = "/no/such/config"`), body: kubernetes},
		{name: "kubernetes, authority of nobody", provider: credentials("kubernetes", `config_path = "`+p.dir+`/kubeconfig"`), body: kubernetes},
		{name: "kubernetes, no cluster", provider: settings("use_environment = false"), body: kubernetes},
		{name: "kubernetes, no such context", body: reads("s", "kubernetes {\nsecret_suffix = \"network\"\n}"),
			provider: credentials("kubernetes", "config_path = \""+p.dir+"/kubeconfig\"\nconfig_context = \"prod\"")},
		{name: "kubernetes, a kubeconfig in the place of its path", env: "KUBECONFIG=apiVersion: v1\nkind: Config\n",
			body: reads("s", "kubernetes {\nsecret_suffix = \"network\"\n}")},
		{name: "kubernetes, authority in base64", body: reads("s", "kubernetes {\nsecret_suffix = \"network\"\n}"),
			provider: credentials("kubernetes", "host = \"https://127.0.0.1:1\"\ncluster_ca_certificate = "+
				"\"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t\"")},
		{name: "kubernetes, kubeconfig that is not there", body: from("kubernetes", "namespace = \"states\"\nsecret_suffix = \"net\""),
			env: "KUBECONFIG=/no/such/config", provider: good},
		// PostgreSQL.
		{name: "pg, no address", provider: settings("use_environment = false"), body: pg},
		{name: "pg, authority of nobody", provider: credentials("pg",
			`conn_str = "postgres://u:p@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=/no/such/ca.pem"`), body: pg},
		{name: "pg, nobody there", provider: credentials("pg", `conn_str = "postgres://u:p@127.0.0.1:1/db?sslmode=disable"`), body: pg},
		{name: "pg, conn_str in the source", body: from("pg", `conn_str = "postgres://db.example.com/states"`)},
		{name: "pg, misspelt setting", body: reads("s", "pg {}"), provider: credentials("pg", `conn_str = "host=127.0.0.1 user=u pasword=p"`)},
		{name: "pg, port that is a word", body: pg, provider: credentials("pg", `conn_str = "postgres://u:p@127.0.0.1:port/t"`)},
		{name: "pg, login of another kind", body: pg, provider: credentials("pg", `conn_str = "host=127.0.0.1 require_auth=any"`)},
		{name: "pg, address of Java", cli: true, body: pg, provider: credentials("pg", `conn_str = "jdbc:postgresql://db/t?user=u"`)},
		{name: "pg, semicolons", body: pg, provider: credentials("pg", `conn_str = "Server=db;Port=5432;Database=t"`)},
		{name: "pg, slash in the password", body: pg, provider: credentials("pg", `conn_str = "postgres://u:p@ss/word@127.0.0.1/t"`)},
		{name: "pg, port after the host", body: pg, provider: credentials("pg", `conn_str = "host=127.0.0.1:5432 user=u"`)},
		{name: "pg, port of the environment", body: from("pg", `schema_name = "net"`), env: "PGPORT=tcp://10.0.0.1:5432", provider: good},
		{name: "pg, mode of the environment", body: from("pg", `schema_name = "net"`), env: "PGSSLMODE=true", provider: good},
		// HCP Terraform.
		{name: "remote, no workspace", body: from("remote", "organization = \"acme\"\nworkspaces {}")},
		{name: "remote, name and prefix", body: from("remote", "organization = \"acme\"\nworkspaces {\nname = \"a\"\nprefix = \"b\"\n}")},
		{name: "remote, hostname as a URL", body: from("remote", "hostname = \"https://tfe.example.com\"\norganization = \"acme\"\n"+
			"workspaces {\nname = \"a\"\n}")},
		{name: "remote, number of a state version", body: from("remote", "organization = \"acme\"\nstate_version = \"12\"\nworkspaces {\n"+
			"name = \"n\"\n}"), provider: good},
		{name: "remote, API instead of the host",
			body:     from("remote", "hostname = \"https://app.terraform.io/api/v2\"\norganization = \"acme\"\nworkspaces {\nname = \"n\"\n}"),
			provider: good},
		{name: "remote, workspace of the data source",
			body: reads("s", "remote {\norganization = \"acme\"\nworkspaces {\nname = \"n\"\n}\n}", `workspace = "prod"`), provider: good},
	}
}
