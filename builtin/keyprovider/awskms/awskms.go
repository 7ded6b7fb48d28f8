// Package awskms wraps the key of each file with AWS KMS.
//
// It has the options, the defaults and the metadata of OpenTofu's key provider aws_kms
// (opentofu/internal/encryption/keyprovider/aws_kms). OpenTofu requests a new data key even when
// it only reads; this key provider sends one kms:Decrypt.
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

// These limits apply to the metadata in a file and to the answers of the service.
const (
	// maxCiphertext is the length of the longest ciphertext that KMS accepts:
	// https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html
	maxCiphertext = 6144 // bytes

	// maxContext is the limit of KMS, which allows 8192 characters:
	// https://docs.aws.amazon.com/kms/latest/developerguide/encrypt_context.html
	maxContext = 8192 // bytes of all names and values

	maxKeyLength = 1024 // bytes; the longest data key of OpenTofu is 32
)

const kind = "an aws_kms key provider" // the name of the kind in errors

// Block returns the aws_kms key provider.
func Block() driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{Table: table(), Build: build}
}

type provider struct {
	driver.Wrapping[metadata]

	keyID   string
	keySpec types.DataKeySpec
	context map[string]string // the encryption context of new keys; each file stores its own

	settings awsauth.Settings
	endpoint string                           // the endpoint of KMS; "" leaves the choice to the SDK
	clients  memo.Memo[struct{}, *kms.Client] // the client, made when it is first needed
	made     atomic.Pointer[kms.Client]       // the client in clients; nil before it is made
}

var _ driver.Warner = (*provider)(nil)

// Close closes the connections to AWS. A connection in use is closed after its request.
func (p *provider) Close() {
	if client := p.made.Load(); client != nil {
		awsauth.CloseIdle(client.Options().HTTPClient)
	}
}

// Warning returns a warning if anybody on the way can read the keys, or the requests to other services of AWS.
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

// metadata is the document that a file stores, with the names of
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

// Key has KMS decrypt the key that document holds. It uses the encryption context in document, so
// that changing the configured one locks nobody out.
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
		return nil, fmt.Errorf("%s answered with a key of %d bytes; 1 to %d are allowed", p.service(), n, maxKeyLength)
	}
	return answer.Plaintext, nil
}

// NewKey has KMS make a data key, and returns the key with its metadata.
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
		return nil, nil, fmt.Errorf("%s answered with a key of %d bytes and a ciphertext of %d; %d bytes of key "+
			"were requested", p.service(), len(answer.Plaintext), len(answer.CiphertextBlob), want)
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
		return m, fmt.Errorf("%w: the metadata in the file lacks a ciphertext_blob", driver.ErrNoKey)
	case len(m.CiphertextBlob) > maxCiphertext:
		return m, fmt.Errorf("the file holds a ciphertext_blob of %d bytes; KMS accepts at most %d", len(m.CiphertextBlob), maxCiphertext)
	case contextSize(m.EncryptionContext) > maxContext:
		return m, fmt.Errorf("the file holds an encryption_context of more than %d characters, which KMS does not accept", maxContext)
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

// service returns a name of KMS and the key, for errors.
func (p *provider) service() string {
	return fmt.Sprintf("AWS KMS in %s (key %s)", p.settings.Region, p.keyID)
}

// client returns the client after it has retrieved credentials, so that errors of signing in are
// distinct from errors of KMS.
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
