// Package source defines the interface for reading states from different places. A source returns the bytes
// of a file and does not know about encryption.
package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Source is one file at one place.
type Source interface {
	// Fetch reads the file. It never writes, locks, lists or creates anything. It returns a [*MissingError]
	// if the place has no such file, but other errors if the server cannot be reached, refuses the request,
	// or lacks the repository or branch. The caller may overwrite the result.
	Fetch(ctx context.Context) (*Snapshot, error)

	// String names the place for people. It never contains a secret.
	String() string
}

// Snapshot is the content of a source at one moment.
type Snapshot struct {
	Data     []byte
	Revision string // a commit, an ETag or an object version; "" if the place has none
	Lock     *Lock  // nil if the file is not locked, or the place has no locks
	Warnings []Warning
}

// MaxRevision is the maximum length of a revision, in bytes. S3 version IDs have up to 1024:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/versioning-workflows.html
const MaxRevision = 1024

// Revision returns a version or an ETag without W/ and quotation marks. The result is truncated and escaped,
// because a server may send anything.
func Revision(text string) string {
	return outside.Value(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), MaxRevision)
}

// Warning is a fact about a read that users should know, such as an unverified connection.
type Warning = netfail.Warning

// Lock describes the lock that another process holds on the file. Its strings come from outside, so they are
// escaped and truncated. Missing strings are empty.
type Lock struct {
	ID        string
	Who       string // user@host
	Operation string // in Terraform's terms, such as OperationTypeApply
	Created   string // the time in the writer's format
}

// MissingError is the error for a place that was reached but holds no file.
type MissingError struct {
	Detail          string // the reason, such as "the server answered 404 Not Found"
	CredentialsSent bool   // whether credentials were sent; some servers answer "not found" if permissions are missing
	Listed          bool   // whether the files could be listed, so that missing permissions are not the reason
	Mistaken        bool   // whether Detail describes a mistake in the settings, so that a state is expected to exist
	Lock            *Lock  // the lock on the file, see [Snapshot]; someone may be writing the first state
}

// IsAnswer implements [web.Answer].
func (e *MissingError) IsAnswer() bool { return true }

func (e *MissingError) Error() string { return "there is no state: " + e.Detail }

// Request is a data source's or ephemeral resource's request for a file.
type Request struct {
	attr.Values        // decoded against the kind's table
	Workspace   string // "default" if the kind has no Workspaces
	MaxSize     int64  // size limit in bytes; a larger file is a [meter.TooLarge] error, if possible before it is read

	// Object is the object block of a data source: a [*kubestate.Object] that holds the state, or nil if
	// there is none. Kinds with Objects fetch it. For other kinds, the file is a manifest with the object,
	// and the caller extracts the state.
	Object any
}

// OtherWorkspace returns the workspace, or an empty string for the default workspace.
func (r Request) OtherWorkspace() string {
	if r.Workspace == "default" {
		return ""
	}
	return r.Workspace
}

// Kind describes one kind of source.
type Kind struct {
	attr.Table

	// Credentials declares the block of the same name inside credentials {}. Its first attribute is url, or
	// name if the block itself names the server. Credentials is empty for kinds without credentials.
	Credentials attr.Table

	// Home says which server the variables of Credentials are meant for, for kinds whose variables are meant
	// for one server.
	Home Home

	Workspaces bool
	Objects    bool // whether sources of this kind read the state of a Request.Object themselves

	// Patience limits the total time of all requests for one state. It is set for kinds whose servers
	// determine the number of requests, and 0 for kinds that limit the time themselves.
	Patience time.Duration

	// Begin returns the function that [Kind.Start] wraps.
	Begin func(Settings) Open
}

// Start returns the function that makes the sources of one configured provider. The sources may share
// fetches, connections and temporary files while the provider lives. Start does no I/O.
func (k Kind) Start(s Settings) Open {
	open := k.Begin(s.For(k))
	return func(req Request) (Source, error) {
		if err := checkNames(req, k.Attrs); err != nil {
			return nil, err
		}
		src, err := open(req)
		if err != nil {
			return nil, s.Voice.Speak(err)
		}
		return bounded{src, k.Patience, req.MaxSize, s.Voice}, nil
	}
}

// checkNames returns an error if a name or an address looks like the content of a file. Names and addresses
// are shown to users, so they must not contain secrets.
func checkNames(v attr.Values, attrs []attr.Attr) error {
	for _, a := range attrs {
		if block, there := v.Block(a.Name); there {
			if err := checkNames(block, a.Attrs); err != nil {
				return err
			}
		} else if a.Type == cty.String && recognize.IsDocument(v.String(a.Name)) {
			return v.Errorf(a.Name, "this is the content of a file, not a name or an address; remove file(…)")
		}
	}
	return nil
}

// NameAttr returns the first attribute of a credentials block that itself names the server or the identity.
// choice is the name of the data source attribute that selects the block; see [ChoiceAttr].
func NameAttr(choice string) attr.Attr {
	return attr.Attr{
		Name: "name", Type: cty.String,
		Doc: "The name of this block, for `" + choice + "` in a data source. One block may have no name: data sources without `" +
			choice + "` use that block.",
	}
}

// ChoiceAttr returns the data source attribute that selects a credentials block of the given kind. The text
// in says describes such a block in the documentation.
func ChoiceAttr(name, kind, says string) attr.Attr {
	return attr.Attr{
		Name: name, Type: cty.String,
		Doc: "The `name` of the `" + kind + "` block of `credentials` " + says + ". " +
			"Without it, the block without a name is used, or the environment if there are no blocks at all.",
	}
}

// Open makes a source from a request. It checks the request and does no I/O.
type Open func(Request) (Source, error)

// Settings holds the provider block's settings and the environment for all sources of one kind.
type Settings struct {
	Credentials Credentials
	LookupEnv   attr.LookupEnv // nil if the environment must not be used
	Voice       fault.Voice    // the program's wording for {credentials} and {settings}
}

// World returns the World for sources that receive no secret from the configuration; see
// [world.World.Beside].
func (s Settings) World() world.World { return world.For(s.LookupEnv, false) }

// IsMissing returns the [MissingError] in err, and whether there is one.
func IsMissing(err error) (*MissingError, bool) {
	return errors.AsType[*MissingError](err)
}

// Variable returns the attribute for an environment variable that replaces the attribute called standsFor but
// has another type or meaning.
func Variable(name, standsFor, harmless string) attr.Attr {
	return attr.Attr{Name: name, Type: cty.String, Env: []string{name}, StandsFor: standsFor, Harmless: harmless}
}

// Patience is the [Kind.Patience] of kinds whose servers determine the number of requests. It is long enough
// for a state of any size.
const Patience = 10 * time.Minute

// bounded wraps a source. It limits how long a read takes and how large the file may be, and explains errors.
type bounded struct {
	Source
	patience time.Duration // time limit for one read; 0 if the source has its own limit
	limit    int64
	voice    fault.Voice
}

func (b bounded) Fetch(ctx context.Context) (*Snapshot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	limited, cancel := ctx, func() {}
	if b.patience > 0 {
		limited, cancel = context.WithTimeout(ctx, b.patience)
	}
	defer cancel()
	snapshot, err := b.Source.Fetch(limited)
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("could not read the state within %s; try again later", b.patience)
	case err == nil && int64(len(snapshot.Data)) > b.limit:
		return nil, meter.TooLarge(b.limit)
	}
	return snapshot, b.voice.Speak(err)
}

const (
	// MaxLock is the size limit of a lock description, in bytes. Most have a few hundred.
	MaxLock    = 64 << 10
	maxEscaped = 200 // size limit of each string that is shown, in bytes
)

// ParseLock reads the JSON document about a lock that Terraform passes to a backend:
// https://github.com/opentofu/opentofu/blob/v1.12.6/internal/states/statemgr/locker.go
// If it fails, it also returns an empty lock, because the state is still locked.
func ParseLock(data []byte) (*Lock, error) {
	if len(data) > MaxLock {
		return &Lock{}, fmt.Errorf("the lock's description is larger than %d bytes", MaxLock)
	}
	var text struct{ ID, Who, Operation, Created string }
	if err := json.Unmarshal(data, &text); err != nil {
		return &Lock{}, errors.New("the lock's description is not the JSON object that Terraform writes")
	}
	return &Lock{ID: shown(text.ID), Who: shown(text.Who), Operation: shown(text.Operation), Created: shown(text.Created)}, nil
}

// shown escapes and truncates s, because anyone with write access to the place may have written it.
func shown(s string) string { return outside.Value(s, maxEscaped) }
