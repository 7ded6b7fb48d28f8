package wrap

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// checkPlan refuses a plan that has another backend in it: a plan brings its
// backend along.
func checkPlan(content []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return errors.New("it is not a plan; plan -out=FILE writes one")
	}
	plans := slices.DeleteFunc(archive.File, func(f *zip.File) bool { return f.Name != "tfplan" })
	switch len(plans) {
	case 0:
		return errors.New("it is not a plan; plan -out=FILE writes one")
	case 1:
		return checkMember(plans[0], min(maxState, meter.Expanded(int64(len(content)))))
	}
	return errors.New("it holds more than one plan; plan again") // all of them could be the same bytes of the archive
}

func checkMember(member *zip.File, limit int64) error {
	packed, err := member.Open()
	if err != nil {
		return err
	}
	defer packed.Close()
	plan, err := source.Read(packed, -1, limit)
	if err == nil {
		err = planBackend(plan)
	}
	return err
}

// Fields of the message Plan, and of the messages in it, in Terraform's
// internal/plans/planproto/planfile.proto, which is that of OpenTofu too.
const (
	fieldBackend = 13
	fieldStore   = 29
	fieldType    = 1 // of Backend
	fieldConfig  = 2 // of Backend
	fieldMsgpack = 1 // of DynamicValue
)

// planBackend refuses a plan, in protobuf, whose backend is not an empty http
// block.
func planBackend(plan []byte) error {
	kind, errKind := field(plan, fieldBackend, fieldType)
	packed, errConfig := field(plan, fieldBackend, fieldConfig, fieldMsgpack)
	store, errStore := field(plan, fieldStore)
	switch {
	case errors.Join(errKind, errConfig, errStore) != nil:
		return errors.New("it cannot be read; plan again")
	case string(kind) != "http" || store != nil:
		return madeWithoutWrap(notOurs("not http"))
	}
	config, err := object(packed)
	if err != nil {
		return errors.New("it cannot be read; plan again")
	}
	for name, value := range config {
		if !value.IsNull() {
			return madeWithoutWrap(hasSetting(name))
		}
	}
	return nil
}

func madeWithoutWrap(err error) error {
	return fmt.Errorf("it was made without wrap: %w; plan again, with wrap", err)
}

// object decodes an object. The decoder panics at some of what is none, and at a NaN.
func object(packed []byte) (attributes map[string]cty.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	t, err := msgpack.ImpliedType(packed)
	if err != nil || !t.IsObjectType() {
		return nil, cmp.Or(err, errors.New("it is no object"))
	}
	value, err := msgpack.Unmarshal(packed, t)
	return value.AsValueMap(), err
}

// field returns the content of a field in a message of protobuf: the last one
// with the first number, in that the last one with the next, and so on. It is nil
// if there is none.
func field(message []byte, first protowire.Number, next ...protowire.Number) (content []byte, err error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		if number == first && kind == protowire.BytesType {
			content, _ = protowire.ConsumeBytes(message[protowire.SizeTag(number):n])
		}
		message = message[n:]
	}
	if content == nil || len(next) == 0 {
		return content, nil
	}
	return field(content, next[0], next[1:]...)
}
