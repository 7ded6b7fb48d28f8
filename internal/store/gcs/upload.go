package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// noObject is the generation of an object that does not exist.
const noObject = "0"

// stored is the service's description of a stored object.
type stored struct {
	Generation              string
	RetentionExpirationTime string
	EventBasedHold          bool
	TemporaryHold           bool
}

const contentType = "application/json"

// upload stores an object if its current generation is match. It sends a large object in parts, and any other in one
// request. Like both CLIs, it uses the block's encryption keys only for states.
// https://cloud.google.com/storage/docs/uploads-downloads#uploads
func (b *bucket) upload(ctx context.Context, name string, data []byte, match string, ofState bool) (done stored, err error) {
	client, err := b.server.Client(ctx)
	if err != nil {
		return done, b.failed(ctx, name, err)
	}
	query := url.Values{"uploadType": {"multipart"}, "name": {name}, "ifGenerationMatch": {match}}
	header := http.Header{}
	if ofState {
		maps.Copy(header, client.Key)
		if key := b.String("kms_encryption_key"); key != "" {
			query.Set("kmsKeyName", key)
		}
	}
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	description, err := json.Marshal(map[string]string{
		"name": name, "contentType": contentType, "crc32c": base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum)),
	})
	if err != nil {
		return done, err
	}
	r := request{
		method: http.MethodPost, header: header, object: name, does: "writing the object",
		right: "storage.objects.create and storage.objects.delete on the bucket to the account of the block",
	}
	if len(data) > b.part {
		query.Set("uploadType", "resumable")
		r.body, r.to = description, b.server.UploadURL(query)
		header.Set("Content-Type", contentType)
		header.Set("X-Upload-Content-Type", contentType)
		header.Set("X-Upload-Content-Length", strconv.Itoa(len(data)))
		done, err = b.uploadParts(ctx, r, data)
	} else {
		r.to = b.server.UploadURL(query)
		if r.body, err = inParts(header, description, data); err == nil {
			err = b.send(ctx, r, &done)
		}
	}
	if err == nil && done.Generation == "" {
		err = fmt.Errorf("%s: the answer does not contain the object's new generation, so it does not come from Cloud Storage", name)
	}
	return done, err
}

// inParts returns a multipart request body, and sets its content type in header.
func inParts(header http.Header, parts ...[]byte) ([]byte, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, data := range parts {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {contentType}})
		if err == nil {
			_, err = part.Write(data)
		}
		if err != nil {
			return nil, err
		}
	}
	header.Set("Content-Type", "multipart/related; boundary="+w.Boundary())
	err := w.Close()
	return body.Bytes(), err
}

// uploadParts starts an upload with the request r, and sends the object in parts. If a request gets no response,
// uploadParts asks which bytes have arrived. If all have arrived, the upload has succeeded.
func (b *bucket) uploadParts(ctx context.Context, r request, data []byte) (done stored, err error) {
	var session *url.URL
	r.taken = func(resp *http.Response) bool {
		session, _ = url.Parse(resp.Header.Get("Location"))
		return resp.StatusCode == http.StatusOK
	}
	if err := b.send(ctx, r, nil); err != nil {
		return done, err
	}
	if session == nil || source.Origin(session) != source.Origin(r.to) {
		return done, errors.New("the service names another server for the upload; check storage_custom_endpoint")
	}
	r.method, r.to = http.MethodPut, session
	for sent, tries := 0, 0; ; {
		end := min(sent+b.part, len(data))
		done, arrived, err := b.sendPart(ctx, r, data[sent:end], fmt.Sprintf("bytes %d-%d/%d", sent, end-1, len(data)))
		if _, unanswered := errors.AsType[*store.UnansweredError](err); unanswered && ctx.Err() == nil && tries < objects.MaxTries {
			if tries++; objects.Pause(ctx) != nil {
				return done, context.Cause(ctx)
			}
			done, arrived, err = b.sendPart(ctx, r, nil, fmt.Sprintf("bytes */%d", len(data)))
		}
		switch {
		case err != nil || done.Generation != "":
			return done, err
		case arrived > len(data) || arrived <= sent && tries == objects.MaxTries:
			return done, fmt.Errorf("%s: the service does not accept the parts of the object", r.object)
		case arrived <= sent:
			tries++
		default:
			tries = 0
		}
		sent = arrived
	}
}

// sendPart sends one part of an object. If part is nil, it only asks which bytes have arrived. It returns the number
// of bytes that have arrived or, once the upload is complete, the description of the object.
func (b *bucket) sendPart(ctx context.Context, r request, part []byte, position string) (done stored, arrived int, err error) {
	r.header = http.Header{"Content-Range": {position}}
	r.body, r.once = part, part != nil
	r.taken = func(resp *http.Response) bool {
		if resp.StatusCode != http.StatusPermanentRedirect { // the service expects more parts
			return false
		}
		if last, ok := strings.CutPrefix(resp.Header.Get("Range"), "bytes=0-"); ok {
			if n, err := strconv.Atoi(last); err == nil {
				arrived = n + 1
			}
		}
		return true
	}
	err = b.send(ctx, r, &done)
	return done, arrived, err
}
