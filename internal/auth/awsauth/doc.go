// Package awsauth configures access to AWS: the arguments that everything on
// AWS has in common, and the configuration of the vendor's clients that follows
// from them. Names, defaults and variables are those of OpenTofu:
// opentofu/internal/backend/remote-state/s3.
package awsauth
