package azurevault

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
)

// defaultPatience bounds what a Retry-After header may ask for.
const defaultPatience = 60 * time.Second

// connect makes the client when it is first needed, once.
func (p *provider) connect(ctx context.Context) (*azkeys.Client, error) {
	return p.clients.Do(ctx, struct{}{}, func(ctx context.Context) (*azkeys.Client, error) {
		credential, err := p.credential, error(nil)
		if credential == nil {
			credential, err = p.access.Open(ctx)
		}
		if err != nil {
			return nil, err
		}
		client, err := azkeys.NewClient(p.vault, credential, &azkeys.ClientOptions{ClientOptions: p.access.ClientOptions()})
		if err != nil {
			return nil, errors.New("the client of the vault cannot be set up")
		}
		return client, nil
	})
}
