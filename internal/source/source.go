// Package source defines the sources from which states are read. A source returns the bytes of a file,
// and knows nothing of encryption.
package source

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Source is one file at one place.
type Source interface {
	// Fetch reads the file. It never writes, locks, lists or creates anything. If the place has no such
	// file, the error is a [*MissingError]; an unreachable server, a refusal, and a missing repository
	// or branch are other errors. The caller may overwrite the result.
	Fetch(ctx context.Context) (*Snapshot, error)

	// String names the place for people. It never contains a secret.
	String() string
}

// Snapshot is the content of a source at one moment.
type Snapshot struct {
	Data     []byte
	Revision string // a commit, an ETag or the version of an object; "" if the place has none
	Lock     *Lock  // nil if nobody has locked the file, or the place has no locks
	Warnings []Warning
}

// MaxRevision is the largest length of a revision, in bytes. The version IDs of S3 have up to 1024:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/versioning-workflows.html
const MaxRevision = 1024

// Revision returns a version or an ETag without W/ and quotation marks. It is cut and escaped, because
// a server may send anything.
func Revision(text string) string {
	return outside.Value(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), MaxRevision)
}

// Warning is a fact about a read that users should know, such as an unverified connection.
type Warning = netfail.Warning

// Lock describes the lock that a process holds on the file. Its strings come from outside, so they are
// escaped and cut. A string that the lock lacks is "".
type Lock struct {
	ID        string
	Who       string // user@host
	Operation string // in Terraform's words, such as OperationTypeApply
	Created   string // the time in the writer's format
}

// MissingError is the error for a place that was reached and holds no file.
type MissingError struct {
	Detail          string // the reason, such as "the server answered 404 Not Found"
	CredentialsSent bool   // whether credentials were sent; some servers answer "not found" if the rights are missing
	Listed          bool   // whether the place listed its files, so missing rights are not the reason
	Mistaken        bool   // whether Detail describes a mistake in the settings, so that a state is expected
	Lock            *Lock  // the lock on the file, see [Snapshot]; somebody may be writing the first state
}

// IsAnswer implements [web.Answer].
func (e *MissingError) IsAnswer() bool { return true }

func (e *MissingError) Error() string { return "there is no state: " + e.Detail }

// Request is the request of a data source or ephemeral resource for a file.
type Request struct {
	attr.Values        // decoded against the kind's table
	Workspace   string // "default" for kinds without Workspaces
	MaxSize     int64  // bytes; a larger file is a [meter.TooLarge] error, if possible before it is read

	// Object is the object block of a data source, a [*kubestate.Object] that holds the state;
	// nil if there is none. Kinds with Objects fetch it. For other kinds, the file is a manifest
	// with the object, and the caller extracts the state.
	Object any
}

// OtherWorkspace returns the workspace, and "" for the default one.
func (r Request) OtherWorkspace() string {
	if r.Workspace == "default" {
		return ""
	}
	return r.Workspace
}

// Kind describes a kind of sources.
type Kind struct {
	attr.Table

	// Credentials declares the block of the same name inside credentials {}. Its first attribute is
	// url, or name if the block itself names the server. It is empty for kinds without credentials.
	Credentials attr.Table

	// Home tells for which server the variables of Credentials are meant, for kinds whose variables are
	// meant for one server.
	Home Home

	Workspaces bool
	Objects    bool // whether sources read the state of a Request.Object themselves

	// Patience limits the time of all requests for one state together, for kinds whose servers choose
	// the number of requests. It is 0 for kinds that limit the time themselves.
	Patience time.Duration

	// Begin returns the function that [Kind.Start] wraps.
	Begin func(Settings) Open
}

// Start returns the function that makes the sources of one configured provider. They may share fetches,
// connections and temporary files, as long as the provider lives. Start does no I/O.
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

// checkNames returns an error if a name or an address is the content of a file, because names and
// addresses are shown.
func checkNames(v attr.Values, attrs []attr.Attr) error {
	for _, a := range attrs {
		if block, there := v.Block(a.Name); there {
			if err := checkNames(block, a.Attrs); err != nil {
				return err
			}
		} else if a.Type == cty.String && recognize.IsDocument(v.String(a.Name)) {
			return v.Errorf(a.Name, "a name or an address is required, and this is the content of a file: leave out file(…)")
		}
	}
	return nil
}

// NameAttr returns the first attribute of a block of credentials that itself names the server or the
// identity. A data source chooses the block by the attribute called choice: see [ChoiceAttr].
func NameAttr(choice string) attr.Attr {
	return attr.Attr{
		Name: "name", Type: cty.String,
		Doc: "What `" + choice + "` in a data source calls this block. " +
			"One block may go without a name; it is for data sources without `" + choice + "`.",
	}
}

// ChoiceAttr returns the attribute of a data source that chooses a block of kind. The text says
// describes such a block in the documentation.
func ChoiceAttr(name, kind, says string) attr.Attr {
	return attr.Attr{
		Name: name, Type: cty.String,
		Doc: "The `name` of the `" + kind + "` block of `credentials` " + says + ". " +
			"Without it, the block without a name is used, or the environment if there are no blocks at all.",
	}
}

// Open makes a source from a request. It checks the request and does no I/O.
type Open func(Request) (Source, error)

// Settings holds the settings of the provider block, and the environment, for all sources of one kind.
type Settings struct {
	Credentials Credentials
	LookupEnv   attr.LookupEnv // nil if the environment is not to be used
	Voice       fault.Voice    // the program's words for {credentials} and {settings}
}

// World returns the World of sources that receive no secret of the configuration: see
// [world.World.Beside].
func (s Settings) World() world.World { return world.For(s.LookupEnv, false) }

// IsMissing returns the [MissingError] in err, and false if there is none.
func IsMissing(err error) (*MissingError, bool) {
	return errors.AsType[*MissingError](err)
}

// Variable returns the attribute for an environment variable whose type or meaning differs from the
// attribute called standsFor, which it replaces.
func Variable(name, standsFor, harmless string) attr.Attr {
	return attr.Attr{Name: name, Type: cty.String, Env: []string{name}, StandsFor: standsFor, Harmless: harmless}
}
