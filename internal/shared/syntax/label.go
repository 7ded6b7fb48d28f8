package syntax

import "github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"

var (
	label  = lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	domain = lazyregexp.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// IsLabel reports whether s can be one label of the name of a host. So are names in
// Kubernetes, and those that become parts of the host that gets signed requests, such as
// that of a bucket: any module can write them, and anything else could make it another host.
func IsLabel(s string) bool { return len(s) <= 63 && label.MatchString(s) }

// IsDomain reports whether s is made of labels with dots between them, as the names of hosts
// and of most objects of Kubernetes are.
func IsDomain(s string) bool { return len(s) <= 253 && domain.MatchString(s) }
