package oss

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

const (
	bucket = "acme-states"
	canary = "canary"
	home   = "env:/terraform.tfstate" // where the default workspace is
)

// reader is who may read in tests.
var reader = aws.Credentials{AccessKeyID: "LTAItest", SecretAccessKey: "secret-" + canary}

type attrs map[string]cty.Value

func (a attrs) with(name, value string) attrs {
	out := maps.Clone(a)
	out[name] = cty.StringVal(value)
	return out
}

func (a attrs) without(name string) attrs {
	out := maps.Clone(a)
	delete(out, name)
	return out
}

func where() attrs {
	return attrs{"bucket": cty.StringVal(bucket), "region": cty.StringVal("eu-central-1")}
}

func keys(endpoint string) attrs {
	return attrs{"access_key": cty.StringVal(reader.AccessKeyID), "secret_key": cty.StringVal(reader.SecretAccessKey), "endpoint": cty.StringVal(endpoint)}
}

// settings of a provider with these blocks of credentials.
func settings(env map[string]string, blocks ...attrs) source.Settings {
	var s source.Settings
	for _, b := range blocks {
		s.Credentials.Entries = append(s.Credentials.Entries, config.NewEntry("credentials.oss", credentials(), b))
	}
	if env != nil {
		s.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		s.Credentials.Env = s.LookupEnv
	}
	return s
}

// hurried is the kind, with less patience.
func hurried(ca *string) source.Kind {
	kind := Kind()
	kind.Start = func(s source.Settings) source.Open {
		r := newRun(s)
		r.connection.MaxWait, r.connection.Attempts = time.Millisecond, 2
		r.connection.Timeout, r.connection.Patience = time.Second, 2*time.Second
		if ca != nil {
			r.connection.CA = []byte(*ca)
		}
		return r.open
	}
	return kind
}

// open makes a source as a data source would.
func open(t *testing.T, kind source.Kind, s source.Settings, a attrs, workspace string) (source.Source, error) {
	t.Helper()
	values, err := config.NewEntry("data.statecrypt_remote_state.test.oss", kind.Table, a).Decode(kind.Table, s.LookupEnv)
	if err != nil {
		return nil, err
	}
	s.Credentials.Table = kind.Credentials
	return kind.Start(s)(source.Request{Values: values, Workspace: workspace, MaxSize: 1 << 20})
}

func newStore(t *testing.T) *storetest.Server {
	t.Helper()
	s := storetest.New(t, bucket)
	s.Region, s.Keys = "eu-central-1", []aws.Credentials{reader}
	return s
}

func TestSource(t *testing.T) {
	place := func(t *testing.T, data []byte) (sourcetest.Place, *storetest.Server) {
		s := newStore(t)
		if data != nil {
			s.Put(t, bucket, home, data)
		}
		return sourcetest.Place{Attrs: where(), Settings: settings(nil, keys(s.Serve(t))), Secrets: []string{canary}, Changed: s.OnlyRead}, s
	}
	bad := func(change func(*sourcetest.Place, *storetest.Server)) func(*testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place {
			p, s := place(t, []byte("{}"))
			change(&p, s)
			return p
		}
	}
	sourcetest.Run(t, sourcetest.Harness{
		Kind:  hurried(nil),
		Place: func(t *testing.T, data []byte) sourcetest.Place { p, _ := place(t, data); return p },
		Stuck: func(t *testing.T) sourcetest.Place {
			p, s := place(t, nil)
			s.Answer = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
			return p
		},
		Bad: map[string]func(*testing.T) sourcetest.Place{
			"another secret": bad(func(_ *sourcetest.Place, s *storetest.Server) { s.Keys[0].SecretAccessKey = "other" }),
			"another key":    bad(func(_ *sourcetest.Place, s *storetest.Server) { s.Keys[0].AccessKeyID = "other" }),
			"no such bucket": bad(func(p *sourcetest.Place, _ *storetest.Server) { p.Attrs = where().with("bucket", "none") }),
			"nobody listens": bad(func(p *sourcetest.Place, _ *storetest.Server) {
				p.Settings = settings(nil, keys("http://"+cloudtest.Dead(t)))
			}),
			"no such version": bad(func(p *sourcetest.Place, _ *storetest.Server) { p.Attrs = where().with("version_id", "none") }),
		},
	})
}

func TestFaults(t *testing.T) {
	var ca string
	sourcetest.Faults(t, sourcetest.FaultHarness{
		Kind: hurried(&ca),
		Server: func(t *testing.T, data []byte) http.Handler {
			s := newStore(t)
			s.Put(t, bucket, home, data)
			return s
		},
		Place: func(_ *testing.T, f *faults.Front) sourcetest.Place {
			ca = f.CA
			return sourcetest.Place{Attrs: where(), Settings: settings(nil, keys(f.URL)), Secrets: []string{canary}}
		},
		Sees: map[string]string{
			"nobody listens":           "x",
			"reset at once":            "x",
			"reset in the body":        "x",
			"reset in the body, once":  "x",
			"closed without an answer": "x",
			"short body":               "x",
			"Content-Length too large": "x",
			"Content-Length too small": "x",
			"endless body":             "x",
			"gzip bomb":                "x",
			"not HTTP":                 "x",
			"malformed status line":    "x",
			"malformed header":         "x",
			"another service":          "x",

			"stall":             "x",
			"stall in the body": "x",
			"slow drip":         "x",

			"403":                            "x",
			"500, once":                      "x",
			"500":                            "x",
			"503 with Retry-After, once":     "x",
			"429 with Retry-After, once":     "x",
			"429 with Retry-After":           "x",
			"429 with Retry-After of a year": "x",

			"redirect loop":              "x",
			"redirect to another origin": "x",
			"redirect to plain http":     "x",

			"certificate expired":                 "x",
			"certificate of another host":         "x",
			"certificate of an unknown authority": "x",
			"TLS 1.0":                             "x",
			"no TLS":                              "x",
			"handshake breaks off":                "x",
		},
		Cannot: map[string]string{},
	})
}
