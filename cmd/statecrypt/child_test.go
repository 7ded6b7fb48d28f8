package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
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
	if send("LOCK", os.Getenv("TF_HTTP_LOCK_ADDRESS"), `{"ID":"1"}`) != http.StatusOK {
		return 1
	}
	code := 0
	if status := send(http.MethodGet, os.Getenv("TF_HTTP_ADDRESS"), ""); status != http.StatusOK && status != http.StatusNotFound {
		code = 1
	}
	if _, err := os.Stat("stuck"); err == nil { // then the state is not left here
		_ = os.Mkdir("errored.tfstate", 0o700)
	}
	next := strings.Replace(plain, `"serial":7`, `"serial":8`, 1)
	if code == 0 && words[0] == "apply" && send(http.MethodPost, os.Getenv("TF_HTTP_ADDRESS")+"?ID=1", next) != http.StatusOK {
		_ = os.WriteFile("errored.tfstate", []byte(next), 0o600)
		code = 1
	}
	_ = send("UNLOCK", os.Getenv("TF_HTTP_UNLOCK_ADDRESS"), `{"ID":"1"}`)
	return code
}

func send(method, address, body string) int {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM([]byte(os.Getenv("TF_HTTP_CLIENT_CA_CERTIFICATE_PEM")))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		return 0
	}
	r.SetBasicAuth(os.Getenv("TF_HTTP_USERNAME"), os.Getenv("TF_HTTP_PASSWORD"))
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}
