package s3object

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
)

const (
	answerTimeout = 30 * time.Second // until an answer begins
	maxAttempts   = 5                // of a request that may be worth it
	maxRefusal    = 64 << 10         // bytes of an answer that is not an object
)

// Options say how to reach a store, other than AWS's own, and as whom.
type Options struct {
	Endpoint  string // https://oss-eu-central-1.aliyuncs.com
	Region    string // that requests are signed for
	PathStyle bool   // https://endpoint/bucket/key in the place of https://bucket.endpoint/key

	AccessKey, SecretKey string
	Token                string                  // of a session; may be empty
	Credentials          aws.CredentialsProvider // in the place of those three

	CA       []byte // certificates in PEM format in the place of the system's; may be nil
	Insecure bool   // accepts any certificate
	Proxy    func(*url.URL) (*url.URL, error)

	Attempts int           // of one request; zero is a few
	MaxWait  time.Duration // between them; zero leaves it to the SDK
	Timeout  time.Duration // until an answer begins; zero is half a minute
}

// NewClient makes a client. It sends nothing yet, and nothing of the
// environment is heeded.
func NewClient(o Options) (*s3.Client, error) {
	transport := awshttp.NewBuildableClient().GetTransport()
	transport.TLSClientConfig = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: o.Insecure, //nolint:gosec // the user's choice
	}
	if o.CA != nil {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("there is no certificate in PEM format")
		}
	}
	transport.Proxy = nil
	if o.Proxy != nil {
		transport.Proxy = func(r *http.Request) (*url.URL, error) { return o.Proxy(r.URL) }
	}
	if o.Credentials == nil {
		o.Credentials = credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, o.Token)
	}
	if o.Attempts == 0 {
		o.Attempts = maxAttempts
	}
	return s3.New(s3.Options{
		BaseEndpoint:     &o.Endpoint,
		Region:           o.Region,
		UsePathStyle:     o.PathStyle,
		Credentials:      o.Credentials,
		RetryMaxAttempts: o.Attempts,
		Logger:           logging.Nop{},
		APIOptions:       []func(*middleware.Stack) error{awsauth.AnonymousClient},

		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}, func(options *s3.Options) { Restrict(options, transport, o.Timeout, o.MaxWait) }), nil
}

// Restrict has a client only read, over a transport, and wait for the begin of
// an answer, and between attempts, no longer than it is told; zero is as long
// as is usual.
func Restrict(o *s3.Options, transport *http.Transport, timeout, maxWait time.Duration) {
	if timeout == 0 {
		timeout = answerTimeout
	}
	transport.ResponseHeaderTimeout = timeout
	o.HTTPClient = readOnly{&http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if maxWait == 0 {
		maxWait = retry.DefaultMaxBackoff
	}
	if r, ok := retry.AddWithMaxBackoffDelay(o.Retryer, maxWait).(aws.RetryerV2); ok { // it always is one
		o.Retryer = judicious{r}
	}
	o.ClientLogMode = 0
	o.UseARNRegion = false
	o.DisableMultiRegionAccessPoints = true
	o.DisableLogOutputChecksumValidationSkipped = true
}

// judicious knows better than the SDK what another try may help with.
type judicious struct{ aws.RetryerV2 }

func (j judicious) IsErrorRetryable(err error) bool {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() == http.StatusTooManyRequests {
		return true
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return false
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain || errors.Is(err, http.ErrSchemeMismatch) {
		return false
	}
	return j.RetryerV2.IsErrorRetryable(err)
}

// readOnly is the last step before the wire: it lets nothing but reads pass.
// And it cuts answers that are errors, which the SDK reads as a whole.
type readOnly struct{ client *http.Client }

func (r readOnly) Do(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || req.Body != nil && req.Body != http.NoBody {
		return nil, errors.New("only GET requests without a body may be sent")
	}
	resp, err := r.client.Do(req) //nolint:gosec // the user's own settings say where
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxRefusal), resp.Body}
	}
	return resp, err
}
