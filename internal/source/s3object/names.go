package s3object

import (
	"errors"
	"regexp"
	"strings"
)

// maxKey is in bytes:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
const maxKey = 1024

// otherBucket is a bucket that is none: a directory bucket, for which the SDK
// asks for a session first, or another service, some of which run programs of
// whoever owns them:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
var otherBucket = regexp.MustCompile(`--[a-z0-9]{1,3}-s3$`)

// bucketName takes those of old, too, which may be longer and hold capitals.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]+$`)

// CheckBucket refuses what cannot be the name of a bucket, which becomes part
// of a host or a path.
func CheckBucket(name string) error {
	if len(name) > 255 || !bucketName.MatchString(name) || strings.Contains(name, "..") {
		return errors.New("this cannot be the name of a bucket: letters, digits, dashes and dots are allowed")
	}
	if otherBucket.MatchString(name) {
		return errors.New("directory buckets, Object Lambda and Outposts are not read from")
	}
	return nil
}

// CheckKey refuses keys that could be read as those of another object.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key of an object is required")
	case len(key) > maxKey:
		return errors.New("with the workspace it has more than 1024 bytes, which no key has")
	case strings.HasPrefix(key, "/") || strings.HasSuffix(key, "/"):
		return errors.New("it must not begin or end with a slash")
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "." || part == ".." {
			return errors.New("it must not hold . or .. as a part: servers and proxies would read it as another one")
		}
	}
	return nil
}
