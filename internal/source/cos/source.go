package cos

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// withAccount matches a bucket name that ends with the account's APPID.
// https://www.tencentcloud.com/document/product/436/13312
var withAccount = lazyregexp.New(`-[0-9]{6,}$`)

func locate(req source.Request, g source.Grant, n object.Network) (l object.Location, err error) {
	who, err := newIdentity(g)
	if err != nil {
		return l, err
	}
	l.Region, l.Bucket = req.String("region"), req.String("bucket")
	host := "cos." + l.Region + ".myqcloud.com"
	if req.Bool("accelerate") {
		host = "cos.accelerate.myqcloud.com"
	}
	switch {
	case g.String("endpoint") == "" && !withAccount.MatchString(l.Bucket):
		return l, req.Errorf("bucket", "the name does not end with the APPID of the account; a COS bucket has a name like states-1258798060")
	case req.Bool("accelerate") && g.String("endpoint") != "":
		return l, req.Errorf("accelerate", "accelerate cannot be used with an endpoint in the credentials; remove one of them")
	}
	endpoint, err := object.Endpoint(g, "endpoint", host)
	if err != nil {
		return l, err
	}
	l.Host = endpoint.Host
	l.Connect = func(context.Context) (*s3.Client, error) {
		keys := object.Renewed(func(ctx context.Context) (aws.Credentials, error) { return who.resolve(ctx, n, l.Region) })
		return object.NewClient(object.Place{
			Endpoint: endpoint, PathStyle: object.IsAddress(endpoint), Region: l.Region, Keys: keys, Prefix: "X-Cos-",
		}, n), nil
	}
	l.Key, err = object.Below(req)
	return l, err
}
