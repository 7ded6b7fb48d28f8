package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// asTerraform is a program that does with its backend as Terraform does, and leaves a state that it does
// not get rid of.
func asTerraform() int {
	dir, words := "", os.Args[1:]
	if len(words) > 0 {
		dir, words = strings.TrimPrefix(words[0], "-chdir="), words[1:]
	}
	if os.Chdir(dir) != nil || len(words) == 0 {
		return 99
	}
	if _, err := os.Stat("backend.json"); err == nil { // it is asked for the hash of the block
		return 0
	}
	if send("LOCK", backend("lock_address"), `{"ID":"1"}`) != http.StatusOK {
		return 1
	}
	code := 0
	if status := send(http.MethodGet, backend("address"), ""); status != http.StatusOK && status != http.StatusNotFound {
		code = 1
	}
	if _, err := os.Stat("stuck"); err == nil { // then the state is not left here
		_ = os.Mkdir("errored.tfstate", 0o700)
	}
	next := strings.Replace(plain, `"serial":7`, `"serial":8`, 1)
	if code == 0 && words[0] == "apply" && send(http.MethodPost, backend("address")+"?ID=1", next) != http.StatusOK {
		_ = os.WriteFile("errored.tfstate", []byte(next), 0o600)
		code = 1
	}
	_ = send("UNLOCK", backend("unlock_address"), `{"ID":"1"}`)
	return code
}

// backend returns an argument of the backend that the record names, which is read once, as the CLIs do.
func backend(argument string) string {
	value, _ := recorded().Backend.Config[argument].(string)
	return value
}

type record struct {
	Backend struct{ Config map[string]any }
}

// recorded returns the record in the data directory.
var recorded = sync.OnceValue(func() (r record) {
	text, _ := os.ReadFile(filepath.Join(os.Getenv("TF_DATA_DIR"), "terraform.tfstate"))
	_ = json.Unmarshal(text, &r)
	return r
})

func send(method, address, body string) int {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM([]byte(backend("client_ca_certificate_pem")))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		return 0
	}
	r.SetBasicAuth(backend("username"), backend("password"))
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}
