package oss

import (
	"encoding/json"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
)

// profile is one of the Alibaba Cloud CLI:
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
	text, err := keyfile.Read(path)
	if err != nil {
		return profile{}, err
	}
	var file struct {
		Profiles []profile `json:"profiles"`
	}
	if json.Unmarshal(text, &file) != nil { // its error may quote a secret
		return profile{}, fmt.Errorf("%s is not a file of profiles of the Alibaba Cloud CLI", path)
	}
	for _, p := range file.Profiles {
		if p.Name == name {
			return p, nil
		}
	}
	return profile{}, fmt.Errorf("there is no such profile in %s", path)
}
