package s3

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object/s3test"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// TestMain keeps the settings of the machine out of the tests.
func TestMain(m *testing.M) {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "AWS_") || strings.HasSuffix(strings.ToLower(name), "_proxy") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	os.Exit(m.Run())
}

type attrs map[string]cty.Value

// with returns a with more attributes.
func (a attrs) with(name string, value any) attrs {
	out := attrs{}
	for k, v := range a {
		out[k] = v
	}
	switch v := value.(type) {
	case nil:
		delete(out, name)
	case string:
		out[name] = cty.StringVal(v)
	case bool:
		out[name] = cty.BoolVal(v)
	case int:
		out[name] = cty.NumberIntVal(int64(v))
	case []string:
		var list []cty.Value
		for _, text := range v {
			list = append(list, cty.StringVal(text))
		}
		out[name] = cty.ListVal(list)
	case attrs:
		out[name] = cty.ObjectVal(v)
	}
	return out
}

const (
	bucket = "states"
	key    = "network/terraform.tfstate"
)

// asks is what a data source says.
func asks() attrs {
	return attrs{}.with("bucket", bucket).with("key", key).with("region", "eu-west-1")
}

// block is one of credentials, which asks at an endpoint.
func block(endpoint string) attrs {
	return attrs{}.with("access_key", "AKIATEST").with("secret_key", "canary-secret").with("use_path_style", true).with("max_retries", 2).
		with("endpoints", attrs{}.with("s3", endpoint))
}

func settings(env attr.LookupEnv, blocks ...attrs) source.Settings {
	s := source.Settings{LookupEnv: env, Credentials: source.Credentials{Table: credentials(), Env: env}}
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, attr.NewEntry("credentials.s3", credentials(), b))
	}
	return s
}

// hasty waits no longer between attempts than tests can.
func hasty() source.Kind {
	kind := Kind()
	kind.Start = func(s source.Settings) source.Open {
		r := newRun(s)
		r.maxWait, r.timeout, r.patience = time.Millisecond, 1500*time.Millisecond, 2*time.Second
		return r.open
	}
	return kind
}

func place(a attrs, s source.Settings) sourcetest.Place {
	return sourcetest.Place{Attrs: a, Settings: s, Secrets: []string{"canary"}}
}

// open makes a source, or fails.
func open(a attrs, s source.Settings, workspace string) (source.Source, error) {
	kind := hasty()
	values, err := attr.NewEntry("data.statecrypt_remote_state.test.s3", kind.Table, a).Decode(kind.Table, s.LookupEnv)
	if err != nil {
		return nil, err
	}
	return kind.Start(s)(source.Request{Values: values, Workspace: workspace, MaxSize: 1 << 20})
}

// read reads a state, and looks at the error.
func read(t *testing.T, a attrs, s source.Settings) (*source.Snapshot, error) {
	t.Helper()
	src, err := open(a, s, "default")
	if err != nil {
		return nil, err
	}
	snap, err := src.Fetch(t.Context())
	if err != nil && strings.Contains(err.Error(), "canary") {
		t.Errorf("an error shows a secret or an answer: %v", err)
	}
	return snap, err
}

// stored is a server that holds data, or no object where it is nil.
func stored(t *testing.T, data []byte) *s3test.Server {
	t.Helper()
	server := s3test.New(t, bucket)
	if data != nil {
		server.Put(t, bucket, key, data)
	}
	return server
}

// onlyRead reports what else was asked of a server.
func onlyRead(server *s3test.Server) func() error {
	return func() error {
		for _, r := range server.Requests() {
			if r.Method != http.MethodGet || !strings.HasPrefix(r.Path, "/"+bucket+"/") || r.Query != "" && r.Query != "x-id=GetObject" {
				return &unexpectedError{r}
			}
		}
		return nil
	}
}

type unexpectedError struct{ s3test.Request }

func (e *unexpectedError) Error() string { return e.Method + " " + e.Path + "?" + e.Query }
