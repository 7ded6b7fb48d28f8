package s3

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

func TestString(t *testing.T) {
	src, err := open(asks(), settings(nil, block("https://s3.example.com")), "prod")
	if want := `object "env:/prod/network/terraform.tfstate" in the S3 bucket "states"`; err != nil || src.String() != want {
		t.Errorf("got %v, %v", src, err)
	}
}

// What is odd in a key is what the server gets, byte by byte: it is part of
// what is signed.
func TestOddKeys(t *testing.T) {
	for _, k := range []string{"a b", "ä/ö", "a+b", "a%2fb", "a?b", "a#b", "a//b", "a&b=c", "a;b", "~a'b(c)*!", `a\b`, "env:/x"} {
		server := stored(nil)
		server.Put(bucket, k, []byte("{}"))
		if _, err := read(t, asks().With("key", k), settings(nil, block(server.Serve(t)))); err != nil {
			t.Errorf("%q: %v", k, err)
		}
	}
}

func TestArguments(t *testing.T) {
	good := block("https://s3.example.com")
	says := sourcetest.OpenMistakes(t, "s3, arguments")
	for name, c := range map[string]struct {
		asks, block attrs
		workspace   string
	}{
		"no bucket":         {asks().With("bucket", nil), good, ""},
		"no key":            {asks().With("key", nil), good, ""},
		"no region":         {asks().With("region", nil), good, ""},
		"empty region":      {asks().With("region", cty.StringVal("")), good, ""},
		"region as a host":  {asks().With("region", "example.com/"), good, ""},
		"region of labels":  {asks().With("region", "eu-west-1.evil"), good, ""},
		"bucket as a host":  {asks().With("bucket", "example.com/"), good, ""},
		"user as a bucket":  {asks().With("bucket", "a@b"), good, ""},
		"lambda as bucket":  {asks().With("bucket", "arn:aws:s3-object-lambda:eu-west-1:111122223333:accesspoint/x"), good, ""},
		"outpost as bucket": {asks().With("bucket", "arn:aws:s3-outposts:eu-west-1:111122223333:outpost/op-1/accesspoint/x"), good, ""},
		"many regions":      {asks().With("bucket", "arn:aws:s3::111122223333:accesspoint/abc.mrap"), good, ""},
		"ARN elsewhere":     {asks().With("bucket", "arn:aws:s3:us-east-1:111122223333:accesspoint/tfstate"), good, ""},
		"not an ARN":        {asks().With("bucket", "arn:canary"), good, ""},
		"a URL as key":      {asks().With("key", "s3://tfstate/k"), good, ""},
		"name of a role":    {asks(), good.With("assume_role", attrs{}.With("role_arn", "reader")), ""},
		"slash before":      {asks().With("key", "/k"), good, ""},
		"slash after":       {asks().With("key", "k/"), good, ""},
		"another folder":    {asks().With("key", "a/../../k"), good, ""},
		"folder of prefix":  {asks().With("workspace_key_prefix", "../.."), good, "w"},
		"slash of prefix":   {asks().With("workspace_key_prefix", "/env:"), good, ""},
		"long":              {asks().With("key", strings.Repeat("k", 1020)), good, "w"},
		"long version":      {asks().With("version_id", strings.Repeat("k", 1025)), good, ""},
		"directory bucket":  {asks().With("bucket", "a--use1-az4--x-s3"), good, ""},
		"FIPS elsewhere":    {asks(), good.With("use_fips_endpoint", true), ""},
		"two roles":         {asks(), good.With("allowed_account_ids", []string{"1"}).With("forbidden_account_ids", []string{"1"}), ""},
		"role without ARN":  {asks(), good.With("assume_role", attrs{}), ""},
		"retries":           {asks(), good.With("max_retries", -1), ""},
		"retry mode":        {asks(), good.With("retry_mode", "canary"), ""},
	} {
		_, err := open(c.asks, settings(nil, c.block), c.workspace)
		says.Error(t, name, err)
	}
}

// The policy of the documentation is enough, and no state that it does not name
// can be read with it.
func TestPolicy(t *testing.T) {
	const own = "acme-tf-state"
	server := stored(nil)
	server.Allows = objecttest.Policy(t, "../../../examples/sources/s3/policy.json")
	server.Keep(bucket)
	server.Create(own)
	server.Keep(own)
	s := settings(nil, block(server.Serve(t)))
	version := server.Put(own, key, []byte("{}"))
	server.Put(own, "env:/prod/"+key, []byte("{}"))
	server.Put(own, "billing/terraform.tfstate", []byte("{}"))
	in := asks().With("bucket", own)
	says := sourcetest.OpenMistakes(t, "s3, the policy")
	for name, c := range map[string]struct {
		asks      attrs
		workspace string
		refused   bool
	}{
		"default":   {in, "default", false},
		"version":   {in.With("version_id", version), "default", false},
		"workspace": {in, "prod", false},
		"missing":   {in, "gone", true},
		"another":   {in.With("key", "billing/terraform.tfstate"), "default", true},
	} {
		src, err := open(c.asks, s, c.workspace)
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Fetch(t.Context())
		if _, missing := source.IsMissing(err); missing || (err != nil) != c.refused {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil {
			says.Error(t, name, err)
		}
	}
}

// Everything that the s3 backends of OpenTofu 1.12 and Terraform 1.11 take is
// taken here, too, or there is a reason.
func TestAttributesOfTheBackends(t *testing.T) {
	const (
		writes     = "it matters for writing only"
		locks      = "it matters for locking only"
		deprecated = "the backend takes it under its newer name as well: "
		never      = "it is never asked"
	)
	left := map[string]string{
		"acl": writes, "encrypt": writes + "; sse_customer_key works without", "kms_key_id": writes, "state_tags": writes,
		"dynamodb_table": locks, "use_lockfile": locks, "lock_tags": locks,
		"endpoints.dynamodb": locks, "dynamodb_endpoint": locks,
		"endpoint": deprecated + "endpoints.s3", "sts_endpoint": deprecated + "endpoints.sts", "iam_endpoint": never,
		"endpoints.sso":           "AWS_ENDPOINT_URL_SSO and the shared files say it to the SDK",
		"force_path_style":        deprecated + "use_path_style",
		"shared_credentials_file": deprecated + "shared_credentials_files",
		"role_arn":                deprecated + "assume_role.role_arn", "session_name": deprecated + "assume_role.session_name",
		"external_id":                  deprecated + "assume_role.external_id",
		"assume_role_duration_seconds": deprecated + "assume_role.duration", "assume_role_policy": deprecated + "assume_role.policy",
		"assume_role_policy_arns": deprecated + "assume_role.policy_arns", "assume_role_tags": deprecated + "assume_role.tags",
		"assume_role_transitive_tag_keys": deprecated + "assume_role.transitive_tag_keys",
		"assume_role.source_identity":     "OpenTofu does not take it",
		"use_legacy_workflow":             "it chose between orders of credentials, of which one is left",
	}
	backend := strings.Fields(`
		bucket key region endpoints.s3 endpoints.iam endpoints.sts endpoints.sso endpoints.dynamodb dynamodb_endpoint endpoint
		iam_endpoint sts_endpoint
		sts_region encrypt acl state_tags lock_tags access_key secret_key kms_key_id dynamodb_table profile shared_credentials_file
		shared_credentials_files
		shared_config_files token skip_credentials_validation skip_metadata_api_check skip_region_validation skip_requesting_account_id
		sse_customer_key
		role_arn session_name external_id assume_role_duration_seconds assume_role_policy assume_role_policy_arns assume_role_tags
		assume_role_transitive_tag_keys workspace_key_prefix force_path_style use_path_style retry_mode max_retries custom_ca_bundle
		ec2_metadata_service_endpoint ec2_metadata_service_endpoint_mode
		assume_role.role_arn assume_role.duration assume_role.external_id assume_role.policy assume_role.policy_arns assume_role.session_name
		assume_role.source_identity assume_role.tags assume_role.transitive_tag_keys
		assume_role_with_web_identity.role_arn assume_role_with_web_identity.web_identity_token
		assume_role_with_web_identity.web_identity_token_file
		assume_role_with_web_identity.session_name assume_role_with_web_identity.policy assume_role_with_web_identity.policy_arns
		assume_role_with_web_identity.duration
		forbidden_account_ids allowed_account_ids http_proxy https_proxy no_proxy insecure use_dualstack_endpoint use_fips_endpoint
		skip_s3_checksum use_lockfile
		use_legacy_workflow`)
	ours := append(names("", table().Attrs), names("", credentials().Attrs)...)
	for _, name := range backend {
		taken := slices.Contains(ours, name)
		if _, isLeft := left[name]; taken == isLeft {
			t.Errorf("%s: taken %t, left out %t", name, taken, isLeft)
		}
	}
	for _, name := range ours {
		if !slices.Contains(backend, name) && !slices.Contains([]string{"version_id", "credentials_name", "name"}, name) {
			t.Errorf("%s is not of the backends", name)
		}
	}
	writer := names("", Backend().Attrs)
	for name, why := range left {
		if !slices.Contains(backend, name) {
			t.Errorf("%s is left out, and not of the backends", name)
		}
		wanted := (strings.HasPrefix(why, writes) || why == locks) && name != "dynamodb_endpoint"
		if wanted != slices.Contains(writer, name) {
			t.Errorf("%s: a program that writes takes it: %t", name, !wanted)
		}
	}
	for _, a := range credentials().Attrs {
		if slices.Contains([]string{"secret_key", "token", customerKeyAttr, "http_proxy", "https_proxy"}, a.Name) != a.Secrecy.IsHidden() {
			t.Errorf("%s: sensitive is %t", a.Name, a.Secrecy.IsHidden())
		}
	}
}

func names(under string, attrs []attr.Attr) []string {
	var out []string
	for _, a := range attrs {
		if a.Attrs != nil {
			out = append(out, names(under+a.Name+".", a.Attrs)...)
			continue
		}
		out = append(out, under+a.Name)
	}
	return out
}
