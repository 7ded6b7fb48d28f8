package oss

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

func locate(req source.Request, g source.Grant, n object.Network) (l object.Location, err error) {
	who, err := newIdentity(g)
	if err != nil {
		return l, err
	}
	var endpoint *url.URL // nil means the endpoint of the region
	if g.String("endpoint") != "" {
		if endpoint, err = object.Endpoint(g, "endpoint", ""); err != nil {
			return l, err
		}
		endpoint.Host = compatible(endpoint.Host)
	}
	l.Region, l.Bucket = req.String("region"), req.String("bucket")
	if l.Region == "" && who.profile == "" { // a profile may contain the region
		return l, req.Errorf("region", "no region is set; set the argument region or the variable ALICLOUD_REGION to the region of the bucket")
	}
	l.Connect = func(context.Context) (*s3.Client, error) { return connect(who, endpoint, l.Region, n) }
	l.Key, err = object.Below(req)
	return l, err
}

func checkRegion(name string) error {
	switch {
	case strings.HasPrefix(name, "oss-"):
		return errors.New("the name of a region does not begin with oss-; remove oss-")
	case !syntax.IsLabel(name):
		return errors.New("this is not the name of a region; set a name like cn-hangzhou")
	}
	return nil
}

// compatible returns the name under which an OSS host supports the S3 API. It returns other hosts unchanged.
func compatible(host string) string {
	if strings.HasPrefix(host, "oss-") && strings.HasSuffix(host, ".aliyuncs.com") {
		return "s3." + host
	}
	return host
}

func connect(who identity, endpoint *url.URL, region string, n object.Network) (*s3.Client, error) {
	keys, ofProfile, err := who.resolve(n)
	if err != nil {
		return nil, err
	}
	if region = cmp.Or(region, ofProfile); !syntax.IsLabel(region) {
		return nil, errors.New("the profile has no valid region_id; set the argument region to the region of the bucket")
	}
	if endpoint == nil {
		endpoint = &url.URL{Scheme: "https", Host: "s3.oss-" + region + ".aliyuncs.com"}
	}
	return object.NewClient(object.Place{
		Endpoint: endpoint, PathStyle: object.IsAddress(endpoint), Region: region, Keys: keys, Prefix: "X-Oss-",
	}, n), nil
}
