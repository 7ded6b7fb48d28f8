package meter

import "bytes"

const (
	// perMark is the cost of one mark for a YAML parser: the node that it starts or ends, with its tokens and
	// events.
	perMark = 3

	// perDocument is the cost of a document, which gets a separate parser with its own buffers.
	perDocument = 40
)

// YAML charges for everything that a parser can create from a YAML text. The parser itself has no limit, and
// needs hundreds of bytes for each node. There is at most one node for each of the marks counted here. Marks
// inside strings are counted as well, because legitimate files contain few.
func (m *Meter) YAML(text []byte) error {
	marks := 0
	for _, mark := range []byte("\n,:-?[{#&!") {
		marks += bytes.Count(text, []byte{mark})
	}
	if err := m.Charge(perDocument+perMark*int64(marks), "its YAML collections and values"); err != nil {
		return err
	}
	return m.tags(text)
}

// tags charges for YAML tag handles, which are abbreviations. The parser compares each tag with all handles,
// and copies the expanded text for each tag.
func (m *Meter) tags(text []byte) error {
	const what = "the handles of its YAML tags"
	uses := int64(bytes.Count(text, []byte("%TAG"))) * int64(bytes.Count(text, []byte("!")))
	if err := m.Charge(uses, what); err != nil || uses == 0 { // first, so that the product below cannot overflow
		return err
	}
	return m.Charge(uses*int64(len(text))/64, what)
}
