// Package awskms implements a key provider that wraps the key of each file with AWS KMS.
//
// Its options, defaults and metadata are compatible with OpenTofu's key provider aws_kms
// (opentofu/internal/encryption/keyprovider/aws_kms). OpenTofu requests a new data key even for a read; this
// key provider only sends one kms:Decrypt request.
package awskms

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// Limits for the metadata in a file and for KMS responses.
const (
	// maxCiphertext is the maximum size of a ciphertext that KMS accepts, in bytes; see
	// https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html.
	maxCiphertext = 6144

	// maxContext is the maximum size of all names and values in an encryption context, in bytes. KMS allows
	// 8192 characters; see https://docs.aws.amazon.com/kms/latest/developerguide/encrypt_context.html.
	maxContext = 8192

	maxKeyLength = 1024 // in bytes; OpenTofu's longest data keys have 32
)

const kind = "an aws_kms key provider" // the name of this kind in error messages

// Block returns the aws_kms key provider.
func Block() driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{Table: table(), Build: build}
}

type provider struct {
	driver.Wrapping[metadata]

	keyID   string
	keySpec types.DataKeySpec
	context map[string]string // the encryption context for new keys; each file stores its own

	settings awsauth.Settings
	endpoint string                           // the KMS endpoint; empty for the SDK's default
	clients  memo.Memo[struct{}, *kms.Client] // the client, created on first use
	made     atomic.Pointer[kms.Client]       // the client in clients; nil before it is created
}

var _ driver.Warner = (*provider)(nil)

// Close closes idle connections to AWS. Connections in use are closed after their request.
func (p *provider) Close() {
	if client := p.made.Load(); client != nil {
		awsauth.CloseIdle(client.Options().HTTPClient)
	}
}

// Warning returns a warning if an attacker on the network can read the keys, or the requests to other AWS
// services.
func (p *provider) Warning() driver.Warning {
	switch exposed := p.settings.Exposed; {
	case slices.Contains(exposed.Services(), kms.ServiceID):
		return driver.Warning(netfail.Unencrypted("The credentials and the keys were", "the endpoint begins with http", "read them"))
	case len(exposed.Services()) > 0:
		return driver.Warning(exposed.Warning())
	case !strings.HasPrefix(p.endpoint, "http:") && p.settings.Unverified():
		return driver.Warning(netfail.Unverified("AWS KMS", "insecure is set", "read the credentials and the keys"))
	}
	return driver.Warning{}
}

// metadata is the document stored in a file. The names are the same as in
// opentofu/internal/encryption/keyprovider/aws_kms/provider.go.
type metadata struct {
	CiphertextBlob    []byte            `json:"ciphertext_blob"`
	EncryptionContext map[string]string `json:"encryption_context,omitempty"`
}

func build(v attr.Values) (driver.KeyProvider, error) {
	p := &provider{
		Wrapping: driver.Wrapping[metadata]{Kind: kind, Parse: parse},

		keyID:   v.String("kms_key_id"),
		keySpec: types.DataKeySpec(v.String("key_spec")),
		context: v.StringMap("encryption_context"),
	}
	endpoints, _ := v.Block("endpoints")
	p.endpoint = recognize.WithScheme(endpoints.String("kms"))
	var err error
	p.settings, err = awsauth.Parse(v, v.String("region"))
	return p, err
}

// Key asks KMS to decrypt the key in document. It uses the encryption context in document, so that files can
// still be read after the configured context has changed.
func (p *provider) Key(ctx context.Context, _ driver.Keys, document json.RawMessage) ([]byte, error) {
	m, err := parse(document)
	if err != nil {
		return nil, err
	}
	client, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := client.Decrypt(ctx, &kms.DecryptInput{
		KeyId:             aws.String(p.keyID),
		CiphertextBlob:    m.CiphertextBlob,
		EncryptionContext: m.EncryptionContext,
	})
	if err != nil {
		return nil, p.explain("Decrypt", err)
	}
	if n := len(answer.Plaintext); n == 0 || n > maxKeyLength {
		return nil, fmt.Errorf("%s returned a key of %d bytes, but 1 to %d are allowed", p.service(), n, maxKeyLength)
	}
	return answer.Plaintext, nil
}

// NewKey asks KMS for a new data key, and returns the key with its metadata.
func (p *provider) NewKey(ctx context.Context, _ driver.Keys) ([]byte, json.RawMessage, error) {
	client, err := p.client(ctx)
	if err != nil {
		return nil, nil, err
	}
	answer, err := client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId:             aws.String(p.keyID),
		KeySpec:           p.keySpec,
		EncryptionContext: p.context,
	})
	if err != nil {
		return nil, nil, p.explain("GenerateDataKey", err)
	}
	want := map[types.DataKeySpec]int{types.DataKeySpecAes256: 32, types.DataKeySpecAes128: 16}[p.keySpec]
	if len(answer.Plaintext) != want || len(answer.CiphertextBlob) == 0 {
		return nil, nil, fmt.Errorf("%s returned a key of %d bytes and a ciphertext of %d bytes, but a key of %d bytes was "+
			"requested", p.service(), len(answer.Plaintext), len(answer.CiphertextBlob), want)
	}
	document, err := json.Marshal(metadata{answer.CiphertextBlob, p.context})
	return answer.Plaintext, document, err
}

func parse(document json.RawMessage) (metadata, error) {
	var m metadata
	if err := driver.DecodeStored(document, kind, &m); err != nil {
		return m, err
	}
	switch {
	case len(m.CiphertextBlob) == 0:
		return m, fmt.Errorf("%w: the metadata in the file has no ciphertext_blob", driver.ErrNoKey)
	case len(m.CiphertextBlob) > maxCiphertext:
		return m, fmt.Errorf("the file has a ciphertext_blob of %d bytes, but KMS accepts at most %d", len(m.CiphertextBlob), maxCiphertext)
	case contextSize(m.EncryptionContext) > maxContext:
		return m, fmt.Errorf("the encryption_context in the file is longer than %d characters, but KMS accepts no more", maxContext)
	}
	return m, nil
}

func contextSize(pairs map[string]string) int {
	n := 0
	for k, v := range pairs {
		n += len(k) + len(v)
	}
	return n
}

// service returns a name for KMS that includes the region and the key, for error messages.
func (p *provider) service() string {
	return fmt.Sprintf("AWS KMS in %s (key %s)", p.settings.Region, p.keyID)
}

// client returns the KMS client. It retrieves credentials first, so that sign-in errors can be distinguished
// from KMS errors.
func (p *provider) client(ctx context.Context) (*kms.Client, error) {
	client, err := p.clients.Do(ctx, struct{}{}, p.connect)
	if err != nil {
		return nil, err
	}
	_, err = p.settings.Retrieve(ctx, client.Options().Credentials)
	return client, err
}

func (p *provider) connect(ctx context.Context) (*kms.Client, error) {
	cfg, err := p.settings.Load(ctx)
	if err != nil {
		return nil, err
	}
	client := kms.NewFromConfig(cfg, func(o *kms.Options) {
		if p.settings.MaxWait > 0 {
			o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, p.settings.MaxWait)
		}
		p.settings.SetEndpoint(ctx, cfg, kms.ServiceID, &o.BaseEndpoint)
		if p.endpoint != "" {
			o.BaseEndpoint = &p.endpoint
		}
	})
	p.made.Store(client)
	return client, nil
}
