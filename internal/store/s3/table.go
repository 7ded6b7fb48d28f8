package s3

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what both CLIs compare
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// table is one of DynamoDB. Three calls need no SDK.
type table struct {
	*bucket
	name string

	finding  sync.Mutex
	endpoint string // once it is known, with its client
	client   http.Client
}

// find looks once where the table is.
func (t *table) find(ctx context.Context) error {
	t.finding.Lock()
	defer t.finding.Unlock()
	if t.endpoint != "" {
		return nil
	}
	endpoint, transport, err := t.server.DynamoDB(ctx)
	if err != nil {
		return err
	}
	if u, err := url.Parse(endpoint); err == nil && netfail.IsExposed(u, nil) {
		notice.Show(ctx, "warning: "+netfail.Unencrypted("The lock and the digest of the state were", "the endpoint of DynamoDB begins with http",
			"read and replace them").Text)
	}
	t.client = http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.endpoint = endpoint
	return nil
}

// text is a value of DynamoDB.
type text struct{ S string }

type item struct {
	LockID       text
	Info, Digest *text `json:",omitempty"`
}

const tableTries = 5

// call makes a call, and another one if it may succeed. What it did is looked up by the caller.
func (t *table) call(ctx context.Context, operation string, arguments map[string]any) (found item, err error) {
	if err := t.find(ctx); err != nil {
		return found, err
	}
	arguments["TableName"] = t.name
	body, err := json.Marshal(arguments)
	if err != nil {
		return found, err
	}
	for try := 1; ; try++ {
		var again bool
		found, again, err = t.once(ctx, operation, body)
		if !again || try == tableTries {
			return found, err
		}
		if stopped := pause(ctx); stopped != nil {
			return found, stopped
		}
	}
}

// errCondition is that what a call asks for is not so.
var errCondition = errors.New("the condition is not met")

func (t *table) once(ctx context.Context, operation string, body []byte) (found item, again bool, err error) {
	client, err := t.bucket.client(ctx)
	if err != nil {
		return found, false, err
	}
	keys, err := client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return found, false, err
	}
	limited, cancel := t.within(ctx, 0)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, t.endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return found, false, errors.New("the request to DynamoDB cannot be made; check the endpoint")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	sum := sha256.Sum256(body)
	if err = v4.NewSigner().SignHTTP(limited, keys, req, hex.EncodeToString(sum[:]), "dynamodb", t.server.Region, time.Now()); err != nil {
		return found, false, errors.New("the request to DynamoDB cannot be signed; check the credentials")
	}
	resp, err := t.client.Do(req) //nolint:gosec // the user's own table
	var answer []byte
	if err == nil {
		defer resp.Body.Close()
		answer, err = web.ReadBody(resp, 1<<20, io.Discard)
	}
	switch {
	case ctx.Err() != nil:
		return found, false, context.Cause(ctx)
	case err != nil:
		return found, true, t.Voice().Speak(&store.UnansweredError{
			Err: fmt.Errorf("DynamoDB %s: %s", operation, web.Reason(err, t.server.Words.Trust))})
	case resp.StatusCode != http.StatusOK:
		again, err = t.refused(operation, resp.StatusCode, answer)
		return found, again, err
	}
	if found, err = itemIn(answer); err != nil {
		return found, false, fmt.Errorf("DynamoDB %s: the answer is not one of DynamoDB; check the endpoint", operation)
	}
	return found, false, nil
}

func itemIn(answer []byte) (item, error) {
	var got struct{ Item item }
	err := json.Unmarshal(answer, &got)
	return got.Item, err
}

// refused says what an answer means, and whether another try may succeed.
func (t *table) refused(operation string, status int, answer []byte) (again bool, err error) {
	var said struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(answer, &said)                       // what is none has no type
	code := said.Type[strings.LastIndex(said.Type, "#")+1:] // some leave out the namespace
	what, common := "DynamoDB "+operation+": ", awsauth.CommonReason(code)
	err = answers.Find([]answers.Row{
		{Code: "ConditionalCheckFailedException", Wraps: errCondition},
		{Code: "ResourceNotFoundException", Text: fmt.Sprintf("%sthere is no table %q in the region %s", what, t.name, t.server.Region)},
		{Code: "ProvisionedThroughputExceededException ThrottlingException RequestLimitExceeded",
			Wraps: &store.UnansweredError{Err: errors.New(what + "too many requests, even after retries")}},
		{Code: "AccessDeniedException",
			Wraps: fmt.Errorf("DynamoDB: %w; the credentials need dynamodb:%s on the table %q", store.ErrDenied, operation, t.name)},
		{Unless: common == "", Text: what + common + " (" + awsauth.Code(code) + ")"},
		{Status: "5xx", Wraps: &store.UnansweredError{Err: fmt.Errorf("%sthe answer has the status %d", what, status)}},
		{Text: fmt.Sprintf("%sthe request failed, with the HTTP status %d", what, status)},
	}, status, code, "").Err()
	_, again = errors.AsType[*store.UnansweredError](err)
	return again, err
}

// lockItem is the lock in a table. Its mark is its text.
type lockItem struct {
	*table
	id string
}

func (i lockItem) look(ctx context.Context) (by *store.Lock, mark string, err error) {
	found, err := i.get(ctx, i.id)
	if err != nil || found.Info == nil {
		return nil, "", err
	}
	by, err = parseLock([]byte(found.Info.S), "item", fmt.Sprintf("%q of the table %q", i.id, i.name))
	return by, found.Info.S, err
}

func (i lockItem) add(ctx context.Context, lock store.Lock) (mark string, err error) {
	mark = string(lock.JSON())
	_, err = i.call(ctx, "PutItem", map[string]any{
		"Item": item{LockID: text{i.id}, Info: &text{mark}}, "ConditionExpression": "attribute_not_exists(LockID)",
	})
	if errors.Is(err, errCondition) {
		err = takenError{&store.HeldError{}} // it is given back each time
	}
	return mark, err
}

func (i lockItem) drop(ctx context.Context, mark string) error {
	_, err := i.call(ctx, "DeleteItem", map[string]any{
		"Key": key(i.id), "ConditionExpression": "Info = :info", "ExpressionAttributeValues": map[string]any{":info": text{mark}},
	})
	return err
}

// tabled is a state whose digest is in a table, as both CLIs have it.
type tabled struct {
	*state
	inner store.State // the same, with the rule about lost answers
}

// Read notes a digest that others will stumble over. One of a state that is not there is an
// error, as it is for both CLIs: all that the state had would be made again.
func (s *tabled) Read(ctx context.Context) ([]byte, store.Version, error) {
	data, version, err := s.inner.Read(ctx)
	if err != nil {
		return data, version, err
	}
	found, err := s.table.get(ctx, s.id()+"-md5")
	if data == nil {
		if err == nil && found.Digest != nil {
			err = fmt.Errorf("there is no object %q in the bucket, and the table %q has the digest of one; restore the object, or, if the "+
				"state is meant to be gone, delete the item %q of the table", s.key, s.table.name, s.id()+"-md5")
		}
		return nil, version, err
	}
	if err == nil && (found.Digest == nil || found.Digest.S != digest(data)) {
		notice.Show(ctx, fmt.Sprintf("the table %q has another digest of the state, or none, so that Terraform and OpenTofu without wrap may "+
			"refuse it; the next one that is written has the right one", s.table.name))
	}
	return data, version, err
}

func digest(data []byte) string {
	sum := md5.Sum(data) //nolint:gosec // what both CLIs compare
	return hex.EncodeToString(sum[:])
}

func key(id string) map[string]text { return map[string]text{"LockID": {id}} }

func (t *table) get(ctx context.Context, id string) (item, error) {
	return t.call(ctx, "GetItem", map[string]any{"Key": key(id), "ConsistentRead": true})
}

// Unkept is nil, because the inner state has been looked at.
func (s *tabled) Unkept() error { return nil }

// Write writes the digest after the state.
func (s *tabled) Write(ctx context.Context, data []byte, read store.Version) (store.Version, error) {
	next, err := s.inner.Write(ctx, data, read)
	if err == nil {
		err = s.note(ctx, data)
	}
	return next, err
}

// note writes the digest of a state that is there.
func (s *tabled) note(ctx context.Context, data []byte) error {
	_, err := s.table.call(ctx, "PutItem", map[string]any{"Item": item{LockID: text{s.id() + "-md5"}, Digest: &text{digest(data)}}})
	if err != nil {
		err = fmt.Errorf("%w: %w", store.ErrUnfinished, err)
	}
	return err
}

// IsSettled reports whether the table has the digest of a state.
func (s *tabled) IsSettled(ctx context.Context, read []byte) (bool, error) {
	found, err := s.table.get(ctx, s.id()+"-md5")
	return err == nil && found.Digest != nil && found.Digest.S == digest(read), err
}

// Settle writes the digest if it is another one.
func (s *tabled) Settle(ctx context.Context, read []byte) error {
	settled, err := s.IsSettled(ctx, read)
	if err != nil || settled {
		return err
	}
	if err = s.mayChange(ctx); err == nil {
		err = s.note(ctx, read)
	}
	if err == nil {
		notice.Show(ctx, fmt.Sprintf("the table %q has the digest of the state now; it had another one, or none", s.table.name))
	}
	return err
}

// Remove removes the digest after the state.
func (s *tabled) Remove(ctx context.Context, read store.Version) error {
	err := s.inner.Remove(ctx, read)
	if err == nil {
		_, err = s.table.call(ctx, "DeleteItem", map[string]any{"Key": key(s.id() + "-md5")})
	}
	return err
}
