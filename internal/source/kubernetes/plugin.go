package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/pkg/apis/clientauthentication"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/rest"
	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/child"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
)

// plugin is a credential plugin. client-go can run one as well, but gives it
// our whole environment and our standard error, waits for it without end, and
// keeps what it answers for the life of the process.
//
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
type plugin struct {
	apiVersion, command string
	args                []string
	env                 map[string]string
	cluster             *clientauthentication.Cluster // nil when it need not know

	patience time.Duration // for tests; zero is a minute
}

const (
	pluginPatience = time.Minute
	maxAnswer      = 1 << 20
	maxSaid        = 500 // bytes of standard error in messages
)

// withheld are further secrets that are ours.
var withheld = []string{"KUBE_TOKEN", "KUBE_PASSWORD", "KUBE_CLIENT_KEY_DATA"}

func (p *plugin) check() error {
	switch {
	case p.apiVersion != clientauthv1.SchemeGroupVersion.String() && p.apiVersion != clientauthv1beta1.SchemeGroupVersion.String():
		return fmt.Errorf("api_version must be %s or %s", clientauthv1.SchemeGroupVersion, clientauthv1beta1.SchemeGroupVersion)
	case p.command == "":
		return errors.New("command must name a program")
	}
	for name := range p.env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return errors.New("env has a name that no variable can have")
		}
	}
	return nil
}

// provider is the plugin as client-go declares it, nil for none.
func (p *plugin) provider() *api.ExecConfig {
	if p == nil {
		return nil
	}
	c := &api.ExecConfig{APIVersion: p.apiVersion, Command: p.command, Args: p.args}
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		c.Env = append(c.Env, api.ExecEnvVar{Name: name, Value: p.env[name]})
	}
	return c
}

// pluginOf takes the plugin out of a configuration, nil when there is none or
// it is not needed.
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
		return nil, fmt.Errorf("the credential plugin %s insists on a terminal, which there is none", programName(e.Command))
	}
	p := &plugin{apiVersion: e.APIVersion, command: e.Command, args: e.Args, env: map[string]string{}}
	for _, v := range e.Env {
		p.env[v.Name] = v.Value
	}
	if e.ProvideClusterInfo {
		cluster, err := rest.ConfigToExecCluster(c)
		if err != nil {
			return nil, errors.New("the credential plugin cannot be told about the cluster")
		}
		p.cluster = cluster
	}
	c.ExecProvider = nil
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("the credential plugin: %w", err)
	}
	return p, nil
}

// answer is what a plugin prints.
type answer struct {
	token            string
	certificate, key []byte // PEM
	expires          time.Time
}

func (p *plugin) run(ctx context.Context) (answer, error) {
	name := programName(p.command)
	path, err := exec.LookPath(p.command)
	if err != nil {
		return answer{}, fmt.Errorf("the credential plugin %s is not found, or cannot be run", name)
	}
	granted := p.patience
	if granted == 0 {
		granted = pluginPatience
	}
	limited, cancel := context.WithTimeout(ctx, granted)
	defer cancel()

	stdout, stderr := &limitedBuffer{limit: maxAnswer}, &limitedBuffer{limit: maxSaid}
	cmd := exec.CommandContext(limited, path, p.args...) //nolint:gosec // running it is what the user asked for
	cmd.Args[0] = p.command
	if cmd.Env, err = p.environ(os.Environ()); err != nil {
		return answer{}, err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = 2 * time.Second
	child.OwnGroup(cmd)
	err = cmd.Run()
	if limited.Err() != nil {
		child.KillGroup(cmd)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the program is done; an agent that it started holds the pipe
	}
	switch exit, exited := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return answer{}, context.Cause(ctx)
	case limited.Err() != nil:
		return answer{}, fmt.Errorf("the credential plugin %s took too long: it is stopped after %v", name, granted)
	case exited:
		return answer{}, fmt.Errorf("the credential plugin %s failed: %v%s", name, exit.ProcessState, stderr.said())
	case err != nil:
		return answer{}, fmt.Errorf("the credential plugin %s could not be run", name)
	}
	a, err := p.decode(stdout)
	if err != nil {
		return answer{}, fmt.Errorf("the credential plugin %s: %w", name, err)
	}
	return a, nil
}

// environ is what the plugin gets: our environment without our secrets, what
// is set for it, and what client-go says to plugins.
func (p *plugin) environ(ours []string) ([]string, error) {
	info := clientauthv1.ExecCredential{TypeMeta: metav1.TypeMeta{APIVersion: p.apiVersion, Kind: "ExecCredential"}}
	if p.cluster != nil {
		info.Spec.Cluster = &clientauthv1.Cluster{}
		if err := clientauthv1.Convert_clientauthentication_Cluster_To_v1_Cluster(p.cluster, info.Spec.Cluster, nil); err != nil {
			return nil, errors.New("the credential plugin cannot be told about the cluster")
		}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return nil, errors.New("the credential plugin cannot be told about the cluster")
	}
	env := slices.DeleteFunc(child.Environ(ours), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(withheld, strings.ToUpper(name))
	})
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		env = append(env, name+"="+p.env[name])
	}
	return append(env, "KUBERNETES_EXEC_INFO="+string(text)), nil
}

// decode reads an answer. Errors quote nothing of it: it is a secret.
func (p *plugin) decode(stdout *limitedBuffer) (answer, error) {
	var c clientauthv1.ExecCredential
	switch err := json.Unmarshal(stdout.Bytes(), &c); {
	case stdout.full:
		return answer{}, fmt.Errorf("it printed more than %d bytes", maxAnswer)
	case err != nil || c.Kind != "ExecCredential":
		return answer{}, errors.New("it did not print an ExecCredential")
	case c.APIVersion != p.apiVersion:
		return answer{}, fmt.Errorf("it was asked for api_version %s and answered with another", p.apiVersion)
	case c.Status == nil || c.Status.Token == "" && c.Status.ClientCertificateData == "":
		return answer{}, errors.New("it printed neither a token nor a client certificate")
	case (c.Status.ClientCertificateData == "") != (c.Status.ClientKeyData == ""):
		return answer{}, errors.New("it must print a client certificate and its key together")
	}
	a := answer{token: c.Status.Token}
	if c.Status.ClientCertificateData != "" {
		a.certificate, a.key = []byte(c.Status.ClientCertificateData), []byte(c.Status.ClientKeyData)
	}
	if t := c.Status.ExpirationTimestamp; t != nil {
		a.expires = t.Time
	}
	return a, nil
}

// programName shows which program it is. Its arguments may hold secrets.
func programName(command string) string {
	return outside.Quoted(filepath.Base(command), 100)
}

// limitedBuffer keeps the beginning of what is written.
type limitedBuffer struct {
	bytes.Buffer
	limit int
	full  bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.Len()
	b.full = b.full || len(p) > room
	b.Buffer.Write(p[:min(len(p), room)])
	return len(p), nil
}

// ReadFrom hides the one of bytes.Buffer, which has no limit.
func (b *limitedBuffer) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{b}, r)
}

// said is the end of an error: what the program wrote to its standard error.
func (b *limitedBuffer) said() string {
	if text := strings.TrimSpace(b.String()); text != "" {
		return "; it said: " + outside.Quoted(text, maxSaid)
	}
	return ""
}
