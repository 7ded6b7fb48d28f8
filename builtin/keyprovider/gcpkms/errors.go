package gcpkms

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
)

func (p *provider) unexpected(verb, what string) error {
	return fmt.Errorf("with the key %s, Cloud KMS failed to %s (%s)", p.name, verb, what)
}

// refusal returns the error for a response with a status other than 200. It wraps [driver.ErrNoKey] if
// another key provider may be tried. It does not repeat the service's message, which may contain parts of the
// request.
func (p *provider) refusal(verb string, status int, body []byte) error {
	var refused struct {
		Error struct {
			Code            int
			Status, Message string
		}
	}
	// A response in any other form may come from a proxy, and says nothing about the key.
	if json.Unmarshal(body, &refused) != nil || refused.Error.Code != status {
		return fmt.Errorf("the answer does not come from Cloud KMS (%s); check any proxy", web.Status(status))
	}
	return answers.Find([]answers.Row{ // see https://cloud.google.com/apis/design/errors
		{Code: "NOT_FOUND", Wraps: driver.ErrNoKey, Text: "Cloud KMS does not have the key " + p.name, Advice: "check kms_encryption_key"},
		{Code: "PERMISSION_DENIED", Wraps: driver.ErrNoKey, Text: fmt.Sprintf("Cloud KMS does not allow these credentials to %s "+
			"with the key %s, or the key does not exist",
			verb, p.name), Advice: "grant the permission cloudkms.cryptoKeyVersions.useTo" + strings.ToUpper(verb[:1]) + verb[1:] + " on the key"},
		{Code: "FAILED_PRECONDITION", Wraps: driver.ErrNoKey,
			Text: "Cloud KMS cannot use the key " + p.name + ": the key or its required version is disabled or destroyed"},
		// Cloud KMS sends INVALID_ARGUMENT also if a request was corrupted in transit. Only the name of the
		// checksum field in the message distinguishes the two cases.
		{Code: "INVALID_ARGUMENT", Said: "crc32c",
			Text: "the request to Cloud KMS was damaged in transit: its checksum does not match; try again"},
		{Code: "INVALID_ARGUMENT", Wraps: driver.ErrNoKey, Text: fmt.Sprintf("Cloud KMS cannot %s the key of the file with the key %s: the "+
			"key or additional_authenticated_data is wrong, or the metadata of the file is damaged", verb, p.name)},
		{Code: "UNAUTHENTICATED", Text: "Cloud KMS rejects the credentials; check whether they have expired"},
		{Code: "RESOURCE_EXHAUSTED",
			Text: "a quota of the project for Cloud KMS is used up; try again later"},
		{Code: "UNAVAILABLE DEADLINE_EXCEEDED",
			Text: "Cloud KMS is unavailable for now (" + web.Status(status) + "); try again later"},
		{Wraps: p.unexpected(verb, web.Status(status))},
	}, 0, refused.Error.Status, strings.ToLower(refused.Error.Message)).Err()
}
