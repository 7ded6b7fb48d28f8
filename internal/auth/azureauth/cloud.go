package azureauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// Cloud holds the addresses of an Azure cloud, for signing in and for its services.
type Cloud struct {
	cloud.Configuration // does not set Services

	// ResourceManager is the URL of the resource manager, such as https://host. ResourceManagerAudience is
	// the audience of tokens for it. Both are empty if the metadata host does not provide them.
	ResourceManager, ResourceManagerAudience string

	// StorageSuffix is the domain of storage services, such as core.windows.net in
	// account.blob.core.windows.net. It is empty if the metadata host does not provide it.
	StorageSuffix string
}

// clouds returns the cloud that OpenTofu knows by the given name. It returns false for an unknown name.
func clouds(environment string) (Cloud, bool) {
	switch environment {
	case "", "public", "global", "canary":
		return known(cloud.AzurePublic, "https://management.azure.com", "core.windows.net"), true
	case "usgovernment", "usgovernmentl4", "usgovernmentl5", "dod":
		return known(cloud.AzureGovernment, "https://management.usgovcloudapi.net", "core.usgovcloudapi.net"), true
	case "china":
		return known(cloud.AzureChina, "https://management.chinacloudapi.cn", "core.chinacloudapi.cn"), true
	}
	return Cloud{}, false
}

func known(c cloud.Configuration, manager, suffix string) Cloud {
	return Cloud{Configuration: c, ResourceManager: manager, ResourceManagerAudience: manager, StorageSuffix: suffix}
}

// FindCloud returns the configured cloud. It may send a request to the metadata host.
func (a Access) FindCloud(ctx context.Context) (Cloud, error) {
	host := a.values.String("metadata_host")
	if host == "" || a.Cloud.ActiveDirectoryAuthorityHost != "" {
		return a.Cloud, nil
	}
	var answer struct {
		Authentication struct {
			LoginEndpoint string   `json:"loginEndpoint"`
			Audiences     []string `json:"audiences"`
		} `json:"authentication"`
		ResourceManager string            `json:"resourceManager"`
		Suffixes        map[string]string `json:"suffixes"`
	}
	err := a.ask(ctx, http.MethodGet, "https://"+host+"/metadata/endpoints?api-version=2023-11-01", nil, &answer)
	if err != nil {
		return Cloud{}, fmt.Errorf("metadata_host: %w", err)
	}
	if !strings.HasPrefix(answer.Authentication.LoginEndpoint, "https://") {
		return Cloud{}, errors.New("metadata_host: the answer names no https address to sign in at")
	}
	c := Cloud{Configuration: cloud.Configuration{ActiveDirectoryAuthorityHost: answer.Authentication.LoginEndpoint}}
	u, err := url.Parse(answer.ResourceManager)
	audiences := answer.Authentication.Audiences
	if err == nil && u.Scheme == "https" && hostName.MatchString(u.Host) && len(audiences) > 0 {
		c.ResourceManager, c.ResourceManagerAudience = "https://"+u.Host, strings.TrimSuffix(audiences[0], "/")
	}
	if suffix := answer.Suffixes["storage"]; hostName.MatchString(suffix) {
		c.StorageSuffix = suffix
	}
	return c, nil
}

// hostName matches a host name with at least two labels, and an optional port.
var hostName = lazyregexp.New(`^[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)+(:[0-9]{1,5})?$`)
