package s3

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5" //nolint:gosec // the protocol asks for it
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/servertest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
)

// minio starts the MinIO that STATECRYPT_MINIO names, with TLS, and returns its
// URL and the file with its certificate.
func minio(t *testing.T) (url, ca string) {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_MINIO")
	certificates := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(certificates, "public.crt")
	for name, block := range map[string]*pem.Block{"public.crt": {Type: "CERTIFICATE", Bytes: der},
		"private.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(certificates, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address, console := "127.0.0.1:"+nettest.Port(t), "127.0.0.1:"+nettest.Port(t)
	args := []string{"server", "--quiet", "--certs-dir", certificates, "--address", address, "--console-address", console, t.TempDir()}
	client := trusting(t, ca)
	servertest.Start(t, program, args, "MINIO_ROOT_USER=AKIATEST", "MINIO_ROOT_PASSWORD=canary-secret",
		"MINIO_SITE_REGION=eu-west-1").Await(t, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/minio/health/ready", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(request)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return "https://" + address, ca
}

func trusting(t *testing.T, ca string) *http.Client {
	t.Helper()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A real server, with its own signatures, versions, policies, sessions and keys
// of customers.
func TestRealMinIO(t *testing.T) {
	url, ca := minio(t)
	writer := awss3.New(awss3.Options{
		BaseEndpoint: &url, Region: "eu-west-1", UsePathStyle: true, HTTPClient: trusting(t, ca),
		Credentials: awscredentials.NewStaticCredentialsProvider("AKIATEST", "canary-secret", ""),
	})
	const own = "acme-tf-state"
	if _, err := writer.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(own)}); err != nil {
		t.Fatal(err)
	}
	versioning := &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}
	if _, err := writer.PutBucketVersioning(t.Context(), &awss3.PutBucketVersioningInput{Bucket: aws.String(own),
		VersioningConfiguration: versioning}); err != nil {
		t.Fatal(err)
	}
	put := func(key, content string, sealed bool) string {
		t.Helper()
		in := &awss3.PutObjectInput{Bucket: aws.String(own), Key: &key, Body: strings.NewReader(content)}
		if sealed {
			sum := md5.Sum(bytes.Repeat([]byte{1}, 32)) //nolint:gosec // see above
			in.SSECustomerAlgorithm, in.SSECustomerKey = aws.String("AES256"), aws.String(customerKey(1))
			in.SSECustomerKeyMD5 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
		}
		out, err := writer.PutObject(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return aws.ToString(out.VersionId)
	}
	first := put(key, "1", false)
	second := put(key, "2", false)
	put("env:/prod/"+key, "prod", false)
	put("ä b+c%2f", "odd", false)
	put("sealed", "sealed", true)
	put("deleted", "deleted", false)
	mark, err := writer.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(own), Key: aws.String("deleted")})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile("../../../examples/sources/s3/policy.json")
	if err != nil {
		t.Fatal(err)
	}

	in := asks().With("bucket", own)
	root := block(url).With("custom_ca_bundle", ca)
	reader := root.With("endpoints", objecttest.Strings().With("s3", url).With("sts", url)).
		With("assume_role", objecttest.Strings().With("role_arn", "arn:aws:iam::111122223333:role/tf-state-reader").With("policy",
			string(policy)))
	for name, c := range map[string]struct {
		asks, block attrs
		workspace   string
		data        string // else the error
		revision    string
		err         string
	}{
		"current":          {in, root, "default", "2", second, ""},
		"version":          {in.With("version_id", first), root, "default", "1", first, ""},
		"workspace":        {in, root, "prod", "prod", "", ""},
		"odd key":          {in.With("key", "ä b+c%2f"), root, "default", "odd", "", ""},
		"customer key":     {in.With("key", "sealed"), root.With(customerKeyAttr, customerKey(1)), "default", "sealed", "", ""},
		"without checksum": {in, root.With("skip_s3_checksum", true), "default", "2", second, ""},

		"missing": {in.With("key", "none"), root, "default", "", "",
			"there is no state: S3 answered that the bucket has no such object (404 NoSuchKey)"},
		"deleted": {in.With("key", "deleted"), root, "default", "", "", "there is no state: "},
		"version of a mark": {in.With("key", "deleted").With("version_id", aws.ToString(mark.VersionId)), root, "default", "", "",
			"there is no state: S3 answered that the version is the mark"},
		"no such version": {in.With("version_id", "11111111-2222-3333-4444-555555555555"), root, "default", "", "",
			"the object has no such version (404 NoSuchVersion)"},
		"no version": {in.With("version_id", "canary"), root, "default", "", "",
			"the version is not one that the store knows (400 InvalidArgument)"},
		"no bucket":      {in.With("bucket", "none"), root, "default", "", "", `there is no bucket "none"`},
		"another region": {in.With("region", "us-east-1"), root, "default", "", "", "the bucket is elsewhere, and nothing was sent there; "},
		"wrong key": {in, root.With("access_key", "AKIAOTHER"), "default", "", "",
			"the credentials are not valid; check them in the s3 block of credentials, in the provider block (403 InvalidAccessKeyId)"},
		"wrong secret": {in, root.With("secret_key", "canary"), "default", "", "",
			"the credentials are not valid; check them in the s3 block of credentials, in the provider block (403 SignatureDoesNotMatch)"},
		"wrong token":     {in, root.With("token", "canary"), "default", "", "", "S3: "},
		"no customer key": {in.With("key", "sealed"), root, "default", "", "", "set sse_customer_key in the s3 block of credentials"},
		"wrong one":       {in.With("key", "sealed"), root.With(customerKeyAttr, customerKey(2)), "default", "", "", "sse_customer_key"},
		"needless one": {in, root.With(customerKeyAttr, customerKey(1)), "default", "", "",
			"the object is not encrypted with a key of yours (SSE-C), or sse_customer_key is another one"},

		"reader":            {in, reader, "default", "2", second, ""},
		"reader, version":   {in.With("version_id", first), reader, "default", "1", first, ""},
		"reader, workspace": {in, reader, "prod", "prod", "", ""},
		"reader, missing":   {in, reader, "gone", "", "", "there is no state: "}, // AWS would not tell
		"reader, other": {in.With("key", "ä b+c%2f"), reader, "default", "", "",
			"access is denied; the credentials need s3:GetObject on this object"},
		"reader, other none": {in.With("key", "none"), reader, "default", "", "",
			"access is denied; the credentials need s3:GetObject on this object"},
		"reader, not a role": {in, reader.With("secret_key", "canary"), "default", "", "", "no AWS credentials found: STS AssumeRole: "},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := open(c.asks, settings(nil, c.block), c.workspace)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := src.Fetch(t.Context())
			if c.err == "" {
				if err != nil || string(snap.Data) != c.data || c.revision != "" && snap.Revision != c.revision || snap.Revision == "" {
					t.Errorf("got %+v, %v", snap, err)
				}
				return
			}
			_, missing := source.IsMissing(err)
			if err == nil || !strings.Contains(err.Error(), c.err) || missing != strings.HasPrefix(c.err, "there is no state") ||
				strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
		})
	}
}
