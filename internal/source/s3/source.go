package s3

import (
	"errors"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

const noSlash = "the value begins or ends with a slash; remove the slash"

var zone = lazyregexp.New(`^[a-z]{2}(-[a-z]+)+-[0-9][a-z]$`)

func locate(req source.Request, g source.Grant, n object.Network) (l object.Location, err error) {
	l.Region, l.Bucket = req.String("region"), req.String("bucket")
	if err := checkBucket(l.Bucket, l.Region); err != nil {
		return l, req.Errorf("bucket", "%w", err)
	}
	if l.Key, err = keyOf(req); err != nil {
		return l, err
	}
	a, err := newAccess(g, n, l.Region)
	if err != nil {
		return l, err
	}
	if variable := req.Variable("region"); variable != "" && g.ReadsEnvironment() && !awsauth.IsCommercial(l.Region) && a.regionSaysWhere() {
		if err := g.Refuse("region", "the environment variable "+variable); err != nil {
			return l, req.Errorf("region", "%w", errors.Unwrap(err))
		}
	}
	l.Connect, l.Unverified = a.connect, g.Bool("insecure")
	l.CustomerKey = source.CustomerKey(g.String(customerKeyAttr))
	return l, nil
}

var (
	regionName  = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`) // the name becomes part of a host
	accessPoint = lazyregexp.New(`^accesspoint/[a-z0-9-]+$`)
)

func checkRegion(name string) error {
	switch {
	case len(name) > 63 || !regionName.MatchString(name):
		return errors.New("this is not the name of a region; set a name like eu-west-1")
	case zone.MatchString(name):
		return errors.New("this is the name of an availability zone; remove the letter at its end to get the name of the region")
	}
	return nil
}

// checkBucket returns an error unless name is the name of a bucket, or the ARN of an access point in region.
// Other ARNs lead to other services, some of which run programs that belong to the owner of the ARN.
func checkBucket(name, region string) error {
	if !strings.HasPrefix(name, "arn:") {
		return object.CheckBucket(name)
	}
	a, err := arn.Parse(name)
	switch {
	case err != nil || a.Service != "s3" || len(a.Resource) > 62 || !accessPoint.MatchString(a.Resource):
		return errors.New("this is neither the name of a bucket nor the ARN of an access point; copy the whole name or ARN")
	case a.Region != region:
		return errors.New("the ARN of the access point and the argument region name different regions; correct one of them")
	}
	return nil
}

// keyOf returns the key at which the backend stores the state of the workspace.
func keyOf(req source.Request) (string, error) {
	key := req.String("key")
	if req.OtherWorkspace() == "" {
		return key, nil
	}
	key = path.Join(req.String("workspace_key_prefix"), req.Workspace, key)
	if err := object.CheckKey(key); err != nil {
		return "", req.Errorf("workspace_key_prefix", "%w", err)
	}
	return key, nil
}
