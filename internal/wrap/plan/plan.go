// Package plan encrypts and checks saved plans, and gives copies of them to the program.
package plan

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
)

// maxPlan is the maximum size of an unpacked plan, in bytes, because a protobuf message cannot be larger.
const maxPlan = math.MaxInt32

// checkPlan returns an error unless content is a plan for an "http" backend that has only the allowed settings. The
// check is necessary because a plan contains its own backend.
func checkPlan(content []byte, allowed module.Settings) (*checked, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, errors.New("it is not a plan; to create a plan, run terraform plan -out=FILE with wrap")
	}
	plans := slices.DeleteFunc(slices.Clone(archive.File), func(f *zip.File) bool { return f.Name != "tfplan" })
	switch len(plans) {
	case 0:
		return nil, errors.New("it is not a plan; to create a plan, run terraform plan -out=FILE with wrap")
	case 1:
		found, err := checkMember(plans[0], maxPlan, allowed)
		return &checked{archive, plans[0], int64(len(content)), found}, err
	}
	return nil, errors.New("it contains more than one plan; create the plan again") // all of them could share the same bytes of the archive
}

// fewer is the advice for a plan that is too large.
const fewer = "; use -target to plan fewer resources at once"

func checkMember(member *zip.File, limit int64, allowed module.Settings) (*walked, error) {
	packed, err := member.Open()
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	plan := &walked{Reader: bufio.NewReader(packed), left: limit}
	err = plan.walk()
	switch {
	case plan.left < 0:
		return nil, fmt.Errorf("it unpacks to more than the %d bytes that the program can read"+fewer, limit)
	case err != nil:
		return nil, errors.New("it cannot be read; create the plan again")
	}
	return plan, plan.checkBackend(allowed)
}

// These are field numbers in the Plan message, and in messages inside it, from internal/plans/planproto/planfile.proto
// of Terraform. OpenTofu uses the same numbers.
const (
	fieldBackend = 13
	fieldStore   = 29
	fieldType    = 1 // in the Backend message
	fieldConfig  = 2 // in the Backend message
	fieldMsgpack = 1 // in the DynamicValue message
)

// maxBackend is the maximum size, in bytes, of the backend description in a plan. An empty block takes about 300 bytes.
const maxBackend = 1 << 20

// walked is a protobuf plan that is read once, from beginning to end. Only its backend is kept in memory, because the
// plan may unpack to a thousand times its size.
type walked struct {
	*bufio.Reader
	left int64 // bytes that may still be read; negative if the plan is too large

	backend  []byte     // the content of the last backend field
	around   [][2]int64 // the beginning and end of each backend field, as values of left
	names    []string   // the names of the backend settings
	hasStore bool
}

var errNoPlan = errors.New("it is not a protobuf message")

// walk reads the fields of the message. It skips the fields in groups, which may be nested.
func (w *walked) walk() error {
	for groups := 0; ; {
		begin := w.left
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
			if groups == 0 && number == fieldBackend {
				w.around = append(w.around, [2]int64{begin, w.left})
			}
		}
		if groups < 0 {
			err = errNoPlan
		}
		if err != nil {
			return err
		}
	}
}

// field reads the content of a field. isOwn is false for a field inside a group.
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

// skip skips size bytes.
func (w *walked) skip(size uint64) error {
	if size > uint64(max(w.left, 0)) { //nolint:gosec // never negative
		w.left = -1
	}
	if w.left < 0 {
		return errNoPlan
	}
	w.left -= int64(size)          //nolint:gosec // at most the bytes left
	_, err := w.Discard(int(size)) //nolint:gosec // at most the bytes left
	return err
}

// ReadByte reads and counts a byte.
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

// checkBackend returns an error if the backend is not http, or if it has settings that are not allowed.
func (w *walked) checkBackend(allowed module.Settings) error {
	kind, errKind := field(w.backend, fieldType)
	packed, errConfig := field(w.backend, fieldConfig, fieldMsgpack)
	switch {
	case errors.Join(errKind, errConfig) != nil:
		return errors.New("it cannot be read; create the plan again")
	case string(kind) != "http" || w.hasStore:
		return madeWithoutWrap(module.NotOurs("not http"))
	}
	names, other, err := settingsOf(packed, allowed)
	w.names = names
	switch {
	case err != nil:
		return errors.New("it cannot be read; create the plan again")
	case other != "":
		return madeWithoutWrap(module.HasSetting(other))
	}
	return nil
}

func madeWithoutWrap(err error) error {
	return fmt.Errorf("this plan was not created with wrap, because %w. Then create the plan again with wrap", err)
}

// settingsOf returns the names in a MessagePack object. If a value is neither null nor allowed, settingsOf stops there
// and returns its name as other. It decodes only strings and numbers, because other values may be nested without limit.
func settingsOf(packed []byte, allowed module.Settings) (names []string, other string, err error) {
	content := bytes.NewReader(packed)
	d := msgpack.NewDecoder(content)
	code, err := d.PeekCode()
	if err == nil && !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 { // the decoder also accepts other types
		err = errors.New("it is not an object")
	}
	if err != nil {
		return nil, "", err
	}
	members, err := d.DecodeMapLen()
	for range members {
		name, err := d.DecodeString()
		if err != nil {
			return nil, "", err
		}
		names = append(names, name)
		code, err := d.PeekCode()
		if err != nil {
			return nil, "", err
		}
		var value any
		switch {
		case code == msgpcode.Nil:
			if err := d.DecodeNil(); err != nil {
				return nil, "", err
			}
			continue
		case msgpcode.IsString(code):
			value, err = d.DecodeString()
		case msgpcode.IsFixedNum(code) || code >= msgpcode.Uint8 && code <= msgpcode.Int64:
			value, err = d.DecodeInt64()
		}
		if err != nil {
			return nil, "", err
		}
		if !allowed.Has(name, value) {
			return names, name, nil
		}
	}
	if err == nil && content.Len() > 0 {
		err = errors.New("something follows it")
	}
	return names, "", err
}

// checked is a plan whose backend has been checked.
type checked struct {
	archive *zip.Reader
	member  *zip.File // the plan file in the archive
	size    int64     // the size of the archive, in bytes
	*walked
}

// with returns the plan with the given backend settings. All other backend settings become null.
func (c *checked) with(settings module.Settings) ([]byte, error) {
	size := uint64(0)
	for _, f := range c.archive.File {
		size += f.CompressedSize64
	}
	if size > uint64(c.size) { //nolint:gosec // several files share the same bytes
		return nil, errors.New("it cannot be read; create the plan again")
	}
	backend, err := c.backendWith(settings)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	w := zip.NewWriter(&content)
	for _, f := range c.archive.File {
		if f != c.member {
			err = errors.Join(err, w.Copy(f))
			continue
		}
		member, failed := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: f.Modified})
		if failed == nil {
			failed = c.copyTo(member)
		}
		if failed == nil {
			_, failed = member.Write(backend)
		}
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// copyTo copies the message without its backend fields.
func (c *checked) copyTo(to io.Writer) error {
	from, err := c.member.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	left := int64(maxPlan)
	for _, field := range c.around {
		if err == nil {
			_, err = io.CopyN(to, from, left-field[0])
		}
		if err == nil {
			_, err = io.CopyN(io.Discard, from, field[0]-field[1])
		}
		left = field[1]
	}
	if err == nil {
		_, err = io.Copy(to, from) //nolint:gosec // at most the size checked before
	}
	return err
}

// backendWith returns the backend field with the given settings. All other settings become null.
func (c *checked) backendWith(settings module.Settings) ([]byte, error) {
	all := map[string]any{}
	for _, name := range c.names {
		all[name] = nil
	}
	maps.Copy(all, settings)
	config, err := msgpack.Marshal(all)
	if err != nil {
		return nil, err
	}
	var backend []byte
	for rest := c.backend; len(rest) > 0; {
		number, _, n := protowire.ConsumeField(rest) // checkBackend has already parsed it without an error
		if number != fieldConfig {
			backend = append(backend, rest[:n]...)
		}
		rest = rest[n:]
	}
	value := protowire.AppendBytes(protowire.AppendTag(nil, fieldMsgpack, protowire.BytesType), config)
	backend = protowire.AppendBytes(protowire.AppendTag(backend, fieldConfig, protowire.BytesType), value)
	return protowire.AppendBytes(protowire.AppendTag(nil, fieldBackend, protowire.BytesType), backend), nil
}

// field returns the content of a nested field in a protobuf message. It takes the last field with the first number,
// then, inside that field, the last field with the next number, and so on. It returns nil if there is none.
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
