// Package nettest is what the servers of tests have in common, all of them on
// this machine: certificates, logs of requests, answers, clients and addresses.
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

// Authority signs certificates. Nobody trusts it who is not told to.
type Authority struct {
	PEM  string // its own certificate
	pair tls.Certificate
}

// Certificate is a certificate with its key, both in PEM.
type Certificate struct{ Chain, Key string }

// NewAuthority makes an authority.
func NewAuthority() *Authority {
	made := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of the tests"}, NotBefore: time.Now().Add(-48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	return &Authority{PEM: made.Chain, pair: made.Pair()}
}

// Issue makes the certificate of a server at 127.0.0.1 and the hosts. Change,
// unless it is nil, may make it another one; see [Expired], [OfAnotherHost] and
// [OfClient].
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

// Expired makes a certificate one that has expired.
func Expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }

// OfAnotherHost makes a certificate one of 127.0.0.9 and elsewhere.example.
func OfAnotherHost(c *x509.Certificate) {
	c.IPAddresses, c.DNSNames = []net.IP{net.IPv4(127, 0, 0, 9)}, []string{"elsewhere.example"}
}

// OfClient makes a certificate that of a client.
func OfClient(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject.CommonName, c.IPAddresses = name, nil
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
}

// Pair is the certificate as crypto/tls wants it.
func (c Certificate) Pair() tls.Certificate {
	return must(tls.X509KeyPair([]byte(c.Chain), []byte(c.Key)))
}

// Pool trusts the authorities whose certificates are in text, which is PEM.
func Pool(text string) *x509.CertPool {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		panic("there is no certificate")
	}
	return pool
}

// PEM writes a certificate.
func PEM(c *x509.Certificate) string { return block("CERTIFICATE", c.Raw) }

// sign makes a certificate. One without an issuer signs itself.
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
