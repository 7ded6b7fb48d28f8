// Package plan encrypts saved plans, checks them, and hands copies to the program.
package plan

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
)

// maxPlan is how many bytes of a plan are read: a message of protobuf has no more.
const maxPlan = math.MaxInt32

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
		return checkMember(plans[0], maxPlan)
	}
	return errors.New("it holds more than one plan; plan again") // all of them could be the same bytes of the archive
}

// fewer is the advice about a plan that is too large.
const fewer = "; plan for fewer resources at once, by -target"

func checkMember(member *zip.File, limit int64) error {
	packed, err := member.Open()
	if err != nil {
		return err
	}
	defer packed.Close()
	plan := &walked{Reader: bufio.NewReader(packed), left: limit}
	err = plan.walk()
	switch {
	case plan.left < 0:
		return fmt.Errorf("it unpacks to more than %d bytes, which is more than the program can read"+fewer, limit)
	case err != nil:
		return errors.New("it cannot be read; plan again")
	}
	return plan.checkBackend()
}

// These are fields of the message Plan, and of the messages in it, in Terraform's
// internal/plans/planproto/planfile.proto, which OpenTofu shares.
const (
	fieldBackend = 13
	fieldStore   = 29
	fieldType    = 1 // of Backend
	fieldConfig  = 2 // of Backend
	fieldMsgpack = 1 // of DynamicValue
)

// maxBackend is how many bytes of a plan may say where its state is. The empty block has some 300.
const maxBackend = 1 << 20

// walked is a plan, in protobuf, that is read once from its beginning to its end. Nothing of it is kept
// but its backend: it may unpack to a thousand times its size.
type walked struct {
	*bufio.Reader
	left int64 // bytes that may be read; negative if there are more

	backend  []byte // the content of the last field with its number
	hasStore bool
}

var errNoPlan = errors.New("it is no message of protobuf")

// walk reads the fields of the message. It skips the fields of groups, which may be nested.
func (w *walked) walk() error {
	for groups := 0; ; {
		tag, err := binary.ReadUvarint(w)
		if errors.Is(err, io.EOF) && groups == 0 {
			return nil
		}
		number, kind := protowire.DecodeTag(tag)
		switch {
		case err != nil:
			return err
		case number < protowire.MinValidNumber:
			return errNoPlan
		case kind == protowire.StartGroupType:
			groups++
		case kind == protowire.EndGroupType:
			groups--
		default:
			err = w.field(number, kind, groups == 0)
		}
		if groups < 0 {
			err = errNoPlan
		}
		if err != nil {
			return err
		}
	}
}

// field reads the content of a field. IsOwn is false for a field of a group.
func (w *walked) field(number protowire.Number, kind protowire.Type, isOwn bool) error {
	switch kind {
	case protowire.VarintType:
		_, err := binary.ReadUvarint(w)
		return err
	case protowire.Fixed32Type:
		return w.skip(4)
	case protowire.Fixed64Type:
		return w.skip(8)
	case protowire.BytesType:
	default:
		return errNoPlan
	}
	size, err := binary.ReadUvarint(w)
	switch {
	case err != nil:
		return err
	case isOwn && number == fieldBackend && size <= maxBackend:
		w.backend = make([]byte, size)
		w.left -= int64(size)
		_, err = io.ReadFull(w, w.backend)
		return err
	case isOwn && number == fieldBackend:
		return errNoPlan
	}
	w.hasStore = w.hasStore || isOwn && number == fieldStore
	return w.skip(size)
}

// skip reads so many bytes.
func (w *walked) skip(size uint64) error {
	if size > uint64(max(w.left, 0)) { //nolint:gosec // which is not negative
		w.left = -1
	}
	if w.left < 0 {
		return errNoPlan
	}
	w.left -= int64(size)          //nolint:gosec // less than was left
	_, err := w.Discard(int(size)) //nolint:gosec // likewise
	return err
}

// ReadByte reads a byte of a number.
func (w *walked) ReadByte() (byte, error) {
	next, err := w.Reader.ReadByte()
	if err == nil {
		w.left--
	}
	if w.left < 0 {
		err = errNoPlan
	}
	return next, err
}

// checkBackend refuses a backend that is not an empty http block.
func (w *walked) checkBackend() error {
	kind, errKind := field(w.backend, fieldType)
	packed, errConfig := field(w.backend, fieldConfig, fieldMsgpack)
	switch {
	case errors.Join(errKind, errConfig) != nil:
		return errors.New("it cannot be read; plan again")
	case string(kind) != "http" || w.hasStore:
		return madeWithoutWrap(module.NotOurs("not http"))
	}
	setting, err := setting(packed)
	switch {
	case err != nil:
		return errors.New("it cannot be read; plan again")
	case setting != nil:
		return madeWithoutWrap(module.HasSetting(*setting))
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
	if err == nil && !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 { // the decoder takes others, too
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
