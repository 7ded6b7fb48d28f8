package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/jsonwalk"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// These constants limit how many requests a service can cause.
const (
	maxPages     = 100
	maxOutputs   = 100 * maxPages // a page of the API has at most 100 outputs
	maxSensitive = 1000
)

// output is an output in the service's JSON. The list of outputs does not contain the values of sensitive
// outputs.
type output struct {
	ID         string `json:"id"`
	Attributes struct {
		Name         string          `json:"name"`
		Sensitive    bool            `json:"sensitive"`
		Value        json.RawMessage `json:"value"`
		DetailedType json.RawMessage `json:"detailed-type"` // type in the notation of state files
	} `json:"attributes"`
}

// outputs is a list of at most maxOutputs outputs. There is a limit, because a small document could list
// millions.
type outputs []output

// UnmarshalJSON implements [json.Unmarshaler].
func (o *outputs) UnmarshalJSON(text []byte) error {
	*o = nil
	r := jsonwalk.NewReader(text)
	return r.Array(func() error {
		value, err := r.Skip()
		if err == nil && len(*o) == maxOutputs {
			err = errors.New("too many outputs")
		}
		var one output
		if err == nil {
			err = json.Unmarshal(value, &one)
		}
		*o = append(*o, one)
		return err
	})
}

// readOutputs returns a state file with the outputs that the service lists. The file has neither serial nor
// lineage, because the service does not return them.
func (x *exchange) readOutputs(ctx context.Context, service *url.URL, w *workspace) ([]byte, error) {
	list, err := x.listOutputs(ctx, service, w)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		if err := x.checkNone(ctx, service, w); err != nil {
			return nil, err
		}
	}
	var sensitive int
	for i, o := range list {
		if !o.Attributes.Sensitive {
			continue
		}
		if sensitive++; sensitive > maxSensitive {
			return nil, fmt.Errorf("the workspace has more than %d sensitive outputs, and each requires a request; remove outputs_only to read "+
				"the state", maxSensitive)
		}
		if list[i].Attributes.Value, err = x.readOutput(ctx, service, o); err != nil {
			return nil, err
		}
	}
	return x.stateOf(list)
}

// checkNone reads the state and returns an error unless it has no outputs. This is needed because a service
// that cannot read an encrypted state lists no outputs either.
func (x *exchange) checkNone(ctx context.Context, service *url.URL, w *workspace) error {
	if w.Relationships.CurrentState.isNone() {
		return x.missing(w, nil, nil)
	}
	data, _, err := x.readState(ctx, service, w)
	switch {
	case meter.IsTooLarge(err):
		return err
	case err != nil:
		if _, missing := source.IsMissing(err); missing {
			return err
		}
		return fmt.Errorf("the service lists no outputs, perhaps because the state is encrypted. The state itself cannot be read: %w", err)
	}
	return checkEmpty(data)
}

// checkEmpty returns an error unless data is a plaintext state without outputs.
func checkEmpty(data []byte) error {
	var outputs map[string]struct{}
	encrypted, readable := false, true
	small, err := jsonwalk.Pick(data, func(name string, value []byte) bool {
		switch jsonwalk.Fold(name) {
		case "encrypted_data":
			encrypted = true
		case "outputs":
			readable = json.Unmarshal(value, &outputs) == nil
		case "version":
			return true
		}
		return false
	})
	var file struct{ Version int }
	switch {
	case err == nil && encrypted:
		return errors.New("the state is encrypted, so the service lists no outputs; remove outputs_only to read the state")
	case err != nil || json.Unmarshal(small, &file) != nil || file.Version != 4:
		return errors.New("the service lists no outputs, and the state is not a plaintext state of version 4; remove outputs_only to " +
			"read the state")
	case !readable || len(outputs) > 0:
		return errors.New("the service lists no outputs, although the state has outputs; if the state was just written, try again. Otherwise, " +
			"remove outputs_only to read the state")
	}
	return nil
}

func (x *exchange) listOutputs(ctx context.Context, service *url.URL, w *workspace) (outputs, error) {
	var all outputs
	from := at(service, "workspaces", w.ID, "current-state-version-outputs")
	for page := 1; ; {
		var answer struct {
			Data outputs `json:"data"`
			Meta struct {
				Pagination struct {
					Next *int `json:"next-page"`
				} `json:"pagination"`
			} `json:"meta"`
		}
		if err := x.getOutputs(ctx, from, &answer); err != nil {
			return nil, x.fail(err, func(code int) error { return x.noOutputs(w, code) })
		}
		if all = append(all, answer.Data...); len(all) > maxOutputs {
			return nil, fmt.Errorf("the workspace has more than %d outputs; remove outputs_only to read the state", maxOutputs)
		}
		next := answer.Meta.Pagination.Next
		switch {
		case next == nil || *next == 0:
			return all, nil
		case *next != page+1 || *next > maxPages:
			return nil, errors.New("the service's list of outputs does not end")
		}
		page = *next
		from.RawQuery = url.Values{"page[number]": {strconv.Itoa(page)}}.Encode()
	}
}

func (x *exchange) noOutputs(w *workspace, code int) error {
	denied := fmt.Errorf("the token is not allowed to read the outputs of the workspace (%s answered %s); give its team \"Read "+
		"outputs only\" for "+
		"the workspace's state versions", x.origin(), web.Status(code))
	if code == http.StatusNotFound {
		return x.missing(w, w.Attributes.Permissions.ReadOutputs, denied)
	}
	return denied
}

// readOutput requests the value of a sensitive output.
func (x *exchange) readOutput(ctx context.Context, service *url.URL, o output) (json.RawMessage, error) {
	if !isID(o.ID) {
		return nil, errors.New("the service sent an output with an invalid ID")
	}
	var answer struct {
		Data output `json:"data"`
	}
	if err := x.getOutputs(ctx, at(service, "state-version-outputs", o.ID), &answer); err != nil {
		return nil, x.fail(err, func(code int) error {
			return fmt.Errorf("could not read the value of a sensitive output: %s answered %s; try again if the state was just written",
				x.origin(), web.Status(code))
		})
	}
	got := answer.Data
	if got.ID != o.ID || got.Attributes.Name != o.Attributes.Name || !bytes.Equal(got.Attributes.DetailedType, o.Attributes.DetailedType) {
		return nil, errors.New("the service returned an output that was not requested")
	}
	return got.Attributes.Value, nil
}

// stateOf returns a state file with the outputs. If the file has more than x.limit bytes, it returns an
// error.
func (x *exchange) stateOf(outputs []output) ([]byte, error) {
	type entry struct {
		Value     json.RawMessage `json:"value"`
		Type      json.RawMessage `json:"type"`
		Sensitive bool            `json:"sensitive,omitempty"`
	}
	file := struct {
		Version int              `json:"version"`
		Outputs map[string]entry `json:"outputs"`
	}{4, map[string]entry{}}
	for _, o := range outputs {
		a := o.Attributes
		switch _, twice := file.Outputs[a.Name]; {
		case twice:
			return nil, errors.New("the service lists two outputs with the same name")
		case len(a.DetailedType) == 0 || string(a.DetailedType) == "null":
			return nil, errors.New("the service does not return the exact types of the outputs; remove outputs_only to read the state " +
				`itself. The token then needs "Read" for the workspace's state versions`)
		case len(a.Value) == 0:
			return nil, errors.New("the service lists an output without a value")
		}
		file.Outputs[a.Name] = entry{a.Value, a.DetailedType, a.Sensitive}
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil, errors.New("the outputs cannot be converted to a state file")
	}
	if int64(len(data)) > x.limit {
		return nil, meter.TooLarge(x.limit)
	}
	return data, nil
}
