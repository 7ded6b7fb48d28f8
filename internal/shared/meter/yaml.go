package meter

import "bytes"

const (
	// perMark is the cost of one mark for a parser of YAML: of the node that it begins or ends,
	// its tokens and its events.
	perMark = 3

	// perDocument is the cost of a document, which has a parser of its own, with buffers.
	perDocument = 40
)

// YAML charges for all that a parser can make of a document. The parser itself
// counts nothing, and takes hundreds of bytes for each node. There is at most one
// for each of these marks. Those inside of texts are counted as well: an honest file
// has few.
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

// tags charges for handles. One stands for a text, which each tag copies that uses
// it, and is compared with all others.
func (m *Meter) tags(text []byte) error {
	const what = "the handles of its YAML tags"
	uses := int64(bytes.Count(text, []byte("%TAG"))) * int64(bytes.Count(text, []byte("!")))
	if err := m.Charge(uses, what); err != nil || uses == 0 { // so that the product below does not wrap around
		return err
	}
	return m.Charge(uses*int64(len(text))/64, what)
}
