package azurerm

import (
	"encoding/base64"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const lockMetadata = "terraformlockid"

// lockOf returns the lock of the backend: a lease, and a description among the
// metadata. It is nil if there is no lease: the description is then what
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

// parseLock reads the description of a lock. What cannot be read is left empty;
// there is a lock all the same.
func parseLock(text string) *source.Lock {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return &source.Lock{}
	}
	lock, _ := source.ParseLock(data)
	return lock
}
