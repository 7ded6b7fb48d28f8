package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// leaf is a certificate of the server.
type leaf int

const (
	trusted leaf = iota
	expired
	ofAnotherHost
	ofAnotherAuthority
)

// issuer signs certificates.
type issuer struct {
	pem         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newIssuer() *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the tests"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &issuer{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), certificate, key}
}

// issue makes a certificate for 127.0.0.1 and the hosts, with what is wrong
// with it.
func (i *issuer) issue(l leaf, hosts []string) (tls.Certificate, error) {
	if l == ofAnotherAuthority {
		i = newIssuer()
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server of the tests"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	switch l {
	case expired:
		template.NotAfter = time.Now().Add(-time.Hour)
	case ofAnotherHost:
		template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 9)}, []string{"elsewhere.example"}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, key.Public(), i.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
