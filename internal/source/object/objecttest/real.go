package objecttest

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// RealSecret is the secret key of AKIATEST, which has all permissions on real servers.
const RealSecret = Canary + "-secret"

// Real returns functions that start real programs with an S3 API.
func Real() map[string]func(*testing.T) (url, ca string) {
	return map[string]func(*testing.T) (url, ca string){"minio": MinIO, "versitygw": VersityGW}
}

// certified writes a certificate for 127.0.0.1 and its key into a folder, under the file names that MinIO
// expects. It returns the folder and the path of the authority's certificate.
func certified(t *testing.T) (dir, ca string) {
	t.Helper()
	authority := nettest.NewAuthority()
	issued := authority.Issue(nil)
	dir, ca = t.TempDir(), filepath.Join(t.TempDir(), "ca.crt")
	for path, text := range map[string]string{
		filepath.Join(dir, "public.crt"): issued.Chain, filepath.Join(dir, "private.key"): issued.Key, ca: authority.PEM,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, ca
}

// await waits until a request to url returns 200 OK.
func await(t *testing.T, server *servertest.Server, client *http.Client, url string) {
	t.Helper()
	server.Await(t, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
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
}

// MinIO starts the MinIO program that STATECRYPT_MINIO names, with TLS. It returns its URL and the path of
// its authority's certificate.
func MinIO(t *testing.T) (url, ca string) {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_MINIO")
	certificates, ca := certified(t)
	address, console := "127.0.0.1:"+nettest.Port(t), "127.0.0.1:"+nettest.Port(t)
	args := []string{"server", "--quiet", "--certs-dir", certificates, "--address", address, "--console-address", console, t.TempDir()}
	server := servertest.Start(t, program, args, "MINIO_ROOT_USER=AKIATEST", "MINIO_ROOT_PASSWORD="+RealSecret,
		"MINIO_SITE_REGION=eu-west-1")
	// MinIO's health/ready reports success before it serves requests.
	await(t, server, Trusting(t, ca), "https://"+address+"/minio/health/cluster")
	return "https://" + address, ca
}

// VersityGW works like MinIO, for the gateway that STATECRYPT_VERSITYGW names.
func VersityGW(t *testing.T) (url, ca string) {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_VERSITYGW")
	certificates, ca := certified(t)
	address := "127.0.0.1:" + nettest.Port(t)
	args := []string{"--quiet", "--port", address, "--region", "eu-west-1", "--health", "/health", "--iam-dir", t.TempDir(),
		"--cert", filepath.Join(certificates, "public.crt"), "--key", filepath.Join(certificates, "private.key"),
		"posix", "--versioning-dir", t.TempDir(), t.TempDir()}
	server := servertest.Start(t, program, args, "ROOT_ACCESS_KEY=AKIATEST", "ROOT_SECRET_KEY="+RealSecret)
	await(t, server, Trusting(t, ca), "https://"+address+"/health")
	return "https://" + address, ca
}

// Rclone works like MinIO, for the rclone that STATECRYPT_RCLONE names. Its buckets keep no versions.
func Rclone(t *testing.T) (url, ca string) {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_RCLONE")
	certificates, ca := certified(t)
	address := "127.0.0.1:" + nettest.Port(t)
	server := servertest.Start(t, program, []string{"serve", "s3", t.TempDir(), "--addr", address, "--auth-key", "AKIATEST," + RealSecret,
		"--cert", filepath.Join(certificates, "public.crt"), "--key", filepath.Join(certificates, "private.key")})
	client := Trusting(t, ca)
	server.Await(t, func() bool {
		resp, err := client.Get("https://" + address) //nolint:noctx // the request ends with the server
		return err == nil && resp.Body.Close() == nil
	})
	return "https://" + address, ca
}

// Trusting returns a client that trusts the authority in a file.
func Trusting(t *testing.T, ca string) *http.Client {
	t.Helper()
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: nettest.Pool(string(text)), MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
