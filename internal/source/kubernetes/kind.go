// Package kubernetes reads a state from a Kubernetes cluster. The state is in the secrets that Terraform's
// kubernetes backend writes, or in objects of Kubeform or Crossplane.
//
// Every request is a GET; none lists or watches.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/backend/remote-state/kubernetes
// https://github.com/hashicorp/terraform/tree/main/internal/backend/remote-state/kubernetes
package kubernetes

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the kubernetes source.
func Kind() source.Kind {
	return source.Kind{
		Table: table(), Credentials: credentials(), Workspaces: true, Objects: true, Patience: source.Patience, Begin: start,
		Home: source.Home{
			Vars: []string{"KUBE_HOST"}, Attrs: []string{"host", "config_path", "config_paths", "in_cluster_config"}, Compare: near,
		},
	}
}

func table() attr.Table {
	return attr.Table{
		Name: "kubernetes",
		Doc: "Reads the state from the secrets of the `kubernetes` backend, or from an `object`, with `GET` requests only. How to reach " +
			"the cluster is set in `credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "secret_suffix", Type: cty.String,
				Doc: "The last part of the secret's name. Required unless there is an `object` block."},
			{Name: "namespace", Type: cty.String, Env: []string{"KUBE_NAMESPACE"}, Default: cty.StringVal("default"),
				Check: attr.Is(syntax.IsLabel, "this is not a valid namespace name; use only lowercase letters, digits and dashes"),
				Doc:   "The namespace of the secret. Defaults to `default`. An `object` block has a namespace of its own."},
			source.ChoiceAttr("cluster", "kubernetes", "that says how to reach the cluster"),
		},
	}
}

// credentials returns a table with two groups: the cluster and the identity. The environment completes other
// cluster attributes only if the block does not choose the cluster.
func credentials() attr.Table {
	return attr.Table{
		Name: "kubernetes",
		Doc: "How to reach a Kubernetes cluster, with the arguments of the `kubernetes` backend. The defaults are the variables `KUBE_*`, " +
			"then `KUBECONFIG`, `~/.kube/config` and the service account of the pod.",
		Attrs: []attr.Attr{
			source.NameAttr("cluster"),
			{Name: "host", Type: cty.String, Group: "cluster", Env: []string{"KUBE_HOST"}, Check: attr.Is(recognize.IsEndpoint, noHost),
				Doc: "The URL of the API server. It takes the place of the one in a kubeconfig."},
			{Name: "config_path", Type: cty.String, Group: "cluster", Env: []string{"KUBE_CONFIG_PATH"},
				Doc: "The kubeconfig to use. `~/` is your home directory."},
			{Name: "config_paths", Type: cty.List(cty.String), Group: "cluster", Excludes: []string{"config_path"},
				Doc: "Several kubeconfigs, which are merged; in a variable, they are separated as in `PATH`. Variable: `KUBE_CONFIG_PATHS`, else " +
					"`KUBECONFIG`."},
			{Name: "config_context", Type: cty.String, UnlessGroup: "cluster", Env: []string{"KUBE_CTX"},
				Doc: "The context of the kubeconfig to use, in place of its current one."},
			{Name: "config_context_auth_info", Type: cty.String, UnlessGroup: "cluster", Env: []string{"KUBE_CTX_AUTH_INFO"},
				Doc: "The user of the kubeconfig to use, in place of the context's."},
			{Name: "config_context_cluster", Type: cty.String, UnlessGroup: "cluster", Env: []string{"KUBE_CTX_CLUSTER"},
				Doc: "The cluster of the kubeconfig to use, in place of the context's."},
			{Name: "in_cluster_config", Type: cty.Bool, Group: "cluster", Env: []string{"KUBE_IN_CLUSTER_CONFIG"},
				Harmless: "It is the default.", HarmlessIf: harmless.False,
				Doc: "Use the service account of the pod that this runs in. Defaults to `false`."},
			{Name: "token", Type: cty.String, Form: attr.Token, Group: "account", Secrecy: attr.Secret, Env: []string{"KUBE_TOKEN"},
				Doc: "A bearer token, such as that of a service account."},
			{Name: "username", Type: cty.String, Group: "account", Env: []string{"KUBE_USER"},
				Doc: "The user name for basic authentication."},
			{Name: "password", Type: cty.String, Group: "account", Secrecy: attr.Secret, Env: []string{"KUBE_PASSWORD"},
				Doc: "The password for basic authentication."},
			{Name: "client_certificate", Type: cty.String, Group: "account", RequiredWith: "client_key",
				Env: []string{"KUBE_CLIENT_CERT_DATA"}, Check: attr.Text(recognize.CheckPEM),
				Doc: "The client's certificate in PEM format. It needs `client_key`."},
			{Name: "client_key", Type: cty.String, Group: "account", RequiredWith: "client_certificate", Secrecy: attr.Secret, Form: attr.Lines,
				Env: []string{"KUBE_CLIENT_KEY_DATA"}, Check: attr.Text(recognize.CheckPEM),
				Doc: "The private key of `client_certificate` in PEM format."},
			{Name: "cluster_ca_certificate", Type: cty.String, Form: attr.OrEmpty, UnlessGroup: "cluster",
				Env: []string{"KUBE_CLUSTER_CA_CERT_DATA"}, Check: attr.Text(recognize.CheckPEM),
				Doc: "The certificates in PEM format that the server's certificate is verified with, instead of those of the kubeconfig or the " +
					"system."},
			{Name: "insecure", Type: cty.Bool, UnlessGroup: "cluster", Env: []string{"KUBE_INSECURE"},
				Harmless: "Certificates are then verified, as they are without it.", HarmlessIf: harmless.False,
				Doc: "Accepts any certificate, so that anyone on the network path can read the secrets and replace the state. Each read warns of it. " +
					"Defaults to `false`."},
			{Name: "tls_server_name", Type: cty.String, Form: attr.OrEmpty, UnlessGroup: "cluster", Env: []string{"KUBE_TLS_SERVER_NAME"},
				Doc: "The name that the server's certificate must have, instead of the name of the host."},
			{Name: "proxy_url", Type: cty.String, UnlessGroup: "cluster", Secrecy: attr.LocalSecret, Form: attr.OrEmpty,
				Env: []string{"KUBE_PROXY_URL"}, Check: attr.Text(web.CheckProxy),
				Doc: "The URL of the proxy to use: `http`, `https` or `socks5`. Without it that of the kubeconfig applies, and then `HTTPS_PROXY`, " +
					"`HTTP_PROXY` and `NO_PROXY`."},
			{
				Name: "exec", Group: "account",
				Excludes: []string{"token", "username", "password", "client_certificate", "client_key"},
				Doc: "A credential plugin: a program that prints a token or a client certificate, in a minute at most. It gets the environment " +
					"without the secrets that are meant for this provider.",
				Attrs: []attr.Attr{
					{Name: "api_version", Type: cty.String, Required: true,
						Doc: "The version of the protocol: `client.authentication.k8s.io/v1` or `client.authentication.k8s.io/v1beta1`."},
					{Name: "command", Type: cty.String, Required: true, Secrecy: attr.NamesSecret, // the program's output is a secret
						Doc: "The program. A name without a slash is looked up in `PATH`."},
					{Name: "args", Type: cty.List(cty.String), Secrecy: attr.Secret, Form: attr.Lines, Doc: "Its arguments."},
					{Name: "env", Type: cty.Map(cty.String), Secrecy: attr.Secret, Form: attr.Lines, Doc: "Further environment variables for it."},
				},
			},
		},
		Variables: []attr.Attr{
			{Name: pathsVar, Type: cty.String, Env: []string{pathsVar}, StandsFor: "config_paths", UnlessGroup: "cluster"},
			{Name: kubectlVar, Type: cty.String, Env: []string{kubectlVar}, StandsFor: "config_paths", UnlessGroup: "cluster"},
		},
	}
}

// These variables list kubeconfigs, separated as in PATH.
const (
	pathsVar   = "KUBE_CONFIG_PATHS"
	kubectlVar = "KUBECONFIG" // kubectl's variable, whose files need not exist
)
