package all

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

type attrs = map[string]cty.Value

func text(s string) cty.Value { return cty.StringVal(s) }

// backend is one of Terraform's and OpenTofu's, as a source reads it.
type backend struct {
	where, credentials string // the names of arguments that are accepted

	// Where a state is, by workspace, as the source names it: with place, and
	// with access in credentials. "" in the place of a name stands for an error.
	place, access attrs
	states        map[string]string
}

// backends pins what users have written down in their configurations. That
// every argument of a backend is among these, or left out for a reason, is
// tested beside each source.
func backends() map[string]backend {
	return map[string]backend{
		"azurerm": {
			where: "storage_account_name container_name key version_id resource_group_name subscription_id timeout_seconds credentials_name",
			credentials: "name access_key sas_token use_azuread_auth customer_provided_key blob_endpoint ado_service_connection_id tenant_id " +
				"subscription_id client_id " +
				"client_id_file_path client_secret client_secret_file_path client_certificate client_certificate_password client_certificate_path " +
				"use_oidc oidc_token " +
				"oidc_token_file_path oidc_request_url oidc_request_token use_msi msi_endpoint use_aks_workload_identity use_cli environment " +
				"metadata_host",
			place:  attrs{"storage_account_name": text("acmestates"), "container_name": text("tfstate"), "key": text("a/network.tfstate")},
			access: attrs{"access_key": text("a2V5")},
			states: map[string]string{"default": `"a/network.tfstate"`, "prod": `"a/network.tfstateenv:prod"`},
		},
		"consul": {
			where:       "path datacenter namespace partition credentials_name",
			credentials: "name address scheme access_token token_file http_auth ca_file cert_file key_file tls_server_name ssl_verify",
			place:       attrs{"path": text("a/network")},
			states:      map[string]string{"default": `"a/network"`, "prod": `"a/network-env:prod"`},
		},
		"cos": {
			where: "bucket key prefix region accelerate version_id credentials_name",
			credentials: "name secret_id secret_key security_token profile shared_credentials_dir cam_role_name endpoint domain " +
				"assume_role{role_arn session_name session_duration policy external_id}",
			place:  attrs{"bucket": text("acme-1250000000"), "prefix": text("network"), "region": text("eu-frankfurt")},
			access: attrs{"secret_id": text("i"), "secret_key": text("k")},
			states: map[string]string{"default": `"network/terraform.tfstate"`, "prod": `"network/prod/terraform.tfstate"`},
		},
		"file": { // the backend local
			where:  "path workspace_dir",
			place:  attrs{"path": text("network.tfstate")},
			states: map[string]string{"default": "network.tfstate", "prod": "terraform.tfstate.d/prod/terraform.tfstate"},
		},
		"gcs": {
			where: "bucket prefix generation credentials_name",
			credentials: "name credentials access_token impersonate_service_account impersonate_service_account_delegates encryption_key " +
				"storage_custom_endpoint universe_domain",
			place:  attrs{"bucket": text("acme-states"), "prefix": text("network")},
			access: attrs{"access_token": text("t")},
			states: map[string]string{"default": "network/default.tfstate", "prod": "network/prod.tfstate"},
		},
		"git": {
			where:       "repository ref path on_locked",
			credentials: "url username password ssh_private_key_file strict_host_key_checking ca_file allow_plain_http",
			place:       attrs{"repository": text("https://git.example.com/states.git"), "path": text("network.tfstate")},
			states:      map[string]string{"default": "network.tfstate"},
		},
		// Left out are update_method, lock_address, unlock_address, lock_method and
		// unlock_method, which are for writing and locking.
		"http": {
			where: "address timeout retry_max retry_wait_min retry_wait_max",
			credentials: "url username password bearer_token headers query client_certificate_pem client_private_key_pem " +
				"client_ca_certificate_pem skip_cert_verification proxy",
			place:  attrs{"address": text("https://state.example.com/network")},
			states: map[string]string{"default": "https://state.example.com/network"},
		},
		// Left out are labels, which only new secrets get, and load_config_file,
		// which the backends do not use any more.
		"kubernetes": {
			where: "secret_suffix namespace cluster",
			credentials: "name host config_path config_paths config_context config_context_auth_info config_context_cluster in_cluster_config " +
				"token username password " +
				"client_certificate client_key cluster_ca_certificate insecure tls_server_name proxy_url exec{api_version command args env}",
			place:  attrs{"secret_suffix": text("network")},
			access: attrs{"host": text("https://cluster.example.com")},
			states: map[string]string{"default": "default/tfstate-default-network", "prod": "default/tfstate-prod-network", "Not a name": ""},
		},
		"oci": {
			where:       "bucket namespace region key workspace_key_prefix version_id credentials_name",
			credentials: "name access_key secret_key sse_customer_key endpoint",
			place: attrs{"bucket": text("states"), "namespace": text("acme"), "region": text("eu-frankfurt-1"),
				"key": text("network.tfstate")},
			access: attrs{"access_key": text("i"), "secret_key": text("k")},
			states: map[string]string{"default": `"network.tfstate"`, "prod": `"tf-state-env/prod/network.tfstate"`},
		},
		"oss": {
			where: "bucket key prefix region version_id credentials_name",
			credentials: "name access_key secret_key security_token profile shared_credentials_file ecs_role_name " +
				"assume_role_role_arn assume_role_session_name assume_role_policy assume_role_session_expiration sts_endpoint endpoint",
			place:  attrs{"bucket": text("acme"), "region": text("eu-central-1")},
			access: attrs{"access_key": text("i"), "secret_key": text("k")},
			states: map[string]string{"default": `"env:/terraform.tfstate"`, "prod": `"env:/prod/terraform.tfstate"`},
		},
		"pg": {
			where:       "schema_name table_name credentials_name",
			credentials: "name conn_str",
			access:      attrs{"conn_str": text("postgres://u:p@db.example.com/terraform")},
			states: map[string]string{
				"default": `row "default" of "terraform_remote_state"."states"`, "prod": `row "prod" of "terraform_remote_state"."states"`,
			},
		},
		"remote": { // and the backend cloud
			where:       "hostname organization workspaces{name prefix} state_version outputs_only",
			credentials: "url token client_ca_certificate_pem skip_cert_verification proxy",
			place: attrs{"organization": text("acme"), "workspaces": cty.ObjectVal(attrs{"prefix": text("network-"),
				"name": cty.NullVal(cty.String)})},
			states: map[string]string{"prod": "network-prod", "default": ""},
		},
		"s3": {
			where: "bucket key region workspace_key_prefix version_id credentials_name",
			credentials: "name sse_customer_key use_path_style skip_s3_checksum skip_region_validation access_key secret_key token profile " +
				"shared_config_files shared_credentials_files " +
				"assume_role{role_arn session_name duration policy policy_arns external_id tags transitive_tag_keys} " +
				"assume_role_with_web_identity{role_arn session_name duration policy policy_arns web_identity_token web_identity_token_file} " +
				"allowed_account_ids forbidden_account_ids " +
				"skip_credentials_validation skip_requesting_account_id skip_metadata_api_check ec2_metadata_service_endpoint " +
				"ec2_metadata_service_endpoint_mode " +
				"endpoints{s3 sts iam} sts_region max_retries retry_mode http_proxy https_proxy no_proxy insecure custom_ca_bundle " +
				"use_fips_endpoint use_dualstack_endpoint",
			place:  attrs{"bucket": text("acme"), "key": text("a/network.tfstate"), "region": text("eu-west-1")},
			access: attrs{"access_key": text("i"), "secret_key": text("k")},
			states: map[string]string{"default": `"a/network.tfstate"`, "prod": `"env:/prod/a/network.tfstate"`},
		},
	}
}

func TestBackends(t *testing.T) {
	all := backends()
	for _, k := range Kinds() {
		b, ok := all[k.Name]
		delete(all, k.Name)
		if !ok {
			t.Errorf("%s is not in the table", k.Name)
			continue
		}
		t.Run(k.Name, func(t *testing.T) { b.check(t, k) })
	}
	for name := range all {
		t.Errorf("there is no source %s", name)
	}
}

func (b backend) check(t *testing.T, k source.Kind) {
	if got := names(k.Attrs); got != b.where {
		t.Errorf("the arguments are\n%s, want\n%s", got, b.where)
	}
	if got := names(k.Credentials.Attrs); got != b.credentials {
		t.Errorf("the arguments of credentials are\n%s, want\n%s", got, b.credentials)
	}
	if len(b.states) < 2 != !k.Workspaces {
		t.Errorf("it has workspaces: %t, and the table has %d", k.Workspaces, len(b.states))
	}
	for workspace, want := range b.states {
		values, err := unstable.NewEntry("data.x", k.Table, b.place).Decode(k.Table, nil)
		if err != nil {
			t.Fatal(err)
		}
		settings := source.Settings{Credentials: source.Credentials{Table: k.Credentials}}
		if b.access != nil {
			settings.Credentials.Entries = []*unstable.Entry{unstable.NewEntry("credentials.x", k.Credentials, b.access)}
		}
		src, err := k.Start(settings)(source.Request{Values: values, Workspace: workspace, MaxSize: 1 << 20})
		switch {
		case want == "" && err == nil:
			t.Errorf("%s: got %s, want an error", workspace, src)
		case want != "" && (err != nil || !strings.Contains(strings.ReplaceAll(src.String(), `\`, "/"), want)):
			t.Errorf("%s: got %s, %v, want %s", workspace, src, err, want)
		}
	}
}

func names(list []attr.Attr) string {
	var out []string
	for _, a := range list {
		if a.Attrs != nil {
			a.Name += "{" + names(a.Attrs) + "}"
		}
		out = append(out, a.Name)
	}
	return strings.Join(out, " ")
}
