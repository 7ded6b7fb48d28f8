package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// relation is a JSON:API reference to another resource. Data is nil if the service does not send it, and
// "null" if there is no such resource.
type relation struct {
	Data json.RawMessage `json:"data"`
}

// id returns the ID of the related resource, or an empty string if there is none.
func (r relation) id() string {
	var one struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(r.Data, &one) != nil || !isID(one.ID) {
		return ""
	}
	return one.ID
}

func (r relation) isNone() bool { return string(r.Data) == "null" }

// workspace holds the parts of a workspace document that are used here.
type workspace struct {
	ID         string `json:"id"`
	Attributes struct {
		Name        string `json:"name"`
		Locked      bool   `json:"locked"`
		Permissions struct {
			ReadStates  *bool `json:"can-read-state-versions"` // nil if the service does not say
			ReadOutputs *bool `json:"can-read-state-outputs"`
		} `json:"permissions"`
	} `json:"attributes"`
	Relationships struct {
		CurrentState relation `json:"current-state-version"`
		LockedBy     relation `json:"locked-by"`
	} `json:"relationships"`
}

func (x *exchange) readWorkspace(ctx context.Context, service *url.URL) (*workspace, error) {
	var answer struct {
		Data workspace `json:"data"`
	}
	err := x.getDocument(ctx, at(service, "organizations", x.organization, "workspaces", x.workspace), &answer)
	if err != nil {
		return nil, x.fail(err, func(code int) error {
			return fmt.Errorf("there is no workspace %s in the organization %s, or the token has no access to it (%s answered %s); check both "+
				"names, and give the token's team access to the workspace", x.workspace, x.organization, x.origin(), web.Status(code))
		})
	}
	w := &answer.Data
	if !isID(w.ID) {
		return nil, fmt.Errorf("the answer of %s to the request for the workspace contains no workspace", x.origin())
	}
	return w, nil
}

// lock returns the lock on the workspace, or nil if it is not locked. Who is the ID of a user, a run or a
// team.
func (w *workspace) lock(l *location) *source.Lock {
	if !w.Attributes.Locked {
		return nil
	}
	return &source.Lock{ID: l.organization + "/" + l.workspace, Who: w.Relationships.LockedBy.id()}
}

// missing returns the error for a 404 response to a request for the current state or its outputs. The service
// sends the same response if the state does not exist and if a permission is missing. allowed says whether
// the token has the permission; it is nil if that is unknown.
func (x *exchange) missing(w *workspace, allowed *bool, denied error) error {
	if allowed != nil && !*allowed || w.Relationships.CurrentState.id() != "" {
		return denied
	}
	return &source.MissingError{
		Detail:          "the workspace has no current state version",
		CredentialsSent: true,
	}
}

// stateVersion holds the parts of a state version document that are used here.
type stateVersion struct {
	ID         string `json:"id"`
	Attributes struct {
		Status       string  `json:"status"`
		Size         int64   `json:"size"`
		DownloadURL  string  `json:"hosted-state-download-url"`
		EncryptedURL *string `json:"encrypted-state-download-url"`
	} `json:"attributes"`
	Relationships struct {
		Workspace relation `json:"workspace"`
	} `json:"relationships"`
}

// readState returns the current state or the requested version, and the ID of the state version.
func (x *exchange) readState(ctx context.Context, service *url.URL, w *workspace) ([]byte, string, error) {
	v, err := x.readVersion(ctx, service, w)
	if err != nil {
		return nil, "", err
	}
	from, err := x.downloadURL(v)
	if err != nil {
		return nil, "", err
	}
	if v.Attributes.Size > x.limit {
		return nil, "", meter.TooLarge(x.limit)
	}
	var data []byte
	err = x.get(ctx, from, "application/json", func(resp *http.Response) (err error) {
		data, err = web.ReadBody(resp, x.limit, io.Discard)
		return err
	})
	if err != nil {
		return nil, "", x.fail(err, x.notDownloaded)
	}
	if size := v.Attributes.Size; size > 0 && size != int64(len(data)) {
		return nil, "", fmt.Errorf("the service announced a state of %d bytes, but sent %d", size, len(data))
	}
	return data, v.ID, nil
}

func (x *exchange) readVersion(ctx context.Context, service *url.URL, w *workspace) (*stateVersion, error) {
	from := at(service, "workspaces", w.ID, "current-state-version")
	if x.version != "" {
		from = at(service, "state-versions", x.version)
	}
	var answer struct {
		Data stateVersion `json:"data"`
	}
	err := x.getDocument(ctx, from, &answer)
	if err != nil {
		return nil, x.fail(err, func(code int) error {
			instead := ". If the token may read only outputs, set outputs_only"
			if x.outputsOnly {
				instead = ""
			}
			denied := fmt.Errorf("the token is not allowed to read the states of the workspace (%s answered %s); give the token's team \"Read\" "+
				"for the workspace's state versions%s", x.origin(), web.Status(code), instead)
			switch {
			case x.version != "":
				return fmt.Errorf("there is no state version %s, or the token is not allowed to read it (%s answered %s); "+
					"check state_version, and that the token's team has \"Read\" for the workspace's state versions", x.version, x.origin(),
					web.Status(code))
			case code == http.StatusNotFound:
				return x.missing(w, w.Attributes.Permissions.ReadStates, denied)
			}
			return denied
		})
	}
	v := &answer.Data
	switch of := v.Relationships.Workspace.id(); {
	case !isID(v.ID):
		return nil, fmt.Errorf("the answer of %s to the request for the state version contains no state version", x.origin())
	case x.version == "" && (of == "" || of == w.ID):
		return v, nil
	case x.version == "":
		return nil, errors.New("the service returned a state version of another workspace")
	case v.ID != x.version:
		return nil, errors.New("the service returned another state version")
	case of == "":
		// Otherwise a module could use another workspace's state version, if the token can read that
		// workspace.
		return nil, errors.New("the service does not say which workspace the state version belongs to; remove state_version")
	case of != w.ID:
		return nil, fmt.Errorf("the state version %s belongs to another workspace", x.version)
	}
	return v, nil
}

var statusPattern = lazyregexp.New(`^(pending|finalized|discarded|backing_data_soft_deleted|backing_data_permanently_deleted)$`)

func (x *exchange) downloadURL(v *stateVersion) (*url.URL, error) {
	text := v.Attributes.DownloadURL
	if text == "" && v.Attributes.EncryptedURL != nil && *v.Attributes.EncryptedURL != "" {
		return nil, errors.New("the service keeps this state encrypted with the organization's key (hold your own key), so only the " +
			"organization's agents can read it")
	}
	if text == "" {
		is := ""
		if s := v.Attributes.Status; s != "finalized" && statusPattern.MatchString(s) {
			is = ": its status is " + s
		}
		return nil, fmt.Errorf("the service returned no URL for the state version %s%s", v.ID, is)
	}
	u, err := x.asked.Parse(text)
	if err != nil {
		return nil, errors.New("the service returned a state address that is not a URL")
	}
	if err := web.MayLead(x.asked, u); err != nil {
		return nil, fmt.Errorf("the service returned an address for the state, but %w", err)
	}
	return u, nil
}

func (x *exchange) notDownloaded(code int) error {
	switch origin := x.origin(); {
	case x.tokenSent:
		return fmt.Errorf(`could not download the state: %s answered %s; check that the token's team has "Read" for the workspace's `+
			"state versions", origin, web.Status(code))
	default:
		return fault.Known(fmt.Errorf("could not download the state: %s answered %s, and no token was sent; if a token is required, add "+
			"it to {settings}", origin, web.Status(code)), x.noToken(x.asked))
	}
}
