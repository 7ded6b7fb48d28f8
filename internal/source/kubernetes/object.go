package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/kube"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// fetchObject reads an object and the secrets that it needs, as a manifest.
func (l *location) fetchObject(ctx context.Context, c *client) (*source.Snapshot, error) {
	what, err := l.find(ctx, c)
	if err != nil {
		return nil, err
	}
	left := l.limit
	object, err := c.getWithin(ctx, what, &left, l.limit)
	if errors.Is(err, errNotThere) {
		return nil, &source.MissingError{Detail: fmt.Sprintf("%s does not exist", what), CredentialsSent: c.sends}
	}
	if err != nil {
		return nil, err
	}
	refs, err := l.object.Secrets(object)
	if errors.Is(err, kube.ErrNoState) {
		return nil, &source.MissingError{Detail: err.Error(), CredentialsSent: c.sends}
	}
	if err != nil {
		return nil, err
	}
	manifest := [][]byte{object}
	for _, ref := range refs {
		text, err := c.secret(ctx, ref, &left, l.limit)
		if err != nil {
			return nil, err
		}
		manifest = append(manifest, text)
	}
	return &source.Snapshot{Data: list(manifest), Revision: version(object)}, nil
}

// getWithin reads something as long as all that is read stays within limit.
func (c *client) getWithin(ctx context.Context, what thing, left *int64, limit int64) ([]byte, error) {
	text, err := c.get(ctx, what)
	if err != nil {
		return nil, err
	}
	if *left -= int64(len(text)); *left < 0 {
		return nil, source.TooLarge(limit)
	}
	return text, nil
}

// secret reads a secret that an object names. Where the controller does
// without one that is not there, an empty one stands for it.
func (c *client) secret(ctx context.Context, ref kube.SecretRef, left *int64, limit int64) ([]byte, error) {
	what := secret(ref.Namespace, ref.Name)
	text, err := c.getWithin(ctx, what, left, limit)
	switch {
	case !errors.Is(err, errNotThere):
		return text, err
	case !ref.Optional:
		return nil, fmt.Errorf("%s does not exist, and the object needs it", what)
	}
	return json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"namespace": ref.Namespace, "name": ref.Name},
	})
}

// find says where the object is in the API. The plural of its kind is the
// server's to say, unless the user does.
func (l *location) find(ctx context.Context, c *client) (thing, error) {
	o := l.object
	what := thing{group: o.Group, version: o.Version, resource: o.Resource, namespace: o.Namespace, name: o.Name}
	if what.resource != "" {
		return what, nil
	}
	api := thing{group: o.Group, version: o.Version}
	text, err := c.get(ctx, api)
	if err != nil {
		return thing{}, err
	}
	var kinds struct {
		Resources []struct {
			Name       string `json:"name"`
			Kind       string `json:"kind"`
			Namespaced bool   `json:"namespaced"`
		} `json:"resources"`
	}
	if json.Unmarshal(text, &kinds) != nil {
		return thing{}, fmt.Errorf("the server's answer for %s cannot be read", api)
	}
	for _, k := range kinds.Resources {
		// A name with a slash is a part of an object, such as its status.
		if k.Kind != o.Kind || len(validation.IsDNS1123Label(k.Name)) > 0 {
			continue
		}
		switch what.resource = k.Name; {
		case k.Namespaced && o.Namespace == "":
			return thing{}, fmt.Errorf("a %s is in a namespace; set namespace in the object block", o.Kind)
		case !k.Namespaced && o.Namespace != "":
			return thing{}, fmt.Errorf("a %s is in no namespace; leave namespace out of the object block", o.Kind)
		}
		return what, nil
	}
	return thing{}, fmt.Errorf("the server has no kind %s in %s", o.Kind, o.APIVersion())
}

// list is a manifest of several objects.
func list(objects [][]byte) []byte {
	var b bytes.Buffer
	b.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	b.Write(bytes.Join(objects, []byte(",")))
	b.WriteString(`]}`)
	return b.Bytes()
}

func version(object []byte) string {
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(object, &o) // has been read before
	return o.Metadata.ResourceVersion
}
