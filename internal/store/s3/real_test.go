package s3

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// realServer is a program that speaks S3.
type realServer struct {
	url, ca string
	client  *awss3.Client
}

func newReal(t *testing.T, start func(*testing.T) (url, ca string)) *realServer {
	t.Helper()
	r := &realServer{}
	r.url, r.ca = start(t)
	r.client = awss3.New(awss3.Options{
		BaseEndpoint: &r.url, Region: "eu-west-1", UsePathStyle: true, HTTPClient: objecttest.Trusting(t, r.ca),
		Credentials: awscredentials.NewStaticCredentialsProvider("AKIATEST", objecttest.RealSecret, ""),
	})
	return r
}

// create makes a bucket, and has it keep versions.
func (r *realServer) create(t *testing.T, name string, keeps bool) {
	t.Helper()
	_, err := r.client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &name})
	if err == nil && keeps {
		_, err = r.client.PutBucketVersioning(t.Context(), &awss3.PutBucketVersioningInput{Bucket: &name,
			VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
	}
	must(t, err)
}

func (r *realServer) put(t *testing.T, bucket, key string, data []byte) {
	t.Helper()
	_, err := r.client.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(data)})
	must(t, err)
}

func (r *realServer) delete(t *testing.T, bucket, key string) {
	t.Helper()
	_, err := r.client.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	must(t, err)
}

func (r *realServer) block(bucket, key string) attrs {
	return block().With("bucket", bucket).With("key", key).With("secret_key", objecttest.RealSecret).With("use_path_style", true).
		With("endpoints", objecttest.Strings("s3", r.url)).With("custom_ca_bundle", r.ca)
}

// TestRealServers: what every store must pass, on real ones, with and without versions; and what else
// they have of their own.
func TestRealServers(t *testing.T) {
	servers := objecttest.Real()
	servers["rclone"] = objecttest.Rclone
	for name, start := range servers {
		for _, keeps := range []bool{false, true} {
			if name == "rclone" && keeps {
				continue // it keeps no versions
			}
			t.Run(fmt.Sprintf("%s, versions %t", name, keeps), func(t *testing.T) {
				r, n := newReal(t, start), 0
				if name == "versitygw" && keeps { // neither can the CLIs' own backends lock there a second time
					r.create(t, "own", keeps)
					s := at(t, r.block("own", "a"))
					must(t, s.Lock(t.Context(), storetest.Lock("1")))
					must(t, s.Unlock(t.Context(), "1"))
					if err := s.Lock(t.Context(), storetest.Lock("1")); err == nil ||
						!strings.Contains(err.Error(), "(412)") && !strings.Contains(err.Error(), "(409)") {
						t.Errorf("got %v", err)
					}
					return
				}
				places := func(keeps bool) storetest.Places {
					return func(t *testing.T, name string) storetest.Place {
						t.Helper()
						n++
						bucket, key := fmt.Sprintf("bucket%d", n), "net/"+name
						r.create(t, bucket, keeps)
						b := r.block(bucket, key)
						return storetest.Place{
							Open:    func(t *testing.T) store.State { t.Helper(); return at(t, b) },
							Put:     func(t *testing.T, data []byte) { t.Helper(); r.put(t, bucket, key, data) },
							Lose:    func(t *testing.T) { t.Helper(); r.delete(t, bucket, key+objects.LockSuffix) },
							Secrets: []string{objecttest.RealSecret},
						}
					}
				}
				harness := storetest.Harness{Properties: store.Properties{HasLocks: true}, Slow: keeps, Place: places(keeps)}
				if harness.OwnHistory = name != "minio"; !harness.OwnHistory {
					harness.Versioned = places(true)
				}
				storetest.Run(t, harness)
				r.create(t, "own", keeps)
				testRealVersions(t, r, name)
				testRealList(t, r)
				testRealFolders(t, r, name)
				testRealConditions(t, r, name)
				ctx, texts := said(t)
				s := at(t, r.block("own", "told"))
				must(t, s.Lock(ctx, storetest.Lock("1")))
				must(t, s.Unlock(ctx, "1"))
				if len(*texts) > 0 {
					t.Errorf("it says %q", *texts)
				}
			})
		}
	}
}

// testRealVersions tests the versions of an object that others have written, with and without versions.
func testRealVersions(t *testing.T, r *realServer, name string) {
	t.Helper()
	for _, keeps := range []bool{false, true} {
		if name == "rclone" && keeps {
			continue
		}
		bucket := fmt.Sprint("history-", keeps)
		r.create(t, bucket, keeps)
		h := storetest.Historian(t, at(t, r.block(bucket, "net/a")))
		r.put(t, bucket, "net/a", storetest.State(1))
		r.put(t, bucket, "net/a", storetest.State(2))
		r.put(t, bucket, "net/a.backup", storetest.State(3))
		kept, more, err := h.Versions(t.Context(), 10)
		want, status := 1, store.KeptCurrent
		if keeps {
			r.delete(t, bucket, "net/a")
			want, status = 3, store.KeptDeleted
			kept, more, err = h.Versions(t.Context(), 10)
		}
		if err != nil || more || len(kept) != want || kept[0].Status != status {
			t.Fatalf("versions %t: got %+v, %v", keeps, kept, err)
		}
		newest := kept[want/2]
		got, err := h.ReadVersion(t.Context(), newest.ID, 5, 10)
		if err != nil || !bytes.Equal(got, storetest.State(2)[5:15]) || newest.Size != int64(len(storetest.State(2))) {
			t.Errorf("versions %t: got %q, %v", keeps, got, err)
		}
		for what, id := range map[string]string{"unknown": "4711", "of another": "11111111-2222-4333-8444-555555555555"} {
			if _, err := h.ReadVersion(t.Context(), id, 0, -1); !errors.Is(err, store.ErrNoVersion) {
				t.Errorf("versions %t, %s: %v", keeps, what, err)
			}
		}
		for _, v := range kept {
			if _, err := h.ReadVersion(t.Context(), v.ID, 0, 1); errors.Is(err, store.ErrNoVersion) != (v.Status == store.KeptDeleted) {
				t.Errorf("%+v: %v", v, err)
			}
			if got, err := h.ReadVersion(t.Context(), v.ID, v.Size, 1); v.Size > 0 && (err != nil || len(got) > 0) {
				t.Errorf("%+v: got %q, %v", v, got, err)
			}
		}
	}
}

// testRealList: what is listed are states.
func testRealList(t *testing.T, r *realServer) {
	t.Helper()
	for _, key := range []string{"net/a", "net/b", "other"} {
		s := at(t, r.block("own", key))
		must(t, s.Lock(t.Context(), storetest.Lock("1")))
		_, err := s.Write(t.Context(), storetest.State(1), "")
		must(t, errors.Join(err, s.Unlock(t.Context(), "1")))
	}
	r.put(t, "own", "net/c.tflock", storetest.Lock("1").JSON())
	opened, err := openStore(t, r.block("own", "net/a"))
	must(t, err)
	names, err := opened.List(t.Context(), "net/")
	if err != nil || strings.Join(names, " ") != "net/a net/b" {
		t.Errorf("got %q, %v", names, err)
	}
}

// testRealFolders tests what servers do with a key above or below another object: what is refused is refused before
// the run.
func testRealFolders(t *testing.T, r *realServer, name string) {
	t.Helper()
	r.put(t, "own", "folder/state", storetest.State(1))
	for _, key := range []string{"folder", "folder/state/below"} {
		s := at(t, r.block("own", key))
		err := ready(t.Context(), s)
		answer, _ := errors.AsType[*object.Answer](err)
		_, isFolder := errors.AsType[*folderError](err)
		refused := isFolder || answer != nil && answer.IsInTheWay()
		if refused != (err != nil) || refused != (name != "minio") {
			t.Errorf("%s: got %v", key, err)
		}
		if err == nil {
			_, err := s.Write(t.Context(), storetest.State(1), "")
			must(t, err)
		}
	}
}

// testRealConditions tests which conditions a server keeps, as docs/services.md has it.
func testRealConditions(t *testing.T, r *realServer, name string) {
	t.Helper()
	const bucket, key = "own", "conditions"
	r.put(t, bucket, key, []byte("1"))
	put := func(in *awss3.PutObjectInput) error {
		in.Bucket, in.Key, in.Body = aws.String(bucket), aws.String(key), strings.NewReader("2")
		_, err := r.client.PutObject(t.Context(), in)
		return err
	}
	_, errDelete := r.client.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String(key),
		IfMatch: aws.String(noObject)})
	if (errDelete == nil) != (name == "minio") {
		t.Errorf("DELETE, If-Match: %v", errDelete)
	}
	r.put(t, bucket, key, []byte("1"))
	for condition, err := range map[string]error{
		"If-None-Match": put(&awss3.PutObjectInput{IfNoneMatch: aws.String("*")}),
		"If-Match":      put(&awss3.PutObjectInput{IfMatch: aws.String(noObject)}),
	} {
		if err == nil {
			t.Errorf("PUT, %s: it is ignored", condition)
		}
	}
}

// TestRealMinIO: the policy of the documentation is enough, and each key that objects may be encrypted
// with works.
func TestRealMinIO(t *testing.T) {
	r := newReal(t, objecttest.MinIO)
	const bucket, key = "acme-tf-state", "network/terraform.tfstate"
	r.create(t, bucket, true)
	policy, err := os.ReadFile("../../../examples/stores/s3/policy.json")
	must(t, err)
	whole := r.block(bucket, key)
	writer := whole.With("endpoints", objecttest.Strings("s3", r.url, "sts", r.url)).
		With("assume_role", objecttest.Strings("role_arn", "arn:aws:iam::111122223333:role/tf-writer", "policy", string(policy)))
	customer := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for name, b := range map[string]attrs{
		"the policy": writer, "a key of the customer": whole.With("key", "sealed").With("encrypt", true).With("sse_customer_key", customer),
		"tags": whole.With("key", "tags").With("state_tags", objecttest.Strings("team", "a b")),
	} {
		s := carefully(at(t, b))
		must(t, s.Lock(t.Context(), storetest.Lock("1")))
		_, version, err := s.Read(t.Context())
		must(t, err)
		if version, err = s.Write(t.Context(), storetest.State(1), version); err == nil {
			version, err = s.Write(t.Context(), storetest.State(2), version)
		}
		must(t, err)
		_, errOther := s.Write(t.Context(), storetest.State(3), "")
		if !errors.Is(errOther, store.ErrChanged) {
			t.Errorf("%s, another: %v", name, errOther)
		}
		got, now, err := s.Read(t.Context())
		if err != nil || now != version || !bytes.Equal(got, storetest.State(2)) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, s.Unlock(t.Context(), "1"))
	}
	other := at(t, writer.With("key", "billing/terraform.tfstate"))
	if err := other.Lock(t.Context(), storetest.Lock("1")); !errors.Is(err, store.ErrDenied) {
		t.Errorf("another state: %v", err)
	}
}
