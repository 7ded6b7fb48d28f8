package s3

import (
	"bytes"
	"context"
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
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// table is a DynamoDB table. It needs only a few API calls, so it does not use an SDK.
type table struct {
	*bucket
	name string

	finding  sync.Mutex
	endpoint string // empty until find has found it
	client   http.Client
}

// find determines the table's endpoint on first use.
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

// text is a DynamoDB string value.
type text struct{ S string }

type item struct {
	LockID       text
	Info, Digest *text `json:",omitempty"`
}

const tableTries = 5

// call sends a request, and repeats it if another try may succeed. A request may have succeeded even though its
// response was lost, so the caller must check the result.
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
		if stopped := objects.Pause(ctx); stopped != nil {
			return found, stopped
		}
	}
}

// errCondition means that the condition of a request is not met.
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
	limited, cancel := objects.Within(ctx, t.Patience, 0)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, t.endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return found, false, errors.New("could not create the request to DynamoDB; check the endpoint")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	sum := sha256.Sum256(body)
	if err = v4.NewSigner().SignHTTP(limited, keys, req, hex.EncodeToString(sum[:]), "dynamodb", t.server.Region, time.Now()); err != nil {
		return found, false, errors.New("could not sign the request to DynamoDB; check the credentials")
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
		return found, false, fmt.Errorf("DynamoDB %s: the answer does not come from DynamoDB; check the endpoint", operation)
	}
	return found, false, nil
}

func itemIn(answer []byte) (item, error) {
	var got struct{ Item item }
	err := json.Unmarshal(answer, &got)
	return got.Item, err
}

// refused returns the error for a response, and whether another try may succeed.
func (t *table) refused(operation string, status int, answer []byte) (again bool, err error) {
	var said struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(answer, &said)                       // an invalid response leaves the type empty
	code := said.Type[strings.LastIndex(said.Type, "#")+1:] // some servers leave out the namespace
	what, common := "DynamoDB "+operation+": ", awsauth.CommonReason(code)
	err = answers.Find([]answers.Row{
		{Code: "ConditionalCheckFailedException", Wraps: errCondition},
		{Code: "ResourceNotFoundException", Text: fmt.Sprintf("%sthere is no table %q in the region %s; check dynamodb_table and the "+
			"region", what, t.name, t.server.Region)},
		{Code: "ProvisionedThroughputExceededException ThrottlingException RequestLimitExceeded",
			Wraps: &store.UnansweredError{Err: errors.New(what + "too many requests, even after retries")}},
		{Code: "AccessDeniedException",
			Wraps: fmt.Errorf("DynamoDB: %w; the credentials need dynamodb:%s on the table %q", store.ErrDenied, operation, t.name)},
		{Unless: common == "", Text: answers.Coded(what+common, awsauth.Code(code))},
		{Status: "5xx", Wraps: &store.UnansweredError{Err: fmt.Errorf("%sthe answer has the status %d", what, status)}},
		{Text: fmt.Sprintf("%sthe request failed with HTTP status %d", what, status)},
	}, status, code, "").Err()
	_, again = errors.AsType[*store.UnansweredError](err)
	return again, err
}

// lockItem is the lock in a table item. Its mark is its JSON text.
type lockItem struct {
	*table
	id string
}

func (i lockItem) Look(ctx context.Context) (by *store.Lock, mark string, err error) {
	found, err := i.get(ctx, i.id)
	if err != nil || found.Info == nil {
		return nil, "", err
	}
	by, err = store.LockIn([]byte(found.Info.S), "item", fmt.Sprintf("%q of the table %q", i.id, i.name))
	return by, found.Info.S, err
}

func (i lockItem) Add(ctx context.Context, lock store.Lock) (mark string, err error) {
	mark = string(lock.JSON())
	_, err = i.call(ctx, "PutItem", map[string]any{
		"Item": item{LockID: text{i.id}, Info: &text{mark}}, "ConditionExpression": "attribute_not_exists(LockID)",
	})
	if errors.Is(err, errCondition) {
		err = objects.TakenError{Err: &store.HeldError{}} // this error is shown only if each look finds no lock
	}
	return mark, err
}

func (i lockItem) Drop(ctx context.Context, mark string) error {
	_, err := i.call(ctx, "DeleteItem", map[string]any{
		"Key": key(i.id), "ConditionExpression": "Info = :info", "ExpressionAttributeValues": map[string]any{":info": text{mark}},
	})
	return err
}

func key(id string) map[string]text { return map[string]text{"LockID": {id}} }

func (t *table) get(ctx context.Context, id string) (item, error) {
	return t.call(ctx, "GetItem", map[string]any{"Key": key(id), "ConsistentRead": true})
}

// digestItem is the digest of a state in a table item.
type digestItem struct{ *state }

// Get implements [digest.Item].
func (i digestItem) Get(ctx context.Context) (sum string, there bool, err error) {
	found, err := i.table.get(ctx, i.digestID())
	if err != nil || found.Digest == nil {
		return "", false, err
	}
	return found.Digest.S, true, nil
}

// Put implements [digest.Item].
func (i digestItem) Put(ctx context.Context, sum string) error {
	_, err := i.table.call(ctx, "PutItem", map[string]any{"Item": item{LockID: text{i.digestID()}, Digest: &text{sum}}})
	return err
}

// Delete implements [digest.Item].
func (i digestItem) Delete(ctx context.Context) error {
	_, err := i.table.call(ctx, "DeleteItem", map[string]any{"Key": key(i.digestID())})
	return err
}
