// Package source says where the bytes of a state come from. A source yields
// bytes, never a state: it knows nothing of encryption.
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
	// Fetch reads the file. It never writes, locks, lists or creates anything.
	// A file that is not there is a [*MissingError]; an unreachable server, a
	// refusal, a missing repository or branch is any other error. The result
	// belongs to the caller, who may overwrite it.
	Fetch(ctx context.Context) (*Snapshot, error)

	// String names the place for people. It never holds a secret.
	String() string
}

// Snapshot is the content of a source at one moment.
type Snapshot struct {
	Data     []byte
	Revision string // commit, ETag or object version; "" when the place has none
	Lock     *Lock  // nil if nobody has locked the file, or the place has no locks
	Warnings []Warning
}

// MaxRevision is the largest length of a revision, in bytes. S3 has version IDs of up to 1024:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/versioning-workflows.html
const MaxRevision = 1024

// Revision returns a version or an ETag, without W/ and quotation marks, cut and escaped, because
// stores may put anything into it.
func Revision(text string) string {
	return outside.Value(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), MaxRevision)
}

// Warning is something to know about a file that was read, such as an unverified
// connection.
type Warning = netfail.Warning

// Lock is the claim of a process to be the only writer of the file. Its strings come from outside;
// they are escaped and cut, so that they can be shown. A string that the lock lacks is "".
type Lock struct {
	ID        string
	Who       string // user@host
	Operation string // as Terraform names it, such as OperationTypeApply
	Created   string // a time, as the writer wrote it
}

// MissingError says that the place was reached and holds no file.
type MissingError struct {
	Detail          string // what was answered, such as "the server answered 404 Not Found"
	CredentialsSent bool   // some servers answer "not found" for "no access"
	Listed          bool   // the place listed its files, so missing rights are not the reason
	Mistaken        bool   // Detail describes a mistake in the settings, so a state is expected
	Lock            *Lock  // as in [Snapshot]: a first state may be on its way
}

// IsAnswer implements [web.Answer].
func (e *MissingError) IsAnswer() bool { return true }

func (e *MissingError) Error() string { return "there is no state: " + e.Detail }

// Request is one source as a data source or ephemeral resource asks for it.
type Request struct {
	attr.Values        // decoded against the kind's table
	Workspace   string // always "default" unless Kind.Workspaces
	MaxSize     int64  // bytes; a larger file is a [meter.TooLarge] error, if possible before it is read

	// Object is the object block of a data source, a [*kubestate.Object] that holds the state;
	// nil if there is none. Kinds with Objects fetch it. For other kinds, the file is a manifest
	// with the object, and the caller extracts the state.
	Object any
}

// OtherWorkspace is the workspace, "" if it is the default one.
func (r Request) OtherWorkspace() string {
	if r.Workspace == "default" {
		return ""
	}
	return r.Workspace
}

// Kind is one kind of source.
type Kind struct {
	attr.Table

	// Credentials declares the block of the same name inside credentials {}.
	// Its first attribute is url, or name where the block itself says which
	// server is asked. It is empty where the kind needs none.
	Credentials attr.Table

	// Home says where the secrets of the environment belong, if the variables of
	// Credentials are meant for one server.
	Home Home

	Workspaces bool
	Objects    bool // reads the state of a Request.Object by itself

	// Patience limits the time of all requests for one state together, for kinds whose servers
	// choose the number of requests. Other kinds have limits of their own.
	Patience time.Duration

	// Begin makes the function that [Kind.Start] returns.
	Begin func(Settings) Open
}

// Start begins a run. The sources of one configured provider may share fetches, connections and
// temporary files through the returned function, which lives as long as the provider. Start does
// no I/O.
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

// checkNames refuses documents in the place of names and addresses, which are shown.
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

// ChoiceAttr returns the attribute of a data source that chooses a block of kind. The
// documentation contains the text says, which describes such a block.
func ChoiceAttr(name, kind, says string) attr.Attr {
	return attr.Attr{
		Name: name, Type: cty.String,
		Doc: "The `name` of the `" + kind + "` block of `credentials` " + says + ". " +
			"Without it, the block without a name is used, or the environment if there are no blocks at all.",
	}
}

// Open makes a source from a request. It checks the request and does no I/O.
type Open func(Request) (Source, error)

// Settings are the settings of the provider block and the environment for all sources of one kind.
type Settings struct {
	Credentials Credentials
	LookupEnv   attr.LookupEnv // nil if the environment is not to be used
	Voice       fault.Voice    // the program's words for {credentials} and {settings}
}

// World returns the World of sources that receive no secret of the configuration: see
// [world.World.Beside].
func (s Settings) World() world.World { return world.For(s.LookupEnv, false) }

// IsMissing reports whether err says that the place holds no file.
func IsMissing(err error) (*MissingError, bool) {
	return errors.AsType[*MissingError](err)
}

// Variable is one of the variables of a table whose attribute, standsFor, has another type
// or meaning.
func Variable(name, standsFor, harmless string) attr.Attr {
	return attr.Attr{Name: name, Type: cty.String, Env: []string{name}, StandsFor: standsFor, Harmless: harmless}
}
