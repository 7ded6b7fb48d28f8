package oss

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/objectstore"
)

// identity is who reads.
type identity struct {
	keys     aws.Credentials // of a user, or
	roleName string          // of the instance, or
	profile  string          // of the CLI, in
	file     string

	role        role // to assume then; none without an ARN
	stsEndpoint string
}

type role struct {
	arn, session, policy string
	seconds              int64
}

const (
	leastSession, mostSession = 900, 3600
	sessionName               = "statecrypt"
)

// newIdentity reads the settings. An identity comes as a whole from the block,
// or as a whole from the environment.
func newIdentity(s objectstore.Settings) (identity, error) {
	own, say, err := s.Identity("access_key", "access_key", "profile", "ecs_role_name")
	if err != nil {
		return identity{}, err
	}
	var i identity
	switch own {
	case "access_key":
		if i.keys, err = s.Keys("access_key", say); err != nil {
			return identity{}, err
		}
	case "profile":
		i.profile, i.file = say("profile"), s.Text("shared_credentials_file")
	case "ecs_role_name":
		i.roleName = say("ecs_role_name")
	default:
		return identity{}, s.Errorf("", "there are no keys for OSS; set access_key and secret_key, profile or ecs_role_name in an oss block of credentials, in the provider block, or the variables ALICLOUD_*")
	}
	return i, i.readRole(s)
}

func (i *identity) readRole(s objectstore.Settings) (err error) {
	i.stsEndpoint = s.Text("sts_endpoint")
	i.role = role{arn: s.Text("assume_role_role_arn"), session: cmp.Or(s.Text("assume_role_session_name"), sessionName), policy: s.String("assume_role_policy")}
	i.role.seconds, err = s.Seconds("assume_role_session_expiration", leastSession, mostSession, mostSession)
	if err == nil && i.role.arn == "" && (s.Has("assume_role_session_name") || s.Has("assume_role_policy") || s.Has("assume_role_session_expiration")) {
		err = s.Errorf("assume_role_role_arn", "the other assume_role arguments need it")
	}
	return err
}

// signer is who signs requests, and the region that the profile says.
type signer struct {
	keys   aws.CredentialsProvider
	region string
}

// resolve reads the profile, if there is one. Keys that end are asked for when
// they are needed.
func (r *run) resolve(i identity) (signer, error) {
	var out signer
	if i.profile != "" {
		p, err := readProfile(i.file, i.profile)
		if err != nil {
			return signer{}, err
		}
		out.region = p.RegionID
		if err := i.apply(p); err != nil {
			return signer{}, fmt.Errorf("profile %q: %w", i.profile, err)
		}
	}
	get := func(context.Context) (aws.Credentials, error) { return i.keys, nil }
	if i.roleName != "" {
		get = func(ctx context.Context) (aws.Credentials, error) { return r.ofInstance(ctx, i.roleName) }
	}
	out.keys = objectstore.Renewed(get)
	if i.role.arn != "" {
		out.keys = objectstore.Assumed(out.keys, func(ctx context.Context, keys aws.Credentials) (aws.Credentials, error) {
			return r.assume(ctx, keys, i)
		})
	}
	return out, nil
}

// apply puts what the profile says in the place of its name.
func (i *identity) apply(p profile) error {
	switch p.Mode {
	case "AK", "":
		i.keys = objectstore.Keys(p.AccessKeyID, p.AccessKeySecret, "")
	case "StsToken":
		i.keys = objectstore.Keys(p.AccessKeyID, p.AccessKeySecret, p.Token)
	case "RamRoleArn":
		i.keys = objectstore.Keys(p.AccessKeyID, p.AccessKeySecret, "")
		if i.role.arn == "" {
			i.role = role{arn: p.RoleARN, session: cmp.Or(p.SessionName, sessionName), seconds: mostSession}
			if p.Seconds >= leastSession && p.Seconds <= mostSession {
				i.role.seconds = p.Seconds
			}
		}
	case "EcsRamRole":
		i.roleName = p.RoleName
		if i.roleName == "" {
			return errors.New("it has no ram_role_name")
		}
		return nil
	default:
		return errors.New("its mode is not one of AK, StsToken, RamRoleArn and EcsRamRole")
	}
	if i.keys.AccessKeyID == "" || i.keys.SecretAccessKey == "" {
		return errors.New("it has no access_key_id, or no access_key_secret")
	}
	return objectstore.CheckKeys(i.keys)
}
