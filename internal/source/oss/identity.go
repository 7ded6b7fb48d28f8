package oss

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// identity holds the credentials for a read: one of keys, roleName and profile, and optionally a role to
// assume.
type identity struct {
	keys     aws.Credentials // a user's keys
	roleName string          // the instance's role; "" if it is not used
	profile  string          // the CLI profile; "" if it is not used
	file     string

	role role // role to assume with these keys; none if its ARN is empty
	sts  *url.URL
}

type role struct {
	arn, session, policy string
	seconds              int64
}

const (
	leastSession, mostSession = 900, 3600
	sessionName               = "statecrypt"
)

func newIdentity(g source.Grant) (i identity, err error) {
	switch object.Identity(g, "access_key", "profile", "ecs_role_name") {
	case "access_key":
		i.keys, err = object.KeysOf(g, "access_key", g.String("security_token"))
	case "profile":
		i.profile, i.file = g.String("profile"), cmp.Or(g.String("shared_credentials_file"), "~/.aliyun/config.json")
	case "ecs_role_name":
		i.roleName = g.String("ecs_role_name")
	default:
		err = g.Errorf("", "no keys for OSS are set; set access_key and secret_key, or profile, or ecs_role_name in {credentials}, or set the "+
			"variables ALICLOUD_*")
	}
	if err != nil {
		return identity{}, err
	}
	if i.sts, err = object.Endpoint(g, "sts_endpoint", stsHost); err != nil {
		return identity{}, err
	}
	i.role = role{
		arn: g.String("assume_role_role_arn"), policy: g.String("assume_role_policy"),
		session: cmp.Or(g.String("assume_role_session_name"), sessionName),
		seconds: cmp.Or(g.Int("assume_role_session_expiration"), mostSession),
	}
	return i, nil
}

// resolve reads the profile, if there is one. It returns a provider for the keys that sign requests, and the
// region in the profile. The provider requests temporary keys when they are needed.
func (i identity) resolve(n object.Network) (keys aws.CredentialsProvider, region string, err error) {
	if i.profile != "" {
		p, err := readProfile(i.file, i.profile)
		if err == nil {
			err = i.apply(p)
		}
		if err != nil {
			return nil, "", fmt.Errorf("profile %q: %w", i.profile, err)
		}
		region = p.RegionID
	}
	return object.Renewed(func(ctx context.Context) (keys aws.Credentials, err error) {
		if keys = i.keys; i.roleName != "" {
			keys, err = ofInstance(ctx, n, i.roleName)
		}
		if err != nil || i.role.arn == "" {
			return keys, err
		}
		return i.assume(ctx, n, keys)
	}), region, nil
}

// apply sets i.keys or i.roleName from a profile. If no role is set, it also sets i.role.
func (i *identity) apply(p profile) error {
	i.keys = object.Keys(p.AccessKeyID, p.AccessKeySecret, "")
	switch p.Mode {
	case "AK", "":
	case "StsToken":
		i.keys.SessionToken = p.Token
	case "RamRoleArn":
		if i.role.arn == "" {
			i.role = role{arn: p.RoleARN, session: cmp.Or(p.SessionName, sessionName), seconds: mostSession}
			if p.Seconds >= leastSession && p.Seconds <= mostSession {
				i.role.seconds = p.Seconds
			}
		}
	case "EcsRamRole":
		if i.roleName = p.RoleName; i.roleName == "" {
			return errors.New("the profile has no ram_role_name; set one")
		}
		return nil
	default:
		return errors.New("the mode of the profile is not AK, StsToken, RamRoleArn or EcsRamRole; choose another profile")
	}
	if i.keys.AccessKeyID == "" || i.keys.SecretAccessKey == "" {
		return errors.New("the profile lacks access_key_id or access_key_secret; set both")
	}
	return object.CheckKeys(i.keys)
}

// profile is a profile of the Alibaba Cloud CLI:
// https://github.com/aliyun/aliyun-cli/blob/master/config/profile.go
type profile struct {
	Name            string `json:"name"`
	Mode            string `json:"mode"`
	AccessKeyID     string `json:"access_key_id"`
	AccessKeySecret string `json:"access_key_secret"`
	Token           string `json:"sts_token"`
	RegionID        string `json:"region_id"`
	RoleName        string `json:"ram_role_name"`
	RoleARN         string `json:"ram_role_arn"`
	SessionName     string `json:"ram_session_name"`
	Seconds         int64  `json:"expired_seconds"`
}

func readProfile(path, name string) (profile, error) {
	text, err := keyfile.ReadText(path)
	if err != nil {
		return profile{}, err
	}
	var file struct {
		Profiles []profile `json:"profiles"`
	}
	if json.Unmarshal(text, &file) != nil { // the error may quote a secret
		return profile{}, fmt.Errorf("%s is not a profile file of the Alibaba Cloud CLI", path)
	}
	for _, p := range file.Profiles {
		if p.Name == name {
			return p, nil
		}
	}
	return profile{}, fmt.Errorf("%s has no such profile; check the name of the profile", path)
}
