package openbao

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
)

const maxJWT = 64 << 10 // in bytes

type login struct {
	path string         // the API path of the login
	body map[string]any // the login parameters
	file string         // the file to read the jwt parameter from; empty if the body contains it or does not need it
}

type session struct {
	token   string
	expires time.Time // zero if the token does not expire
}

func (s session) valid() bool {
	return s.token != "" && (s.expires.IsZero() || time.Now().Before(s.expires))
}

// newLogin returns the login that an auth_ block configures, or nil if there is none. The auth methods are
// documented in https://openbao.org/api-docs/auth/.
func newLogin(v attr.Values) *login {
	for _, kind := range []string{"approle", "kubernetes", "jwt"} {
		block, ok := v.Block("auth_" + kind)
		if !ok {
			continue
		}
		l := &login{path: "auth/" + strings.Trim(block.String("mount_path"), "/") + "/login", body: map[string]any{}}
		names := []string{"role", "jwt"}
		if kind == "approle" {
			names = []string{"role_id", "secret_id"}
		} else {
			l.file = block.String("jwt_file")
		}
		for _, name := range names {
			if block.Has(name) {
				l.body[name] = block.String(name)
			}
		}
		if jwt, _ := l.body["jwt"].(string); jwt != "" {
			l.file = ""
		}
		return l
	}
	return nil
}

// run logs in with a single request and returns the session.
func (l *login) run(ctx context.Context, s *server) (session, error) {
	body := maps.Clone(l.body)
	if l.file != "" {
		jwt, err := readToken(l.file)
		if err != nil {
			return session{}, err
		}
		body["jwt"] = jwt
	}
	secret, err := s.put(ctx, s.client, "", l.path, body)
	switch {
	case err != nil:
		return session{}, s.explain(ctx, err, l.path, "")
	case secret.Auth == nil || secret.Auth.ClientToken == "":
		return session{}, fmt.Errorf("the login at %s on %s returned no token; use a login without a second factor", l.path, s.address)
	}
	out := session{token: secret.Auth.ClientToken}
	if lease := time.Duration(secret.Auth.LeaseDuration) * time.Second; lease > 0 {
		out.expires = time.Now().Add(lease - lease/10) // early enough to get a new token in time
	}
	return out, nil
}

func readToken(name string) (string, error) {
	b, err := keyfile.ReadText(name)
	token := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", fmt.Errorf("jwt_file: %w", err)
	case token == "" || len(token) > maxJWT:
		return "", fmt.Errorf("jwt_file: %s does not contain a token; check that this is the right file", name)
	}
	return token, nil
}

// fileError returns an error text that names the file that could not be read. It omits the rest of err, which
// may quote the file.
func fileError(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Sprintf("%s cannot be read: %v", cmp.Or(keyfile.Shown(e.Path), "one of the files"), keyfile.Explain(e.Path, e))
	}
	return "they are not in PEM format, or do not belong together"
}
