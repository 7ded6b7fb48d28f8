package s3

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object/s3test"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

func TestSource(t *testing.T) {
	bad := func(change func(*s3test.Server), a, b attrs) func(t *testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place {
			server := stored(t, []byte("{}"))
			if change != nil {
				change(server)
			}
			for name, value := range block(server.Start(t)) {
				if _, ok := b[name]; !ok {
					b[name] = value
				}
			}
			return place(a, settings(nil, b))
		}
	}
	sourcetest.Run(t, sourcetest.Harness{
		Kind: hasty(),
		Place: func(t *testing.T, data []byte) sourcetest.Place {
			server := stored(t, data)
			p := place(asks(), settings(nil, block(server.Start(t))))
			p.Changed = onlyRead(server)
			return p
		},
		Bad: map[string]func(t *testing.T) sourcetest.Place{
			"no bucket":    bad(nil, asks().with("bucket", "others"), attrs{}),
			"denied":       bad(func(s *s3test.Server) { s.Allows = func(string, string) bool { return false } }, asks(), attrs{}),
			"wrong key":    bad(nil, asks(), attrs{}.with("access_key", "AKIAOTHER")),
			"wrong secret": bad(nil, asks(), attrs{}.with("secret_key", "canary")),
			"other region": bad(nil, asks().with("region", "us-east-1"), attrs{}),
			"nobody there": bad(nil, asks(), attrs{}.with("endpoints", attrs{}.with("s3", "http://127.0.0.1:1"))),
		},
		Stuck: func(t *testing.T) sourcetest.Place {
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
			t.Cleanup(server.Close)
			return place(asks(), settings(nil, block(server.URL)))
		},
	})
}
