package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/pkg/apis/clientauthentication"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/rest"
	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// plugin runs a credential plugin. client-go could run it, too, but it passes this process's whole
// environment and standard error to the plugin, waits without a time limit, and keeps the output as long as
// the process runs.
//
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
type plugin struct {
	*api.ExecConfig
	cluster  *clientauthentication.Cluster // information about the cluster; nil unless the plugin asks for it
	world    world.World
	patience time.Duration // limit for a run, in tests; 0 means pluginPatience
}

const (
	pluginPatience = time.Minute
	maxAnswer      = 1 << 20
	maxSaid        = 500 // size limit of standard error in an error message, in bytes
)

func checkPlugin(e *api.ExecConfig) error {
	switch {
	case e.APIVersion != clientauthv1.SchemeGroupVersion.String() && e.APIVersion != clientauthv1beta1.SchemeGroupVersion.String():
		return fmt.Errorf("api_version must be %s or %s", clientauthv1.SchemeGroupVersion, clientauthv1beta1.SchemeGroupVersion)
	case e.Command == "":
		return errors.New("command is empty; set the name of a program")
	}
	for _, v := range e.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") {
			return errors.New("env contains a name that is not valid for a variable; correct the name")
		}
	}
	return nil
}

// pluginOf removes the plugin from a configuration and returns it. It returns nil if there is no plugin, or
// if other credentials make it unnecessary.
func pluginOf(c *rest.Config) (*plugin, error) {
	e := c.ExecProvider
	if e == nil {
		return nil, nil
	}
	if c.BearerToken != "" || c.Username != "" || len(c.CertData) > 0 {
		c.ExecProvider = nil
		return nil, nil
	}
	if e.InteractiveMode == api.AlwaysExecInteractiveMode {
		return nil, fmt.Errorf("the credential plugin %s requires a terminal, but no terminal is available", programName(e.Command))
	}
	p := &plugin{ExecConfig: e}
	if e.ProvideClusterInfo {
		cluster, err := rest.ConfigToExecCluster(c)
		if err != nil {
			return nil, errors.New("could not describe the cluster to the credential plugin")
		}
		p.cluster = cluster
	}
	c.ExecProvider = nil
	if err := checkPlugin(e); err != nil {
		return nil, fmt.Errorf("the credential plugin: %w", err)
	}
	return p, nil
}

// answer is the output of a plugin.
type answer struct {
	token            string
	certificate, key []byte // PEM
	expires          time.Time
}

func (p *plugin) run(ctx context.Context) (answer, error) {
	environ, err := p.environ()
	if err != nil {
		return answer{}, err
	}
	program := world.Program{
		Args: append([]string{p.Command}, p.Args...), Environ: environ, Patience: cmp.Or(p.patience, pluginPatience), Limit: maxAnswer,
	}
	printed, said, err := program.Run(ctx)
	var a answer
	switch exit, exited := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return answer{}, err
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("took too long, and was stopped after %v", program.Patience)
	case errors.Is(err, world.ErrTooLong):
		err = fmt.Errorf("printed more than %d bytes", maxAnswer)
	case exited:
		err = fmt.Errorf("failed: %v", exit.ProcessState)
		if text := strings.TrimSpace(string(said)); text != "" {
			err = fmt.Errorf("%w; it said: %s", err, outside.Quoted(text, maxSaid))
		}
	case err != nil:
		err = errors.New("was not found, or cannot be run; install it, or set its path")
	default:
		a, err = p.decode(printed)
	}
	if err != nil {
		return answer{}, fmt.Errorf("the credential plugin %s %w", programName(p.Command), err)
	}
	return a, nil
}

// environ returns the plugin's environment: the variables of its world, the variables in the settings, and
// KUBERNETES_EXEC_INFO, which client-go passes to plugins, too. The plugin therefore finds the user's
// identity where the user's own tools find it.
func (p *plugin) environ() (world.Environ, error) {
	info := clientauthv1.ExecCredential{TypeMeta: metav1.TypeMeta{APIVersion: p.APIVersion, Kind: "ExecCredential"}}
	if p.cluster != nil {
		info.Spec.Cluster = &clientauthv1.Cluster{}
		if err := clientauthv1.Convert_clientauthentication_Cluster_To_v1_Cluster(p.cluster, info.Spec.Cluster, nil); err != nil {
			return world.Environ{}, errors.New("could not describe the cluster to the credential plugin")
		}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return world.Environ{}, errors.New("could not describe the cluster to the credential plugin")
	}
	env := p.world.Environ()
	for _, v := range p.Env {
		env = env.With(v.Name + "=" + v.Value)
	}
	return env.With("KUBERNETES_EXEC_INFO=" + string(text)), nil
}

// decode parses the output of a plugin. The output is a secret, so errors do not contain any part of it.
func (p *plugin) decode(printed []byte) (answer, error) {
	var c clientauthv1.ExecCredential
	switch err := json.Unmarshal(printed, &c); {
	case err != nil || c.Kind != "ExecCredential":
		return answer{}, errors.New("did not print an ExecCredential; run it in a shell to see what it prints")
	case c.APIVersion != p.APIVersion:
		return answer{}, fmt.Errorf("answered with another api_version than %s; correct api_version", p.APIVersion)
	case c.Status == nil || c.Status.Token == "" && c.Status.ClientCertificateData == "":
		return answer{}, errors.New("printed neither a token nor a client certificate")
	case (c.Status.ClientCertificateData == "") != (c.Status.ClientKeyData == ""):
		return answer{}, errors.New("printed a client certificate without its key, or a key without its certificate")
	}
	a := answer{token: c.Status.Token, certificate: []byte(c.Status.ClientCertificateData), key: []byte(c.Status.ClientKeyData)}
	if t := c.Status.ExpirationTimestamp; t != nil {
		a.expires = t.Time
	}
	return a, nil
}

// programName returns the quoted name of a program without its folder, for error messages.
func programName(command string) string {
	return outside.Quoted(filepath.Base(command), 100)
}
