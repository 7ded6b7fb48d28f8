package azurerm

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	maxLock      = 64 << 10 // bytes of a lock's description; it has a few hundred
	maxText      = 200      // bytes of a string from outside, as it is shown
	lockMetadata = "terraformlockid"
)

// lockOf returns the lock of the backend: a lease, and a description among the
// metadata. It is nil when there is no lease: the description is then what
// somebody has left behind.
func lockOf(answer blob.DownloadResponse) *source.Lock {
	if answer.LeaseStatus == nil || string(*answer.LeaseStatus) != "locked" {
		return nil
	}
	for name, value := range answer.Metadata {
		if strings.EqualFold(name, lockMetadata) && value != nil {
			return parseLock(*value)
		}
	}
	return &source.Lock{} // by another program
}

// parseLock reads what Terraform tells the backend about a lock. What cannot be
// read is left empty; there is a lock all the same.
func parseLock(text string) *source.Lock {
	var description struct{ ID, Who, Operation, Created string }
	if len(text) > maxLock {
		return &source.Lock{}
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &description) != nil {
		return &source.Lock{}
	}
	return &source.Lock{
		ID: shown(description.ID), Who: shown(description.Who), Operation: shown(description.Operation), Created: shown(description.Created),
	}
}

// commands is where CI systems see commands in what a program prints: "::" of
// GitHub, "##" of Azure DevOps and TeamCity.
var commands = strings.NewReplacer("::", `:\u003a`, "##", `#\u0023`)

// shown escapes and cuts a string from outside.
func shown(s string) string {
	cut := ""
	if len(s) > maxText {
		s, cut = strings.ToValidUTF8(s[:maxText], ""), "…"
	}
	quoted := strconv.Quote(s)
	return commands.Replace(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)) + cut
}
