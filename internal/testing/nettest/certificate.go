// Package nettest provides common parts for test servers, which all run on this machine: certificates, request logs,
// responses, clients and addresses.
package nettest

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

// Authority signs certificates. Clients trust it only if they are told to.
type Authority struct {
	PEM  string // the authority's own certificate
	pair tls.Certificate
}

// Certificate is a certificate with its key, both in PEM format.
type Certificate struct{ Chain, Key string }

// NewAuthority creates an authority.
func NewAuthority() *Authority {
	made := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of the tests"}, NotBefore: time.Now().Add(-48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	return &Authority{PEM: made.Chain, pair: made.Pair()}
}

// Issue creates a certificate for a server at 127.0.0.1 and the given hosts. If change is not nil, it may modify the
// certificate; see [Expired], [OfAnotherHost] and [OfClient].
func (a *Authority) Issue(change func(*x509.Certificate), hosts ...string) Certificate {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "server of the tests"}, NotBefore: time.Now().Add(-24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	return sign(template, &a.pair)
}

// Expired changes a certificate into an expired one.
func Expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }

// OfAnotherHost changes a certificate into one for 127.0.0.9 and elsewhere.example.
func OfAnotherHost(c *x509.Certificate) {
	c.IPAddresses, c.DNSNames = []net.IP{net.IPv4(127, 0, 0, 9)}, []string{"elsewhere.example"}
}

// OfClient changes a certificate into a client certificate.
func OfClient(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject.CommonName, c.IPAddresses = name, nil
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
}

// Pair returns the certificate in the form that crypto/tls uses.
func (c Certificate) Pair() tls.Certificate {
	return must(tls.X509KeyPair([]byte(c.Chain), []byte(c.Key)))
}

// Pool returns a pool that trusts the authorities whose PEM certificates are in text.
func Pool(text string) *x509.CertPool {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		panic("there is no certificate")
	}
	return pool
}

// PEM returns a certificate in PEM format.
func PEM(c *x509.Certificate) string { return block("CERTIFICATE", c.Raw) }

// sign creates a certificate. If issuer is nil, the certificate is self-signed.
func sign(template *x509.Certificate, issuer *tls.Certificate) Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template.SerialNumber = must(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100)))
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	parent, signer := template, any(key)
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey
	}
	der := must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer))
	return Certificate{Chain: block("CERTIFICATE", der), Key: block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))}
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
