package gcpkms

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

func (p *provider) unexpected(verb, what string) error {
	return fmt.Errorf("unexpected answer: Cloud KMS failed to %s with the key %s (%s)", verb, p.name, what)
}

// refusal says what an answer other than 200 means, and whether another key
// provider may be tried. The text of the service is not shown: it may repeat
// what was sent.
func (p *provider) refusal(verb string, status int, body []byte) error {
	var answer struct {
		Error struct {
			Code            int
			Status, Message string
		}
	}
	// A proxy, say, knows nothing of keys.
	if json.Unmarshal(body, &answer) != nil || answer.Error.Code != status {
		return fmt.Errorf("an answer that is not of Cloud KMS came back (%s); check any proxy", web.Status(status))
	}
	// https://cloud.google.com/apis/design/errors
	switch answer.Error.Status {
	case "NOT_FOUND":
		return fact.Advise(fmt.Errorf("%w: Cloud KMS does not know the key %s", driver.ErrNoKey, p.name), "check kms_encryption_key")
	case "PERMISSION_DENIED":
		return fact.Advise(fmt.Errorf("%w: Cloud KMS denies to %s with the key %s, or the key does not exist", driver.ErrNoKey, verb, p.name),
			"grant the permission cloudkms.cryptoKeyVersions.useTo"+strings.ToUpper(verb[:1])+verb[1:]+" on it")
	case "FAILED_PRECONDITION":
		return fmt.Errorf("%w: Cloud KMS cannot use the key %s: it, or the version that is needed, is disabled "+
			"or destroyed", driver.ErrNoKey, p.name)
	case "INVALID_ARGUMENT":
		// Sent as well when a request was damaged on its way. The name of the
		// checksum field is all that tells the two apart.
		if strings.Contains(strings.ToLower(answer.Error.Message), "crc32c") {
			return errors.New("the request to Cloud KMS was damaged on its way: its checksum does not match; try again")
		}
		return fmt.Errorf("%w: Cloud KMS cannot %s this with the key %s: it was encrypted with another key or other "+
			"additional_authenticated_data, or it is damaged", driver.ErrNoKey, verb, p.name)
	case "UNAUTHENTICATED":
		return errors.New("no access: Cloud KMS does not accept the credentials; they may have expired")
	case "RESOURCE_EXHAUSTED":
		return errors.New("too many calls: Cloud KMS refuses further calls for now: a quota of the project is used up; try again later")
	case "UNAVAILABLE", "DEADLINE_EXCEEDED":
		return fmt.Errorf("no answer from Cloud KMS: it is out of order for now (%s); try again later", web.Status(status))
	}
	return p.unexpected(verb, web.Status(status))
}
