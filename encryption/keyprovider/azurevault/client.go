package azurevault

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
)

// defaultPatience bounds what a Retry-After header may ask for.
const defaultPatience = 60 * time.Second

// connect returns the client. It is made once, and not again after a failure
// of one reader: what was cancelled may be tried anew.
func (p *Provider) connect(ctx context.Context) (*azkeys.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		return p.client, nil
	}
	credential := p.credential
	if credential == nil {
		var err error
		if credential, err = p.access.Open(ctx); err != nil {
			return nil, err
		}
	}
	client, err := azkeys.NewClient(p.vault, credential, &azkeys.ClientOptions{ClientOptions: p.access.ClientOptions()})
	if err != nil {
		return nil, errors.New("the client of the vault cannot be set up")
	}
	p.client = client
	return client, nil
}
