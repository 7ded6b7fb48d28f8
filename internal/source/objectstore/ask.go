package objectstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

const (
	askTimeout = 30 * time.Second // for one try
	askTries   = 3
	maxAnswer  = 64 << 10 // bytes; temporary keys have a few kilobytes
)

// Web is how the services that give temporary keys are asked. The zero value
// asks without a proxy.
type Web struct {
	Proxies   attr.LookupEnv // for HTTPS_PROXY and its kin; nil for none
	Roots     *x509.CertPool // nil for those of the system
	FirstWait time.Duration  // between tries; it doubles
	Near      bool           // the service is on this machine's own network, or not there at all
}

// Transport makes a transport, which the caller keeps.
func (w Web) Transport() *http.Transport {
	find := web.Proxies(w.Proxies).ProxyFunc()
	connect := 10 * time.Second
	if w.Near {
		connect = 2 * time.Second
	}
	return &http.Transport{
		Proxy:                  func(r *http.Request) (*url.URL, error) { return find(r.URL) },
		DialContext:            (&net.Dialer{Timeout: connect}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.Roots},
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxAnswer,
		IdleConnTimeout:        30 * time.Second,
	}
}

// Ask sends what request makes, anew for each try because signatures hold the
// time, and returns the status and the body of the answer. Errors call the
// service who.
func (w Web) Ask(ctx context.Context, who string, request func(context.Context) (*http.Request, error)) (int, []byte, error) {
	transport := w.Transport()
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport: transport, Timeout: askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	wait := w.FirstWait
	for try := 1; ; try++ {
		status, body, err := askOnce(ctx, client, request)
		switch again := err != nil && !isFinal(err) || status == http.StatusTooManyRequests || status >= 500; {
		case ctx.Err() != nil:
			return 0, nil, context.Cause(ctx)
		case err == nil && !again:
			return status, body, nil
		case err != nil && (!again || try == askTries):
			return 0, nil, fmt.Errorf("%s: %s", who, transportReason(err))
		case try == askTries:
			return status, body, nil
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
}

func askOnce(ctx context.Context, client *http.Client, request func(context.Context) (*http.Request, error)) (int, []byte, error) {
	req, err := request(ctx)
	if err != nil {
		return 0, nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := source.Read(resp.Body, -1, maxAnswer)
	return resp.StatusCode, body, err
}

// isFinal reports whether another try would end the same way.
func isFinal(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return untrusted || plain || errors.Is(err, http.ErrSchemeMismatch)
}

// transportReason says why there was no answer, in our words: those of net/http
// hold URLs, and what servers and proxies sent.
func transportReason(err error) string {
	network, isOp := errors.AsType[*net.OpError](err)
	lookup, isDNS := errors.AsType[*net.DNSError](err)
	slow, canBeSlow := errors.AsType[net.Error](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case untrusted:
		return "its certificate is not trusted"
	case isFinal(err):
		return "it does not speak TLS"
	case isDNS:
		return "its host " + strconv.Quote(lookup.Name) + " cannot be found"
	case canBeSlow && slow.Timeout():
		return "it did not answer in time"
	case isOp:
		return "it cannot be reached (" + network.Op + ")"
	}
	return "the connection was lost, or the answer was not HTTP"
}
