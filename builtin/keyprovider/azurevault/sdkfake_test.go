package azurevault_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys/fake"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// The SDK's own fake sees what the SDK was asked for, and a program's own
// credential takes the place of the settings.
func TestSDKFake(t *testing.T) {
	t.Parallel()
	server := fake.Server{
		Decrypt: func(_ context.Context, name, version string, q azkeys.KeyOperationParameters,
			_ *azkeys.DecryptOptions) (r azfake.Responder[azkeys.DecryptResponse], e azfake.ErrorResponder) {
			// The fake takes the version for a part of the name.
			if strings.Trim(name+"/"+version, "/") != "a/v1" || *q.Algorithm != azkeys.EncryptionAlgorithmA256GCM || string(q.Value)+string(q.IV)+
				string(q.AuthenticationTag)+string(q.AdditionalAuthenticatedData) != "VITA" {
				t.Errorf("%s/%s: %+v", name, version, q)
			}
			r.SetResponse(http.StatusOK, azkeys.DecryptResponse{KeyOperationResult: azkeys.KeyOperationResult{Result: []byte("the key")}}, nil)
			return r, e
		},
	}
	block := azurevault.BlockWith(azurevault.Options{Transport: fake.NewServerTransport(&server), Credential: &azfake.TokenCredential{}})
	p := kindtest.Build(t, block, bare(), nil)
	got, err := p.Key(t.Context(), nil, []byte(`{"ciphertext":"Vg==","iv":"SQ==","authentication_tag":"VA==","additional_authenticated_data":"QQ==","key_version":"v1","algo":"A256GCM"}`))
	if err != nil || string(got) != "the key" {
		t.Errorf("got %q, %v", got, err)
	}
}
