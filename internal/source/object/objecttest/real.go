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

// RealSecret is the secret key of AKIATEST, who may do all on real servers.
const RealSecret = Canary + "-secret"

// Real are programs that speak S3.
func Real() map[string]func(*testing.T) (url, ca string) {
	return map[string]func(*testing.T) (url, ca string){"minio": MinIO, "versitygw": VersityGW}
}

// certified writes a certificate for 127.0.0.1 and its key into a folder, under the names
// that MinIO looks for, and returns the folder and the file with the authority.
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

// await waits until the server says at this URL that it serves.
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

// MinIO starts the MinIO that STATECRYPT_MINIO names, with TLS, and returns its
// URL and the file with its authority.
func MinIO(t *testing.T) (url, ca string) {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_MINIO")
	certificates, ca := certified(t)
	address, console := "127.0.0.1:"+nettest.Port(t), "127.0.0.1:"+nettest.Port(t)
	args := []string{"server", "--quiet", "--certs-dir", certificates, "--address", address, "--console-address", console, t.TempDir()}
	server := servertest.Start(t, program, args, "MINIO_ROOT_USER=AKIATEST", "MINIO_ROOT_PASSWORD="+RealSecret,
		"MINIO_SITE_REGION=eu-west-1")
	// Its health/ready answers with success before it serves requests.
	await(t, server, Trusting(t, ca), "https://"+address+"/minio/health/cluster")
	return "https://" + address, ca
}

// VersityGW starts the gateway that STATECRYPT_VERSITYGW names, in the same way.
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

// Trusting is a client that trusts the authority in a file.
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
