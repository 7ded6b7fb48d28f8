package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/kubestate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// fetchObject rebuilds the state from the object and the secrets that it needs. If these have more than
// l.limit bytes in total, it returns an error.
func (l *location) fetchObject(ctx context.Context, c *client) (*source.Snapshot, error) {
	what, err := l.find(ctx, c)
	if err != nil {
		return nil, err
	}
	left := l.limit
	get := func(what document) ([]byte, error) {
		text, err := c.get(ctx, what)
		if left -= int64(len(text)); err == nil && left < 0 {
			return nil, meter.TooLarge(l.limit)
		}
		return text, err
	}
	object, err := get(what)
	if errors.Is(err, errNotThere) {
		return nil, &source.MissingError{Detail: fmt.Sprintf("%s does not exist", what), CredentialsSent: c.sends}
	}
	if err != nil {
		return nil, err
	}
	state, version, err := l.object.State(object, func(ref kubestate.SecretRef) ([]byte, error) {
		text, err := get(secret(ref.Namespace, ref.Name))
		if errors.Is(err, errNotThere) {
			return nil, nil
		}
		return text, err
	})
	if errors.Is(err, kubestate.ErrNoState) {
		return nil, &source.MissingError{Detail: err.Error(), CredentialsSent: c.sends}
	}
	if err != nil {
		return nil, err
	}
	return &source.Snapshot{Data: state, Revision: version}, nil
}

// find returns the document of the object. If the settings do not contain the plural name of the kind, it
// asks the server for it.
func (l *location) find(ctx context.Context, c *client) (document, error) {
	o := l.object
	what := document{group: o.Group, version: o.Version, resource: o.Resource, namespace: o.Namespace, name: o.Name}
	if what.resource != "" {
		return what, nil
	}
	api := document{group: o.Group, version: o.Version}
	text, err := c.get(ctx, api)
	if err != nil {
		return document{}, err
	}
	var kinds struct {
		Resources []struct {
			Name       string `json:"name"`
			Kind       string `json:"kind"`
			Namespaced bool   `json:"namespaced"`
		} `json:"resources"`
	}
	if json.Unmarshal(text, &kinds) != nil {
		return document{}, fmt.Errorf("the server's answer for %s cannot be read", api)
	}
	for _, k := range kinds.Resources {
		// A name with a slash belongs to a part of an object, such as its status.
		if k.Kind != o.Kind || !syntax.IsLabel(k.Name) {
			continue
		}
		switch what.resource = k.Name; {
		case k.Namespaced && o.Namespace == "":
			return document{}, fmt.Errorf("objects of the kind %s belong to a namespace; set the argument namespace in the object block", o.Kind)
		case !k.Namespaced && o.Namespace != "":
			return document{}, fmt.Errorf("objects of the kind %s belong to no namespace; remove the argument namespace from the object "+
				"block", o.Kind)
		}
		return what, nil
	}
	return document{}, fmt.Errorf("the server has no kind %s in %s; check the arguments kind and api_version", o.Kind, o.APIVersion())
}
