package wrap

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
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
	setting, err := setting(packed)
	switch {
	case err != nil:
		return errors.New("it cannot be read; plan again")
	case setting != nil:
		return madeWithoutWrap(hasSetting(*setting))
	}
	return nil
}

func madeWithoutWrap(err error) error {
	return fmt.Errorf("it was made without wrap: %w; plan again, with wrap", err)
}

// setting returns the name of a member of an object in msgpack that is not null, nil if all are. No value is decoded:
// one may nest without end.
func setting(packed []byte) (*string, error) {
	content := bytes.NewReader(packed)
	d := msgpack.NewDecoder(content)
	code, err := d.PeekCode()
	if err == nil && !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 { // what else the decoder takes for one
		err = errors.New("it is no object")
	}
	if err != nil {
		return nil, err
	}
	members, err := d.DecodeMapLen()
	for range members {
		name, err := d.DecodeString()
		if err != nil {
			return nil, err
		}
		switch code, err := d.PeekCode(); {
		case err != nil:
			return nil, err
		case code != msgpcode.Nil:
			return &name, nil
		}
		if err := d.DecodeNil(); err != nil {
			return nil, err
		}
	}
	if err == nil && content.Len() > 0 {
		err = errors.New("something follows it")
	}
	return nil, err
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
