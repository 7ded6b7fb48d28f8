package s3

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

func TestIsAWS(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]bool{
		"":                                   true,
		"https://s3.amazonaws.com":           true,
		"https://s3.eu-west-1.amazonaws.com": true,
		"https://s3-eu-west-1.amazonaws.com": true,
		"https://s3-fips.us-gov-west-1.amazonaws.com":                   true,
		"https://s3.dualstack.eu-west-1.amazonaws.com":                  true,
		"https://s3.cn-north-1.amazonaws.com.cn":                        true,
		"https://bucket.vpce-1a2b-3c4d.s3.us-east-1.vpce.amazonaws.com": true,
		"http://s3.eu-west-1.amazonaws.com":                             false,
		"https://ec2-203-0-113-1.eu-west-1.compute.amazonaws.com":       false,
		"https://s3-1234567890.us-east-1.elb.amazonaws.com":             false,
		"https://abc.execute-api.us-east-1.amazonaws.com":               false,
		"https://s3.eu-west-1.amazonaws.com.example.com":                false,
		"https://minio.example.com":                                     false,
	} {
		o := awss3.Options{}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		if got := IsAWS(awss3.New(o)); got != want {
			t.Errorf("%q: %t", endpoint, got)
		}
	}
}
