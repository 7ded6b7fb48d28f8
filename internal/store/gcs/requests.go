package gcs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	gcssource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// Get returns an object. A server other than Google's may return 404 without saying whether the object or the bucket
// is missing. In that case, Get lists the bucket to find out.
func (s *state) Get(ctx context.Context, name string, limit int64) (data []byte, generation string, err error) {
	s.warnOfExposure(ctx)
	within, cancel := objects.Within(ctx, s.Patience, 0)
	defer cancel()
	snapshot, err := s.server.Get(within, name, limit, name != s.Name)
	if isRefused(err, http.StatusNotFound) && !s.server.IsOwn() {
		names, failed := s.list(ctx, name)
		if failed == nil && (len(names) == 0 || names[0] != name) {
			return nil, "", nil
		}
	}
	if _, missing := source.IsMissing(err); missing {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", s.failed(within, name, err)
	}
	return snapshot.Data, snapshot.Revision, nil
}

// Put replaces the state if its generation is still the one that was read.
func (s *state) Put(ctx context.Context, name string, data []byte, read string) (string, error) {
	made, err := s.put(ctx, name, data, cmp.Or(read, noObject), true)
	return made.Generation, err
}

// Create creates a lock object.
func (s *state) Create(ctx context.Context, name string, data []byte) (string, error) {
	made, err := s.put(ctx, name, data, noObject, false)
	if errors.Is(err, store.ErrChanged) {
		return "", objects.TakenError{Err: errors.New("the store refuses the lock although nobody holds it; try again later")}
	}
	switch {
	case err != nil:
	case made.RetentionExpirationTime != "":
		s.kept = fmt.Errorf("the lock cannot be deleted before %s, because the bucket has a retention policy; keep states in a bucket "+
			"without a retention policy",
			outside.Quoted(made.RetentionExpirationTime, 100))
	case made.EventBasedHold || made.TemporaryHold:
		s.kept = errors.New(defaultHold)
	}
	return made.Generation, err
}

const defaultHold = "the bucket puts a hold on each new object, so locks cannot be released; turn off its default event-based hold, and " +
	"release the holds on its objects"

// put stores an object if its current generation is match. If another request is in progress, put tries again.
func (s *state) put(ctx context.Context, name string, data []byte, match string, ofState bool) (done stored, err error) {
	for try := 0; ; try++ {
		done, err = s.upload(ctx, name, data, match, ofState)
		switch {
		case isRefused(err, http.StatusPreconditionFailed):
			return done, store.ErrChanged
		case !isRefused(err, http.StatusConflict) || try == objects.MaxTries:
			return done, err
		}
		if err := objects.Pause(ctx); err != nil {
			return done, err
		}
	}
}

// Delete deletes an object if it still has this generation. Servers other than Google's may ignore the condition.
// There, Delete does not repeat a request that may have succeeded.
func (s *state) Delete(ctx context.Context, name, generation string) error {
	for try := 0; ; try++ {
		own := s.server.IsOwn()
		err := s.send(ctx, request{
			method: http.MethodDelete, to: s.server.URL(url.Values{"ifGenerationMatch": {generation}}, "o", name), object: name, once: !own,
			does: "deleting the object", right: "storage.objects.delete on the bucket to the account of the block",
		}, nil)
		_, missing := source.IsMissing(err)
		switch {
		case missing, isRefused(err, http.StatusNotFound) && !own:
			return nil
		case isRefused(err, http.StatusPreconditionFailed):
			return store.ErrChanged
		case !isRefused(err, http.StatusConflict) || try == objects.MaxTries:
			return err
		}
		if err := objects.Pause(ctx); err != nil {
			return err
		}
	}
}

// IsOwn reports whether requests go to Google's servers.
func (s *state) IsOwn(context.Context) (bool, error) { return s.server.IsOwn(), nil }

// Prove tests whether locks in the bucket can be deleted. If the server is not Google's, it also tests whether the
// server obeys conditions. A successful test is not repeated.
func (s *state) Prove(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proven {
		return nil
	}
	if err := s.checkRules(ctx); err != nil {
		return err
	}
	put := func(ctx context.Context, match string) (string, error) {
		made, err := s.put(ctx, s.proof, []byte(objects.ProofText), match, false)
		return made.Generation, err
	}
	if !s.server.IsOwn() {
		if err := (objects.Trial{
			Look: func(ctx context.Context) (string, error) {
				_, generation, err := s.Get(ctx, s.proof, source.MaxLock)
				return generation, err
			},
			Create:  func(ctx context.Context) (string, error) { return put(ctx, noObject) },
			Replace: put,
		}).Prove(ctx); err != nil {
			return err
		}
	}
	s.proven = true
	return nil
}

// rules holds the bucket settings that can prevent objects from being deleted.
type rules struct {
	RetentionPolicy       *struct{ RetentionPeriod string }
	DefaultEventBasedHold bool
}

// checkRules returns an error if the bucket does not let new objects be deleted. It returns nil if the account is not
// allowed to read these settings.
func (b *bucket) checkRules(ctx context.Context) error {
	var rules rules
	err := b.send(ctx, request{
		method: http.MethodGet, to: b.server.URL(url.Values{"fields": {"retentionPolicy,defaultEventBasedHold"}}),
		does: "reading the rules of the bucket", right: "storage.buckets.get on the bucket to the account of the block",
	}, &rules)
	_, refused := errors.AsType[*gcssource.Refusal](err)
	_, unanswered := errors.AsType[*store.UnansweredError](err)
	switch {
	case refused && !unanswered:
		return nil
	case err != nil:
		return err
	case rules.RetentionPolicy != nil:
		return fmt.Errorf("the bucket keeps each object for %s seconds (retention policy), so locks could not be released; keep states "+
			"in a bucket without a retention policy", outside.Quoted(rules.RetentionPolicy.RetentionPeriod, 100))
	case rules.DefaultEventBasedHold:
		return errors.New(defaultHold)
	}
	return nil
}

// page is one page of a list response.
type page struct {
	Items         []struct{ Name string }
	NextPageToken string
}

// list returns the names of all objects that begin with prefix.
func (b *bucket) list(ctx context.Context, prefix string) (names []string, err error) {
	query := url.Values{"prefix": {prefix}, "fields": {"items/name,nextPageToken"}}
	for {
		var page page
		if err := b.send(ctx, request{
			method: http.MethodGet, to: b.server.URL(query, "o"),
			does: "listing objects", right: "storage.objects.list on the bucket to the account of the block",
		}, &page); err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			names = append(names, o.Name)
		}
		if page.NextPageToken == "" || page.NextPageToken == query.Get("pageToken") {
			return names, nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

// request is a request to Cloud Storage.
type request struct {
	method string
	to     *url.URL
	header http.Header
	body   []byte
	object string // the name of the object; "" if the request is about the bucket
	once   bool   // whether to send the request only once
	taken  func(*http.Response) (done bool)
	does   string // what the request does, such as "writing the object"
	right  string // the required permission, as in "grant ..."
}

// maxAnswer is the maximum response size, in bytes. A list page has up to 1,000 names of 1,024 bytes.
const maxAnswer = 8 << 20

// send sends a request, and decodes the response into answer unless that is nil. It follows no redirects, so
// credentials go only to the configured server.
func (b *bucket) send(ctx context.Context, r request, answer any) error {
	b.warnOfExposure(ctx)
	within, cancel := objects.Within(ctx, b.Patience, len(r.body))
	defer cancel()
	client, err := b.server.Client(within)
	if err != nil {
		return b.failed(within, r.object, err)
	}
	asks := web.Wire{Patience: b.server.Patience, Transport: client.Transport, Authorize: func(req *http.Request) error {
		if r.body != nil {
			req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.body)), int64(len(r.body))
		}
		return client.Authorize(req)
	}}
	if asks.Timeout > 0 {
		asks.Timeout += objects.TimeFor(len(r.body))
	}
	if r.once {
		asks.Tries = 0
	}
	header := http.Header{"User-Agent": {gcssource.UserAgent}}
	for name, values := range r.header {
		header[name] = values
	}
	return b.failed(within, r.object, asks.Send(within, r.method, r.to.String(), header, func(resp *http.Response) error {
		switch {
		case r.taken != nil && r.taken(resp):
			return nil
		case resp.StatusCode/100 != 2:
			return gcssource.Object{Bucket: b.server.Bucket, Name: r.object}.Explain(resp, r.does, r.right)
		case answer == nil:
			return nil
		}
		body, err := web.ReadBody(resp, maxAnswer, io.Discard)
		if err == nil && json.Unmarshal(body, answer) != nil {
			err = web.Final("the answer does not come from Cloud Storage; check storage_custom_endpoint in {credentials}")
		}
		return err
	}))
}

// warnOfExposure warns once if the connection is not encrypted.
func (b *bucket) warnOfExposure(ctx context.Context) {
	if netfail.IsExposed(b.server.URL(nil), nil) {
		b.warn.Do(func() { notice.Show(ctx, "warning: "+web.Unencrypted("storage_custom_endpoint begins with http").Text) })
	}
}

// isRefused reports whether err is a response with this status.
func isRefused(err error, status int) bool {
	refusal, ok := errors.AsType[*gcssource.Refusal](err)
	return ok && refusal.Status == status
}

// failed translates an error about an object into an error of package store, if one fits.
func (b *bucket) failed(ctx context.Context, name string, err error) error {
	refusal, refused := errors.AsType[*gcssource.Refusal](err)
	_, missing := source.IsMissing(err)
	switch {
	case err == nil || missing:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !refused && web.Own(err) == nil, refused && isBusy(refusal.Status):
		err = &store.UnansweredError{Err: err}
	case refused && (refusal.Status == http.StatusForbidden || refusal.Status == http.StatusUnauthorized):
		err = store.Denied(err)
	}
	if objects.IsBeside(name) {
		err = fmt.Errorf("%s: %w", outside.Quoted(name, 300), err)
	}
	return b.Voice().Speak(err)
}

// isBusy reports whether the same request may succeed later.
func isBusy(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented
}
