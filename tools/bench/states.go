package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/method/sops"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
)

const (
	passphrase = "correct horse battery staple"

	// encrypted contains settings with OpenTofu's defaults: 600,000 iterations, SHA-512.
	encrypted = `key_provider "pbkdf2" "p" { passphrase = "` + passphrase + `" }
method "aes_gcm" "m" { keys = key_provider.pbkdf2.p }
state { method = method.aes_gcm.m }
remote_state_data_sources {
  default { method = method.aes_gcm.m }
}
`
)

func newEncryption(settings string) (*encryption.Encryption, error) {
	registry := light.Registry()
	registry.Methods = append(registry.Methods, sops.Block())
	return encryption.Load(registry, encryption.Code(settings, "bench"))
}

// state returns a state with the given outputs, and resources of about the given number of bytes, like the resources of
// a cloud.
func state(outputs string, resources int) []byte { return stateOf(outputs, resources, 0) }

// stateOf works like state, but makes each resource larger by extra bytes, so there are fewer of them.
func stateOf(outputs string, resources, extra int) []byte {
	data := strings.Repeat("x", extra)
	var b bytes.Buffer
	b.WriteString(`{"version":4,"terraform_version":"1.12.6","serial":7,"lineage":"3f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11","outputs":{` +
		outputs + `},"resources":[`)
	for i, start := 0, b.Len(); b.Len()-start < resources; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"mode":"managed","type":"aws_instance","name":"web%[1]d",`+
			`"provider":"provider[\"registry.terraform.io/hashicorp/aws\"]","instances":[{"schema_version":1,"attributes":{`+
			`"ami":"ami-0abcdef1234567890","arn":"arn:aws:ec2:eu-west-1:123456789012:instance/i-%017[1]d","ebs_optimized":false,`+
			`"cpu_core_count":4,"tags":{"Name":"web-%[1]d","Env":"prod"},"vpc_security_group_ids":["sg-0123456789abcdef0",`+
			`"sg-0123456789abcdef1"],"user_data":%[2]q},"sensitive_attributes":[],"private":"eyJzY2hlbWFfdmVyc2lvbiI6IjEifQ=="}]}`, i, data)
	}
	b.WriteString(`],"check_results":null}`)
	return b.Bytes()
}

// builtinState returns a state with about size bytes of resources of the provider that is built into Terraform, sorted
// as Terraform sorts them.
func builtinState(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"version":4,"terraform_version":"1.5.0","serial":7,"lineage":"3f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11","outputs":{` +
		oneOutput + `},"resources":[`)
	for i, start := 0, b.Len(); b.Len()-start < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		value := fmt.Sprintf(`{"value":{"ami":"ami-0abcdef1234567890","arn":"arn:aws:ec2:eu-west-1:123456789012:instance/i-%017d",`+
			`"count":4,"optimized":false},"type":["object",{"ami":"string","arn":"string","count":"number","optimized":"bool"}]}`, i)
		builtinResource(&b, fmt.Sprintf("web%07d", i), 1, func(int) (string, string) { return fmt.Sprintf("%036d", i), value }, false)
	}
	b.WriteString(`],"check_results":null}`)
	return b.Bytes()
}

// builtinResource writes a resource of the provider that is built into Terraform. The function of returns the ID of an
// instance, and its input with its type. If counted is true, the instances have an index.
func builtinResource(b *bytes.Buffer, name string, instances int, of func(i int) (id, input string), counted bool) {
	fmt.Fprintf(b, `{"mode":"managed","type":"terraform_data","name":%q,"provider":"provider[\"terraform.io/builtin/terraform\"]",`+
		`"instances":[`, name)
	for i := range instances {
		if i > 0 {
			b.WriteByte(',')
		}
		index := ""
		if counted {
			index = fmt.Sprintf(`"index_key":%d,`, i)
		}
		id, input := of(i)
		fmt.Fprintf(b, `{%s"schema_version":0,"attributes":{"id":%q,"input":%[3]s,"output":%[3]s,"triggers_replace":null},`+
			`"sensitive_attributes":[]}`, index, id, input)
	}
	b.WriteString("]}")
}

const oneOutput = `"vpc_id":{"value":"vpc-1","type":"string"}`

// manyOutputs returns objects of one type, such as modules return.
func manyOutputs(n int) string {
	var b bytes.Buffer
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"o%[1]d":{"value":{"id":"i-%[1]d","ports":[80,443],"tags":{"a":"b"}},`+
			`"type":["object",{"id":"string","ports":["list","number"],"tags":["map","string"]}]}`, i)
	}
	return b.String()
}

// largeOutput returns one list of objects, of about size bytes.
func largeOutput(size int) string {
	var b bytes.Buffer
	b.WriteString(`"large":{"value":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"i-%017[1]d","name":"web-%[1]d","arn":"arn:aws:ec2:eu-west-1:123456789012:instance/i-%017[1]d",`+
			`"zone":"eu-west-1a","weight":%[1]d}`, i)
	}
	b.WriteString(`],"type":["list",["object",{"arn":"string","id":"string","name":"string","weight":"number","zone":"string"}]]}`)
	return b.String()
}

// seal writes an encrypted state with its own salt.
func (b *bench) seal(name string, plain []byte) (path string, err error) {
	return b.sealAs(name, encrypted, plain)
}

func (b *bench) sealAs(name, settings string, plain []byte) (path string, err error) {
	enc, err := newEncryption(settings)
	if err != nil {
		return "", err
	}
	file, err := enc.State().Encrypt(context.Background(), plain)
	if err != nil {
		return "", err
	}
	path = b.path(name)
	return path, os.WriteFile(path, file, 0o600)
}
