package gcpkms

import (
	"net/http"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
)

// SetPatience has a provider wait for each try so long, and try once more soon.
func SetPatience(p driver.KeyProvider, d time.Duration) {
	p.(*provider).wire.Patience = web.Patience{Timeout: d, Tries: 1, WaitMax: 100 * time.Millisecond}
}

// SetWait has a provider wait so long before it tries again.
func SetWait(p driver.KeyProvider, d time.Duration) {
	p.(*provider).wire.WaitMin, p.(*provider).wire.WaitMax = d, d
}

// BlockOver is [Block] with changes to the transport of its own.
func BlockOver(change func(*http.Transport)) driver.Block[driver.KeyProvider] {
	block := Block()
	build := block.Build
	block.Build = func(v attr.Values) (driver.KeyProvider, error) {
		p, err := build(v)
		if err == nil {
			change(p.(*provider).own)
		}
		return p, err
	}
	return block
}
