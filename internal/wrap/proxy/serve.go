package proxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// certify creates a certificate for this run. Only the child receives its authority. After the run, another process on
// the same port cannot present this certificate.
func certify() (certificate tls.Certificate, authority string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(1, 0, 0), // the clock may be changed during the run
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), err
}

// Serve starts the server, and returns the settings that let the child find the proxy. The stop function waits for the
// child's requests, but not for unauthorized ones.
func (p *Proxy) Serve(ctx context.Context) (settings module.Settings, stop func(), err error) {
	certificate, authority, err := certify()
	if err != nil {
		return nil, nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("could not listen on a port of the loopback interface: %w", err)
	}
	server := p.server(certificate)
	ended := make(chan struct{})
	go func() {
		_ = server.ServeTLS(listener, "", "") // until Close
		close(ended)
	}()
	return p.settings("https://"+listener.Addr().String(), authority), sync.OnceFunc(func() {
		p.work.Lock() // every request has its own time limit
		_ = server.Close()
		<-ended
	}), nil
}

func (p *Proxy) server(certificate tls.Certificate) *http.Server {
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute, ReadTimeout: states.Patience, IdleTimeout: -1, // a child may work for hours
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Protocols:   new(http.Protocols),
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, 0), // a disconnecting child is not an error
		BaseContext: func(net.Listener) context.Context { return notice.With(context.Background(), p.say) },
	}
	server.Protocols.SetHTTP1(true)
	return server
}

// settings returns the arguments of an "http" backend that point to the proxy.
func (p *Proxy) settings(address, authority string) module.Settings {
	all := module.Settings{
		"address": address + "/state", "lock_address": address + "/lock", "unlock_address": address + "/lock",
		"username": module.Username, "password": p.password, "client_ca_certificate_pem": authority,
	}
	for name, value := range p.backend.Retries {
		all[name] = value
	}
	return all
}
