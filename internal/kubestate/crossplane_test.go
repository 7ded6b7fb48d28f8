package kubestate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// golden opens the group of the package's golden.
func golden(t *testing.T, group string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, filepath.Join("testdata", "mistakes.txt"), group, "hunter2")
}

func readIf(file string) ([]byte, error) { return os.ReadFile(file) }

// rebuilt returns the one instance of the state, and the state.
func rebuilt(t *testing.T, attrs map[string]cty.Value, manifest string) (map[string]any, state) {
	t.Helper()
	data, err := open(t, attrs).File([]byte(manifest), meter.New(0))
	if err != nil {
		t.Fatal(err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return s.Resources[0].Instances[0].Attributes, s
}

func extend(base map[string]cty.Value, more map[string]cty.Value) map[string]cty.Value {
	out := map[string]cty.Value{}
	for _, m := range []map[string]cty.Value{base, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func secretOf(namespace, name string, data map[string]string) string {
	encoded := map[string]string{}
	for k, v := range data {
		encoded[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	text, _ := json.Marshal(encoded)
	return fmt.Sprintf("\n---\n{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"namespace\": %q, \"name\": %q}, \"data\": %s}",
		namespace, name, text)
}

func TestCrossplane(t *testing.T) {
	secrets := secretOf("x", "s", map[string]string{"k": "one", "l": "two"})
	ref := func(key string) string { return fmt.Sprintf(`{"name": "s", "namespace": "x", "key": %q}`, key) }
	for name, c := range map[string]struct {
		more         map[string]cty.Value
		spec, status string
		secrets      string
		want         string // of the attributes, without id
	}{
		"observed wins": {nil, `{"forProvider": {"cidrBlock": "a", "x": 1}}`, `{"atProvider": {"id": "vpc-1", "cidrBlock": "b"}}`, "",
			`{"cidr_block": "b", "x": 1}`},
		"init fills": {nil, `{"forProvider": {"x": 1, "m": {"a": 1}}, "initProvider": {"x": 2, "y": 3, "m": {"b": 2}}}`, `{}`, "",
			`{"x": 1, "y": 3, "m": {"a": 1, "b": 2}}`},
		"references": {nil, `{"forProvider": {"subnetId": "s", "subnetIdRef": {"name": "a"}, "subnetIdRefs": [{"name": "a"}], ` +
			`"subnetIdSelector": {"matchLabels": {}}}}`, `{}`, "", `{"subnet_id": "s"}`},
		"no references": {map[string]cty.Value{"field_names": texts(map[string]string{"gitRef": "git_ref"})},
			`{"forProvider": {"gitRef": {"name": "a"}, "headRef": "main"}}`, `{"atProvider": {"id": "vpc-1", "otherRef": {"name": "b"}}}`, "",
			`{"git_ref": {"name": "a"}, "head_ref": "main", "other_ref": {"name": "b"}}`},
		"left out": {map[string]cty.Value{"field_names": texts(map[string]string{"region": ""})},
			`{"forProvider": {"region": "r", "x": 1}}`, `{}`, "", `{"x": 1}`},
		"blocks and maps": {nil, `{"forProvider": {"rootBlock": [{"volumeSize": 1, "extraTags": {"camelKey": "v"}}], "extraTags": ` +
			`{"camelKey": "v"}}}`, `{}`, "", `{"root_block": [{"volume_size": 1, "extra_tags": {"camelKey": "v"}}], "extra_tags": {"camelKey": ` +
			`"v"}}`},
		"single blocks": {map[string]cty.Value{"single_blocks": cty.ListVal([]cty.Value{text("backup_policy"),
			text("backup_policy.time_window")})}, `{"forProvider": {"backupPolicy": {"keepDays": 1, "timeWindow": {"startHour": 2}}}}`,
			`{"atProvider": {"id": "vpc-1", "backupPolicy": {"keepDays": 3}}}`, "", `{"backup_policy": [{"keep_days": 3}]}`},
		"nested single": {map[string]cty.Value{"single_blocks": cty.ListVal([]cty.Value{text("backup_policy"),
			text("backup_policy.time_window")})}, `{"forProvider": {"backupPolicy": {"timeWindow": {"startHour": 2}}}}`, `{}`, "",
			`{"backup_policy": [{"time_window": [{"start_hour": 2}]}]}`},
		"one secret":  {nil, `{"forProvider": {"userPasswordSecretRef": ` + ref("k") + `}}`, `{}`, secrets, `{"user_password": "one"}`},
		"no such key": {nil, `{"forProvider": {"passwordSecretRef": ` + ref("none") + `}}`, `{}`, secrets, `{"password": ""}`},
		"several secrets": {nil, `{"forProvider": {"tokensSecretRef": [` + ref("k") + `, ` + ref("l") + `]}}`, `{}`, secrets,
			`{"tokens": ["one", "two"]}`},
		"map of secrets": {nil, `{"forProvider": {"tokensSecretRef": {"a": ` + ref("k") + `, "b": ` + ref("l") + `}}}`, `{}`, secrets,
			`{"tokens": {"a": "one", "b": "two"}}`},
		"whole secret": {nil, `{"forProvider": {"tokensSecretRef": {"name": "s", "namespace": "x"}}}`, `{}`, secrets,
			`{"tokens": {"k": "one", "l": "two"}}`},
		"secret in a block": {nil, `{"forProvider": {"masterAuth": [{"passwordSecretRef": ` + ref("k") + `}]}}`, `{}`, secrets,
			`{"master_auth": [{"password": "one"}]}`},
		"empty secret": {nil, `{"forProvider": {"passwordSecretRef": ` + ref("k") + `}}`, `{}`,
			"\n---\n{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"s\"}}", `{"password": ""}`},
		"named fields": {
			map[string]cty.Value{"sensitive_fields": texts(map[string]string{
				"master_auth[*].pass": "spec.forProvider.masterAuth[*].pw", "arn": "status.atProvider.arn",
			})},
			`{"forProvider": {"masterAuth": [{"pw": ` + ref("k") + `}], "pw": {"name": "s", "key": "k"}}}`, `{}`, secrets,
			`{"master_auth": [{"pass": "one"}], "pw": {"name": "s", "key": "k"}}`,
		},
		"connection": {nil, `{"forProvider": {"nested": [{"x": 1}]}, "writeConnectionSecretToRef": {"name": "c", "namespace": "x"}}`,
			`{"atProvider": {"id": "vpc-1", "list": [{"y": 1}]}}`,
			secretOf("x", "c", map[string]string{"attribute.a": "1", "attribute.list.0.z": "2", "attribute.tokens.1": "b",
				"attribute.tokens.0": "a", "attribute.m...key.with.dots...": "3", "endpoint": "no"}),
			`{"nested": [{"x": 1}], "list": [{"y": 1, "z": "2"}], "a": "1", "tokens": ["a", "b"], "m": {"key.with.dots": "3"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := rebuilt(t, extend(managedVPC, c.more), vpc(c.spec, c.status)+c.secrets)
			if got["id"] != "vpc-1" {
				t.Errorf("the id is %v", got["id"])
			}
			delete(got, "id")
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestCrossplaneState(t *testing.T) {
	plain := vpc(`{"forProvider": {}}`, `{"atProvider": {"id": "seen"}}`)
	noName := strings.Replace(plain, "crossplane.io/external-name", "other", 1)
	meta := func(kind, value string) string {
		return strings.Replace(plain, `"annotations": {`, fmt.Sprintf(`"annotations": {"%s.crossplane.io/provider-meta": %q, `, kind, value), 1)
	}
	for name, c := range map[string]struct {
		more     map[string]cty.Value
		manifest string
		id       string
		schema   int64
		private  string
	}{
		"external name":    {nil, plain, "vpc-1", 0, ""},
		"observed id":      {nil, noName, "seen", 0, ""},
		"given id":         {map[string]cty.Value{"id": text("/a/vpc-1")}, plain, "/a/vpc-1", 0, ""},
		"no attribute id":  {nil, strings.Replace(plain, `"id": "seen"`, `"arn": "a"`, 1), "", 0, ""},
		"Terrajet without": {nil, strings.Replace(meta("terrajet", "{}"), `"id": "seen"`, `"arn": "a"`, 1), "vpc-1", 0, "{}"},
		"Terrajet":         {nil, meta("terrajet", `{"schema_version":"2"}`), "vpc-1", 2, `{"schema_version":"2"}`},
		"Upjet":            {nil, meta("upjet", `{"schema_version":3}`), "vpc-1", 3, `{"schema_version":3}`},
		"given schema": {map[string]cty.Value{"schema_version": cty.Zero}, meta("upjet", `{"schema_version":"3"}`), "vpc-1", 0,
			`{"schema_version":"3"}`},
		"opaque meta":    {nil, meta("upjet", "privateraw"), "vpc-1", 0, "privateraw"},
		"hostile schema": {nil, meta("upjet", `{"schema_version":-1e9}`), "vpc-1", 0, `{"schema_version":-1e9}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, s := rebuilt(t, extend(managedVPC, c.more), c.manifest)
			in := s.Resources[0].Instances[0]
			if id, _ := got["id"].(string); id != c.id || in.SchemaVersion != c.schema || string(in.Private) != c.private {
				t.Errorf("got %v, %d, %q", got["id"], in.SchemaVersion, in.Private)
			}
			if s.Version != 4 || s.Serial != 1 || s.Lineage != "u" || s.TerraformVersion != "0.0.0" ||
				s.Resources[0].Provider != `provider["registry.terraform.io/hashicorp/aws"]` {
				t.Errorf("got %+v", s)
			}
		})
	}
	_, s := rebuilt(t, extend(managedVPC, map[string]cty.Value{"provider_source": text("registry.opentofu.org/acme/aws"),
		"terraform_version": text("1.5.7")}), plain)
	if s.Resources[0].Provider != `provider["registry.opentofu.org/acme/aws"]` || s.TerraformVersion != "1.5.7" {
		t.Errorf("got %+v", s)
	}
}

// TestInitProvider: the merged arguments are those that mergo 1.0.2 returned,
// called as Upjet calls it, for the same objects.
func TestInitProvider(t *testing.T) {
	text, err := os.ReadFile("testdata/init_provider.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ ForProvider, InitProvider, Merged json.RawMessage }
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 50 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	decode := func(raw []byte) map[string]any {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range cases {
		got := decode(c.ForProvider)
		fill(got, decode(c.InitProvider))
		if want := decode(c.Merged); !reflect.DeepEqual(got, want) {
			t.Errorf("%s, filled from %s:\ngot  %v\nwant %v", c.ForProvider, c.InitProvider, got, want)
		}
	}
}

// asked returns the secrets that the state of object needs, where none exists.
func asked(o *Object, object string) (refs []SecretRef, err error) {
	_, _, err = o.State([]byte(object), func(ref SecretRef) ([]byte, error) {
		refs = append(refs, ref)
		return nil, nil
	})
	return refs, err
}

// An object of a namespace reads the secrets there, whether it says so or not.
func TestNamespacedResource(t *testing.T) {
	namespaced := func(namespace string) string {
		return strings.NewReplacer(`"name": "main"`, `"name": "main", "namespace": "tenant"`, "NS", namespace).
			Replace(vpc(`{"forProvider": {"passwordSecretRef": {"name": "s", "key": "k"NS}}, "writeConnectionSecretToRef": {"name": "c"}}`, `{}`))
	}
	o := open(t, extend(managedVPC, map[string]cty.Value{"namespace": text("tenant")}))
	want := []SecretRef{{"tenant", "s", true}, {"tenant", "c", true}}
	for _, ns := range []string{"", `, "namespace": "tenant"`} {
		if got, err := asked(o, namespaced(ns)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	got, err := asked(o, namespaced(`, "namespace": "kube-system"`))
	if len(got) > 0 {
		t.Errorf("got %v", got)
	}
	golden(t, "namespaces").Error(t, "another namespace", err)
}

// The server's own lists do not repeat what their items are.
func TestTypedList(t *testing.T) {
	item := strings.Replace(vpc(`{"forProvider": {}}`, `{}`), `"apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "VPC", `, "", 1)
	got, _ := rebuilt(t, managedVPC, `{"apiVersion": "ec2.aws.upbound.io/v1beta1", "kind": "VPCList", "items": [`+item+`]}`)
	if got["id"] != "vpc-1" {
		t.Errorf("got %v", got)
	}
}

func TestKubeform(t *testing.T) {
	object := instanceOf(`{"secretRef": {"name": "s"}}`, `{"output": {"id": "1", "providerRef": {"name": "p"}, "secretRef": {"name": "s"},
		"subnetIDs": ["a"], "hugeNumber": 12345678901234567890123, "someBlock": [{"innerTags": {"camelKey": 1}}], "odd": 1},
		"state": {"version": 4, "serial": 9007199254740993, "lineage": "l", "terraform_version": "0.13.5"}}`)
	secret := secretOf("demo", "s", map[string]string{"out.pin": "1234", "out.flag": "true", "out.keys": `{"a": "b"}`, "out.text": "a\nb",
		"out.some_block.0.key": "k", "pin": "input", "out.not_a_map": `{"a": 1}`})
	data, err := open(t, extend(resources, map[string]cty.Value{"field_names": texts(map[string]string{"odd": "strange"}),
		"schema_version": cty.NumberIntVal(2), "resource_type": text("linode_vm")})).File([]byte(object+secret), meter.New(0))
	if err != nil {
		t.Fatal(err)
	}
	unmarked, _ := marks(t, data)
	sameJSON(t, unmarked, []byte(`{"version": 4, "terraform_version": "0.13.5", "serial": 9007199254740993, "lineage": "l", "outputs": null,
		"resources": [{"mode": "managed", "type": "linode_vm", "name": "vm", "provider": "provider.linode", "instances": [{"schema_version": 2,
		"attributes": {"id": "1", "subnet_ids": ["a"], "huge_number": 12345678901234567890123, "strange": 1,
		"some_block": [{"inner_tags": {"camelKey": 1}, "key": "k"}], "pin": "1234", "flag": "true", "keys": {"a": "b"}, "text": "ab",
		"not_a_map": "{\"a\": 1}"}}]}]}`))
	for _, number := range []string{"12345678901234567890123", "9007199254740993"} {
		if !strings.Contains(string(data), number) {
			t.Errorf("%s has lost digits in %s", number, data)
		}
	}
}

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{
		"id": "id", "ID": "id", "orgId": "org_id", "clusterID": "cluster_id", "privateNetworkUUID": "private_network_uuid",
		"nodeCount": "node_count",
		"subnetIDs": "subnet_ids", "vpcSecurityGroupIDs": "vpc_security_group_ids", "redirectURLsList": "redirect_urls_list",
		"DNSServers": "dns_servers",
		"enableIPv6": "enable_ipv6", "IPv4Address": "ipv4_address", "ipv6CIDRBlock": "ipv6_cidr_block", "S3Bucket": "s3_bucket",
		"EC2Instance": "ec2_instance",
		// Kubeform's.
		"cloneURLHTTP": "clone_url_http", "cloneURLSSH": "clone_url_ssh", "customerDNSIPS": "customer_dns_ips",
		"defaultNetworkACLID": "default_network_acl_id", "managementAPIURL": "management_api_url", "networkACLID": "network_acl_id",
		"openXJSONSerDe": "open_x_json_ser_de", "restAPIID": "rest_api_id", "use32BitWorkerProcess": "use_32_bit_worker_process",
		"virtualWANID": "virtual_wan_id", "webACLID": "web_acl_id",
		"ConfigConfigurationRecorderStatus_": "config_configuration_recorder_status", "EventhubNamespace_": "eventhub_namespace",
		"NotificationHubNamespace_": "notification_hub_namespace", "DnsARecord": "dns_a_record", "PrivateDNSARecord": "private_dns_a_record",
		"PrivateDNSAaaaRecord": "private_dns_aaaa_record",
		"md5Sum":               "md5_sum", "DatabaseCluster": "database_cluster", "VPC": "vpc", "snake_case": "snake_case",
		"": "", "A": "a", "aB": "a_b",
		"ABc": "a_bc",
	} {
		if got := snake(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestNewErrors(t *testing.T) {
	says := golden(t, "arguments")
	for name, c := range map[string]struct{ base, more map[string]cty.Value }{
		"no group":           {managedVPC, map[string]cty.Value{"api_version": text("v1")}},
		"path in group":      {managedVPC, map[string]cty.Value{"api_version": text("../v1")}},
		"path in version":    {managedVPC, map[string]cty.Value{"api_version": text("a.b/../v1")}},
		"kind":               {managedVPC, map[string]cty.Value{"kind": text("a b")}},
		"name":               {managedVPC, map[string]cty.Value{"name": text("a/b")}},
		"dots":               {managedVPC, map[string]cty.Value{"name": text("..")}},
		"namespace":          {managedVPC, map[string]cty.Value{"namespace": text("a%2Fb")}},
		"resource":           {managedVPC, map[string]cty.Value{"resource": text("vpcs/status")}},
		"no type":            {managedVPC, map[string]cty.Value{"resource_type": cty.NullVal(cty.String)}},
		"type":               {managedVPC, map[string]cty.Value{"resource_type": text(`a"b`)}},
		"source":             {managedVPC, map[string]cty.Value{"provider_source": text("aws")}},
		"version":            {managedVPC, map[string]cty.Value{"terraform_version": text("new")}},
		"negative schema":    {managedVPC, map[string]cty.Value{"schema_version": cty.NumberIntVal(-1)}},
		"identifier":         {managedVPC, map[string]cty.Value{"identifier_attribute": text("a.b")}},
		"field name":         {managedVPC, map[string]cty.Value{"field_names": texts(map[string]string{"a": "A"})}},
		"sensitive field":    {managedVPC, map[string]cty.Value{"sensitive_fields": texts(map[string]string{"a": "b"})}},
		"type of a module":   {module, map[string]cty.Value{"resource_type": text("a")}},
		"source of Kubeform": {resources, map[string]cty.Value{"provider_source": text("a/b")}},
	} {
		_, err := decode(t, extend(c.base, c.more))
		says.Error(t, name, err)
	}
	if got := open(t, managedVPC).String(); got != "VPC main (ec2.aws.upbound.io/v1beta1)" {
		t.Errorf("got %s", got)
	}
}
