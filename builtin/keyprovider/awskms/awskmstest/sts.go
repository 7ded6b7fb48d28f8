package awskmstest

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// STS is a fake AWS STS that speaks the AWS query protocol. It assumes any role and answers
// GetCallerIdentity.
type STS struct {
	nettest.Log[Call]

	URL     string
	Account string // the account in GetCallerIdentity responses

	mu   sync.Mutex
	deny string
}

// Call is a request that the server received.
type Call struct {
	Action    string // such as "AssumeRole"
	Form      url.Values
	AccessKey string // the access key that signed the request; empty if it is not signed
	Region    string
}

// NewSTS starts a server that runs until the test ends.
func NewSTS(tb testing.TB) *STS {
	tb.Helper()
	s := &STS{Account: "111122223333"}
	s.URL = nettest.Serve(tb, s)
	return s
}

// Deny makes all further requests fail with the given code.
func (s *STS) Deny(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deny = code
}

// AssumedKey returns the access key in the credentials of a role that the given action assumed.
func AssumedKey(action string) string { return "ASIA" + action }

func (s *STS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // a malformed form contains no known action
	action := r.PostForm.Get("Action")
	accessKey, region, signed := signature(r, "sts")

	s.Note(Call{Action: action, Form: r.PostForm, AccessKey: accessKey, Region: region})
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/xml")
	code := s.deny
	switch {
	case action != "GetCallerIdentity" && action != "AssumeRole" && action != "AssumeRoleWithWebIdentity":
		code = "InvalidAction"
	case !signed && action != "AssumeRoleWithWebIdentity":
		code = "MissingAuthenticationToken"
	}
	if code != "" {
		w.WriteHeader(403)
		fmt.Fprintf(w, `<ErrorResponse `+
			`xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, code, Leak)
		return
	}
	var result string
	switch action {
	case "GetCallerIdentity":
		result = fmt.Sprintf("<Account>%s</Account><Arn>arn:aws:iam::%[1]s:user/u</Arn><UserId>u</UserId>", s.Account)
	case "AssumeRole", "AssumeRoleWithWebIdentity":
		result = fmt.Sprintf("<Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>canary-assumed</SecretAccessKey>"+
			"<SessionToken>session-of-%s</SessionToken><Expiration>%s</Expiration></Credentials>",
			AssumedKey(action), action, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}
	const document = `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>`
	fmt.Fprintf(w, document, action, result) //nolint:gosec // the client is a test
}
