package s3

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the protocol asks for it
	"encoding/base64"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
)

// filled is a bucket of a real server. Its state has two versions.
type filled struct {
	url, ca       string
	first, second string // the versions
	mark          string // the version of "deleted" that marks the deletion
}

const ownBucket = "acme-tf-state"

func (s filled) client(t *testing.T) *awss3.Client {
	t.Helper()
	return awss3.New(awss3.Options{
		BaseEndpoint: &s.url, Region: "eu-west-1", UsePathStyle: true, HTTPClient: objecttest.Trusting(t, s.ca),
		Credentials: awscredentials.NewStaticCredentialsProvider("AKIATEST", "canary-secret", ""),
	})
}

func fill(t *testing.T, url, ca string) filled {
	t.Helper()
	s := filled{url: url, ca: ca}
	writer := s.client(t)
	if _, err := writer.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(ownBucket)}); err != nil {
		t.Fatal(err)
	}
	versioning := &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}
	if _, err := writer.PutBucketVersioning(t.Context(), &awss3.PutBucketVersioningInput{Bucket: aws.String(ownBucket),
		VersioningConfiguration: versioning}); err != nil {
		t.Fatal(err)
	}
	put := func(key, content string) string {
		t.Helper()
		out, err := writer.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String(ownBucket), Key: &key,
			Body: strings.NewReader(content)})
		if err != nil {
			t.Fatal(err)
		}
		return aws.ToString(out.VersionId)
	}
	s.first, s.second = put(key, "1"), put(key, "2")
	put("env:/prod/"+key, "prod")
	put("ä b+c%2f", "odd")
	put("deleted", "deleted")
	mark, err := writer.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(ownBucket), Key: aws.String("deleted")})
	if err != nil {
		t.Fatal(err)
	}
	s.mark = aws.ToString(mark.VersionId)
	return s
}

// wanted is what a read of a bucket yields.
type wanted struct {
	asks, block attrs
	workspace   string
	data        string // else the error
	revision    string
	err         string // possible parts of the error, after gone if there is no state
}

const (
	gone = "no state "
	or   = " | "
)

func (w wanted) check(t *testing.T) {
	t.Helper()
	src, err := open(w.asks, settings(nil, w.block), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := src.Fetch(t.Context())
	if w.err == "" {
		if err != nil || string(snap.Data) != w.data || w.revision != "" && snap.Revision != w.revision || snap.Revision == "" {
			t.Errorf("got %+v, %v", snap, err)
		}
		return
	}
	parts, wantMissing := strings.CutPrefix(w.err, gone)
	says := func(part string) bool { return strings.Contains(err.Error(), part) }
	if _, missing := source.IsMissing(err); err == nil || missing != wantMissing || says("canary") ||
		!slices.ContainsFunc(strings.Split(parts, or), says) {
		t.Errorf("got %v", err)
	}
}

// Real servers, with their own signatures, versions and answers.
func TestRealServers(t *testing.T) {
	for name, start := range objecttest.Real() {
		t.Run(name, func(t *testing.T) {
			url, ca := start(t)
			s := fill(t, url, ca)
			in, root := asks().With("bucket", ownBucket), block(url).With("custom_ca_bundle", ca)
			for name, c := range map[string]wanted{
				"current":          {in, root, "default", "2", s.second, ""},
				"version":          {in.With("version_id", s.first), root, "default", "1", s.first, ""},
				"workspace":        {in, root, "prod", "prod", "", ""},
				"odd key":          {in.With("key", "ä b+c%2f"), root, "default", "odd", "", ""},
				"without checksum": {in, root.With("skip_s3_checksum", true), "default", "2", s.second, ""},

				"missing": {in.With("key", "none"), root, "default", "", "", gone + "(404 NoSuchKey)"},
				"deleted": {in.With("key", "deleted"), root, "default", "", "", gone},
				"version of a mark": {in.With("key", "deleted").With("version_id", s.mark), root, "default", "", "",
					gone + "(405 MethodNotAllowed)"},
				"no such version": {in.With("version_id", s.mark), root, "default", "", "", "(404 NoSuchVersion)"},
				"no version":      {in.With("version_id", "canary"), root, "default", "", "", "(400 InvalidArgument)"},
				"no bucket":       {in.With("bucket", "none"), root, "default", "", "", "NoSuchBucket"},
				"another region": {in.With("region", "us-east-1"), root, "default", "", "",
					"AuthorizationHeaderMalformed" + or + "InvalidRegion" + or + "IllegalLocationConstraintException"},
				"wrong key":    {in, root.With("access_key", "AKIAOTHER"), "default", "", "", "(403 InvalidAccessKeyId)"},
				"wrong secret": {in, root.With("secret_key", "canary"), "default", "", "", "(403 SignatureDoesNotMatch)"},
			} {
				t.Run(name, c.check)
			}
		})
	}
}

// MinIO has policies, sessions and keys of customers, too.
func TestRealMinIO(t *testing.T) {
	url, ca := objecttest.MinIO(t)
	s := fill(t, url, ca)
	sum := md5.Sum(bytes.Repeat([]byte{1}, 32)) //nolint:gosec // see above
	if _, err := s.client(t).PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String(ownBucket), Key: aws.String("sealed"),
		Body: strings.NewReader("sealed"), SSECustomerAlgorithm: aws.String("AES256"), SSECustomerKey: aws.String(customerKey(1)),
		SSECustomerKeyMD5: aws.String(base64.StdEncoding.EncodeToString(sum[:]))}); err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile("../../../examples/sources/s3/policy.json")
	if err != nil {
		t.Fatal(err)
	}

	in, root := asks().With("bucket", ownBucket), block(url).With("custom_ca_bundle", ca)
	reader := root.With("endpoints", objecttest.Strings().With("s3", url).With("sts", url)).
		With("assume_role", objecttest.Strings().With("role_arn", "arn:aws:iam::111122223333:role/tf-state-reader").With("policy",
			string(policy)))
	for name, c := range map[string]wanted{
		"customer key":    {in.With("key", "sealed"), root.With(customerKeyAttr, customerKey(1)), "default", "sealed", "", ""},
		"wrong token":     {in, root.With("token", "canary"), "default", "", "", "S3: "},
		"no customer key": {in.With("key", "sealed"), root, "default", "", "", customerKeyAttr},
		"wrong one":       {in.With("key", "sealed"), root.With(customerKeyAttr, customerKey(2)), "default", "", "", customerKeyAttr},
		"needless one":    {in, root.With(customerKeyAttr, customerKey(1)), "default", "", "", customerKeyAttr},

		"reader":             {in, reader, "default", "2", s.second, ""},
		"reader, version":    {in.With("version_id", s.first), reader, "default", "1", s.first, ""},
		"reader, workspace":  {in, reader, "prod", "prod", "", ""},
		"reader, missing":    {in, reader, "gone", "", "", gone}, // AWS would not tell
		"reader, other":      {in.With("key", "ä b+c%2f"), reader, "default", "", "", "(403 AccessDenied)"},
		"reader, other none": {in.With("key", "none"), reader, "default", "", "", "(403 AccessDenied)"},
		"reader, not a role": {in, reader.With("secret_key", "canary"), "default", "", "", ": STS AssumeRole: "},
	} {
		t.Run(name, c.check)
	}
}
