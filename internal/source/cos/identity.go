package cos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// identity holds the credentials for a read: one of keys, camRole and profile, and optionally a role to
// assume.
type identity struct {
	keys    aws.Credentials // a user's keys
	camRole string          // the instance's role; "" if it is not used
	profile string          // the CLI profile; "" if it is not used
	folder  string
	ambient bool // whether the default profile is used because no setting names a profile

	role role // role to assume with these keys; none if its ARN is empty
	sts  *url.URL
}

type role struct {
	arn, session, policy, externalID string
	seconds                          int64
}

const (
	mostSession, usualSession = 43200, 7200
	sessionName               = "statecrypt"

	roleVar     = "TENCENTCLOUD_ASSUME_ROLE_ARN"
	sessionVar  = "TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME"
	durationVar = "TENCENTCLOUD_ASSUME_ROLE_SESSION_DURATION"
	externalVar = "TENCENTCLOUD_ASSUME_ROLE_EXTERNAL_ID"
)

var errNoKeys = errors.New("no keys for COS are set; set secret_id and secret_key, or profile, or cam_role_name in {credentials}, or set " +
	"the variables TENCENTCLOUD_*")

func newIdentity(g source.Grant) (i identity, err error) {
	own := object.Identity(g, "cam_role_name", "secret_id", "profile")
	i.folder = cmp.Or(g.String("shared_credentials_dir"), "~/.tccli")
	switch {
	case own == "secret_id":
		i.keys, err = object.KeysOf(g, "secret_id", g.String("security_token"))
	case own == "profile":
		i.profile = g.String("profile")
	case own == "cam_role_name":
		i.camRole = g.String("cam_role_name")
	case !g.Has("shared_credentials_dir") && !g.ReadsEnvironment():
		err = g.Errorf("", "%w", errNoKeys)
	default:
		i.profile, i.ambient = "default", true
	}
	if err != nil {
		return identity{}, err
	}
	if i.sts, err = object.ParseEndpoint("sts." + cmp.Or(g.String("domain"), "tencentcloudapi.com")); err != nil {
		return identity{}, g.Errorf("domain", "%w", err)
	}
	i.readRole(g)
	return i, nil
}

func (i *identity) readRole(g source.Grant) {
	if b, ok := g.Block("assume_role"); ok {
		i.role.arn, i.role.session = b.String("role_arn"), b.String("session_name")
		i.role.policy, i.role.externalID = b.String("policy"), b.String("external_id")
		i.role.seconds = cmp.Or(b.Int("session_duration"), usualSession)
		return
	}
	i.role.arn, i.role.session, i.role.externalID = g.String(roleVar), cmp.Or(g.String(sessionVar), sessionName), g.String(externalVar)
	i.role.seconds = cmp.Or(g.Int(durationVar), usualSession)
}

// resolve returns the keys that sign a request. It reads the profile or requests the instance's keys if the
// identity uses one of them. It then assumes the role, if there is one.
func (i identity) resolve(ctx context.Context, n object.Network, region string) (keys aws.Credentials, err error) {
	if i.profile != "" {
		if err = i.readProfile(); err != nil && !errors.Is(err, errNoKeys) {
			err = fmt.Errorf("profile %q: %w", i.profile, err)
		}
	}
	if keys = i.keys; i.camRole != "" {
		keys, err = ofInstance(ctx, n, i.camRole)
	}
	if err != nil || i.role.arn == "" {
		return keys, err
	}
	return i.assume(ctx, n, keys, region)
}

// readProfile sets i.keys from the profile's file. If no role is set, it also sets i.role.
func (i *identity) readProfile() error {
	path := filepath.Join(i.folder, i.profile+".credential")
	text, err := keyfile.ReadText(path)
	switch {
	case i.ambient && errors.Is(err, fs.ErrNotExist):
		return errNoKeys
	case err != nil:
		return err
	}
	var p struct {
		SecretID    string `json:"secretId"`
		SecretKey   string `json:"secretKey"`
		Token       string `json:"token"`
		RoleARN     string `json:"role-arn"`
		SessionName string `json:"role-session-name"`
	}
	if json.Unmarshal(text, &p) != nil { // the error may quote a secret
		return fmt.Errorf("%s is not a profile of TCCLI", path)
	}
	trim := strings.TrimSpace
	i.keys = object.Keys(trim(p.SecretID), trim(p.SecretKey), trim(p.Token))
	if i.keys.AccessKeyID == "" || i.keys.SecretAccessKey == "" {
		return fmt.Errorf("%s lacks secretId or secretKey; set both", path)
	}
	if i.role.arn == "" && p.RoleARN != "" && p.SessionName != "" {
		i.role = role{arn: trim(p.RoleARN), session: trim(p.SessionName), seconds: usualSession}
	}
	return object.CheckKeys(i.keys)
}
