package provider

import (
	"bytes"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// small is a block with a field of each kind.
func small() codec {
	return newCodec([]field{
		{Attr: attr.Attr{Name: "text", Type: cty.String}},
		{Attr: attr.Attr{Name: "number", Type: cty.Number}},
		{Attr: attr.Attr{Name: "list", Type: cty.List(cty.String)}},
		{Attr: attr.Attr{Name: "map", Type: cty.Map(cty.Number)}},
		{Attr: attr.Attr{Name: "any", Type: cty.DynamicPseudoType}},
	})
}

// messageOf is the beginning of a MessagePack map with n members.
func messageOf(n byte, members ...string) []byte {
	encoded := []byte{0x80 | n}
	for _, m := range members {
		encoded = append(encoded, m...)
	}
	return encoded
}

func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	rest := "\xa4text\xc0\xa3map\xc0\xa3any\xc0"
	for name, message := range map[string][]byte{
		"nothing":               {},
		"no such code":          {0xc1},
		"not a number":          messageOf(5, rest, "\xa6number\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01", "\xa4list\xc0"),
		"another name":          messageOf(5, rest, "\xa6numbex\xc0", "\xa4list\xc0"),
		"a name twice":          messageOf(5, rest, "\xa4list\xc0", "\xa4list\xc0"),
		"a name is missing":     messageOf(4, rest, "\xa6number\xc0"),
		"a name is a number":    messageOf(5, rest, "\xa6number\xc0", "\x01\xc0"),
		"text is a list":        messageOf(5, "\xa4text\x90", rest[6:], "\xa6number\xc0", "\xa4list\xc0"),
		"a wild list":           messageOf(5, rest, "\xa6number\xc0", "\xa4list\xdd\xff\xff\xff\xff"),
		"a wild list, filled":   messageOf(5, rest, "\xa6number\xc0", "\xa4list\xdd\x00\xff\xff\xff\xc0\xc0"),
		"a wild map":            messageOf(5, "\xa4text\xc0\xa3any\xc0", "\xa6number\xc0", "\xa4list\xc0", "\xa3map\xdf\xff\xff\xff\xff"),
		"a wild text":           messageOf(5, rest[6:], "\xa6number\xc0", "\xa4list\xc0", "\xa4text\xdb\xff\xff\xff\xff"),
		"a wild extension":      messageOf(5, rest[6:], "\xa6number\xc0", "\xa4list\xc0", "\xa4text\xc9\xff\xff\xff\xff\x0c"),
		"an unknown with junk":  messageOf(5, rest[6:], "\xa6number\xc0", "\xa4list\xc0", "\xa4text\xc7\x02\x0c\xc1\xc1"),
		"any without a type":    messageOf(5, "\xa4text\xc0\xa3map\xc0", "\xa6number\xc0", "\xa4list\xc0", "\xa3any\x92\xc4\x01{\xc0"),
		"any of no such type":   messageOf(5, "\xa4text\xc0\xa3map\xc0", "\xa6number\xc0", "\xa4list\xc0", "\xa3any\x92\xc4\x05\"nix\"\xc0"),
		"any that goes too far": messageOf(5, "\xa4text\xc0\xa3map\xc0", "\xa6number\xc0", "\xa4list\xc0", "\xa3any\xdd\xff\xff\xff\xff"),
		"deep":                  append(messageOf(5), bytes.Repeat([]byte{0x91}, 1<<20)...),
	} {
		if got, ok := small().decode(&tfprotov6.DynamicValue{MsgPack: message}); ok {
			t.Errorf("%s: it conforms: %#v", name, got)
		}
	}
}

// What does not conform is passed on to the framework, which says why, or would
// end the process as well.
func TestMalformedMessagesAreAnswered(t *testing.T) {
	t.Parallel()
	s := NewServer("test")
	for name, c := range map[string]struct{ before, after string }{
		"a wild list":  {"\xabcredentials\x90", "\xabcredentials\xdd\xff\xff\xff\xff"},
		"a list":       {"\xabcredentials\x90", "\xabcredentials\xdd\x00\x00\x00\x01"},
		"not a number": {"\xa8enforced\xc0", "\xa8enforced\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01"},
		"another name": {"\xabcredentials\x90", "\xabcredentialz\x90"},
	} {
		config := &tfprotov6.DynamicValue{MsgPack: changed(t, s.block, c.before, c.after)}
		got, err := s.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
		if err == nil && len(got.Diagnostics) == 0 {
			t.Errorf("%s: it is accepted", name)
		}
	}
	wild := &tfprotov6.DynamicValue{
		MsgPack: changed(t, s.dataSources["statecrypt_remote_state"].codec, "\xa3git\x90", "\xa3git\xdd\xff\xff\xff\xff"),
	}
	data, err := s.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "statecrypt_remote_state", Config: wild})
	if err == nil && len(data.Diagnostics) == 0 {
		t.Error("a data source is accepted")
	}
	opened, err := s.OpenEphemeralResource(t.Context(),
		&tfprotov6.OpenEphemeralResourceRequest{TypeName: "statecrypt_remote_state", Config: wild})
	if err == nil && len(opened.Diagnostics) == 0 {
		t.Error("an ephemeral resource is accepted")
	}
}

// changed is the message of a block without arguments, in which something is
// replaced.
func changed(t *testing.T, c codec, before, after string) []byte {
	t.Helper()
	message, err := marshal(empty(c.fields), c.typ())
	if err != nil || !bytes.Contains(message, []byte(before)) {
		t.Fatalf("%v: %q has no %q", err, message, before)
	}
	return bytes.Replace(message, []byte(before), []byte(after), 1)
}

// FuzzDecode: whatever a message holds, it does not end the process.
func FuzzDecode(f *testing.F) {
	full, err := msgpack.Marshal(cty.ObjectVal(map[string]cty.Value{
		"text": cty.UnknownVal(cty.String), "number": cty.MustParseNumberVal("1.1"), "list": cty.ListVal([]cty.Value{cty.StringVal("x")}),
		"map": cty.MapVal(map[string]cty.Value{"k": cty.Zero}), "any": cty.SetVal([]cty.Value{cty.True}),
	}), small().typ())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte{0xc0})
	f.Fuzz(func(t *testing.T, message []byte) {
		got, ok := small().decode(&tfprotov6.DynamicValue{MsgPack: message})
		if bytes.Equal(message, full) && (!ok || got.GetAttr("text").IsKnown()) {
			t.Errorf("got %#v", got)
		}
	})
}
