package cos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore"
)

// identity is who reads.
type identity struct {
	keys    aws.Credentials // of a user, or
	camRole string          // of the instance, or
	profile string          // of the CLI, in
	folder  string
	ambient bool // nobody named the profile

	role   role // to assume then; none without an ARN
	domain string
}

type role struct {
	arn, session, policy, externalID string
	seconds                          int64
}

const (
	mostSession, usualSession = 43200, 7200
	sessionName               = "statecrypt"
	usualDomain               = "tencentcloudapi.com"
	usualProfile              = "default"

	roleVar     = "TENCENTCLOUD_ASSUME_ROLE_ARN"
	sessionVar  = "TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME"
	durationVar = "TENCENTCLOUD_ASSUME_ROLE_SESSION_DURATION"
	externalVar = "TENCENTCLOUD_ASSUME_ROLE_EXTERNAL_ID"
)

// newIdentity reads the settings. An identity comes as a whole from the block,
// or as a whole from the environment.
func newIdentity(s objectstore.Settings) (identity, error) {
	own, say, err := s.Identity("secret_id", "cam_role_name", "secret_id", "profile")
	if err != nil {
		return identity{}, err
	}
	i := identity{domain: cmp.Or(s.Text("domain"), usualDomain), folder: s.Text("shared_credentials_dir")}
	switch own {
	case "secret_id":
		if i.keys, err = s.Keys("secret_id", say); err != nil {
			return identity{}, err
		}
	case "profile":
		i.profile = say("profile")
	case "cam_role_name":
		i.camRole = say("cam_role_name")
	default:
		if i.folder == "" && s.Env == nil {
			return identity{}, s.Errorf("", "%w", errNoKeys)
		}
		i.profile, i.ambient = usualProfile, true
	}
	if strings.ContainsAny(i.profile, `/\`) {
		return identity{}, s.Errorf("profile", "this cannot be the name of a profile")
	}
	return i, i.readRole(s)
}

var errNoKeys = errors.New("there are no keys for COS; set secret_id and secret_key, profile or cam_role_name in a cos block of credentials, in the provider block, or the variables TENCENTCLOUD_*")

func (i *identity) readRole(s objectstore.Settings) (err error) {
	if b, ok := s.Block("assume_role"); ok {
		i.role = role{arn: b.String("role_arn"), session: b.String("session_name"), policy: b.String("policy"), externalID: b.String("external_id"), seconds: usualSession}
		if b.Has("session_duration") {
			i.role.seconds, err = b.Int("session_duration", 1, mostSession)
		}
		if err == nil && i.role.arn == "" {
			err = b.Errorf("role_arn", "the ARN of a role is required")
		}
		return err
	}
	get := func(name string) string { text, _ := s.Env.Get(name); return text }
	i.role = role{arn: get(roleVar), session: cmp.Or(get(sessionVar), sessionName), externalID: get(externalVar), seconds: usualSession}
	if text := get(durationVar); text != "" {
		if i.role.seconds, err = strconv.ParseInt(text, 10, 64); err != nil || i.role.seconds < 1 || i.role.seconds > mostSession {
			return s.Errorf("assume_role", "the environment variable %s must be a number from 1 to %d", durationVar, mostSession)
		}
	}
	return nil
}

// resolve reads the profile, if there is one. Keys that end are asked for when
// they are needed.
func (r *run) resolve(i identity, region string) (aws.CredentialsProvider, error) {
	if i.profile != "" {
		if err := i.readProfile(); err != nil {
			return nil, err
		}
	}
	get := func(context.Context) (aws.Credentials, error) { return i.keys, nil }
	if i.camRole != "" {
		get = func(ctx context.Context) (aws.Credentials, error) { return r.ofInstance(ctx, i.camRole) }
	}
	keys := objectstore.Renewed(get)
	if i.role.arn != "" {
		keys = objectstore.Assumed(keys, func(ctx context.Context, keys aws.Credentials) (aws.Credentials, error) {
			return r.assume(ctx, keys, i, region)
		})
	}
	return keys, nil
}

const maxProfile = 64 << 10 // bytes

// readProfile puts what the profile says in the place of its name.
func (i *identity) readProfile() error {
	folder, err := keyfile.ExpandHome(cmp.Or(i.folder, "~/.tccli"))
	if err != nil {
		return err
	}
	path := filepath.Join(folder, i.profile+".credential")
	f, err := os.Open(path)
	if i.ambient && errors.Is(err, fs.ErrNotExist) {
		return errNoKeys
	}
	if err != nil {
		return fmt.Errorf("profile %q: %w", i.profile, err)
	}
	defer f.Close()
	text, err := source.Read(f, -1, maxProfile)
	if err != nil {
		return fmt.Errorf("profile %q: %s cannot be read", i.profile, path)
	}
	var p struct {
		SecretID    string `json:"secretId"`
		SecretKey   string `json:"secretKey"`
		Token       string `json:"token"`
		RoleARN     string `json:"role-arn"`
		SessionName string `json:"role-session-name"`
	}
	if json.Unmarshal(text, &p) != nil { // its error may quote a secret
		return fmt.Errorf("profile %q: %s is not a profile of TCCLI", i.profile, path)
	}
	trim := strings.TrimSpace
	i.keys = objectstore.Keys(trim(p.SecretID), trim(p.SecretKey), trim(p.Token))
	if i.keys.AccessKeyID == "" || i.keys.SecretAccessKey == "" {
		return fmt.Errorf("profile %q: %s has no secretId, or no secretKey", i.profile, path)
	}
	if i.role.arn == "" && p.RoleARN != "" && p.SessionName != "" {
		i.role = role{arn: trim(p.RoleARN), session: trim(p.SessionName), seconds: usualSession}
	}
	if err := objectstore.CheckKeys(i.keys); err != nil {
		return fmt.Errorf("profile %q: %w", i.profile, err)
	}
	return nil
}
