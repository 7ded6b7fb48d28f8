package pgtest

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

// Authority signs certificates.
type Authority struct {
	PEM         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Certificate is one for 127.0.0.1 and db.example.test, in PEM.
type Certificate struct{ Chain, Key string }

// Pair is the certificate for a server of crypto/tls.
func (c Certificate) Pair() tls.Certificate {
	pair, err := tls.X509KeyPair([]byte(c.Chain), []byte(c.Key))
	if err != nil {
		panic(err)
	}
	return pair
}

// Flaw is what is wrong with a certificate.
type Flaw int

// What may be wrong with a certificate. OfCertuser is the one of a client.
const (
	Valid Flaw = iota
	Expired
	OfAnotherHost
	OfCertuser
)

// NewAuthority makes an authority that nobody else trusts.
func NewAuthority() *Authority {
	key := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the tests"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &Authority{block("CERTIFICATE", der), parsed, key}
}

// Issue makes a certificate.
func (a *Authority) Issue(f Flaw) Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server of the tests"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"db.example.test"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	switch f {
	case Valid:
	case Expired:
		template.NotAfter = time.Now().Add(-time.Hour)
	case OfAnotherHost:
		template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 9)}, []string{"elsewhere.example"}
	case OfCertuser:
		template.Subject.CommonName = "certuser"
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	key := newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		panic(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return Certificate{block("CERTIFICATE", der), block("PRIVATE KEY", raw)}
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
